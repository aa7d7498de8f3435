package filestate

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const writeStep = 4 << 20 // bytes written between two looks at ctx

// A temp is a new content on the disk that has no name of its own yet.
type temp struct {
	name string      // in the directory of its target
	info fs.FileInfo // when all was written
	lost []string    // attributes of the old file that it could not be given
	sync error       // the file system has no fsync
}

// write gives all files their new contents, or none. All are on the disk before the first one gets its
// name, so that a full disk shows while nothing has changed yet.
func (l *Ledger) write(ctx context.Context, works []*work) error {
	var hashing sync.WaitGroup
	defer hashing.Wait()
	defer discard(works)
	for _, w := range works {
		if w.same {
			continue
		}
		w.hash(&hashing)
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
		syncDirs(works)
	}
	return nil
}

// stage writes the new content beside its target.
func (l *Ledger) stage(ctx context.Context, w *work) error {
	if w.dir == nil {
		if err := w.makeDirs(); err != nil {
			return err
		}
	}
	l.sweep(w.dir)
	t, step, err := l.writeTemp(ctx, w.dir, w.next, w.file)
	if err != nil {
		return w.failed(step, err)
	}
	w.temp = t
	return nil
}

// makeDirs makes the missing directories above a new file and notes which it made.
func (w *work) makeDirs() error {
	base := w.edit.File.Dir
	dir, err := base.OpenRoot(".")
	if err != nil {
		return w.failed("open directory", err)
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
			return w.failed("make directory", err)
		}
		dir = next
	}
	w.dir = dir
	return nil
}

// writeTemp writes content to a new file in dir, with the metadata of like, or if like is nil with
// those that the system gives to a new file. If it fails, the file is removed and the step is named.
func (l *Ledger) writeTemp(ctx context.Context, dir *os.Root, content []byte, like *os.File) (*temp, string, error) {
	perm := fs.FileMode(0o600) // a private file's content must not show before its mode is set
	if like == nil {
		perm = 0o666 // so that umask and default ACL make of it what they make of any new file
	}
	t := &temp{name: tempName(l.self)}
	f, err := dir.OpenFile(t.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, "create", err
	}
	step, err := l.fill(ctx, f, t, content, like)
	if err == nil {
		step = "look at"
		t.info, err = f.Stat()
	}
	if closeErr := f.Close(); err == nil && closeErr != nil {
		step, err = "close", closeErr // network file systems write here
	}
	if err != nil {
		_ = dir.Remove(t.name) // the first error counts; sweep finds what stays
		return nil, step, err
	}
	return t, "", nil
}

func (l *Ledger) fill(ctx context.Context, f *os.File, t *temp, content []byte, like *os.File) (step string, err error) {
	for part := range slices.Chunk(content, writeStep) {
		if err := context.Cause(ctx); err != nil {
			return "write", err
		}
		if _, err := f.Write(part); err != nil {
			return "write", err
		}
	}
	if like != nil {
		if t.lost, step, err = copyMetadata(f, like); err != nil {
			return step, err
		}
	}
	if l.fast {
		return "", nil
	}
	// Before the rename: otherwise a power cut may leave the name with nothing behind it.
	if err := f.Sync(); err != nil && !unsynced(err) {
		return "sync", err
	} else if err != nil {
		t.sync = cause(err)
	}
	return "", nil
}

// publish gives a staged content the name of its target, if that still is what was read.
func (l *Ledger) publish(ctx context.Context, w *work) error {
	var err error
	if w.file == nil {
		err = publishNew(w.dir, w.temp.name, w.name)
		if errors.Is(err, fs.ErrExist) {
			return l.foreign(ctx, w)
		}
	} else {
		if !w.unchanged(ctx) {
			return l.foreign(ctx, w)
		}
		err = w.dir.Rename(w.temp.name, w.name)
	}
	if err != nil {
		return w.failed("rename", err)
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
	return !w.stamp.Racy || holds(ctx, w.file, w.old)
}

// holds says whether a file has that content.
func holds(ctx context.Context, f *os.File, content []byte) bool {
	got, err := readAll(ctx, f, int64(len(content)))
	return err == nil && bytes.Equal(got, content)
}

// foreign makes the error for a file that somebody else changed or made during the Update.
func (l *Ledger) foreign(ctx context.Context, w *work) error {
	e := &StaleError{Path: w.path}
	if w.file != nil {
		whole := isWhole(coverageBefore(w.edit, w.known, w.base, int64(len(w.old))), int64(len(w.old)))
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
		return w.failed("read", ErrMoved)
	}
	if w.file != nil && bytes.Equal(now, w.old) {
		return w.failed("rename", ErrMoved) // same content with other metadata: a second try takes those over
	}
	e.New, e.stamp = now, stamp
	e.Now = digestOf(now).version(w.file == nil || !e.Was.partial())
	return e
}

// syncDirs writes the new names to the disk: once for each directory, and for those above that were
// made.
func syncDirs(works []*work) {
	done := make(map[string]error)
	for _, w := range works {
		if w.same {
			continue
		}
		key := filepath.Dir(w.path)
		err, ok := done[key]
		if !ok {
			err = syncDir(w.dir)
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
