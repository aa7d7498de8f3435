package search

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// TestMain also fails if goroutines or descriptors are left behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = leaks()
	}
	os.Exit(code)
}

func leaks() int {
	runtime.GC() // closes what only a finalizer would, so that it is not hidden by chance
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if n := runtime.NumGoroutine(); n > 2 {
		fmt.Fprintf(os.Stderr, "%d goroutines are left, want 1: close what the tests open\n%s\n", n, stacks)
		return 1
	}
	return 0
}
