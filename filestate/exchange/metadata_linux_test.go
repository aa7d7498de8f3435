package exchange_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate/disk"
	"codehand/filestate/exchange"
	"codehand/filestate/fault"
)

const (
	accessACL  = "system.posix_acl_access"
	defaultACL = "system.posix_acl_default"
)

// newFiles makes an old file with attributes and a new one as a change does, in a directory of their own.
func newFiles(t *testing.T, attributes map[string][]byte) (to, from *os.File) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	to, from = open("new"), open("old")
	for name, value := range attributes {
		setOr(t, from, name, value)
	}
	return to, from
}

// setOr sets an attribute, or has the test pass over what this file system cannot do.
func setOr(t *testing.T, f *os.File, name string, value []byte) {
	t.Helper()
	err := unix.Fsetxattr(int(f.Fd()), name, value, 0)
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOTSUP) && os.Getenv("CI") == "":
		t.Skipf("%s: %v; set TMPDIR to a file system with attributes to have this case", name, err)
	default:
		t.Fatalf("%s: %v", name, err)
	}
}

// attributesOf are those of a file, but for labels that the system gives to all files.
func attributesOf(t *testing.T, f *os.File) map[string]string {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := unix.Flistxattr(int(f.Fd()), buf)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if name == "" || name == "security.selinux" {
			continue
		}
		value := make([]byte, 4096)
		n, err := unix.Fgetxattr(int(f.Fd()), name, value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = string(value[:n])
	}
	return out
}

func statOf(t *testing.T, f *os.File) (mode fs.FileMode, uid, gid uint32) {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return info.Mode() & disk.KeptMode, st.Uid, st.Gid
}

// same fails unless the new file has all that the old one has.
func same(t *testing.T, to, from *os.File) {
	t.Helper()
	mode, uid, gid := statOf(t, to)
	wantMode, wantUID, wantGID := statOf(t, from)
	if mode != wantMode || uid != wantUID || gid != wantGID {
		t.Errorf("%v of %d:%d, want %v of %d:%d", mode, uid, gid, wantMode, wantUID, wantGID)
	}
	if got, want := attributesOf(t, to), attributesOf(t, from); !maps.Equal(got, want) {
		t.Errorf("attributes %q, want %q", got, want)
	}
}

func TestCopyMetadata(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("v"), 1000)
	for _, mode := range []fs.FileMode{0o400, 0o600, 0o644, 0o666, 0o777, 0o755 | fs.ModeSetgid, 0o402 | fs.ModeSetgid, 0o755 | fs.ModeSetuid, 0o644 | fs.ModeSticky, 0o777 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			to, from := newFiles(t, map[string][]byte{"user.note": []byte("x\x00y"), "user.empty": nil, "user.large": large})
			if err := from.Chmod(mode); err != nil {
				t.Fatal(err)
			}
			setOr(t, to, "user.note", []byte("before"))
			var asked []fault.Step
			lost, at, err := exchange.CopyMetadata(to, from, func(s fault.Step) error { asked = append(asked, s); return nil })
			if lost != nil || at != "" || err != nil {
				t.Errorf("lost %v, %s: %v", lost, at, err)
			}
			if want := []fault.Step{fault.Owner, fault.Attrs, fault.Mode}; !slices.Equal(asked, want) {
				t.Errorf("the steps are %v, want %v", asked, want)
			}
			same(t, to, from)
		})
	}
}

// The owner comes before what a change of it takes away: setuid, setgid and the capabilities of a program.
func TestCopyMetadataOfAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs a file of another user; run the tests as root to have this case")
	}
	capability := binary.LittleEndian.AppendUint32(nil, 0x0200_0001) // VFS_CAP_REVISION_2, effective (linux/capability.h)
	capability = append(binary.LittleEndian.AppendUint32(capability, 1<<unix.CAP_NET_BIND_SERVICE), make([]byte, 12)...)
	to, from := newFiles(t, nil)
	if err := from.Chown(12345, 54321); err != nil {
		t.Fatal(err)
	}
	if err := from.Chmod(0o755 | fs.ModeSetuid | fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	setOr(t, from, "security.capability", capability)
	if lost, at, err := exchange.CopyMetadata(to, from, nil); lost != nil || at != "" || err != nil {
		t.Errorf("lost %v, %s: %v", lost, at, err)
	}
	same(t, to, from)
}

// An owner that cannot be kept is an error, before anything else is given.
func TestCopyMetadataWithoutRight(t *testing.T) {
	t.Parallel()
	to, from := newFiles(t, nil)
	if os.Geteuid() == 0 {
		if err := from.Chown(12345, 54321); err != nil {
			t.Fatal(err)
		}
	} else {
		foreign, err := os.Open("/etc/passwd")
		if err != nil {
			t.Skipf("no file of another user: %v", err)
		}
		defer foreign.Close()
		from = foreign
	}
	lacking(t, map[uint32]syscall.Errno{unix.SYS_FCHOWN: unix.EPERM}, func() {
		if lost, at, err := exchange.CopyMetadata(to, from, nil); lost != nil || at != fault.Owner || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("lost %v, %q: %v; want that the owner cannot be kept", lost, at, err)
		}
	})
	if mode, uid, _ := statOf(t, to); mode != 0o600 || int(uid) != os.Geteuid() {
		t.Errorf("the new file is %v of %d", mode, uid)
	}
}

// An ACL is kept with the mode that it makes, and one that only the directory gives to new files is taken off again.
func TestCopyMetadataAccessLists(t *testing.T) {
	t.Parallel()
	for name, own := range map[string][]byte{"with one": accessList(6, 4), "with none": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			from, err := os.Create(filepath.Join(dir, "old"))
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			setOr(t, d, defaultACL, accessList(7, 7))
			if own != nil {
				setOr(t, from, accessACL, own)
			}
			to, err := os.OpenFile(filepath.Join(dir, "new"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			if attributesOf(t, to)[accessACL] == "" {
				t.Fatal("the directory gave no access list to a new file")
			}
			if lost, at, err := exchange.CopyMetadata(to, from, nil); lost != nil || at != "" || err != nil {
				t.Errorf("lost %v, %s: %v", lost, at, err)
			}
			same(t, to, from)
		})
	}
}

// accessList is a POSIX access list in the kernel's form (linux/posix_acl_xattr.h): user 1234 may do what perm says, within
// mask.
func accessList(perm, mask uint16) []byte {
	const undefined = 1<<32 - 1
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, 6, undefined}, {0x02, perm, 1234}, {0x04, 4, undefined}, {0x10, mask, undefined}, {0x20, 0, undefined}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	return b
}

// What a file system refuses is either lost, and named, or an error of its step.
func TestCopyMetadataRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call uint32
		err  syscall.Errno // 0: the call does nothing and says nothing
		lost []string
		at   fault.Step
		want error
	}{
		"no attributes":             {unix.SYS_FLISTXATTR, unix.ENOTSUP, nil, "", nil},
		"attributes unknown":        {unix.SYS_FLISTXATTR, unix.ENOSYS, nil, "", nil},
		"a list that fails":         {unix.SYS_FLISTXATTR, unix.EIO, nil, fault.Attrs, unix.EIO},
		"only listed":               {unix.SYS_FGETXATTR, unix.ENODATA, nil, "", nil},
		"a value that fails":        {unix.SYS_FGETXATTR, unix.EIO, nil, fault.Attrs, unix.EIO},
		"attributes elsewhere only": {unix.SYS_FSETXATTR, unix.ENOTSUP, []string{"user.note"}, "", nil},
		"attributes not permitted":  {unix.SYS_FSETXATTR, unix.EPERM, nil, fault.Attrs, unix.EPERM},
		"no room for attributes":    {unix.SYS_FSETXATTR, unix.ENOSPC, nil, fault.Attrs, unix.ENOSPC},
		"no modes":                  {unix.SYS_FCHMOD, unix.EPERM, nil, fault.Mode, unix.EPERM},
		"a mode dropped in silence": {unix.SYS_FCHMOD, 0, nil, fault.Mode, unix.EPERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, from := newFiles(t, map[string][]byte{"user.note": []byte("x")})
			if err := from.Chmod(0o640 | fs.ModeSetgid); err != nil {
				t.Fatal(err)
			}
			lacking(t, map[uint32]syscall.Errno{c.call: c.err}, func() {
				lost, at, err := exchange.CopyMetadata(to, from, nil)
				if !slices.Equal(lost, c.lost) || at != c.at || !errors.Is(err, c.want) {
					t.Errorf("lost %v, %q: %v; want %v, %q: %v", lost, at, err, c.lost, c.at, c.want)
				}
			})
		})
	}
}

// Attributes that belong to the administrator are lost without harm where an ordinary user makes the change.
func TestCopyMetadataOfTheAdministrator(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs the attribute of an administrator; run the tests as root to have this case")
	}
	to, from := newFiles(t, map[string][]byte{"trusted.note": []byte("x")})
	lacking(t, map[uint32]syscall.Errno{unix.SYS_FSETXATTR: unix.EPERM}, func() {
		if lost, at, err := exchange.CopyMetadata(to, from, nil); !slices.Equal(lost, []string{"trusted.note"}) || at != "" || err != nil {
			t.Errorf("lost %v, %q: %v; want trusted.note and no error", lost, at, err)
		}
	})
}

// An error that is put in before a step is that of the step, and nothing after it is done.
func TestCopyMetadataFails(t *testing.T) {
	t.Parallel()
	cause := errors.New("put in")
	for i, step := range []fault.Step{fault.Owner, fault.Attrs, fault.Mode} {
		to, from := newFiles(t, map[string][]byte{"user.note": []byte("x")})
		if err := from.Chmod(0o644); err != nil {
			t.Fatal(err)
		}
		_, at, err := exchange.CopyMetadata(to, from, func(s fault.Step) error {
			if s == step {
				return cause
			}
			return nil
		})
		mode, _, _ := statOf(t, to)
		_, noted := attributesOf(t, to)["user.note"]
		if at != step || !errors.Is(err, cause) || mode != 0o600 || noted != (i > 1) {
			t.Errorf("before %s: %q, %v; mode %v, attributes %v", step, at, err, mode, noted)
		}
	}
	to, from := newFiles(t, nil)
	_ = from.Close()
	if _, at, err := exchange.CopyMetadata(to, from, nil); at != fault.Metadata || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("of a closed file: %q, %v", at, err)
	}
}
