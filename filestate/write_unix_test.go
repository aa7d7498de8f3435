//go:build unix

package filestate_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"codehand/filestate"
)

// Mode, owner and group of a file are those that it had, with all the bits that chmod knows.
func TestModeAndOwnerStay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	modes := []os.FileMode{0o644, 0o755, 0o600, 0o444, 0o777, 0o640 | os.ModeSetgid, 0o755 | os.ModeSetuid, 0o700 | os.ModeSticky}
	for _, mode := range modes {
		d.write("a", "one\n")
		if os.Geteuid() == 0 {
			if err := os.Chown(d.path("a"), 12345, 54321); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(d.path("a"), mode); err != nil {
			t.Fatal(err)
		}
		before := stat(t, d.path("a"))
		d.must(d.edit("a", "one", "two", unseen))
		if after := stat(t, d.path("a")); after.Mode != before.Mode || after.Uid != before.Uid || after.Gid != before.Gid {
			t.Errorf("mode %v became %o, owner %d:%d became %d:%d", mode, after.Mode, before.Uid, before.Gid, after.Uid, after.Gid)
		}
		if err := os.Remove(d.path("a")); err != nil {
			t.Fatal(err)
		}
	}
}

// A new file has the mode that any program would give it here.
func TestNewFileMode(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("theirs/a", "x")
	if err := os.WriteFile(d.path("theirs/b"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.path("theirs/dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	d.must(d.put("dir/b", ""))
	for _, name := range []string{"b", ""} {
		theirs := "theirs/" + name
		if name == "" {
			theirs = "theirs/dir"
		}
		if got, want := stat(t, d.path("dir/"+name)).Mode, stat(t, d.path(theirs)).Mode; got != want {
			t.Errorf("a new dir/%s has mode %o, want %o", name, got, want)
		}
	}
}

func TestHardLink(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	for _, name := range []string{"b", "c"} {
		if err := os.Link(d.path("a"), d.path(name)); err != nil {
			t.Skipf("hard links: %v", err)
		}
	}
	if c := d.must(d.edit("a", "one", "two", unseen)); c.Links != 2 {
		t.Errorf("%d other names are reported, want 2", c.Links)
	}
	d.holds("b", "one\n")
	if c := d.must(d.edit("a", "two", "three")); c.Links != 0 {
		t.Errorf("%d other names are reported for a new file", c.Links)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root writes everywhere; run the tests as an ordinary user to have this case")
	}
	d := newDesk(t)
	d.write("dir/a", "one\n")
	d.see("dir/a")
	if err := os.Chmod(d.path("dir"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(d.path("dir"), 0o755) })
	for _, name := range []string{"dir/a", "dir/new", "dir/x/new"} {
		_, err := d.put(name, "two\n")
		if e, ok := errors.AsType[*filestate.WriteError](err); !ok || !errors.Is(err, os.ErrPermission) || e.Path != d.path(name) {
			t.Errorf("%s: got %v, want a WriteError", name, err)
		}
	}
	d.holds("dir/a", "one\n")
}

func stat(t *testing.T, path string) *syscall.Stat_t {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t)
}
