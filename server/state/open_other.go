//go:build !unix

package state

import (
	"errors"
	"os"
	"syscall"
)

const openFlags = 0

// lockFlags are those of the lock file.
const lockFlags = os.O_CREATE | os.O_RDWR

// Codes of Windows for a full disk.
const (
	handleDiskFull = syscall.Errno(39)
	diskFull       = syscall.Errno(112)
)

// isFull says whether the disk is full.
func isFull(err error) bool { return errors.Is(err, handleDiskFull) || errors.Is(err, diskFull) }

// syncDir does nothing: a directory cannot be synced here, and the file system keeps its own log of names.
func syncDir(string) error { return nil }
