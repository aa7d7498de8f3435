package shell

import (
	"os"
	"syscall"
)

// punch releases n bytes of f from offset from on; they read as zeros, and the size stays. Not every file system can.
func punch(f *os.File, from, n int64) error {
	const keepSize, punchHole = 1, 2 // FALLOC_FL_*, linux/falloc.h
	return syscall.Fallocate(int(f.Fd()), punchHole|keepSize, from, n)
}
