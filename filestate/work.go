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
)

const (
	readTries = 3        // how often a file that changes while it is read is read again
	aloneSize = 64 << 10 // bytes from which a content is hashed beside what else is done
)

// A work is one Edit on its way through Update.
type work struct {
	edit Edit
	by   By // for what the journal keeps beside the change
	path string
	name string   // in dir
	dir  *os.Root // nil: the directory does not exist yet

	file  *os.File      // the old file; nil: there is none
	wait  time.Duration // how long a program that is writing to what was displaced is waited for
	info  fs.FileInfo
	stamp Stamp // before old was read; once it is published, of the new file
	old   []byte
	base  digest // of old

	hashing struct{ old, next sync.WaitGroup } // what sets base and after

	known *record
	next  []byte
	after digest // of next
	same  bool   // next is old

	made      []string // directories made for it, below edit.File.Dir
	fresh     []string // those and others that somebody else made meanwhile, who may not have synced them
	temporary string   // name of its temporary file, in dir
	temp      *temp    // nil: not staged, or already published
	inPlace   bool     // the old file is overwritten, as it cannot be replaced
	displaced bool     // what stood at the name stands at temporary now
	gone      Stamp    // of what was displaced, when it was found to be the old file
	sync      error    // why the change may not be on the disk
	lost      []string // attributes that the new file could not be given
	links     int      // other names of the old file
}

// open opens the directory of the name and the file, if they are there.
func (w *work) open() error {
	dir, err := descend(w.edit.File.Dir, filepath.Dir(w.edit.File.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return w.failed(stepOpenDir, err)
	}
	w.dir = dir
	if err := w.openFile(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (w *work) openFile() error {
	file, stamp, err := openRegular(w.dir, w.name, w.path)
	if errors.Is(err, ErrMoved) {
		// The name has become a link since it was resolved: what it stands for was never seen.
		return &StaleError{Path: w.path, Was: w.edit.Version}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDirectory) || errors.Is(err, ErrNotRegular) {
		return err
	}
	if err != nil {
		return w.failed(stepOpen, err)
	}
	if w.file != nil {
		_ = w.file.Close() // an older file of that name, only read
	}
	w.file, w.stamp = file, stamp
	if stamp.Size > maxSize {
		return fmt.Errorf("%s: %w", w.path, ErrTooLarge)
	}
	if w.info, err = file.Stat(); err != nil {
		return w.failed(stepOpen, err)
	}
	w.wait = writerWait
	if beingWritten(file) {
		w.wait = holderWait
	}
	return nil
}

// failed gives an error of a step its form. The end of a ctx and the errors of this package keep theirs.
func (w *work) failed(at step, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrMoved) {
		return fmt.Errorf("%s %s: %w", at, w.path, err)
	}
	return &WriteError{Path: w.path, Step: string(at), Err: cause(err)}
}

// stateFailed is failed for a step in the state directory: the path alone would send the reader to the wrong disk.
func (w *work) stateFailed(at step, err error) error {
	return w.failed(at, inState(err))
}

func inState(err error) error { return fmt.Errorf("state directory: %w", cause(err)) }

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
		old, err := readAll(ctx, w.file, w.stamp.Size)
		if err != nil && !errors.Is(err, ErrMoved) {
			return w.failed(stepRead, err)
		}
		now, statErr := restamp(w.file)
		if statErr != nil {
			return w.failed(stepRead, statErr)
		}
		if err == nil && now.same(w.stamp) {
			w.old = old
			hashBeside(&w.hashing.old, &w.base, old)
			return nil
		}
		w.stamp = now
		if now.Size > maxSize {
			return fmt.Errorf("%s: %w", w.path, ErrTooLarge)
		}
	}
	return w.failed(stepRead, ErrMoved)
}

// hashBeside sets sum to the hash of a content, beside what comes next if that is worth a goroutine. Who wants the sum
// waits for wg.
func hashBeside(wg *sync.WaitGroup, sum *digest, content []byte) {
	if len(content) < aloneSize {
		*sum = digestOf(content)
		return
	}
	wg.Go(func() { *sum = digestOf(content) })
}

// hashed waits for the hashes of all contents.
func hashed(works []*work) {
	for _, w := range works {
		w.hashing.old.Wait()
		w.hashing.next.Wait()
	}
}
