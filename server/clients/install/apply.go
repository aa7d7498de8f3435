package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/lock"
)

// An applying is one Apply under its lock.
type applying struct {
	*Change
	ledger *filestate.Ledger
	notes  map[string][]note
}

// Apply makes the change, one file after the other. It waits up to 10 s for other installs of this user, and looks
// whether each file still has the bytes that were planned with: ErrChanged means that nothing was written to that file
// and those behind it, and the caller plans again. A file is replaced in one step; links are followed, its mode and
// owner stay. Beside a user's file its old content stays as FILE.codehand-TIME.bak, that of a project's file in the
// state directory. Apply is called once.
func (c *Change) Apply(ctx context.Context) (err error) {
	if len(c.Files) == 0 {
		return nil
	}
	state := c.places.State
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	locker := lock.New(filepath.Join(state, "install-locks"))
	c.step("lock")
	unlock, err := locker.Lock(ctx, "installs")
	if err != nil {
		return fmt.Errorf("another install is at work: %w", err)
	}
	defer unlock()
	a := applying{Change: c, ledger: filestate.New(filestate.Options{Locker: locker})}
	for _, f := range c.Files {
		// What another install has noted meanwhile counts, so the notes are read under the lock.
		if a.notes, err = readNotes(state); err != nil {
			return err
		}
		if err := a.file(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.File, err)
		}
	}
	return nil
}

// step tells a test where the change is.
func (c *Change) step(at string) {
	if c.killed != nil {
		c.killed(at)
	}
}

// file changes one file: a note that says how to take the change back is on the disk before the change is.
func (a applying) file(ctx context.Context, f FileChange) error {
	if err := stray(a.places, f.File); err != nil {
		return err
	}
	real, err := followed(a.places.real(f.File))
	if err != nil {
		return err
	}
	now, info, err := readFile(real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, f.Old) || (now == nil) != (f.Old == nil) {
		return ErrChanged
	}
	a.step("read")
	if f.New == nil {
		return a.remove(ctx, f, real)
	}
	known := a.notes[f.File]
	if f.Old == nil {
		made, err := makeDirs(filepath.Dir(real), f.private)
		if err != nil {
			return err
		}
		f.note.Dirs = append(f.note.Dirs, made...)
	}
	if f.note.Client != "" && f.note.Sum == sum(f.New) { // an install
		if err := a.writeNotes(ctx, f.File, append(slices.Clone(lastNote(known)), f.note)); err != nil {
			return err
		}
	}
	a.step("noted")
	if f.Old != nil {
		if err := a.backup(f, real, info.Mode().Perm()); err != nil {
			return fmt.Errorf("the old content cannot be kept: %w", err)
		}
	}
	a.step("kept")
	if err := a.replace(ctx, real, f.Old, f.New, func() { a.step("changing") }); err != nil {
		return err
	}
	a.step("written")
	if f.Old == nil && f.private {
		if err := os.Chmod(real, 0o600); err != nil {
			return err
		}
	}
	var left []note
	if f.note.Client != "" && f.note.Sum == sum(f.New) {
		left = []note{f.note}
	}
	err = a.writeNotes(ctx, f.File, left)
	a.step("settled")
	return err
}

// lastNote is the last of some notes, as a list.
func lastNote(known []note) []note {
	if len(known) == 0 {
		return nil
	}
	return known[len(known)-1:]
}

// remove removes a file that an install made. It moves the file aside first, so that it can put back what another
// program writes to it at this moment.
func (a applying) remove(ctx context.Context, f FileChange, real string) error {
	aside := real + ".codehand-removed"
	for n := 2; there(aside); n++ { // what an earlier one left, when it was killed, is a person's content
		aside = fmt.Sprintf("%s.codehand-removed-%d", real, n)
	}
	a.step("removing")
	if err := os.Rename(real, aside); err != nil {
		return cause(err)
	}
	a.step("aside")
	if now, err := os.ReadFile(aside); err != nil || !bytes.Equal(now, f.Old) {
		// Nothing was made at the name meanwhile, or that is newer and wins.
		if _, err := os.Lstat(real); errors.Is(err, fs.ErrNotExist) {
			_ = os.Rename(aside, real) // it stays aside if that fails, and nothing is lost
		}
		return ErrChanged
	}
	if err := os.Remove(aside); err != nil {
		return cause(err)
	}
	a.step("removed")
	for _, dir := range slices.Backward(f.note.Dirs) {
		if os.Remove(dir) != nil {
			break // another program has put something there
		}
	}
	err := a.writeNotes(ctx, f.File, nil)
	a.step("settled")
	return err
}

// there says whether anything has a name.
func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// replace writes a file in one step, if it still is what it was.
func (a applying) replace(ctx context.Context, real string, was, is []byte, about func()) error {
	dir, err := os.OpenRoot(filepath.Dir(real))
	if err != nil {
		return cause(err)
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	_, err = a.ledger.Update(ctx, journal.By{}, filestate.Edit{
		File:   filestate.File{Dir: dir, Name: filepath.Base(real), Path: real},
		Unseen: true, // Change looks at all of it
		Change: func(now []byte) ([]byte, error) {
			if !bytes.Equal(now, was) || (now == nil) != (was == nil) {
				return nil, ErrChanged
			}
			about()
			return is, nil
		},
	})
	if _, stale := errors.AsType[*filestate.StaleError](err); stale {
		return ErrChanged
	}
	return err
}

// writeNotes sets the notes of one file; none: they go.
func (a applying) writeNotes(ctx context.Context, shown string, notes []note) error {
	if len(notes) == 0 {
		delete(a.notes, shown)
	} else {
		a.notes[shown] = notes
	}
	file := filepath.Join(a.places.State, notesFile)
	was, _, err := readFile(file)
	if err != nil {
		return err
	}
	is, err := json.MarshalIndent(a.notes, "", "  ")
	if err != nil {
		return err
	}
	is = append(is, '\n')
	if was == nil { // no program reads it without its content
		fresh := file + ".new"
		// A note holds what an entry was, which can be a secret.
		if err := os.WriteFile(fresh, is, 0o600); err != nil {
			return err
		}
		return os.Rename(fresh, file)
	}
	return a.replace(ctx, file, was, is, func() {})
}

// backup keeps the old content.
func (a applying) backup(f FileChange, real string, mode fs.FileMode) error {
	at := real
	if !f.private {
		at = filepath.Join(a.places.State, "install-backups", sum([]byte(real))[:12]+"-"+filepath.Base(real))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
	}
	at += ".codehand-" + time.Now().UTC().Format("20060102T150405.000000000Z") + ".bak"
	out, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return cause(err)
	}
	_, err = out.Write(f.Old)
	if err := errors.Join(err, out.Sync(), out.Chmod(mode), out.Close()); err != nil {
		_ = os.Remove(at) // half a content is no backup
		return err
	}
	return nil
}

// followed is the file that a path leads to, through links, or the path itself if nothing is there.
func followed(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Links in the directories above count, too, as far as those are there.
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			return filepath.Join(dir, filepath.Base(path)), nil
		}
		return path, nil
	}
	return real, err
}

// makeDirs makes the missing directories of a path and returns those that it made, the outermost first.
func makeDirs(dir string, private bool) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		_, err := os.Stat(d)
		if err == nil || filepath.Dir(d) == d {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	mode := fs.FileMode(0o777) // minus umask, as for any directory of a project
	if private {
		mode = 0o700
	}
	for i, d := range missing {
		if err := os.Mkdir(d, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return missing[:i], err
		}
	}
	return missing, nil
}
