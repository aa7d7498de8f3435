package search

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// A file that the query names and that the disk does not give is an error: whether it has a match is not known.
func TestNamedFileUnread(t *testing.T) {
	t.Parallel()
	proc, err := os.OpenRoot("/proc/self")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must have a procfs: ", err)
		}
		t.Skip("there is no procfs: ", err)
	}
	defer proc.Close()
	e := New(Options{})
	defer closeEngine(t, e)
	mem := Place{Dir: proc, Name: "mem", Path: "/proc/self/mem"} // nothing is mapped at its beginning
	for _, mode := range []Mode{FilesOnly, Lines, Count} {
		a, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Mode: mode, Scope: Scope{Place: mem}})
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("mode %d: got %+v, %v, want EIO", mode, a, err)
		}
	}
}
