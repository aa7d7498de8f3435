//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// claimStdout returns a private copy of standard output and points descriptor 1 at standard error, so that no library
// and no child can put a byte between two JSON-RPC lines. Children never inherit the copy.
func claimStdout(f *os.File) (*os.File, error) {
	if f.Fd() != 1 {
		return f, nil
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(1)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("copy standard output: %w", err)
	}
	if err := dup2(2, 1); err != nil {
		return nil, fmt.Errorf("point standard output at standard error: %w", err)
	}
	os.Stdout = os.Stderr
	return os.NewFile(uintptr(fd), "stdout"), nil
}
