package search

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
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

// hang is the time after which a condition that does not come true is a failure.
const hang = 60 * time.Second

// leaks waits for goroutines to end: one that has said that it is done is still there for a moment.
func leaks(before map[string]bool) int {
	const ofTesting = 3 // the test itself, signals, and the fuzzer
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(hang); runtime.NumGoroutine() > ofTesting; <-tick.C {
		if time.Now().After(late) {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			fmt.Fprintf(os.Stderr, "goroutines are left: wait for what the tests start\n%s\n", stacks)
			return 1
		}
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
