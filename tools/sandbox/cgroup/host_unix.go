//go:build unix

package cgroup

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// writable reports whether this process may make groups in dir and move processes there.
func (h *host) writable(dir string) bool {
	for _, path := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if unix.Access(path, unix.W_OK) != nil {
			return false
		}
	}
	return true
}

// ownedByUser reports whether dir belongs to the user of this process, as what systemd delegates does.
func (h *host) ownedByUser(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == h.user
}
