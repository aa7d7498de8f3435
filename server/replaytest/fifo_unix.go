//go:build unix

package replaytest

import "syscall"

func Mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
