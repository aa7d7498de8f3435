//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// owner returns the user that a file belongs to.
func owner(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// mine says whether a file belongs to the effective user.
func mine(info fs.FileInfo) bool {
	uid, ok := owner(info)
	return ok && uid == os.Geteuid()
}

// trustedOwner says whether a file belongs to the effective user or to root.
func trustedOwner(info fs.FileInfo) bool {
	uid, ok := owner(info)
	return ok && (uid == os.Geteuid() || uid == 0)
}

// ownedBy refuses a file that a user other than by may change.
func ownedBy(info fs.FileInfo, by int) error {
	uid, ok := owner(info)
	switch {
	case !ok || uid != by:
		return errors.New("must belong to root")
	case replaceable(info):
		return errors.New("can be written by others; run chmod go-w on it")
	}
	return nil
}

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

func othersHaveRights(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// replaceable says whether users other than the owner may rename what lies in a directory. A group counts, too.
func replaceable(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// writable says why directories cannot be made in dir; nil: they can.
func writable(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}
