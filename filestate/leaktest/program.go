package leaktest

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that this process may start at once, with the mode 0700. A child that is born while the
// file is open would hold it open for writing for a moment, and the kernel starts no such file
// (golang.org/issue/22315); so children wait. It is safe for concurrent use.
func WriteProgram(path string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, 0o700)
}
