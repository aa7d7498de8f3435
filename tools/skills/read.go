package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// grain is how old a modification time must be at least to show every later change: clocks of file systems are coarse.
const grain = 2 * time.Second

// errIrregular means a directory or a pipe where a file was expected.
var errIrregular = errors.New("it is no regular file")

// A stamp tells whether a file is still the one that was read.
type stamp struct {
	info fs.FileInfo
	sure bool // it was old enough as it was read
}

// takeStamp looks at a file before it is read.
func takeStamp(info fs.FileInfo) stamp {
	return stamp{info: info, sure: time.Since(info.ModTime()) >= grain}
}

// holds reports whether info is that of the same file with the same content, as far as can be seen from outside.
func (s stamp) holds(info fs.FileInfo) bool {
	if !s.sure || s.info.Size() != info.Size() || !s.info.ModTime().Equal(info.ModTime()) {
		return false
	}
	// Not every Files has infos of the system; one that has not is the same as nothing, itself included.
	old, now := target(s.info), target(info)
	return os.SameFile(old, now) || !os.SameFile(now, now)
}

// A copied is a file as it was read.
type copied struct {
	stamp stamp
	data  []byte
	sum   string // SHA-256, hex
}

// load reads a file of at most max bytes. If old holds it is not read, and fresh is false. ErrTooLarge means that it
// has more.
func load(f Files, path string, max int64, old *stamp) (c copied, fresh bool, err error) {
	file, err := f.Open(path)
	if err != nil {
		return copied{}, false, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return copied{}, false, err
	}
	if !info.Mode().IsRegular() {
		return copied{}, false, errIrregular
	}
	if old != nil && old.holds(info) {
		return copied{stamp: *old}, false, nil
	}
	c.stamp = takeStamp(info)
	if info.Size() > max {
		return copied{}, false, ErrTooLarge
	}
	// A file that grows meanwhile has its old size in info.
	c.data, err = io.ReadAll(io.LimitReader(file, max+1))
	if err != nil {
		return copied{}, false, err
	}
	if int64(len(c.data)) > max {
		return copied{}, false, ErrTooLarge
	}
	sum := sha256.Sum256(c.data)
	c.sum = hex.EncodeToString(sum[:])
	return c, true, nil
}

// cause is an error without the path that it is about, which may be one that a reader must not see.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// sentence says why a file is no skill.
func sentence(format string, args ...any) string {
	return fmt.Sprintf("The skill is left out: "+format+".", args...)
}
