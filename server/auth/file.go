package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	maxTokenFile = 64 << 20 // bytes; about 200,000 tokens
	maxLine      = 64 << 10 // bytes
	lockPatience = 10 * time.Second
	lockPoll     = 20 * time.Millisecond
)

// A trust says whether what the file says may be believed, given its owner.
type trust func(file, dir fs.FileInfo) error

// ownerOrUs is for the server, which grants what the file says.
func ownerOrUs(file, _ fs.FileInfo) error {
	if !ours(file) {
		return errors.New("belongs to another user; run chown on it")
	}
	return nil
}

// ownerOrRoot is for a person's command. Root may see to the file of a service that runs as a user of its own: then
// the directory belongs to that user, too.
func ownerOrRoot(file, dir fs.FileInfo) error {
	if isRoot() && sameOwner(file, dir) {
		return nil
	}
	return ownerOrUs(file, dir)
}

// A reading is what the file held at one time.
type reading struct {
	lines []*line
	byID  map[string]*line
	info  fs.FileInfo // before it was read; nil: there is no file
}

// readTokens reads the file, following links. A file that is not there has no tokens. An error has a reading with info
// nevertheless, as far as that is known.
func readTokens(path string, trusted trust) (reading, error) {
	r := reading{byID: map[string]*line{}}
	text, err := readPrivate(path, trusted, &r.info)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return r, fmt.Errorf("tokens file %s: %w", path, err)
	}
	at := map[string]int{}
	n := 0
	for raw := range bytes.Lines(text) {
		n++
		raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		if len(raw) > maxLine {
			return r, fmt.Errorf("%s:%d: the line is longer than %d bytes", path, n, maxLine)
		}
		l, err := parseLine(raw)
		if err != nil {
			return r, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if before := at[l.token.ID]; before > 0 {
			return r, fmt.Errorf("%s:%d: id %s is also in line %d", path, n, l.token.ID, before)
		}
		at[l.token.ID] = n
		r.lines = append(r.lines, l)
		r.byID[l.token.ID] = l
	}
	return r, nil
}

// readPrivate reads a file that no other user may read. before gets the state of the file from before it was read.
func readPrivate(path string, trusted trust, before *fs.FileInfo) ([]byte, error) {
	// Opening a pipe would wait for its other end.
	if info, err := os.Stat(path); err != nil {
		return nil, bare(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, bare(err)
	}
	*before = info
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, bare(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a file")
	}
	if err := trusted(info, dir); err != nil {
		return nil, err
	}
	if othersMayRead(info) {
		return nil, fmt.Errorf("has mode %04o, so others may read it; run chmod 600 on it", info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(text) > maxTokenFile {
		return nil, fmt.Errorf("is larger than %d bytes", maxTokenFile)
	}
	return text, nil
}

// bare drops the path of an error that gets it from its caller.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// lockBeside keeps other processes out: it takes the lock file of path, which stays. The file itself cannot carry the
// lock, because it is replaced.
func lockBeside(path string, patience time.Duration) (unlock func(), err error) {
	name := path + ".lock"
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("lock %s: it is a link or not a file; remove it", name)
	}
	l := flock.New(name, flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ok, err := l.TryLockContext(ctx, lockPoll)
	switch {
	case errors.Is(err, context.DeadlineExceeded), err == nil && !ok:
		return nil, fmt.Errorf("lock %s: another process has held it for %s", name, patience)
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", name, bare(err))
	}
	// It may have been removed since it was opened, and a lock on a file without a name keeps no process out. A link
	// would let the owner of the directory choose what root makes and gives away.
	mine, err := l.Stat()
	if err == nil {
		var named fs.FileInfo
		if named, err = os.Lstat(name); err == nil && !os.SameFile(mine, named) {
			err = errors.New("it is a link, or was replaced meanwhile")
		}
	}
	if err == nil {
		err = giveToOwner(path, func(uid, gid int) error { return os.Lchown(name, uid, gid) })
	}
	if err != nil {
		_ = l.Close() // nothing was done under it
		return nil, fmt.Errorf("lock %s: %w", name, bare(err))
	}
	return func() { _ = l.Close() }, nil // the lock ends with the descriptor, whatever Close says
}

// replaceFile writes a file anew: a reader sees the old or the new one, whole. With sync that also holds after a power
// loss. The caller has the lock. A link is refused, since what it points to would stay as it is.
func replaceFile(path string, text []byte, sync bool) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return errors.New("it is a link or not a file; name the file itself")
	}
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+"-"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return bare(err)
	}
	for _, e := range entries {
		// What a writer left behind who ended in the middle: there is no other one now.
		if strings.HasPrefix(e.Name(), prefix) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // tried again next time
		}
	}
	f, err := os.CreateTemp(dir, prefix+"*") // 0600
	if err != nil {
		return bare(err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already if all went well
	_, err = f.Write(text)
	if err == nil && sync {
		err = f.Sync() // before the rename, or the name could stand for an empty file after a power loss
	}
	if err == nil {
		err = giveToOwner(path, f.Chown)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if sync {
		return syncDir(dir)
	}
	return nil
}
