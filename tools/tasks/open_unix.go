//go:build unix

package tasks

import (
	"os"
	"syscall"
)

// readFlags open a file for reading without waiting for the writer of a FIFO that took its place.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
