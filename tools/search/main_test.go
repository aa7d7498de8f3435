package search

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestMain also fails if goroutines or open files are left behind.
func TestMain(m *testing.M) {
	before := openFiles()
	code := m.Run()
	if code == 0 {
		code = leaks(before)
	}
	os.Exit(code)
}

func leaks(before map[string]bool) int {
	if n := runtime.NumGoroutine(); n > 3 { // of the test itself, of signals, and of the fuzzer
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		fmt.Fprintf(os.Stderr, "%d goroutines are left: wait for what the tests start\n%s\n", n, stacks)
		return 1
	}
	for name := range openFiles() {
		if !before[name] && filepath.IsAbs(name) {
			fmt.Fprintf(os.Stderr, "%s is still open: close what the tests open\n", name)
			return 1
		}
	}
	return 0
}

// openFiles names what this process has open, where the system tells.
func openFiles() map[string]bool {
	names := map[string]bool{}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return names
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			names[name] = true
		}
	}
	return names
}
