//go:build unix

package workspace

import (
	"syscall"
	"testing"
)

// A call with a path below a FIFO hung for ever, and with it the end of the server: the names near the missing file were
// looked for in the FIFO.
func TestNothingWaitsForAFIFO(t *testing.T) {
	f := newFixture(t)
	if err := syscall.Mkfifo(f.path("ws/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.link(t, "ws/link", "fifo")
	for _, name := range []string{"fifo", "link"} {
		if near := f.Near(name+"/x", nil); len(near) != 0 {
			t.Errorf("near %s/x: got %q", name, near)
		}
		for _, path := range []string{name, name + "/x", name + "/x/y"} {
			for _, access := range []Access{Read, Write} {
				want := "system" // no directory
				if path == name {
					want = "ok"
				}
				p, err := f.Open(path, access)
				if err == nil {
					_ = p.Dir.Close()
				}
				if got := kind(err); got != want {
					t.Errorf("%s, access %d: got %s (%v), want %s", path, access, got, err, want)
				}
			}
		}
		f.Folds(name)
		f.Names(name)
	}
	p, err := f.Open("fifo", Read)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Dir.Close()
	if dir, err := openDir(p.Dir, "fifo"); err == nil { // as it is where a directory was, a moment ago
		t.Error("a FIFO was opened as a directory")
		_ = dir.Close()
	}
}
