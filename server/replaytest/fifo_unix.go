//go:build unix

package replaytest

import "syscall"

// Mkfifo makes a FIFO; where there are none, it says so.
func Mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
