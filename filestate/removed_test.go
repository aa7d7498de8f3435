package filestate_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// A removal is a change like any other: it needs a read, is in the journal, and is taken back with its mode.
func TestRemove(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "one\n")
	if err := os.Chmod(d.path("a"), 0o750); err != nil {
		t.Fatal(err)
	}
	_, err := d.change("a", asItIs, remove)
	wantError(t, err, filestate.ErrNotRead)
	d.see("a")
	c := d.must(d.change("a", asItIs, remove))
	if c.After != "" || c.Before != versionOf("one\n") || c.New != nil || c.ID == "" {
		t.Errorf("the change is %+v", c)
	}
	if _, err := os.Lstat(d.path("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	d.noTemps()
	if _, err := d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: c.ID, File: d.file("a")}); err != nil {
		t.Fatal(err)
	}
	d.holds("a", "one\n")
	if info, err := os.Stat(d.path("a")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("after the undo: %v, %v", info.Mode(), err)
	}
}

// Where nothing keeps the content a file can be removed as well.
func TestRemoveWithoutJournal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	d.must(d.change("a", asItIs, remove))
	d.noTemps()
	_, err := d.change("a", func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, fs.ErrNotExist
		}
		return nil, nil
	}, remove)
	wantError(t, err, fs.ErrNotExist)
}

// A file that is moved keeps its mode, and is seen as far as it was under its old name.
func TestMove(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		d := newKeptDesk(t)
		d.write("a", "one\ntwo\n")
		if err := os.Chmod(d.path("a"), 0o750); err != nil {
			t.Fatal(err)
		}
		if whole {
			d.see("a")
		} else {
			d.see("a", filestate.Span{From: 0, To: 4})
		}
		var content []byte
		changes, err := d.l.Update(t.Context(), journal.By{},
			filestate.Edit{File: d.file("a"), Remove: true, Change: func(old []byte) ([]byte, error) {
				content = append([]byte("zero\n"), old...)
				return nil, nil
			}},
			filestate.Edit{File: d.file("x/b"), MovedFrom: d.path("a"), Change: func(old []byte) ([]byte, error) {
				if old != nil {
					return nil, fs.ErrExist
				}
				return content, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		d.holds("x/b", "zero\none\ntwo\n")
		if info, err := os.Stat(d.path("x/b")); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("the new file: %v, %v", info.Mode(), err)
		}
		_, err = d.edit("x/b", "two", "2", func(e *filestate.Edit) { e.Whole = true })
		if whole && err != nil || !whole && !errors.Is(err, filestate.ErrNotRead) {
			t.Errorf("seen whole %v: %v", whole, err)
		}
		if !whole { // both names go back together
			_, err = d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: changes[0].ID, File: d.file("a")},
				filestate.Step{ID: changes[1].ID, File: d.file("x/b")})
			if err != nil {
				t.Fatal(err)
			}
			d.holds("a", "one\ntwo\n")
			if _, err := os.Lstat(d.path("x/b")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the new name is there: %v", err)
			}
		}
	}
}

func asItIs(old []byte) ([]byte, error) { return old, nil }

func remove(e *filestate.Edit) { e.Remove = true }
