package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"codehand/filestate/disk"
)

const (
	lateWait = time.Second // how long an old file is kept open for what comes late
	// how long at most between two looks at whether a program still has it open for writing
	lateMost  = 10 * time.Minute
	lateFiles = 64 // old files kept open at most
)

// late are old files that have no name any more. A program that had looked up the name just before it was exchanged,
// and got no processor since, opens and writes the old file: the system does not tell that before, so each is looked at
// again when it is a second old. One that a program still has open for writing then, as a log is, is kept until that
// program closes it, and what it wrote goes to the journal then, but for four cases: this process ends first, 64 others
// are kept for as good a reason, the file grew beyond 1 GiB, which nothing here reads, or the system does not tell who
// writes, as only Linux does. What could not be kept is in the log. The zero late is ready.
type late struct {
	mu    sync.Mutex
	files []*lateFile // the oldest first
	gone  sync.WaitGroup
}

// A Late is a file that was just removed, as it was then.
type Late struct {
	File  *os.File
	Path  string // that it had
	By    By
	Sum   disk.Digest // of its content
	Stamp disk.Stamp
}

type lateFile struct {
	Late
	timer *time.Timer
	wait  time.Duration // until the timer ends
}

// WatchLate takes over an open file that was just removed, and closes it.
func (j *Journal) WatchLate(removed Late) {
	f := &lateFile{Late: removed}
	j.late.mu.Lock()
	j.late.files = append(j.late.files, f)
	var surplus *lateFile
	if len(j.late.files) > lateFiles {
		idle := slices.IndexFunc(j.late.files, func(f *lateFile) bool { return !disk.BeingWritten(f.File) })
		surplus = j.late.files[max(idle, 0)]
	}
	j.late.gone.Add(1)
	f.wait = lateWait
	f.timer = time.AfterFunc(f.wait, func() { j.lookLate(f) })
	j.late.mu.Unlock()
	if surplus != nil {
		j.settleLate(surplus)
	}
}

// lookLate settles an old file, or waits twice as long if a program has it open for writing.
func (j *Journal) lookLate(f *lateFile) {
	j.late.mu.Lock()
	wait := slices.Contains(j.late.files, f) && disk.BeingWritten(f.File)
	if wait {
		f.wait = min(2*f.wait, lateMost)
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
	defer func() { _ = f.File.Close() }() // only read
	switch err := j.keepLate(f); {
	case errors.Is(err, errUnseen):
		j.o.Log.Warn("whether a program saved late into a file that was changed is not known", "path", f.Path,
			"call", f.By.Call, "error", err)
	case err != nil:
		j.o.Log.Error("what a program saved late into a file that was changed is lost", "path", f.Path,
			"call", f.By.Call, "error", err)
	}
}

// errUnseen says that an old file could not be read to its end, so notes that came late may be missing.
var errUnseen = errors.New("the old file could not be read")

// keepLate keeps what came late. With errUnseen that may be nothing; with any other error it is lost.
func (j *Journal) keepLate(f *lateFile) error {
	now, err := disk.Restamp(f.File)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnseen, err)
	}
	if !f.Stamp.Racy && now.Size == f.Stamp.Size && now.Mtime == f.Stamp.Mtime {
		return nil
	}
	if now.Size > disk.MaxSize {
		return disk.ErrTooLarge
	}
	// The hash comes before any memory is taken for a large file.
	sum, err := disk.StreamDigest(context.Background(), f.File, now.Size)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnseen, err)
	}
	if sum == f.Sum {
		return nil
	}
	content, err := disk.ReadAll(context.Background(), f.File, now.Size)
	if err != nil || disk.DigestOf(content) == f.Sum {
		return err
	}
	return j.Keep(KindExternal, f.By, f.Path, content)
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
