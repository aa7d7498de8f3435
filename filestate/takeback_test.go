package filestate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/fault"
	"codehand/filestate/journal"
)

// If another program changes a file after an Update has changed it, and another file of that Update fails, the foreign
// content stays and the caller is told which files are as before.
func TestRollbackThatFails(t *testing.T) {
	t.Parallel()
	l, dir := New(Options{}), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var works []*work
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		w := &work{path: filepath.Join(dir, name), name: name, edit: Edit{Unseen: true, File: File{Dir: root, Name: name},
			Change: func([]byte) ([]byte, error) { return []byte("new " + name), nil }}}
		works = append(works, w)
		if err := errors.Join(w.open(), l.changeOne(t.Context(), w), l.stage(t.Context(), w)); err != nil {
			t.Fatal(err)
		}
	}
	defer closeAll(works)
	for _, w := range works[:2] {
		if err := l.publish(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(works[0].path, []byte("foreign"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := errors.New("why")
	got := l.takeBack(t.Context(), works, 2, why)
	e, ok := errors.AsType[*RollbackError](got)
	if !ok || !errors.Is(got, why) || len(e.Files) != 3 {
		t.Fatalf("got %v, want a RollbackError", got)
	}
	for i, want := range []bool{true, false, false} {
		if f := e.Files[i]; f.Changed != want || f.Path != works[i].path || (f.Err != nil) != want {
			t.Errorf("file %d is reported as %+v", i, f)
		}
	}
	if !strings.Contains(got.Error(), works[0].path) || strings.Contains(got.Error(), works[1].path) {
		t.Errorf("the error says %q", got)
	}
	for name, want := range map[string]string{"a": "foreign", "b": "old b", "c": "old c"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v; want %q", name, b, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("%d files are there, %v; want 3", len(entries), err)
	}
}

// A removed file whose name another program took before the removal was taken back: the answer said wrongly that all
// was as before.
func TestRemovalNotTakenBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	l := New(Options{Journal: j})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var edits []Edit
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("old "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		edits = append(edits, Edit{File: File{Dir: root, Name: name, Path: path}, Unseen: true, Remove: true, Change: func([]byte) ([]byte, error) { return nil, nil }})
	}
	renames := 0
	l.steps = func(at fault.Step) error {
		if at != fault.Rename {
			return nil
		}
		if renames++; renames == 2 {
			return errors.Join(os.WriteFile(edits[0].File.Path, []byte("foreign"), 0o600), errors.New("no"))
		}
		return nil
	}
	_, err = l.Update(t.Context(), journal.By{}, edits...)
	e, ok := errors.AsType[*RollbackError](err)
	if !ok || len(e.Files) != 2 || !e.Files[0].Changed || e.Files[1].Changed {
		t.Fatalf("got %v, want a RollbackError of the first file", err)
	}
	if b, err := os.ReadFile(edits[0].File.Path); string(b) != "foreign" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	entries, err := j.History(t.Context(), journal.Query{Kept: true})
	if err != nil || len(entries) < 2 {
		t.Errorf("the history is %+v, %v", entries, err)
	}
}
