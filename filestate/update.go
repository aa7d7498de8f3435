package filestate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/filestate/lines"
	"codehand/filestate/lock"
	"codehand/filestate/seen"
	"codehand/filestate/splices"
)

// An Edit changes, creates or removes one file.
type Edit struct {
	File    File
	Version Version // what the caller says it has seen; "" : only the ledger's memory counts
	Whole   bool    // the change replaces everything, so everything must have been seen
	Unseen  bool    // config edit.guard = "relaxed": what was seen does not matter, Change proves enough
	// Change makes the new content from the old one (nil: there is no file yet), which it must not
	// write to. It is pure and called at most once: of a file from 64 KiB on perhaps before the guard
	// refuses the edit, since that takes the hash of old. Its error is returned as it is with the file
	// untouched.
	Change func(old []byte) ([]byte, error)
	// Touches says, after Change, what of old it replaced, and what of the new content stands for that. It is set where
	// Change itself does not prove that the caller knows the old text: then was must have been shown, and is counts as
	// shown. nil: Change proves enough.
	Touches func() (was, is Span)
	// Splice finds the places of a large file that the edit changes, where it can tell them without the whole content
	// in memory; from holds the file, and is only read. None: it cannot, and Change is called. It is called at most
	// once, before Change.
	Splice func(ctx context.Context, from io.ReaderAt, size int64) (splices.List, error)
	// Remove says that there is to be no file any more. Change still sees the old content, nil included, and what it
	// makes is dropped.
	Remove bool
	// MovedFrom is the old path of a file that moves here: an earlier Edit of the same Update removes it. The new file
	// gets its mode, and counts as seen only if all of the old one was. "": no file moves.
	MovedFrom string

	mode   fs.FileMode // of a new file; 0: what the system gives
	modeIs bool        // mode is also for a file that is there
	back   *back       // of an undo; nil: it is none
}

// A Change is one applied Edit. If Before equals After, the file had that content already and nothing
// was written. Old and New belong to the ledger, too, and are only read.
type Change struct {
	Path string
	// of the change in the journal, for all files of one Update; "": there is no journal, or no change
	ID            string
	Before, After Version // Before is "" for a new file, After for one that was removed
	Sums          Sums    // of the contents before and after
	Old, New      []byte  // Old is nil for a new file
	// of a large file that was changed at some places: these, whose Old and New are whole lines around them; Old and
	// New of the Change are theirs, joined. nil: Old and New are whole contents
	Splices splices.List
	Durable bool  // false: applied, but not known to be on the disk
	SyncErr error // why Durable is false; nil with Options.Fast, which never syncs
	Links   int   // other names of the old file, which keep the old content
	// Shut: its mode lets nobody write the file, not even its owner. It is changed all the same, as a directory that
	// may be written allows
	Shut bool
	// extended attributes that the new file could not be given; of one written in place also setuid and setgid
	Lost      []string
	InPlace   bool        // written into the old file, since it cannot be replaced: not atomic
	NoCopy    bool        // over 32 MiB, and too much of it differs: the journal has nothing to undo with
	Forgotten bool        // the memory failed: the session must read the file again before its next change
	Since     *StaleError // what was seen, if that was not Old, and New; for Accept, once it was shown
}

// Update applies edits, all or none. Files are locked in the order of their paths; two edits of one
// path are an error of the caller. Until the first file has its new content the end of ctx stops it;
// from then on it has no effect.
//
// The errors of one edit are: ErrVersion, ErrLocked, ErrNotRegular, ErrDirectory, ErrTooLarge; then
// the guard's ErrNotRead, *PartReadError (ErrPartRead), *StaleError and ErrMemory; then what Change
// returns; then *WriteError, *StaleError if another program was faster, and ErrMoved if the file changes all the time.
// If several edits fail before anything is written, the error joins one for each of them, in order. In all these cases
// every file is as it was. Only after a *RollbackError it may not be; and an earlier file of several that was taken
// back is a new file with its old content, so it has lost its hard links.
func (l *Ledger) Update(ctx context.Context, by journal.By, edits ...Edit) ([]Change, error) {
	return l.update(ctx, purpose{By: by}, edits)
}

// Try checks all that Update checks before it writes, and returns what it would do. Nothing is written or remembered.
func (l *Ledger) Try(ctx context.Context, edits ...Edit) ([]Change, error) {
	return l.update(ctx, purpose{try: true}, edits)
}

// LinesChanged counts lines as the journal does.
func (c Change) LinesChanged() (added, removed int) {
	if c.Splices != nil {
		return c.Splices.LinesChanged()
	}
	head := lines.Prefix(c.Old, c.New)
	return lines.Changed(c.Old, c.New, head, lines.Suffix(c.Old[head:], c.New[head:]))
}

// A purpose is why an update is made.
type purpose struct {
	journal.By
	undoes []string         // ids of the changes that it takes back
	of     *journal.Portion // what it takes back of one; nil: no part
	try    bool             // check everything, write nothing
	silent bool             // it restores what was, so the journal notes nothing
}

func (l *Ledger) update(ctx context.Context, why purpose, edits []Edit) ([]Change, error) {
	works, err := plan(edits)
	if err != nil {
		return nil, err
	}
	unlock, err := l.enter(ctx, works)
	defer unlock()
	defer closeAll(works)
	defer hashed(works)
	if err != nil {
		return nil, err
	}
	if err := l.change(ctx, works); err != nil {
		return nil, err
	}
	inherit(works)
	var id string
	if !why.try {
		if id, err = l.writeNoted(ctx, why, works); err != nil {
			return nil, err
		}
	}
	hashed(works)
	changes := make([]Change, len(works))
	for i, w := range works {
		if why.try {
			changes[i] = w.tried()
			continue
		}
		changes[i] = l.remember(ctx, w)
		if !w.same && id != "" {
			changes[i].ID, changes[i].NoCopy = id, !w.part().Undoes()
		}
	}
	return changes, nil
}

// plan checks what can be checked without a file.
func plan(edits []Edit) ([]*work, error) {
	var works []*work
	paths := make(map[string]bool)
	for _, e := range edits {
		if e.Version != "" && !e.Version.Valid() {
			return nil, fmt.Errorf("%w %q for %s", ErrVersion, e.Version, e.File.Path)
		}
		if paths[e.File.Path] {
			return nil, fmt.Errorf("two edits of %s in one update", e.File.Path)
		}
		paths[e.File.Path] = true
		works = append(works, &work{edit: e, path: e.File.Path, name: filepath.Base(e.File.Name)})
	}
	return works, nil
}

// inherit gives files that are moved what they have of the old name.
func inherit(works []*work) {
	for _, w := range works {
		for _, from := range works {
			if from.path != w.edit.MovedFrom || !from.edit.Remove || from.file == nil || w.file != nil {
				continue
			}
			w.edit.mode = from.info.Mode() & disk.KeptMode
			w.partly = from.known == nil || !from.known.Whole()
		}
	}
}

// enter locks the paths, opens the files, and locks those as well, since a file may have several
// names. The inodes come second because each change gives a path a new one: only who holds the path
// knows which it is. unlock is never nil.
func (l *Ledger) enter(ctx context.Context, works []*work) (unlock func(), err error) {
	unlock = func() {}
	ctx, cancel := context.WithTimeoutCause(ctx, lock.Wait, lock.ErrLocked)
	defer cancel()
	var paths, files []string
	for _, w := range works {
		paths = append(paths, w.path)
	}
	unlockPaths, err := l.locker.Lock(ctx, slices.Sorted(slices.Values(paths))...)
	if err != nil {
		return unlock, lockFailed(works, err)
	}
	unlock = unlockPaths
	if err := each(works, func(w *work) error { return w.open() }); err != nil {
		return unlock, err
	}
	for _, w := range works {
		if key := w.inodeKey(); key != "" {
			files = append(files, key)
		}
	}
	if len(files) == 0 {
		return unlock, nil
	}
	unlockFiles, err := l.locker.Lock(ctx, slices.Sorted(slices.Values(files))...)
	if err != nil {
		return unlock, lockFailed(works, err)
	}
	return func() { unlockFiles(); unlockPaths() }, nil
}

// inodeKey is the key of the lock of the open file; "": there is none.
func (w *work) inodeKey() string {
	if w.stamp.Ino == 0 {
		return ""
	}
	return lock.InodeKey(w.stamp.Dev, w.stamp.Ino)
}

// lockFailed tells a lock that the system refused from one that another writer holds. It names the file of that lock,
// if the Locker does.
func lockFailed(works []*work, err error) error {
	w := works[0]
	if failed, ok := errors.AsType[*lock.KeyError](err); ok {
		of := func(w *work) bool { return failed.Key == w.path || failed.Key == w.inodeKey() }
		if i := slices.IndexFunc(works, of); i >= 0 {
			w = works[i]
		}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return w.stateFailed(fault.Lock, errno)
	}
	return fmt.Errorf("lock %s: %w", w.path, err)
}

// each runs do for all works and joins the errors; a single one stays as it is.
func each(works []*work, do func(*work) error) error {
	var errs []error
	for _, w := range works {
		if err := do(w); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// change reads each file, asks the guard and makes the new contents. Nothing is written yet.
func (l *Ledger) change(ctx context.Context, works []*work) error {
	err := each(works, func(w *work) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := l.changeOne(ctx, w); err == nil || w.since == nil || w.edit.Unseen {
			return err
		}
		return w.since // whatever is wrong, what a command of the session wrote comes first
	})
	if ended := context.Cause(ctx); ended != nil {
		return ended
	}
	return err
}

func (l *Ledger) changeOne(ctx context.Context, w *work) error {
	known, memErr := l.records.Load(ctx, w.path)
	w.known = known
	if w.edit.Version == "" && w.edit.claim().Decide(known, memErr != nil, w.content()) == seen.NotRead {
		// No content could change that, and the largest file costs 1 GiB of memory to read.
		return fmt.Errorf("%s: %w", w.path, ErrNotRead)
	}
	if done, err := l.splice(ctx, w, known, memErr); done || err != nil {
		return err
	}
	if err := w.read(ctx); err != nil {
		return err
	}
	guard := func() error {
		w.hashing.old.Wait()
		if w.file != nil {
			w.known = known.Of(*w.content())
		}
		return w.guard(l.contents, memErr)
	}
	if len(w.old) < aloneSize {
		if err := guard(); err != nil {
			return err
		}
		if err := w.make(); err != nil {
			return err
		}
		return w.outside()
	}
	// The change is made beside the hashing of what it changes, and counts for nothing until the guard has that hash.
	err := w.make()
	if refused := guard(); refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	return w.outside()
}

// make makes the new content, and begins to hash it.
func (w *work) make() error {
	next, err := w.edit.Change(w.old)
	if err != nil {
		return err
	}
	if len(next) > disk.MaxSize {
		return fmt.Errorf("%s: %w", w.path, disk.ErrTooLarge)
	}
	w.links = max(0, int(w.stamp.Nlink)-1)
	if w.edit.Remove {
		w.same = w.file == nil
		return nil
	}
	if next == nil {
		next = []byte{}
	}
	w.next, w.same = next, w.file != nil && bytes.Equal(w.old, next) && !otherMode(w)
	hashBeside(&w.hashing.next, &w.after, next)
	return nil
}
