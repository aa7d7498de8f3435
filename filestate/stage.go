package filestate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"codehand/filestate/disk"
	"codehand/filestate/exchange"
	"codehand/filestate/fault"
)

const writeStep = 4 << 20 // bytes written between two looks at ctx

// A temp is a new content on the disk that has no name of its own yet.
type temp struct {
	name string      // in the directory of its target
	info fs.FileInfo // when all was written
	lost []string    // attributes of the old file that it could not be given
	sync error       // the file system has no fsync
}

// stage writes the new content beside its target.
func (l *Ledger) stage(ctx context.Context, w *work) error {
	if w.temporary == "" {
		w.temporary = l.self.TempName()
	}
	if w.dir == nil {
		if err := l.steps.Before(fault.Make); err != nil {
			return w.failed(fault.Make, err)
		}
		if err := w.makeDirs(); err != nil {
			return err
		}
	}
	l.sweep(ctx, w.dir, filepath.Dir(w.path))
	if w.edit.Remove {
		return nil
	}
	t, at, err := l.writeTemp(ctx, w)
	if at == fault.Owner && errors.Is(err, syscall.EPERM) && l.mayOverwrite(w) {
		w.inPlace = true // to replace the file would give it away
		return nil
	}
	if err != nil {
		return w.failed(at, err)
	}
	w.temp = t
	return nil
}

// makeDirs makes the missing directories above a new file and notes which it made.
func (w *work) makeDirs() error {
	base := w.edit.File.Dir
	dir, err := base.OpenRoot(".")
	if err != nil {
		return w.failed(fault.OpenDir, err)
	}
	var rel string
	for part := range strings.SplitSeq(filepath.Dir(w.edit.File.Name), string(filepath.Separator)) {
		rel = filepath.Join(rel, part)
		err := dir.Mkdir(part, 0o777) // minus umask, as for any directory that a person makes
		if err == nil {
			w.dirs.made, w.dirs.fresh = append(w.dirs.made, rel), append(w.dirs.fresh, rel)
		} else if errors.Is(err, fs.ErrExist) {
			w.dirs.fresh = append(w.dirs.fresh, rel)
			err = nil // made meanwhile; Child looks what it is
		}
		var next *os.Root
		if err == nil {
			next, err = disk.Child(dir, part)
		}
		_ = dir.Close() // a directory handle holds no data
		if err != nil {
			return w.failed(fault.Make, err)
		}
		dir = next
	}
	w.dir = dir
	return nil
}

// writeTemp writes the new content to a new file beside the target, with the metadata of the old file, or if there is
// none with those that the system gives to a new file. If it fails, the file is removed and the step is named.
func (l *Ledger) writeTemp(ctx context.Context, w *work) (*temp, fault.Step, error) {
	perm := fs.FileMode(0o600) // a private file's content must not show before its mode is set
	if w.file == nil && w.edit.mode == 0 {
		perm = 0o666 // so that umask and default ACL make of it what they make of any new file
	}
	if err := l.steps.Before(fault.Create); err != nil {
		return nil, fault.Create, err
	}
	t := &temp{name: w.temporary}
	f, err := w.dir.OpenFile(t.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, fault.Create, err
	}
	at, err := l.fill(ctx, f, t, w)
	if err == nil {
		if at, err = fault.Metadata, l.steps.Before(fault.Metadata); err == nil {
			t.info, err = f.Stat()
		}
	}
	closeErr := f.Close()
	if err == nil && closeErr == nil {
		closeErr = l.steps.Before(fault.Close)
	}
	if err == nil && closeErr != nil {
		at, err = fault.Close, closeErr // network file systems write here
	}
	if err != nil {
		_ = w.dir.Remove(t.name) // the first error counts; sweep finds what stays
		return nil, at, err
	}
	return t, "", nil
}

func (l *Ledger) fill(ctx context.Context, f *os.File, t *temp, w *work) (at fault.Step, err error) {
	if w.cut != nil {
		if err := w.cut.write(ctx, f, w.after, l.steps); err != nil {
			return fault.Write, err
		}
	}
	for part := range slices.Chunk(w.next, writeStep) {
		if err := context.Cause(ctx); err != nil {
			return fault.Write, err
		}
		if _, err := f.Write(part); err != nil {
			return fault.Write, err
		}
		if err := l.steps.Before(fault.Write); err != nil {
			return fault.Write, err
		}
	}
	switch {
	case w.file != nil:
		if t.lost, at, err = exchange.CopyMetadata(f, w.file, l.steps); err != nil {
			return at, err
		}
		if otherMode(w) {
			if err := exchange.CopyMode(f, w.edit.mode); err != nil {
				return fault.Mode, err
			}
		}
	case w.edit.mode != 0:
		if err := exchange.CopyMode(f, w.edit.mode); err != nil {
			return fault.Mode, err
		}
	}
	if l.fast {
		return "", nil
	}
	if err := l.steps.Before(fault.Sync); err != nil {
		return fault.Sync, err
	}
	// Before the rename: otherwise a power cut may leave the name with nothing behind it.
	if err := f.Sync(); err != nil && !disk.Unsynced(err) {
		return fault.Sync, err
	} else if err != nil {
		t.sync = disk.Cause(err)
	}
	return "", nil
}
