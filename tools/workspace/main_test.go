package workspace

import (
	"fmt"
	"os"
	"testing"
)

// TestMain fails the package if a handle was left open: every Place that is not handed out has to be closed.
func TestMain(m *testing.M) {
	// The first file makes the runtime open descriptors of its own.
	if f, err := os.Open(os.Args[0]); err == nil {
		_ = f.Close()
	}
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	before := descriptors()
	code := m.Run()
	if after := descriptors(); code == 0 && after > before {
		fmt.Fprintf(os.Stderr, "%d descriptors before the tests, %d after: close what Open returned\n", before, after)
		code = 1
	}
	os.Exit(code)
}

// descriptors counts the open ones; 0 where the system does not list them.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
