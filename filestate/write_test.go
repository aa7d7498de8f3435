package filestate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
)

// A program that saves first wins, at any moment of the Update.
func TestForeignChangeDuringUpdate(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		foreign func(desk)
		now     string // content of the file afterwards; "-": there is none
	}{
		{"in place", func(d desk) { d.write("a", "foreign\n") }, "foreign\n"},
		{"in place, same size", func(d desk) { d.write("a", "ONE\n") }, "ONE\n"},
		{"by rename", func(d desk) { d.write("b", "foreign\n"); d.rename("b", "a") }, "foreign\n"},
		{"by rename, same size", func(d desk) { d.write("b", "ONE\n"); d.rename("b", "a") }, "ONE\n"},
		{"removed", func(d desk) { _ = os.Remove(d.path("a")) }, "-"},
		{"a link", func(d desk) { d.rename("a", "b"); _ = os.Symlink("b", d.path("a")) }, "one\n"},
		{"a directory", func(d desk) { d.rename("a", "b"); _ = os.Mkdir(d.path("a"), 0o755) }, "-"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("a", "one\n")
			d.see("a")
			tick(t, d.path("a"))
			_, err := d.change("a", func([]byte) ([]byte, error) {
				c.foreign(d)
				return []byte("two\n"), nil
			})
			e := wantStale(t, err)
			if string(e.Old) != "one\n" || e.Was != versionOf("one\n") {
				t.Errorf("the stale error is %+v", e)
			}
			if c.now == "-" {
				return
			}
			d.holds("a", c.now)
			if c.name != "a link" && string(e.New) != c.now {
				t.Errorf("the stale error shows %q", e.New)
			}
		})
	}
}

func TestForeignMetadataDuringUpdate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.see("a")
	tick(t, d.path("a"))
	_, err := d.change("a", func([]byte) ([]byte, error) { return []byte("two\n"), os.Chmod(d.path("a"), 0o600) })
	wantError(t, err, disk.ErrMoved)
	d.holds("a", "one\n")
	d.must(d.edit("a", "one", "two"))
}

func TestNameAppearsDuringUpdate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.change("x/a", func([]byte) ([]byte, error) {
		d.write("x/a", "foreign\n")
		return []byte("ours\n"), nil
	})
	if e := wantStale(t, err); string(e.New) != "foreign\n" || e.Was != "" || e.Now != versionOf("foreign\n") {
		t.Errorf("the stale error is %+v", e)
	}
	d.holds("x/a", "foreign\n")
}

func TestLinkIsNeverWritten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("real", "one\n")
	if err := os.Symlink("real", d.path("link")); err != nil {
		t.Skipf("links: %v", err)
	}
	_, err := d.put("link", "two\n", unseen)
	if e := wantStale(t, err); e.New != nil || e.Now != "" {
		t.Errorf("the stale error is %+v", e)
	}
	if err := os.Symlink("nowhere", d.path("dangling")); err != nil {
		t.Fatal(err)
	}
	_, err = d.put("dangling", "two\n")
	wantStale(t, err)
	d.holds("real", "one\n")
	if _, err := os.Lstat(d.path("nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made through a dangling link: %v", err)
	}
}

// A directory that has become a link since the path was resolved is not followed.
func TestParentBecomesALink(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.file("x/y/a") // x does not exist yet
	if err := os.MkdirAll(d.path("other/y"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", d.path("x")); err != nil {
		t.Skipf("links: %v", err)
	}
	_, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: f, Change: func([]byte) ([]byte, error) { return []byte("x"), nil }})
	wantError(t, err, disk.ErrMoved)
	if left, _ := os.ReadDir(d.path("other/y")); len(left) > 0 {
		t.Errorf("a file was made behind a link: %v", left)
	}
}

func TestParentIsAFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.file("x/y/a")
	d.write("x", "a file")
	_, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: f, Change: func([]byte) ([]byte, error) { return []byte("x"), nil }})
	if e, ok := errors.AsType[*filestate.WriteError](err); !ok || e.Path != d.path("x/y/a") {
		t.Fatalf("got %v, want a WriteError", err)
	}
	d.holds("x", "a file")
}

func TestDirectoryIsNotAFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("dir/a", "x")
	_, err := d.put("dir", "x", unseen)
	wantError(t, err, disk.ErrDirectory)
}

func TestCancelBeforeAndAfter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := d.l.Update(ctx, journal.By{}, filestate.Edit{File: d.file("x/a"), Change: func([]byte) ([]byte, error) {
		cancel(errBroken)
		return []byte("new"), nil
	}})
	wantError(t, err, errBroken)
	if _, err := os.Stat(d.path("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cancelled change left a directory: %v", err)
	}
	d.noTemps()
}

// The second file fails after the first has its new content: the first gets its old content again.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t, durable)
	d.write("a", "one\n")
	d.write("z", "last\n")
	d.see("a")
	d.see("z")
	if err := os.Chmod(d.path("a"), 0o755); err != nil {
		t.Fatal(err)
	}
	tick(t, d.path("z"))
	put := func(content string, and func()) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { and(); return []byte(content), nil }
	}
	nothing := func() {}
	_, err := d.l.Update(t.Context(), journal.By{},
		filestate.Edit{File: d.file("a"), Change: put("two\n", nothing)},
		filestate.Edit{File: d.file("new/b"), Change: put("new\n", nothing)},
		filestate.Edit{File: d.file("z"), Change: put("end\n", func() { d.write("z", "foreign\n") })})
	if e := wantStale(t, err); e.Path != d.path("z") {
		t.Errorf("the stale error is about %s", e.Path)
	}
	d.holds("a", "one\n")
	d.holds("z", "foreign\n")
	if info, err := os.Stat(d.path("a")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the file that was taken back has mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(d.path("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new file that was taken back left its directory: %v", err)
	}
	d.noTemps()
	d.must(d.edit("a", "one", "two")) // what was seen is still known
}

func TestSweep(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const deadID = 1<<22 + 1 // beyond the largest process id that Linux gives
	dead := filestate.TempNameOf(deadID, 1)
	again := filestate.TempNameOf(os.Getpid(), filestate.OwnStart()+1) // our id, but an earlier process
	young := filestate.TempNameElsewhere(deadID, 2)                    // perhaps a process that lives there
	kept := []string{
		young,
		filestate.TempNameOf(os.Getpid(), filestate.OwnStart()),             // ours
		filestate.TempNameOf(os.Getppid(), filestate.StartOf(os.Getppid())), // of a process that lives
		".codehand-notes.tmp", ".codehand-1-2-3.tmp", "sub/" + filestate.TempNameOf(deadID, 3),
	}
	for _, name := range append(kept, dead, again) {
		d.write(name, "x")
		if name != young {
			d.age(name, staleAge)
		}
	}
	if err := os.Mkdir(d.path(filestate.TempNameOf(deadID, 4)), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"),
		Change: func([]byte) ([]byte, error) { return []byte("x"), nil }}); err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if _, err := os.Stat(d.path(name)); err != nil {
			t.Errorf("%s was removed: %v", name, err)
		}
	}
	if filestate.OwnStart() == 0 {
		t.Skip("this system does not say when a process started, so only ids that do not exist are dead")
	}
	for _, name := range []string{dead, again} {
		if _, err := os.Stat(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, of a process that is dead, is still there: %v", filepath.Base(name), err)
		}
	}
}
