package auth

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// hang is the time after which what does not come true is a failure.
const hang = 60 * time.Second

// TestMain also is the entrance of the processes that TestWritersTakeTurns starts, and looks for file descriptors that
// the tests leave open.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == writerMark {
		os.Exit(writeSome(os.Args[2]))
	}
	before := openFiles()
	code := m.Run()
	after := openFiles()
	look := time.NewTicker(2 * time.Millisecond)
	for limit := time.Now().Add(hang); code == 0 && len(after) > len(before) && time.Now().Before(limit); after = openFiles() {
		<-look.C // whoever reads from a connection that was closed lets go of it a moment later
	}
	look.Stop()
	if code == 0 && len(after) > len(before) {
		fmt.Fprintf(os.Stderr, "%d files were open before the tests, %d are after: %v\n", len(before), len(after), after)
		code = 1
	}
	os.Exit(code)
}

// openFiles lists what the descriptors of this process stand for, where the system says it.
func openFiles() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name, err := os.Readlink("/proc/self/fd/" + e.Name())
		// The runtime's poller stays open from its first use on.
		if err == nil && name != "anon_inode:[eventpoll]" && name != "anon_inode:[eventfd]" && name != "anon_inode:[pidfd]" {
			names = append(names, name)
		}
	}
	return names
}
