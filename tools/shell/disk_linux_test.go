package shell

import (
	"os"
	"syscall"
	"testing"
)

// usedBytes returns what a file takes of the disk.
func usedBytes(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}
