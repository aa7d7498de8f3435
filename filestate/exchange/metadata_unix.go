//go:build linux || darwin

package exchange

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
)

const (
	aclName       = "system.posix_acl_access"
	maxAttributes = 64 << 10 // bytes of a list of names and of one value: XATTR_LIST_MAX, XATTR_SIZE_MAX of Linux
)

// CopyMetadata gives to the owner, mode and extended attributes of from, in an order in which no step
// undoes another: fchown clears setuid and file capabilities, an ACL changes the mode. It returns the
// names of attributes that could not be kept. An owner that cannot be kept is an error: to replace the
// file would give it away.
func CopyMetadata(to, from *os.File, s fault.Check) (lost []string, at fault.Step, err error) {
	want, err := from.Stat()
	if err != nil {
		return nil, fault.Metadata, err
	}
	if err = s.Before(fault.Owner); err == nil {
		err = copyOwner(to, want)
	}
	if err != nil {
		return nil, fault.Owner, err
	}
	if err = s.Before(fault.Attrs); err == nil {
		lost, err = copyAttributes(to, from)
	}
	if err != nil {
		return nil, fault.Attrs, err
	}
	if err = s.Before(fault.Mode); err == nil {
		err = CopyMode(to, want.Mode())
	}
	if err != nil {
		return nil, fault.Mode, err
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

// CopyMode sets the mode and looks whether it holds: the kernel drops setgid in silence when the group
// is not one of ours. File systems without modes refuse, but have the right one already.
func CopyMode(to *os.File, want fs.FileMode) error {
	for tries := 0; ; tries++ {
		have, err := to.Stat()
		if err != nil || have.Mode()&disk.KeptMode == want&disk.KeptMode {
			return err
		}
		if tries > 0 {
			return syscall.EPERM
		}
		if err := to.Chmod(want & disk.KeptMode); err != nil {
			return err
		}
	}
}

const capabilityName = "security.capability"

// Privileges are what the kernel takes from a file that is written to: setuid, setgid, and the capabilities of a
// program.
type Privileges struct {
	mode       fs.FileMode
	capability []byte
}

// PrivilegesOf reads those of a file before it is written to.
func PrivilegesOf(f *os.File) (Privileges, error) {
	info, err := f.Stat()
	if err != nil {
		return Privileges{}, err
	}
	p := Privileges{mode: info.Mode()}
	p.capability, _ = attribute(int(f.Fd()), capabilityName) // most files have none, and many systems no attributes
	return p, nil
}

// Restore gives them back, and names what could not be given. It does nothing to a file that has them.
func (p Privileges) Restore(f *os.File) (lost []string, changed bool) {
	if p.capability != nil {
		if changed = true; set(int(f.Fd()), capabilityName, p.capability) != nil {
			lost = append(lost, capabilityName)
		}
	}
	info, err := f.Stat()
	if err != nil || p.mode&disk.KeptMode == info.Mode()&disk.KeptMode {
		return lost, changed
	}
	_ = CopyMode(f, p.mode) // what it is now is looked at
	if info, err = f.Stat(); err != nil {
		return lost, true
	}
	for bit, name := range map[fs.FileMode]string{fs.ModeSetuid: "setuid", fs.ModeSetgid: "setgid"} {
		if p.mode&bit != 0 && info.Mode()&bit == 0 {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return lost, true
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
