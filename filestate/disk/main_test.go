package disk_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// TestMain looks for file descriptors that the tests leave open, where the system tells.
func TestMain(m *testing.M) {
	debug.SetGCPercent(-1) // or what was forgotten would be closed when it is collected
	before := openFiles()
	code := m.Run()
	if after := openFiles(); code == 0 && len(after) > len(before) {
		fmt.Fprintf(os.Stderr, "%d files were open before the tests, %d are after: %v\n", len(before), len(after), after)
		code = 1
	}
	os.Exit(code)
}

func openFiles() (names []string) {
	entries, _ := os.ReadDir("/proc/self/fd") // none on other systems
	for _, e := range entries {
		// The runtime's poller stays open from its first use on.
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(name, "anon_inode:") {
			names = append(names, name)
		}
	}
	return names
}
