package filestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"codehand/filestate/disk"
	"codehand/filestate/exchange"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
)

// After an exchange the temporary name stands for what was at the name of the target. No such file is removed before it
// was found to be the old content, our new one, or one that the journal holds.

// verify looks whether what was displaced is what was read, and puts it back if it is not.
func (l *Ledger) verify(ctx context.Context, w *work) error {
	var there found
	err := l.steps.Before(fault.Verify)
	if err == nil {
		there, err = w.is(ctx, w.temporary, w.was(), w.stamp)
	}
	if err == nil && there.same {
		w.gone = there.stamp
		w.written(w.temp)
		return nil
	}
	if backErr := l.putBack(ctx, w, there.content); backErr != nil {
		w.temp = nil // what is there is not ours to remove
		return &RollbackError{Err: w.failed(fault.Verify, disk.ErrMoved),
			Files: []Left{{Path: w.path, Changed: true, Err: backErr}}}
	}
	if err != nil && !errors.Is(err, disk.ErrMoved) && !errors.Is(err, disk.ErrTooLarge) &&
		!errors.Is(err, disk.ErrDirectory) && !errors.Is(err, disk.ErrNotRegular) {
		return w.failed(fault.Verify, err)
	}
	return l.foreign(ctx, w)
}

// putBack gives another program's file its name again. The journal has its content before, if it is known, so that the
// content survives any failure meanwhile.
func (l *Ledger) putBack(ctx context.Context, w *work, content []byte) error {
	if content != nil {
		// If this fails, the file goes back to its name all the same.
		_ = l.journal.TryKeep(journal.KindExternal, w.by, w.path, content, w.path)
	}
	err := l.steps.Before(fault.PutBack)
	if err == nil {
		err = exchange.Swap(w.dir, w.temporary, w.name)
	}
	if errors.Is(err, fs.ErrNotExist) { // another program removed our content meanwhile
		if err = exchange.PublishNew(w.dir, w.temporary, w.name); err == nil {
			w.temp, w.displaced = nil, false
			return nil
		}
	}
	if err != nil {
		return w.failed(fault.PutBack, err)
	}
	w.displaced = false
	l.discardOurs(ctx, w)
	return nil
}

// discardOurs removes the temporary file after names were exchanged back, if it holds our content. If another program
// saved in between, the file holds that content, which goes to the journal first.
func (l *Ledger) discardOurs(ctx context.Context, w *work) {
	w.wait = writerWait // this file is another one, which no program had open before
	there, err := w.is(ctx, w.temporary, w.will(), disk.Stamp{})
	w.temp = nil
	if err == nil && (there.same || l.keepBeside(w, there.content)) {
		_ = w.dir.Remove(w.temporary) // sweep finds what stays
	}
}

// keepBeside copies another program's content from the temporary file to the journal. false: the temporary file is its
// only place, and stays.
func (l *Ledger) keepBeside(w *work, content []byte) bool {
	return l.journal != nil && l.journal.TryKeep(journal.KindExternal, w.by, w.path, content,
		filepath.Join(filepath.Dir(w.path), w.temporary))
}

// setAside takes the name off a file that is to be removed, and proves that it was the one that was read.
func (l *Ledger) setAside(ctx context.Context, w *work) error {
	err := l.steps.Before(fault.Rename)
	if err == nil {
		err = moveAside(w.dir, w.name, w.temporary)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return l.foreign(ctx, w)
	}
	if err != nil {
		return w.failed(fault.Rename, err)
	}
	w.displaced = true
	there, err := w.is(ctx, w.temporary, w.was(), w.stamp)
	if err == nil && there.same {
		w.gone = there.stamp
		return nil
	}
	if _, err := l.nameAgain(w, there.content); err != nil {
		return &RollbackError{Err: w.failed(fault.Verify, disk.ErrMoved),
			Files: []Left{{Path: w.path, Changed: true, Err: err}}}
	}
	return l.foreign(ctx, w)
}

// moveAside renames to a temporary name, which no other program knows.
func moveAside(dir *os.Root, name, temporary string) error {
	err := exchange.RenameNew(dir, name, temporary)
	if errors.Is(err, errors.ErrUnsupported) {
		return dir.Rename(name, temporary)
	}
	return err
}

// nameAgain gives a file that was set aside its name again. If another program took the name meanwhile, the content is
// in the journal, and named is false.
func (l *Ledger) nameAgain(w *work, content []byte) (named bool, err error) {
	if err = l.steps.Before(fault.PutBack); err == nil {
		err = exchange.PublishNew(w.dir, w.temporary, w.name)
	}
	if err == nil {
		w.displaced = false
		return true, nil
	}
	if errors.Is(err, fs.ErrExist) && content != nil && l.journal != nil && l.keepBeside(w, content) {
		_ = w.dir.Remove(w.temporary) // sweep finds what stays
		w.displaced = false
		return false, nil
	}
	return false, w.failed(fault.PutBack, err)
}

// nameBack gives a file that was removed its name again, unless another program took it.
func (l *Ledger) nameBack(ctx context.Context, w *work) error {
	content := w.old
	if there, err := w.is(ctx, w.temporary, w.was(), disk.Stamp{}); err != nil {
		content = nil // not known, so it stays beside
	} else if !there.same {
		content = there.content // a program that had it open has written to it
	}
	named, err := l.nameAgain(w, content)
	if err == nil && !named {
		err = fmt.Errorf("%s: %w", w.path, disk.ErrMoved)
	}
	return err
}

// clean removes the old file. A program that had it open may have written to it since: that goes to the journal.
func (l *Ledger) clean(ctx context.Context, w *work) {
	if !w.displaced {
		return
	}
	if err := l.steps.Before(fault.Remove); err != nil {
		return // sweep finds it
	}
	file, stamp, err := disk.OpenRegular(w.dir, w.temporary, w.path)
	if err != nil {
		return
	}
	last := w.base
	if !stamp.Same(w.gone) {
		there, err := w.is(ctx, w.temporary, w.was(), disk.Stamp{})
		if err != nil || !there.same && !l.keepBeside(w, there.content) {
			_ = file.Close() // only read
			return
		}
		if !there.same {
			last = disk.DigestOf(there.content)
		}
	}
	if w.dir.Remove(w.temporary) == nil {
		w.displaced = false
	}
	if l.journal == nil {
		_ = file.Close() // only read
		return
	}
	l.journal.WatchLate(journal.Late{File: file, Path: w.path, By: w.by, Sum: last, Stamp: stamp})
}

// restore gives a published file its old content again, unless another program has changed it since.
func (l *Ledger) restore(ctx context.Context, w *work) error {
	switch {
	case w.edit.Remove:
		return l.nameBack(ctx, w)
	case w.inPlace:
		return l.overwriteWith(ctx, w, w.next, w.old)
	}
	there, err := w.is(ctx, w.name, w.will(), disk.Stamp{})
	if err == nil && !there.same {
		err = disk.ErrMoved
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	switch {
	case w.file == nil:
		err = l.unpublish(ctx, w)
	case w.displaced:
		err = l.putBack(ctx, w, nil)
	default:
		err = l.replaceBack(ctx, w)
	}
	if err != nil || l.fast {
		return err
	}
	if err := disk.SyncDir(w.dir); err != nil && !disk.Unsynced(err) {
		return w.failed(fault.SyncDir, err)
	}
	return nil
}

// unpublish removes a new file, unless another program has replaced it.
func (l *Ledger) unpublish(ctx context.Context, w *work) error {
	if l.journal == nil {
		if err := w.dir.Remove(w.name); err != nil {
			return w.failed(fault.Remove, err)
		}
		return nil
	}
	if err := moveAside(w.dir, w.name, w.temporary); err != nil {
		return w.failed(fault.Remove, err)
	}
	there, err := w.is(ctx, w.temporary, w.will(), disk.Stamp{})
	if err == nil && there.same {
		_ = w.dir.Remove(w.temporary) // sweep finds what stays
		return nil
	}
	if _, err := l.nameAgain(w, there.content); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", w.path, disk.ErrMoved)
}

// replaceBack writes the old content anew, where nothing was displaced.
func (l *Ledger) replaceBack(ctx context.Context, w *work) error {
	back := &work{edit: w.edit, path: w.path, name: w.name, dir: w.dir, file: w.file, next: w.old,
		temporary: l.self.TempName()}
	if w.cut != nil { // all of the old file, which no name stands for any more
		back.cut, back.after = &spliced{from: w.file, was: w.cut.was}, w.base
	}
	t, at, err := l.writeTemp(ctx, back)
	if err != nil {
		return w.failed(at, err)
	}
	if err := renameOver(w, t.name); err != nil {
		_ = w.dir.Remove(t.name) // the first error counts; sweep finds what stays
		return w.failed(fault.Rename, err)
	}
	return nil
}
