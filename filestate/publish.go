package filestate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"codehand/filestate/disk"
	"codehand/filestate/exchange"
	"codehand/filestate/fault"
	"codehand/filestate/seen"
)

// publish gives a staged content the name of its target, if that still is what was read.
func (l *Ledger) publish(ctx context.Context, w *work) error {
	switch {
	case w.file == nil:
		return l.publishNew(ctx, w)
	case !w.unchanged(ctx):
		return l.foreign(ctx, w)
	case w.edit.Remove:
		return l.setAside(ctx, w)
	case w.inPlace:
		return l.overwrite(ctx, w)
	}
	err := l.steps.Before(fault.Rename)
	if err == nil && l.journal != nil {
		err = exchange.Swap(w.dir, w.temporary, w.name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.foreign(ctx, w)
	case errors.Is(err, syscall.EBUSY) && l.mayOverwrite(w):
		discard([]*work{w}) // a mount point
		return l.overwrite(ctx, w)
	case err == nil && l.journal != nil:
		w.displaced = true
		return l.verify(ctx, w)
	case errors.Is(err, errors.ErrUnsupported) && !w.unchanged(ctx):
		return l.foreign(ctx, w)
	case err == nil, errors.Is(err, errors.ErrUnsupported):
		err = renameOver(w, w.temporary)
	}
	if errors.Is(err, syscall.EBUSY) && l.mayOverwrite(w) {
		discard([]*work{w})
		return l.overwrite(ctx, w)
	}
	if err != nil {
		return w.failed(fault.Rename, err)
	}
	w.written(w.temp)
	return nil
}

// renameOver gives a temporary file the name of the target. Windows replaces a file that is open on NTFS alone, and
// Wine nowhere: ours on the old file, which was compared just before, is closed there.
func renameOver(w *work, temporary string) error {
	err := w.dir.Rename(temporary, w.name)
	if runtime.GOOS != "windows" || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = w.file.Close() // only read
	err = w.dir.Rename(temporary, w.name)
	if again, openErr := w.dir.Open(w.name); openErr == nil {
		w.file = again // has the metadata, if the old content must be put back
	}
	return err
}

// publishNew gives a new file its name, unless another program has taken it.
func (l *Ledger) publishNew(ctx context.Context, w *work) error {
	err := l.steps.Before(fault.Rename)
	if err == nil {
		err = exchange.PublishNew(w.dir, w.temporary, w.name)
	}
	if errors.Is(err, fs.ErrExist) {
		return l.foreign(ctx, w)
	}
	if err != nil {
		return w.failed(fault.Rename, err)
	}
	w.written(w.temp)
	return nil
}

// written notes that t has its name. The stamp is that of t or none: if another program was at the file since, it must
// not stand for our content.
func (w *work) written(t *temp) {
	w.temp = nil
	w.sync, w.lost = t.sync, t.lost
	info, err := w.dir.Lstat(w.name)
	if err != nil || !os.SameFile(info, t.info) || info.Size() != t.info.Size() ||
		!info.ModTime().Equal(t.info.ModTime()) {
		w.stamp = disk.Stamp{Racy: true}
		return
	}
	w.stamp = disk.StampOf(info)
}

// unchanged says whether the name still stands for the file that was read, with that content. Between
// this look and the rename is a gap of some microseconds, in which a foreign save would be lost.
func (w *work) unchanged(ctx context.Context) bool {
	info, err := w.dir.Lstat(w.name)
	if err != nil || !os.SameFile(info, w.info) || !disk.StampOf(info).Same(w.stamp) {
		return false
	}
	if !w.stamp.Racy {
		return true
	}
	same, err := w.was().in(ctx, w.file)
	return same && err == nil
}

// foreign makes the error for a file that another program changed or made during the Update.
func (l *Ledger) foreign(ctx context.Context, w *work) error {
	e := &StaleError{Path: w.path}
	if w.file != nil {
		e.Was, e.Old = w.edit.claim().VersionOf(w.known, *w.content()), w.old
	}
	file, stamp, err := disk.OpenAsked(w.dir, w.name, w.path, w.edit.File.Linked)
	if err != nil {
		return e
	}
	defer func() { _ = file.Close() }() // only read
	if stamp.Size > disk.MaxSize {
		return e
	}
	now, err := disk.ReadAll(ctx, file, stamp.Size)
	if err != nil {
		return w.failed(fault.Read, disk.ErrMoved)
	}
	if w.file != nil && w.was().is(now) {
		return w.failed(fault.Rename, disk.ErrMoved) // same content with other metadata: a second try takes those over
	}
	e.New, e.stamp = now, stamp
	e.Now = seen.VersionOf(disk.DigestOf(now), w.file == nil || !e.Was.Partial())
	return e
}
