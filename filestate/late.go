package filestate

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	lateWait  = time.Second      // how long an old file is kept open for what comes late
	lateMost  = 10 * time.Minute // the same while a program has it open for writing, about
	lateFiles = 64               // old files kept open at most
)

// late are old files that have no name any more. A program that had looked up the name just before it was exchanged, and
// got no processor since, opens and writes the old file: the system does not tell that before, so each is looked at again
// when it is a second old. One that a program still has open for writing then, as a log is, is kept until that program
// closes it. What such a program writes goes to the journal, whatever its size; only of a file that it lets grow beyond
// 1 GiB, which nothing here reads, it does not. The zero late is ready.
type late struct {
	mu    sync.Mutex
	files []*lateFile // the oldest first
	gone  sync.WaitGroup
}

type lateFile struct {
	file  *os.File
	path  string
	by    By
	sum   digest // of its content
	stamp Stamp
	timer *time.Timer
	wait  time.Duration // until the timer ends
}

// watchLate takes over an open file that was just removed.
func (j *Journal) watchLate(f *lateFile) {
	j.late.mu.Lock()
	j.late.files = append(j.late.files, f)
	var oldest *lateFile
	if len(j.late.files) > lateFiles {
		oldest = j.late.files[0]
	}
	j.late.gone.Add(1)
	f.wait = lateWait
	f.timer = time.AfterFunc(f.wait, func() { j.lookLate(f) })
	j.late.mu.Unlock()
	if oldest != nil {
		j.settleLate(oldest)
	}
}

// lookLate settles an old file, or waits twice as long if a program has it open for writing.
func (j *Journal) lookLate(f *lateFile) {
	j.late.mu.Lock()
	wait := slices.Contains(j.late.files, f) && 2*f.wait < lateMost && beingWritten(f.file)
	if wait {
		f.wait *= 2
		f.timer.Reset(f.wait)
	}
	j.late.mu.Unlock()
	if !wait {
		j.settleLate(f)
	}
}

// settleLate looks at an old file for the last time.
func (j *Journal) settleLate(f *lateFile) {
	j.late.mu.Lock()
	mine := false
	for i, other := range j.late.files {
		if mine = other == f; mine {
			j.late.files = append(j.late.files[:i:i], j.late.files[i+1:]...)
			break
		}
	}
	j.late.mu.Unlock()
	if !mine {
		return
	}
	defer j.late.gone.Done()
	f.timer.Stop()
	defer func() { _ = f.file.Close() }() // only read
	now, err := restamp(f.file)
	if err != nil || !f.stamp.Racy && now.Size == f.stamp.Size && now.Mtime == f.stamp.Mtime || now.Size > maxSize {
		return
	}
	if sum, err := sumOf(f.file, now.Size); err != nil || sum == f.sum {
		return // before any memory is taken for a large one
	}
	content, err := readAll(context.Background(), f.file, now.Size)
	if err == nil && digestOf(content) != f.sum {
		_ = j.keep(kindExternal, f.by, f.path, content) // there is nobody to tell
	}
}

// sumOf is the digest of the first size bytes of a file.
func sumOf(f io.ReaderAt, size int64) (sum digest, err error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, size)); err != nil {
		return sum, err
	}
	return digest(hash.Sum(nil)), nil
}

// settleAllLate looks at all old files now, and waits for those who do already.
func (j *Journal) settleAllLate() {
	for {
		j.late.mu.Lock()
		if len(j.late.files) == 0 {
			j.late.mu.Unlock()
			j.late.gone.Wait()
			return
		}
		f := j.late.files[0]
		j.late.mu.Unlock()
		j.settleLate(f)
	}
}
