//go:build unix

package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// ours says whether a file belongs to the effective user or to root.
func ours(info fs.FileInfo) bool {
	uid, _, ok := owner(info)
	return ok && (uid == os.Geteuid() || uid == 0)
}

func sameOwner(a, b fs.FileInfo) bool {
	x, _, ok := owner(a)
	y, _, also := owner(b)
	return ok && also && x == y
}

func isRoot() bool { return os.Geteuid() == 0 }

func othersMayRead(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// giveToOwner calls chown with whom path or, if there is none, its directory belongs to, if that is not us: a service
// that runs as a user of its own must be able to read what root wrote for it.
func giveToOwner(path string, chown func(uid, gid int) error) error {
	if !isRoot() {
		return nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	uid, gid, ok := owner(info)
	if !ok || uid == 0 {
		return nil
	}
	return chown(uid, gid)
}

// syncDir writes a directory's entries to the disk, where the file system can.
func syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
