//go:build unix

package media

import (
	"os"
	"runtime"
	"syscall"
)

// trusted says whether only root, or the user that we are, can change a file or directory. On macOS the group may, too:
// Homebrew's directories belong to the administrators.
func trusted(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return false
	}
	others := os.FileMode(0o022)
	if runtime.GOOS == "darwin" {
		others = 0o002
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Perm()&others == 0 && info.Mode().Perm()&0o111 != 0 &&
		(stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
