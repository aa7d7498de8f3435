package filestate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const writeStep = 4 << 20 // bytes written between two looks at ctx

// A temp is a new content on the disk that has no name of its own yet.
type temp struct {
	name string      // in the directory of its target
	info fs.FileInfo // when all was written
	lost []string    // attributes of the old file that it could not be given
	sync error       // the file system has no fsync
}

// writeNoted notes the change in the journal and makes it. It returns its id there.
func (l *Ledger) writeNoted(ctx context.Context, why purpose, works []*work) (id string, err error) {
	changes := slices.ContainsFunc(works, func(w *work) bool { return !w.same })
	if l.journal == nil || !changes || why.silent {
		return "", l.write(ctx, works)
	}
	for _, w := range works {
		if !w.same {
			w.temporary, w.by = l.self.tempName(), why.By
		}
	}
	hashed(works)
	// Before anything else is on the disk: what a crash leaves can be found and explained from here on.
	name, err := l.journal.begin(why.By, why.undoes, works)
	if err != nil {
		return "", noteFailed(works, err)
	}
	err = l.write(ctx, works)
	torn, isTorn := errors.AsType[*RollbackError](err)
	switch {
	case err == nil:
		_ = l.journal.end(name, stateDone) // an open note of a change that is made says no less
		l.journal.tidyIfDue(ctx)
	case isTorn:
		torn.ID = name.id
		_ = l.journal.end(name, stateUnsure)
	default:
		_ = l.journal.drop(name) // Recover finds that nothing happened
	}
	return name.id, err
}

// noteFailed says that a change was not made because the journal could not be written.
func noteFailed(works []*work, err error) error {
	for _, w := range works {
		if !w.same {
			return w.failed(stepNote, fmt.Errorf("%s: %w", stepNote, cause(err)))
		}
	}
	return err
}

// write gives all files their new contents, or none. All are on the disk before the first one gets its
// name, so that a full disk shows while nothing has changed yet.
func (l *Ledger) write(ctx context.Context, works []*work) error {
	defer discard(works)
	for _, w := range works {
		if w.same {
			continue
		}
		if err := l.stage(ctx, w); err != nil {
			unmake(works)
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		unmake(works)
		return err
	}
	ctx = context.WithoutCancel(ctx)
	for i, w := range works {
		if w.same {
			continue
		}
		if err := l.publish(ctx, w); err != nil {
			return l.takeBack(ctx, works, i, err)
		}
	}
	if !l.fast {
		l.syncDirs(works)
	}
	for _, w := range works {
		l.clean(ctx, w)
	}
	return nil
}

// stage writes the new content beside its target.
func (l *Ledger) stage(ctx context.Context, w *work) error {
	if w.temporary == "" {
		w.temporary = l.self.tempName()
	}
	if w.dir == nil {
		if err := l.steps.before(stepMake); err != nil {
			return w.failed(stepMake, err)
		}
		if err := w.makeDirs(); err != nil {
			return err
		}
	}
	l.sweep(ctx, w.dir, filepath.Dir(w.path))
	if w.edit.remove {
		return nil
	}
	t, at, err := l.writeTemp(ctx, w)
	if at == stepOwner && errors.Is(err, syscall.EPERM) && l.mayOverwrite(w) {
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
		return w.failed(stepOpenDir, err)
	}
	var rel string
	for part := range strings.SplitSeq(filepath.Dir(w.edit.File.Name), string(filepath.Separator)) {
		rel = filepath.Join(rel, part)
		err := dir.Mkdir(part, 0o777) // minus umask, as for any directory that a person makes
		if err == nil {
			w.made = append(w.made, rel)
		} else if errors.Is(err, fs.ErrExist) {
			err = nil // made meanwhile; child looks what it is
		}
		var next *os.Root
		if err == nil {
			next, err = child(dir, part)
		}
		_ = dir.Close() // a directory handle holds no data
		if err != nil {
			return w.failed(stepMake, err)
		}
		dir = next
	}
	w.dir = dir
	return nil
}

// writeTemp writes the new content to a new file beside the target, with the metadata of the old file, or if there is
// none with those that the system gives to a new file. If it fails, the file is removed and the step is named.
func (l *Ledger) writeTemp(ctx context.Context, w *work) (*temp, step, error) {
	perm := fs.FileMode(0o600) // a private file's content must not show before its mode is set
	if w.file == nil && w.edit.mode == 0 {
		perm = 0o666 // so that umask and default ACL make of it what they make of any new file
	}
	if err := l.steps.before(stepCreate); err != nil {
		return nil, stepCreate, err
	}
	t := &temp{name: w.temporary}
	f, err := w.dir.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, stepCreate, err
	}
	at, err := l.fill(ctx, f, t, w)
	if err == nil {
		at = stepRead
		t.info, err = f.Stat()
	}
	closeErr := f.Close()
	if err == nil && closeErr == nil {
		closeErr = l.steps.before(stepClose)
	}
	if err == nil && closeErr != nil {
		at, err = stepClose, closeErr // network file systems write here
	}
	if err != nil {
		_ = w.dir.Remove(t.name) // the first error counts; sweep finds what stays
		return nil, at, err
	}
	return t, "", nil
}

func (l *Ledger) fill(ctx context.Context, f *os.File, t *temp, w *work) (at step, err error) {
	for part := range slices.Chunk(w.next, writeStep) {
		if err := context.Cause(ctx); err != nil {
			return stepWrite, err
		}
		if _, err := f.Write(part); err != nil {
			return stepWrite, err
		}
		if err := l.steps.before(stepWrite); err != nil {
			return stepWrite, err
		}
	}
	switch {
	case w.file != nil:
		if t.lost, at, err = copyMetadata(f, w.file, l.steps); err != nil {
			return at, err
		}
	case w.edit.mode != 0:
		if err := copyMode(f, w.edit.mode); err != nil {
			return stepMode, err
		}
	}
	if l.fast {
		return "", nil
	}
	if err := l.steps.before(stepSync); err != nil {
		return stepSync, err
	}
	// Before the rename: otherwise a power cut may leave the name with nothing behind it.
	if err := f.Sync(); err != nil && !unsynced(err) {
		return stepSync, err
	} else if err != nil {
		t.sync = cause(err)
	}
	return "", nil
}

// publish gives a staged content the name of its target, if that still is what was read.
func (l *Ledger) publish(ctx context.Context, w *work) error {
	switch {
	case w.file == nil:
		return l.publishNew(ctx, w)
	case !w.unchanged(ctx):
		return l.foreign(ctx, w)
	case w.edit.remove:
		return l.setAside(ctx, w)
	case w.inPlace:
		return l.overwrite(ctx, w)
	}
	err := l.steps.before(stepRename)
	if err == nil && l.journal != nil {
		err = swap(w.dir, w.temporary, w.name)
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
		err = w.dir.Rename(w.temporary, w.name)
	}
	if errors.Is(err, syscall.EBUSY) && l.mayOverwrite(w) {
		discard([]*work{w})
		return l.overwrite(ctx, w)
	}
	if err != nil {
		return w.failed(stepRename, err)
	}
	w.written(w.temp)
	return nil
}

// publishNew gives a new file its name, unless somebody was faster.
func (l *Ledger) publishNew(ctx context.Context, w *work) error {
	err := l.steps.before(stepRename)
	if err == nil {
		err = publishNew(w.dir, w.temporary, w.name)
	}
	if errors.Is(err, fs.ErrExist) {
		return l.foreign(ctx, w)
	}
	if err != nil {
		return w.failed(stepRename, err)
	}
	w.written(w.temp)
	return nil
}

// written notes that t has its name. The stamp is that of t or none: if somebody was at the file since,
// it must not stand for our content.
func (w *work) written(t *temp) {
	w.temp = nil
	w.sync, w.lost = t.sync, t.lost
	info, err := w.dir.Lstat(w.name)
	if err != nil || !os.SameFile(info, t.info) || info.Size() != t.info.Size() || !info.ModTime().Equal(t.info.ModTime()) {
		w.stamp = Stamp{Racy: true}
		return
	}
	w.stamp = stampOf(info)
}

// unchanged says whether the name still stands for the file that was read, with that content. Between
// this look and the rename is a gap of some microseconds, in which a foreign save would be lost.
func (w *work) unchanged(ctx context.Context) bool {
	info, err := w.dir.Lstat(w.name)
	if err != nil || !os.SameFile(info, w.info) || !stampOf(info).same(w.stamp) {
		return false
	}
	if !w.stamp.Racy {
		return true
	}
	same, err := holds(ctx, w.file, w.old)
	return same && err == nil
}

// foreign makes the error for a file that somebody else changed or made during the Update.
func (l *Ledger) foreign(ctx context.Context, w *work) error {
	e := &StaleError{Path: w.path}
	if w.file != nil {
		whole := isWhole(w.coverageBefore(w.known), int64(len(w.old)))
		e.Was, e.Old = w.base.version(whole), w.old
	}
	file, stamp, err := openRegular(w.dir, w.name, w.path)
	if err != nil {
		return e
	}
	defer func() { _ = file.Close() }() // only read
	if stamp.Size > maxSize {
		return e
	}
	now, err := readAll(ctx, file, stamp.Size)
	if err != nil {
		return w.failed(stepRead, ErrMoved)
	}
	if w.file != nil && bytes.Equal(now, w.old) {
		return w.failed(stepRename, ErrMoved) // same content with other metadata: a second try takes those over
	}
	e.New, e.stamp = now, stamp
	e.Now = digestOf(now).version(w.file == nil || !e.Was.partial())
	return e
}

// syncDirs writes the new names to the disk: once for each directory, and for those above that were
// made.
func (l *Ledger) syncDirs(works []*work) {
	done := make(map[string]error)
	for _, w := range works {
		if w.same {
			continue
		}
		key := filepath.Dir(w.path)
		err, ok := done[key]
		if !ok {
			if err = l.steps.before(stepSyncDir); err == nil {
				err = syncDir(w.dir)
			}
			done[key] = err
		}
		for _, rel := range w.made {
			err = errors.Join(err, syncAbove(w.edit.File.Dir, rel))
		}
		w.sync = errors.Join(w.sync, cause(err))
	}
}

func syncAbove(dir *os.Root, rel string) error {
	above, err := descend(dir, filepath.Dir(rel))
	if err != nil {
		return err
	}
	err = syncDir(above)
	_ = above.Close() // a directory handle holds no data
	return cause(err)
}
