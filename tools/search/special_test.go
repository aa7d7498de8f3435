//go:build unix

package search

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// Links are counted, and so are FIFOs and sockets; none of them is followed, waited for or read.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	outside := newDir(t, ofNames("x"))
	d := newDir(t, ofNames("a", "dir/b"))
	for name, target := range map[string]string{"loop": ".", "out": outside.path, "file": "a", "broken": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(d.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(d.path, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := &net.UnixAddr{Name: filepath.Join(d.path, "s"), Net: "unix"}
	if socket, err := net.ListenUnix("unix", addr); err == nil { // the path may be too long for a socket
		defer socket.Close()
	}
	if err := os.Symlink("a", filepath.Join(d.path, ".gitignore")); err != nil {
		t.Fatal(err)
	}
	a := d.grep(t, GrepQuery{Pattern: "x", Mode: Count})
	if got := d.names(a.Files); !slices.Equal(got, []string{"a", "dir/b"}) {
		t.Errorf("found %v, want the regular files", got)
	}
	special := 1
	if _, err := os.Lstat(addr.Name); err == nil {
		special++
	}
	if c := a.Coverage; c.Links.N != 5 || c.Special.N != special || !c.Complete {
		t.Errorf("coverage %+v, want 5 links, %d special files and a complete answer", c, special)
	}
	e := New(Options{})
	defer closeEngine(t, e)
	if _, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at("fifo")}}); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a FIFO as place: got %v, want ErrNotRegular", err)
	}
	for pattern, want := range map[string][2]int{"**": {2, special}, "f*": {0, 1}, "**/b": {1, 0}} {
		if f := d.files(t, FileQuery{Pattern: pattern}); f.N != want[0] || f.Coverage.Special.N != want[1] {
			t.Errorf("Files of %s: got %d files and %d special ones, want %v", pattern, f.N, f.Coverage.Special.N, want)
		}
	}
}

// A file that is swapped for a FIFO after its listing is not waited for, and one that is gone is passed over.
func TestSwappedFiles(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "b/fifo", "b/gone", "b/link", "c"))
	f, err := os.Open(d.path)
	if err != nil {
		t.Fatal(err)
	}
	top, err := startFolder(d.at(""), f)
	if err != nil {
		t.Fatal(err)
	}
	defer top.close()
	b, err := top.below("b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	full := filepath.Join(d.path, "b")
	for _, err := range []error{
		os.Remove(full + "/fifo"), syscall.Mkfifo(full+"/fifo", 0o644), os.Remove(full + "/gone"),
		os.Remove(full + "/link"), os.Symlink("../a", full+"/link"), os.Symlink("b", d.path+"/linked"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fifo", "gone", "link"} {
		if r, err := b.open(name); !vanished(err) {
			t.Errorf("%s: got %v, %v; want an error that says that the file is gone", name, r, err)
		}
	}
	for _, name := range []string{"linked", "a", "nothing/x"} {
		if _, err := top.below(name); err == nil {
			t.Errorf("%s was opened as a directory, want an error", name)
		}
	}
	if _, err := openByComponent(int(top.f.Fd()), "linked"); !vanished(err) {
		t.Errorf("component by component: got %v, want that a link is not followed", err)
	}
}
