package filestate_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

func TestNewFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t, durable)
	c := d.must(d.put("x/y/new.txt", "hello\n"))
	if c.Before != "" || c.Old != nil || c.After != versionOf("hello\n") || !c.Durable {
		t.Errorf("the change is %+v", c)
	}
	d.holds("x/y/new.txt", "hello\n")
	// What a session has just written it may edit.
	d.must(d.edit("x/y/new.txt", "hello", "bye"))
	d.must(d.put("x/y/empty.txt", ""))
	d.holds("x/y/empty.txt", "")
}

func TestNewFileOfNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.must(d.change("a", func(old []byte) ([]byte, error) {
		if old != nil {
			t.Error("Change got an old content for a file that does not exist")
		}
		return nil, nil
	}))
	if c.New == nil {
		t.Error("the new content is nil")
	}
	d.holds("a", "")
	d.must(d.change("a", func(old []byte) ([]byte, error) {
		if old == nil {
			t.Error("Change got nil for an empty file")
		}
		return []byte("x"), nil
	}))
}

func TestChangeRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	_, err := d.edit("a", "two", "three")
	if err != errAbsent {
		t.Fatalf("got %v, want the error of Change as it is", err)
	}
	_, err = d.change("x/y/z", func([]byte) ([]byte, error) { return nil, errAbsent })
	wantError(t, err, errAbsent)
	if _, err := os.Stat(d.path("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made for a change that was refused: %v", err)
	}
}

func TestEqualContentIsNotWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\ntwo\n")
	d.see("a")
	before, err := os.Stat(d.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	c := d.must(d.put("a", "one\ntwo\n"))
	after, err := os.Stat(d.path("a"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Before != c.After || !c.Durable || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the change is %+v; the same file: %v", c, os.SameFile(before, after))
	}
	if s := d.see("a"); s.Again != 1 {
		t.Errorf("Again is %d after nothing was written, want 1", s.Again)
	}
}

func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var edits []filestate.Edit
	for _, name := range []string{"c", "a", "new/b"} {
		if name != "new/b" {
			d.write(name, name)
			d.see(name)
		}
		edits = append(edits, filestate.Edit{File: d.file(name), Change: func(old []byte) ([]byte, error) {
			return append(old, " and more"...), nil
		}})
	}
	changes, err := d.l.Update(t.Context(), journal.By{}, edits...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range edits {
		if changes[i].Path != e.File.Path {
			t.Errorf("change %d is of %s, want the order of the edits", i, changes[i].Path)
		}
	}
	d.holds("a", "a and more")
	d.holds("new/b", " and more")
	d.holds("c", "c and more")
}

func TestSeveralErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "a")
	d.write("b", "b")
	d.see("b")
	d.write("b", "B")
	d.see("b")
	same := func(old []byte) ([]byte, error) { return append(old, '!'), nil }
	fail := func([]byte) ([]byte, error) { return nil, errAbsent }
	_, err := d.l.Update(t.Context(), journal.By{},
		filestate.Edit{File: d.file("a"), Change: same},
		filestate.Edit{File: d.file("b"), Change: fail},
		filestate.Edit{File: d.file("c"), Change: same})
	wantError(t, err, filestate.ErrNotRead)
	wantError(t, err, errAbsent)
	if _, err := os.Stat(d.path("c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made although others failed: %v", err)
	}
}

func TestTwoEditsOfOnePath(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := filestate.Edit{File: d.file("a"), Change: func([]byte) ([]byte, error) { return nil, nil }}
	if _, err := d.l.Update(t.Context(), journal.By{}, e, e); err == nil {
		t.Fatal("two edits of one path were taken")
	}
}

// A partly seen file stays partly seen when it is edited, and what the edit brought counts as seen.
func TestCoverageMoves(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "1\n2\n3\n4\n5\n6\n")
	d.see("a", filestate.Span{From: 4, To: 8})
	c := d.must(d.edit("a", "3\n", "three\nthree and a half\n"))
	if !strings.HasSuffix(string(c.Before), "p") || !strings.HasSuffix(string(c.After), "p") {
		t.Errorf("versions are %s and %s, want both partial", c.Before, c.After)
	}
	d.must(d.edit("a", "1\n", "0\n1\n"))
	_, err := d.put("a", "x")
	e, _ := errors.AsType[*filestate.PartReadError](err)
	if want := []filestate.Lines{{From: 1, To: 1}, {From: 4, To: 6}}; e == nil || !slices.Equal(e.Seen, want) {
		t.Fatalf("got %v, want lines %v", err, want)
	}
	d.see("a", filestate.Span{From: 2, To: 6}, filestate.Span{From: 29, To: 100})
	d.must(d.put("a", "x"))
}

func TestMemoryFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *filestate.Options) { o.Memory = brokenMemory{} })
	d.write("a", "one\n")
	s, err := d.trySee("a")
	wantError(t, err, filestate.ErrMemory)
	wantError(t, err, errBroken)
	if s.Version != versionOf("one\n") || !s.Whole {
		t.Errorf("the sight is %+v, want a valid one", s)
	}
	c := d.must(d.edit("a", "one", "two", version(s.Version)))
	if !c.Forgotten {
		t.Error("the change does not say that it was not remembered")
	}
	d.holds("a", "two\n")
	if _, err := d.l.Changed(t.Context()); !errors.Is(err, filestate.ErrMemory) {
		t.Errorf("Changed: %v, want ErrMemory", err)
	}
	wantError(t, d.l.Forget(t.Context(), d.path("a")), filestate.ErrMemory)
	wantError(t, d.l.Accept(t.Context(), &filestate.StaleError{Path: d.path("a"), New: []byte("x")}), filestate.ErrMemory)
}

func TestLargeContentsAreSame(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	big := bytes.Repeat([]byte("0123456789abcde\n"), 400_000) // 6.4 MB: hashed in a stream, not held
	d.write("a", string(big))
	s := d.see("a")
	c := d.must(d.edit("a", "0123", "4567"))
	if c.Before != s.Version || c.After != versionOf(string(c.New)) {
		t.Errorf("versions are %s and %s, want %s first", c.Before, c.After, s.Version)
	}
	d.write("a", "small")
	_, err := d.edit("a", "small", "x")
	if e := wantStale(t, err); e.Old != nil {
		t.Error("a content over 4 MiB is held")
	}
}
