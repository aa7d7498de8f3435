package server

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// swapperMark makes the test binary exchange the names that it has; see TestMain.
const swapperMark = "CODEHAND_TEST_SWAPPER"

// built are directories with programs that tests made.
var built []string

// TestMain removes what the tests built, and looks for goroutines that they left behind. It also is the entrance of the
// other programs that tests work against.
func TestMain(m *testing.M) {
	if path := os.Getenv(editorMark); path != "" {
		os.Exit(runEditor(path))
	}
	if names := os.Getenv(swapperMark); names != "" {
		os.Exit(runSwapper(names))
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	for _, dir := range built {
		_ = os.RemoveAll(dir) // below the temporary directory
	}
	if code == 0 && !settled(before) {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "goroutines are left: wait for what the tests start\n%s\n", stacks[:runtime.Stack(stacks, true)])
		code = 1
	}
	os.Exit(code)
}

// settled waits until no more goroutines run than before: those of a test's last cleanup are still on their way out.
// The fuzzer and the signal handler of the testing package have one each.
func settled(before int) bool {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for limit := time.Now().Add(hangAfter); runtime.NumGoroutine() > before+2; <-look.C {
		if time.Now().After(limit) {
			return false
		}
	}
	return true
}
