package filestate_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate"
)

func TestAttributesStay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	large := bytes.Repeat([]byte("v"), 1000)
	for name, value := range map[string][]byte{"user.note": []byte("x"), "user.empty": nil, "user.large": large} {
		if err := unix.Setxattr(d.path("a"), name, value, 0); err != nil {
			t.Skipf("extended attributes: %v", err)
		}
	}
	before := attributes(t, d.path("a"))
	c := d.must(d.edit("a", "one", "two", unseen))
	if after := attributes(t, d.path("a")); !slices.Equal(after, before) || len(c.Lost) > 0 {
		t.Errorf("attributes %v became %v, reported lost: %v", before, after, c.Lost)
	}
	got := make([]byte, 2000)
	if n, err := unix.Getxattr(d.path("a"), "user.large", got); err != nil || !bytes.Equal(got[:n], large) {
		t.Errorf("a value of 1,000 bytes became %d, %v", n, err)
	}
}

// An ACL stays, and one that a directory gives to new files is not given to old ones.
func TestAccessListsStay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("dir/with", "one\n")
	d.write("dir/without", "one\n")
	list := accessList(6, 4)
	if err := unix.Setxattr(d.path("dir/with"), "system.posix_acl_access", list, 0); err != nil {
		t.Skipf("access lists: %v", err)
	}
	if err := unix.Setxattr(d.path("dir"), "system.posix_acl_default", accessList(7, 7), 0); err != nil {
		t.Fatal(err)
	}
	before := stat(t, d.path("dir/without")).Mode
	d.must(d.edit("dir/with", "one", "two", unseen))
	d.must(d.edit("dir/without", "one", "two", unseen))
	got := make([]byte, 200)
	n, err := unix.Getxattr(d.path("dir/with"), "system.posix_acl_access", got)
	if err != nil || !bytes.Equal(got[:n], list) {
		t.Errorf("the access list became %x, %v, want %x", got[:max(n, 0)], err, list)
	}
	if names := attributes(t, d.path("dir/without")); slices.Contains(names, "system.posix_acl_access") {
		t.Error("a file got the access list of its directory")
	}
	if after := stat(t, d.path("dir/without")).Mode; after != before {
		t.Errorf("mode %o became %o", before, after)
	}
}

// accessList is a POSIX access list in the kernel's form (linux/posix_acl_xattr.h): user 1234 may do
// what perm says, within mask.
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

func attributes(t *testing.T, path string) []string {
	t.Helper()
	buf := make([]byte, 4096)
	n, err := unix.Listxattr(path, buf)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	slices.Sort(names)
	return names
}

// A file whose owner cannot be kept is not replaced, since that would give it away.
func TestOwnerThatCannotBeKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs a file of another user; run the tests as root to have this case")
	}
	d := newDesk(t)
	d.write("a", "one\n")
	if err := os.Chown(d.path("a"), 12345, 54321); err != nil {
		t.Fatal(err)
	}
	err := without(t, unix.CAP_CHOWN, func() error {
		_, err := d.edit("a", "one", "two", unseen)
		return err
	})
	if e, ok := errors.AsType[*filestate.WriteError](err); !ok || e.Step != "owner" || !errors.Is(err, syscall.EPERM) {
		t.Errorf("got %v, want a WriteError of the step owner", err)
	}
	d.holds("a", "one\n")
}

// without runs do on a thread that lacks a capability.
func without(t *testing.T, capability int, do func() error) error {
	t.Helper()
	return apart(func() error { return lack(capability, do) })
}

// apart runs do on a thread of its own, which ends with it.
func apart(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- do()
	}()
	return <-done
}

// lack takes a capability from this thread for good, and runs do.
func lack(capability int, do func() error) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[capability/32].Effective &^= 1 << (capability % 32)
	if err := unix.Capset(&head, &data[0]); err != nil {
		return err
	}
	return do()
}
