package filestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/filestate/seen"
	"codehand/filestate/splices"
)

const (
	readTries = 3        // how often a file that changes while it is read is read again
	aloneSize = 64 << 10 // bytes from which a content is hashed beside what else is done
)

// A work is one Edit on its way through Update.
type work struct {
	edit Edit
	by   journal.By // for what the journal keeps beside the change
	path string
	name string   // in dir
	dir  *os.Root // nil: the directory does not exist yet

	file  *os.File      // the old file; nil: there is none
	wait  time.Duration // how long a program that is writing to what was displaced is waited for
	info  fs.FileInfo
	stamp disk.Stamp // before old was read; once it is published, of the new file
	old   []byte
	base  disk.Digest // of old

	hashing struct{ old, next sync.WaitGroup } // what sets base and after

	cut   *spliced // of a large file that is changed at some places: old and next are not in memory; nil: they are
	known *seen.Record
	since *StaleError // as Change.Since
	next  []byte
	after disk.Digest // of next
	same  bool        // next is old, and the mode stays
	// the content comes from a file that was not seen whole, so that what stands here must be read before it changes
	partly bool

	dirs      struct{ made, fresh []string } // see stage.go
	temporary string                         // name of its temporary file, in dir
	temp      *temp                          // nil: not staged, or already published
	inPlace   bool                           // the old file is overwritten, as it cannot be replaced
	displaced bool                           // what stood at the name stands at temporary now
	gone      disk.Stamp                     // of what was displaced, when it was found to be the old file
	sync      error                          // why the change may not be on the disk
	lost      []string                       // as Change.Lost
	links     int                            // other names of the old file
}

// open opens the directory of the name and the file, if they are there.
func (w *work) open() error {
	dir, err := disk.Descend(w.edit.File.Dir, filepath.Dir(w.edit.File.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return w.failed(fault.OpenDir, err)
	}
	w.dir = dir
	if err := w.openFile(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (w *work) openFile() error {
	file, stamp, err := disk.OpenAsked(w.dir, w.name, w.path, w.edit.File.Linked)
	if errors.Is(err, disk.ErrMoved) {
		// The name has become a link since it was resolved: what it stands for was never seen.
		return &StaleError{Path: w.path, Was: w.edit.Version}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, disk.ErrDirectory) || errors.Is(err, disk.ErrNotRegular) {
		return err
	}
	if err != nil {
		return w.failed(fault.Open, err)
	}
	if w.file != nil {
		_ = w.file.Close() // an older file of that name, only read
	}
	w.file, w.stamp = file, stamp
	if stamp.Size > disk.MaxSize {
		return fmt.Errorf("%s: %w", w.path, disk.ErrTooLarge)
	}
	if w.info, err = file.Stat(); err != nil {
		return w.failed(fault.Open, err)
	}
	w.wait = writerWait
	if disk.BeingWritten(file) {
		w.wait = holderWait
	}
	return nil
}

// failed gives an error of a step its form. The end of a ctx and the errors of this package keep theirs.
func (w *work) failed(at fault.Step, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, disk.ErrMoved) {
		return fmt.Errorf("%s %s: %w", at, w.path, err)
	}
	return &WriteError{Path: w.path, Step: string(at), Err: disk.Cause(err), Absent: w.absent(at)}
}

// absent says at a step that failed that there was no such file, or that it is not known. Without a free handle,
// opening fails as well for a name that is not there; a look at it needs none.
func (w *work) absent(at fault.Step) bool {
	switch {
	case w.file != nil:
		return false
	case at == fault.Open && w.dir != nil:
		_, err := w.dir.Lstat(w.name)
		return errors.Is(err, fs.ErrNotExist)
	}
	return true
}

// stateFailed is failed for a step in the state directory: the path alone would send the reader to the wrong disk.
func (w *work) stateFailed(at fault.Step, err error) error {
	return w.failed(at, inState(err))
}

func inState(err error) error { return fmt.Errorf("state directory: %w", disk.Cause(err)) }

func closeAll(works []*work) {
	for _, w := range works {
		if w.file != nil {
			_ = w.file.Close() // only read
		}
		if w.dir != nil {
			_ = w.dir.Close() // a directory handle holds no data
		}
	}
}

// read reads the whole file, and begins to hash it. Others may write to it at the same time; then it is read again.
func (w *work) read(ctx context.Context) error {
	if w.file == nil {
		return nil
	}
	for range readTries {
		old, err := disk.ReadAll(ctx, w.file, w.stamp.Size)
		if err != nil && !errors.Is(err, disk.ErrMoved) {
			return w.failed(fault.Read, err)
		}
		now, statErr := disk.Restamp(w.file)
		if statErr != nil {
			return w.failed(fault.Read, statErr)
		}
		if err == nil && now.Same(w.stamp) {
			w.old = old
			hashBeside(&w.hashing.old, &w.base, old)
			return nil
		}
		w.stamp = now
		if now.Size > disk.MaxSize {
			return fmt.Errorf("%s: %w", w.path, disk.ErrTooLarge)
		}
	}
	return w.failed(fault.Read, disk.ErrMoved)
}

// hashBeside sets sum to the hash of a content, beside what comes next if that is worth a goroutine. Who wants the sum
// waits for wg.
func hashBeside(wg *sync.WaitGroup, sum *disk.Digest, content []byte) {
	if len(content) < aloneSize {
		*sum = disk.DigestOf(content)
		return
	}
	wg.Go(func() { *sum = disk.DigestOf(content) })
}

// hashed waits for the hashes of all contents.
func hashed(works []*work) {
	for _, w := range works {
		w.hashing.old.Wait()
		w.hashing.next.Wait()
	}
}

// content is what the disk holds, as far as it was read; nil: there is no file.
func (w *work) content() *seen.Content {
	if w.file == nil {
		return nil
	}
	if w.cut != nil {
		return &seen.Content{From: w.cut.from, Size: w.cut.was, Sum: w.base}
	}
	return &seen.Content{Bytes: w.old, Size: int64(len(w.old)), Sum: w.base}
}

// made is what the disk will hold.
func (w *work) made() seen.Content {
	if w.cut != nil {
		return seen.Content{From: w.cut.Read(w.cut.from, w.cut.was), Size: w.cut.size(), Sum: w.after}
	}
	return seen.Content{Bytes: w.next, Size: int64(len(w.next)), Sum: w.after}
}

// kept says whether the journal keeps both contents.
func (w *work) kept() bool {
	return w.cut == nil && max(len(w.old), len(w.next)) <= journal.MaxKept
}

// part is what the journal notes of a file that changes.
func (w *work) part() journal.Part {
	p := journal.Part{Path: w.path, Temp: w.temporary, Before: w.base, After: w.after, New: w.next}
	p.From = w.edit.MovedFrom
	if w.file != nil {
		p.Old, p.Mode = w.old, w.info.Mode()
	}
	switch {
	case w.cut != nil:
		p.Old, p.New, p.OldSize, p.NewSize = []byte{}, []byte{}, w.cut.was, w.cut.size()
		p.Splices = w.cut.Narrow()
	case !w.kept() && w.file != nil && !w.edit.Remove:
		p.Splices = splices.List{splices.Between(w.old, w.next)}
	}
	if w.edit.modeIs {
		p.NewMode = w.edit.mode
	}
	if w.edit.Remove {
		p.New = nil
	}
	return p
}

// otherMode says that a file which is there gets another mode. After it was published this is not known.
func otherMode(w *work) bool {
	return w.edit.modeIs && w.file != nil && (w.info.Mode()^w.edit.mode)&disk.KeptMode != 0
}
