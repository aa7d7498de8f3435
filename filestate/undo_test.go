package filestate_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
)

func wantConflict(t testing.TB, err error) *filestate.ConflictError {
	t.Helper()
	e, ok := errors.AsType[*filestate.ConflictError](err)
	if !ok {
		t.Fatalf("got %v, want a ConflictError", err)
	}
	return e
}

// Update, create and their undos and redos, the last by a new process.
func TestUndo(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t, durable)
	const old = "one\r\ntwo\xff\n\nno end"
	d.write("a", old)
	if err := os.Chmod(d.path("a"), 0o750); err != nil {
		t.Fatal(err)
	}
	d.see("a")
	c := d.must(d.edit("a", "two", "2"))
	u := d.mustUndo(c.ID)
	d.holds("a", old)
	if info, err := os.Stat(d.path("a")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if u.ID == "" || u.ID == c.ID || u.After != c.Before || !u.Durable {
		t.Errorf("the undo is %+v", u)
	}
	d.must(d.edit("a", "one", "1")) // the session still knows the file
	if e := d.history(journal.Query{}); len(e) != 3 || !e[2].Undone || e[1].Undone || len(e[1].Undoes) != 1 || e[1].Undoes[0] != c.ID {
		t.Errorf("the history is %+v", e)
	}
	wantConflict(t, func() error { _, err := d.undo(c.ID); return err }())

	created := d.must(d.put("x/y/b", "new\n"))
	removed := d.mustUndo(created.ID)
	if removed.After != "" || removed.New != nil || string(removed.Old) != "new\n" {
		t.Errorf("the undo of a new file is %+v", removed)
	}
	d.gone("x/y/b")
	if err := os.RemoveAll(d.path("x")); err != nil { // directories are made again
		t.Fatal(err)
	}
	again := d.again()
	redone := again.mustUndo(removed.ID)
	d.holds("x/y/b", "new\n")
	if e := again.history(journal.Query{}); e[0].ID != redone.ID || e[1].ID != removed.ID || !e[1].Undone || e[2].Undone || e[0].Files[0].Op != "create" || e[1].Files[0].Op != "delete" {
		t.Errorf("the history is %+v", e)
	}
}

// A file that was removed by an undo comes back with its mode.
func TestRedoKeepsMode(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	c := d.must(d.put("a", "#!/bin/sh\n"))
	if err := os.Chmod(d.path("a"), 0o751); err != nil {
		t.Fatal(err)
	}
	u := d.mustUndo(c.ID)
	d.mustUndo(u.ID)
	if info, err := os.Stat(d.path("a")); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// By path, undos walk back one change at a time and never toggle.
func TestLast(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "0")
	for _, next := range []string{"1", "2", "3"} {
		d.must(d.put("a", next, unseen))
	}
	for _, want := range []string{"2", "1", "0"} {
		e, err := d.j.Last(t.Context(), journal.Query{Path: d.path("a")})
		if err != nil {
			t.Fatal(err)
		}
		d.mustUndo(e.ID)
		d.holds("a", want)
	}
	_, err := d.j.Last(t.Context(), journal.Query{Path: d.path("a")})
	wantError(t, err, journal.ErrNoChange)
}

// Several changes of one file are taken back as one, and only if they follow each other.
func TestUndoSeveral(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "0")
	var ids []string
	for _, next := range []string{"1", "2", "3"} {
		ids = append(ids, d.must(d.put("a", next, unseen)).ID)
	}
	_, err := d.l.Undo(t.Context(), journal.By{}, append(d.steps(ids[0]), d.steps(ids[2])...)...)
	if e := wantConflict(t, err); string(e.Want) != "1" || e.Now != nil || !errors.Is(e, disk.ErrMoved) {
		t.Errorf("the conflict is %+v, which says what is not there", e) // an older content was given as that of the disk
	}
	d.holds("a", "3")
	if _, err := d.l.Undo(t.Context(), journal.By{}, append(d.steps(ids[1]), d.steps(ids[2])...)...); err != nil {
		t.Fatal(err)
	}
	d.holds("a", "1")
	if e := d.history(journal.Query{}); !e[1].Undone || !e[2].Undone || e[3].Undone {
		t.Errorf("the history is %+v", e)
	}
}

// A change of several files is taken back whole or not at all.
func TestUndoFiles(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old a")
	d.write("b", "old b")
	put := func(s string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(s), nil }
	}
	changes, err := d.l.Update(t.Context(), journal.By{},
		filestate.Edit{File: d.file("a"), Unseen: true, Change: put("new a")},
		filestate.Edit{File: d.file("b"), Unseen: true, Change: put("new b")},
		filestate.Edit{File: d.file("c"), Change: put("new c")})
	if err != nil {
		t.Fatal(err)
	}
	id := changes[0].ID
	d.write("b", "foreign")
	_, err = d.undo(id)
	if e := wantConflict(t, err); e.Path != d.path("b") || string(e.Want) != "new b" || string(e.Now) != "foreign" {
		t.Errorf("the conflict is %+v", e)
	}
	d.holds("a", "new a")
	d.holds("c", "new c")
	d.write("b", "new b") // the content decides
	if _, err := d.l.Undo(t.Context(), journal.By{}, d.steps(id)[:2]...); err == nil {
		t.Error("a part of a change was taken back")
	}
	tried, err := d.l.TryUndo(t.Context(), d.steps(id)...)
	if err != nil || len(tried) != 3 || string(tried[0].New) != "old a" || tried[2].New != nil || len(d.history(journal.Query{})) != 1 {
		t.Errorf("the dry run says %+v, %v", tried, err)
	}
	d.holds("a", "new a")
	if _, err := d.undo(id); err != nil {
		t.Fatal(err)
	}
	d.holds("a", "old a")
	d.holds("b", "old b")
	d.gone("c")
}

// Of a change of several files only all could be taken back. Now one can, whatever happened to the others; the rest goes
// back later; and each of these undos can be taken back itself.
func TestUndoOneFile(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old a")
	d.write("b", "old b")
	changes, err := d.l.Update(t.Context(), journal.By{}, unseenEdit(d, "a", "new a"), unseenEdit(d, "b", "new b"),
		unseenEdit(d, "c", "new c"))
	if err != nil {
		t.Fatal(err)
	}
	id := changes[0].ID
	step := func(name string) filestate.Step { return filestate.Step{ID: id, File: d.file(name)} }
	last := func(name string) string {
		e, err := d.l.Last(t.Context(), journal.Query{Path: d.path(name)})
		if err != nil {
			return err.Error()
		}
		return e.ID
	}
	d.write("b", "foreign")
	_, err = d.l.UndoFiles(t.Context(), journal.By{}, step("a"), step("b"))
	if e := wantConflict(t, err); e.Path != d.path("b") {
		t.Errorf("the conflict is %+v", e)
	}
	d.holds("a", "new a")
	if tried, err := d.l.TryUndo(t.Context(), step("a")); err != nil || len(tried) != 1 || len(d.history(journal.Query{})) != 1 {
		t.Errorf("the dry run says %+v, %v", tried, err)
	}
	d.holds("a", "new a")
	one, err := d.l.UndoFiles(t.Context(), journal.By{}, step("a"))
	if err != nil {
		t.Fatal(err)
	}
	d.holds("a", "old a")
	d.holds("b", "foreign")
	d.holds("c", "new c")
	e := d.history(journal.Query{})
	if e[1].Undone || !slices.Equal(e[1].UndoneFiles, []string{d.path("a")}) || !e[0].IsUndo() || !e[0].Portion.Whole() || e[0].Portion.ID != id {
		t.Errorf("the history is %+v", e)
	}
	if last("a") != journal.ErrNoChange.Error() || last("b") != id {
		t.Errorf("the last changes are %s, %s", last("a"), last("b"))
	}
	d.write("b", "new b")
	rest, err := d.l.UndoFiles(t.Context(), journal.By{}, step("b"), step("c"))
	if err != nil {
		t.Fatal(err)
	}
	d.holds("b", "old b")
	d.gone("c")
	if e := d.history(journal.Query{ID: id}); !e[0].Undone || e[0].UndoneFiles != nil {
		t.Errorf("the history is %+v", e)
	}
	d.mustUndo(one[0].ID)
	d.holds("a", "new a")
	if e := d.history(journal.Query{ID: id}); e[0].Undone || len(e[0].UndoneFiles) != 2 || last("a") != id {
		t.Errorf("the history is %+v", e)
	}
	d.mustUndo(rest[0].ID)
	d.holds("b", "new b")
	d.holds("c", "new c")
	if _, err := d.undo(id); err != nil {
		t.Fatal(err)
	}
	d.holds("a", "old a")
	d.gone("c")
}

// A file of which the journal has no copy kept all others of its change from going back.
func TestUndoBesideNoCopy(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "new")
	d.write("b", "new")
	id, err := filestate.Record(t.Context(), d.l, journal.By{Command: "x"}, []journal.Part{
		{Path: d.path("a"), Old: []byte("old"), New: []byte("new"), Mode: 0o644},
		{Path: d.path("b"), Old: []byte{}, New: []byte{}, Why: "git did not track it"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.undo(id)
	wantError(t, err, journal.ErrNoCopy)
	_, err = d.l.UndoFiles(t.Context(), journal.By{}, filestate.Step{ID: id, File: d.file("b")})
	wantError(t, err, journal.ErrNoCopy)
	d.holds("a", "new")
	if _, err := d.l.UndoFiles(t.Context(), journal.By{}, filestate.Step{ID: id, File: d.file("a")}); err != nil {
		t.Fatal(err)
	}
	d.holds("a", "old")
	d.holds("b", "new")
}

// Whatever stands at the name that the change did not leave there stays as it is.
func TestUndoConflicts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		do   func(keptDesk) error
		why  error
	}{
		{"changed", func(d keptDesk) error { d.write("dir/a", "foreign"); return nil }, nil},
		{"removed", func(d keptDesk) error { return os.Remove(d.path("dir/a")) }, nil},
		{"directory gone", func(d keptDesk) error { return os.RemoveAll(d.path("dir")) }, nil},
		{"a link", func(d keptDesk) error {
			d.write("secret", "new\n")
			return errors.Join(os.Remove(d.path("dir/a")), os.Symlink("../secret", d.path("dir/a")))
		}, disk.ErrMoved},
		{"a dangling link", func(d keptDesk) error {
			return errors.Join(os.Remove(d.path("dir/a")), os.Symlink("../nowhere", d.path("dir/a")))
		}, disk.ErrMoved},
		{"a hard link", func(d keptDesk) error { return os.Link(d.path("dir/a"), d.path("other")) }, filestate.ErrLinked},
		{"a directory", func(d keptDesk) error {
			return errors.Join(os.Remove(d.path("dir/a")), os.Mkdir(d.path("dir/a"), 0o755))
		}, disk.ErrDirectory},
		{"the directory is a link", func(d keptDesk) error {
			return errors.Join(os.Rename(d.path("dir"), d.path("elsewhere")), os.Symlink("elsewhere", d.path("dir")))
		}, disk.ErrMoved},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("dir/a", "old\n")
			change := d.must(d.put("dir/a", "new\n", unseen))
			// As a caller would who resolved the path just before the link was planted.
			f := filestate.File{Dir: openFile(t, d.path("dir")).Dir, Name: "dir/a", Path: d.path("dir/a")}
			defer f.Close()
			if err := c.do(d); err != nil {
				t.Fatal(err)
			}
			before := tree(t, d.dir)
			_, err := d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: change.ID, File: f})
			e := wantConflict(t, err)
			if c.why != nil && !errors.Is(err, c.why) || c.why == nil && e.Err != nil {
				t.Errorf("the conflict is %v", err)
			}
			if after := tree(t, d.dir); after != before {
				t.Errorf("the undo changed\n%s\ninto\n%s", before, after)
			}
			if got := d.history(journal.Query{}); len(got) != 1 || got[0].Undone {
				t.Errorf("the history is %+v", got)
			}
		})
	}
}

// A path that leads elsewhere by now is not the file of the change.
func TestUndoElsewhere(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	c := d.must(d.put("a", "new\n"))
	d.write("b", "new\n")
	_, err := d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: c.ID, File: d.file("b")})
	wantConflict(t, err)
	d.holds("b", "new\n")
	_, err = d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: strings.Repeat("a", 16), File: d.file("a")})
	wantError(t, err, journal.ErrNoChange)
	_, err = newDesk(t).l.Undo(t.Context(), journal.By{}, filestate.Step{ID: c.ID, File: d.file("a")})
	wantError(t, err, journal.ErrNoChange)
}

// tree is all that lies below a directory, as text.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	walkTree(t, root, ".", &all)
	return all.String()
}

func walkTree(t testing.TB, root *os.Root, at string, to *strings.Builder) {
	t.Helper()
	d, err := root.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := d.ReadDir(-1)
	_ = d.Close()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		path := at + "/" + e.Name()
		info, err := root.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		to.WriteString(path + " " + info.Mode().String())
		switch {
		case e.IsDir():
			to.WriteString("\n")
			walkTree(t, root, path, to)
			continue
		case info.Mode().IsRegular():
			b, err := root.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			to.Write(b)
		}
		to.WriteString("\n")
	}
}

// A change that stopped half way could not be undone, since some of its files were as before, and it was not named.
func TestUndoOfTornChange(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	for _, name := range []string{"a", "b"} {
		d.write(name, "old "+name)
		d.see(name)
	}
	renames := 0
	d.beforeSteps(func(step string) error {
		if step != "rename" {
			return nil
		}
		if renames++; renames == 2 {
			d.write("a", "foreign")
			return syscall.EIO
		}
		return nil
	})
	_, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"), Change: makes("new a")}, filestate.Edit{File: d.file("b"), Change: makes("new b")})
	torn, ok := errors.AsType[*filestate.RollbackError](err)
	if !ok || torn.ID == "" {
		t.Fatalf("got %v, want a RollbackError with an id", err)
	}
	d.holds("a", "foreign")
	d.holds("b", "old b")
	d.beforeSteps(func(string) error { return nil })
	// The old content of a stays beside it until a sweep, so that nothing of it is lost.
	_, err = d.l.Undo(t.Context(), journal.By{}, d.steps(torn.ID)...)
	if e := wantConflict(t, err); string(e.Now) != "foreign" {
		t.Errorf("the conflict is %+v", e)
	}
	d.write("a", "new a")
	if _, err := d.l.Undo(t.Context(), journal.By{}, d.steps(torn.ID)...); err != nil {
		t.Error(err)
	}
	d.holds("a", "old a")
	d.holds("b", "old b")
}

// TestUndoRests: a file that a part of a change was taken back in was a conflict. It gets what its Rest says, and only if
// it is byte for byte what that says; the undo is noted as one of the change, and Last passes over the undo of a part.
func TestUndoRests(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "one\ntwo\n")
	c := d.must(d.put("a", "1\n2\n", unseen))
	part, err := d.l.UndoPortion(t.Context(), journal.By{}, journal.Portion{ID: c.ID, Hunk: "@@ -2 +2 @@"}, filestate.Edit{
		File: d.file("a"), Unseen: true, Change: func([]byte) ([]byte, error) { return []byte("1\ntwo\n"), nil }})
	if err != nil {
		t.Fatal(err)
	}
	last, err := d.l.Last(t.Context(), journal.Query{Path: d.path("a")})
	if err != nil || last.ID != c.ID || last.IsUndo() {
		t.Fatalf("the last change is %+v, %v", last, err)
	}
	steps := d.steps(c.ID)
	steps[0].Rests = []filestate.Rest{{Now: []byte("1\nTWO\n"), Then: []byte("wrong")}, {Now: []byte("1\ntwo\n"), Then: []byte("one\ntwo\n")}}
	d.write("a", "1\ntwo\nmine\n")
	_, err = d.l.Undo(t.Context(), journal.By{}, steps...)
	if e := wantConflict(t, err); string(e.Want) != "1\nTWO\n" || string(e.Now) != "1\ntwo\nmine\n" {
		t.Errorf("the conflict is %+v", e)
	}
	d.holds("a", "1\ntwo\nmine\n")
	d.write("a", "1\ntwo\n")
	undone, err := d.l.Undo(t.Context(), journal.By{}, steps...)
	if err != nil {
		t.Fatal(err)
	}
	d.holds("a", "one\ntwo\n")
	e := d.history(journal.Query{})
	if e[0].ID != undone[0].ID || e[1].ID != part[0].ID || e[1].Undone || e[1].Portion == nil || e[1].Portion.ID != c.ID || !e[2].Undone {
		t.Errorf("the history is %+v", e)
	}
	d.mustUndo(undone[0].ID)
	d.holds("a", "1\ntwo\n")
}
