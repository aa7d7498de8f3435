//go:build !windows

package lsp

import (
	"os"
	"syscall"
)

// openPlain opens a file for reading, and follows no link and waits for no FIFO.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}
