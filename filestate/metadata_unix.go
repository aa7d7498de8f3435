//go:build linux || darwin

package filestate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	aclName       = "system.posix_acl_access"
	maxAttributes = 64 << 10 // bytes of a list of names and of one value: XATTR_LIST_MAX, XATTR_SIZE_MAX of Linux
)

// copyMetadata gives to the owner, mode and extended attributes of from, in an order in which no step
// undoes another: fchown clears setuid and file capabilities, an ACL changes the mode. It returns the
// names of attributes that could not be kept. An owner that cannot be kept is an error: to replace the
// file would give it away.
func copyMetadata(to, from *os.File, s steps) (lost []string, at step, err error) {
	want, err := from.Stat()
	if err != nil {
		return nil, stepRead, err
	}
	if err = s.before(stepOwner); err == nil {
		err = copyOwner(to, want)
	}
	if err != nil {
		return nil, stepOwner, err
	}
	if err = s.before(stepAttrs); err == nil {
		lost, err = copyAttributes(to, from)
	}
	if err != nil {
		return nil, stepAttrs, err
	}
	if err = s.before(stepMode); err == nil {
		err = copyMode(to, want.Mode())
	}
	if err != nil {
		return nil, stepMode, err
	}
	return lost, "", nil
}

func copyOwner(to *os.File, want fs.FileInfo) error {
	have, err := to.Stat()
	if err != nil {
		return err
	}
	w, wok := want.Sys().(*syscall.Stat_t)
	h, hok := have.Sys().(*syscall.Stat_t)
	if !wok || !hok {
		return errors.ErrUnsupported
	}
	if w.Uid == h.Uid && w.Gid == h.Gid {
		return nil
	}
	return to.Chown(int(w.Uid), int(w.Gid))
}

// copyMode sets the mode and looks whether it holds: the kernel drops setgid in silence when the group
// is not one of ours. File systems without modes refuse, but have the right one already.
func copyMode(to *os.File, want fs.FileMode) error {
	for tries := 0; ; tries++ {
		have, err := to.Stat()
		if err != nil || have.Mode()&keptMode == want&keptMode {
			return err
		}
		if tries > 0 {
			return syscall.EPERM
		}
		if err := to.Chmod(want & keptMode); err != nil {
			return err
		}
	}
}

// copyAttributes copies what from has and removes what to inherited from its directory.
func copyAttributes(to, from *os.File) (lost []string, err error) {
	src, dst := int(from.Fd()), int(to.Fd())
	names, err := attributes(src)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		value, err := attribute(src, name)
		if errors.Is(err, unix.ENODATA) {
			continue // gone since it was listed, or only listed (some network file systems)
		}
		if err == nil {
			err = set(dst, name, value)
		}
		switch {
		case err == nil:
		case unkeepable(name, err):
			lost = append(lost, name)
		default:
			return nil, err
		}
	}
	// A default ACL of the directory gave the temporary file one that the old file does not have.
	if !slices.Contains(names, aclName) {
		if _, err := attribute(dst, aclName); err == nil {
			return lost, unix.Fremovexattr(dst, aclName)
		}
	}
	return lost, nil
}

// set writes an attribute unless it has that value: labels of security modules are inherited, and
// setting even the same one is refused to ordinary users.
func set(fd int, name string, value []byte) error {
	if have, err := attribute(fd, name); err == nil && bytes.Equal(have, value) {
		return nil
	}
	return unix.Fsetxattr(fd, name, value, 0)
}

// unkeepable says that an attribute is lost without harm to the content: the file system has none, or
// it belongs to the system's administrator.
func unkeepable(name string, err error) bool {
	if errors.Is(err, unix.ENOTSUP) {
		return true
	}
	private := strings.HasPrefix(name, "security.") || strings.HasPrefix(name, "trusted.")
	return private && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES))
}

// attributes lists the names of a file's attributes. A file system without any has none.
func attributes(fd int) ([]string, error) {
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	buf := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(fd, buf)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(buf[:n]), func(c rune) bool { return c == 0 }), nil
}

func attribute(fd int, name string) ([]byte, error) {
	size, err := unix.Fgetxattr(fd, name, nil)
	if err != nil || size == 0 {
		return nil, err
	}
	buf := make([]byte, maxAttributes)
	n, err := unix.Fgetxattr(fd, name, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// ownedByUs says whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
