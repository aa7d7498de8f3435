package filestate

import (
	"context"
	"errors"
	"os"

	"codehand/filestate/disk"
	"codehand/filestate/exchange"
	"codehand/filestate/fault"
)

const pourStep = 256 << 10 // bytes that are written in place at once

// mayOverwrite says whether a file that cannot be replaced may be written in place. That is not atomic, so the journal
// must hold the old content, and the file must have no other name and keep its mode: it may be another user's.
func (l *Ledger) mayOverwrite(w *work) bool {
	return l.journal != nil && w.stamp.Nlink <= 1 && !otherMode(w) && w.kept()
}

// overwrite writes the new content into the old file.
func (l *Ledger) overwrite(ctx context.Context, w *work) error {
	w.inPlace = true
	if err := l.overwriteWith(ctx, w, w.old, w.next); err != nil {
		if errors.Is(err, disk.ErrMoved) {
			return l.foreign(ctx, w)
		}
		return err
	}
	if now, err := disk.Restamp(w.file); err == nil {
		w.stamp = now
	} else {
		w.stamp = disk.Stamp{Racy: true}
	}
	w.stamp.Racy = true // others may have written to the same file meanwhile
	return nil
}

// overwriteWith replaces the content was of the old file by next. ErrMoved: another file or content is there by now.
func (l *Ledger) overwriteWith(ctx context.Context, w *work, was, next []byte) error {
	f, err := w.dir.OpenFile(w.name, writeFlags, 0)
	if err != nil {
		return w.failed(fault.InPlace, err)
	}
	defer func() { _ = f.Close() }() // it was synced, or the error is told
	info, err := f.Stat()
	if err != nil {
		return w.failed(fault.InPlace, err)
	}
	same, err := disk.Holds(ctx, w.file, was)
	if err != nil || !same || !os.SameFile(info, w.info) {
		return w.failed(fault.InPlace, disk.ErrMoved)
	}
	had, err := exchange.PrivilegesOf(f)
	if err != nil {
		return w.failed(fault.InPlace, err)
	}
	if err = l.pour(f, next); err == nil {
		w.lost = l.giveBack(f, had)
		return nil
	}
	failed := w.failed(fault.InPlace, err)
	if err := l.MayCommit(); err != nil {
		return &RollbackError{Err: failed, Files: []Left{{Path: w.path, Changed: true, Err: err}}}
	}
	quiet := &Ledger{fast: l.fast}
	err = quiet.pour(f, was)
	_ = quiet.giveBack(f, had) // what is lost, the error is about more
	if err != nil {
		return &RollbackError{Err: failed, Files: []Left{{Path: w.path, Changed: true, Err: err}}}
	}
	return failed
}

// giveBack restores the privileges that writing took from an open file, and names those that it could not restore.
func (l *Ledger) giveBack(f *os.File, had exchange.Privileges) []string {
	lost, changed := had.Restore(f)
	if changed && !l.fast {
		_ = f.Sync() // its bytes are synced
	}
	return lost
}

func (l *Ledger) mayPour() error {
	if err := l.MayCommit(); err != nil {
		return err
	}
	return l.steps.Before(fault.InPlace)
}

// pour replaces the bytes of an open file and syncs them. It writes from the beginning and cuts what is too long last:
// isTorn relies on this order.
func (l *Ledger) pour(f *os.File, content []byte) error {
	for at := 0; at < len(content); at += pourStep {
		if err := l.mayPour(); err != nil {
			return err
		}
		if _, err := f.WriteAt(content[at:min(len(content), at+pourStep)], int64(at)); err != nil {
			return err
		}
	}
	if err := l.mayPour(); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(content))); err != nil || l.fast {
		return err
	}
	if err := f.Sync(); err != nil && !disk.Unsynced(err) {
		return err
	}
	return nil
}
