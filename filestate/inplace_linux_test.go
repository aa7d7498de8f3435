package filestate_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// A single file that is mounted into a container cannot be replaced, and is written in place.
func TestMountPoint(t *testing.T) {
	d := newKeptDesk(t, durable)
	d.write("real", "a longer old content\n")
	d.write("a", "covered")
	if err := syscall.Mount(d.path("real"), d.path("a"), "", syscall.MS_BIND, ""); err != nil {
		lacks(t, "mounting a file: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.path("a"), syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	d.see("a")
	c := d.must(d.put("a", "new\n"))
	if !c.InPlace || !c.Durable {
		t.Errorf("the change is %+v", c)
	}
	d.holds("real", "new\n")
	d.mustUndo(c.ID)
	d.holds("real", "a longer old content\n")
}

// A file of another owner, which cannot be kept, stays that owner's file.
func TestOwnerStaysInPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs a file of another user; run the tests as root to have this case")
	}
	d := newKeptDesk(t)
	d.write("a", "one\n")
	if err := os.Chown(d.path("a"), 12345, 54321); err != nil {
		t.Fatal(err)
	}
	before := stat(t, d.path("a"))
	err := without(t, unix.CAP_CHOWN, func() error {
		_, err := d.edit("a", "one", "two", unseen)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.holds("a", "two\n")
	if after := stat(t, d.path("a")); after.Uid != before.Uid || after.Gid != before.Gid || after.Ino != before.Ino {
		t.Errorf("the file became %+v", after)
	}
}

// What the kernel takes from a file that is written to, it has afterwards; what cannot be given back is named.
func TestPrivilegesStayInPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs a file of another user; run the tests as root to have this case")
	}
	capability := binary.LittleEndian.AppendUint32(nil, 0x0200_0001) // VFS_CAP_REVISION_2, effective (linux/capability.h)
	capability = append(binary.LittleEndian.AppendUint32(capability, 1<<unix.CAP_NET_BIND_SERVICE), make([]byte, 12)...)
	for _, c := range []struct {
		lacking []int // besides what makes it a change in place
		lost    []string
	}{
		{},
		{[]int{unix.CAP_FSETID}, []string{"setgid"}},
		{[]int{unix.CAP_SETFCAP}, []string{"security.capability"}},
		{[]int{unix.CAP_FSETID, unix.CAP_SETFCAP}, []string{"security.capability", "setgid"}},
	} {
		d := newKeptDesk(t)
		d.write("a", "one\n")
		if err := errors.Join(os.Chown(d.path("a"), 12345, 54321), os.Chmod(d.path("a"), 0o755|fs.ModeSetuid|fs.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(d.path("a"), "security.capability", capability, 0); err != nil {
			lacks(t, "capabilities of files: %v", err)
		}
		before := stat(t, d.path("a"))
		var got filestate.Change
		do := func() (err error) {
			got, err = d.edit("a", "one", "two", unseen)
			return err
		}
		for _, lacking := range append(c.lacking, unix.CAP_CHOWN) {
			inner := do
			do = func() error { return lack(lacking, inner) }
		}
		if err := apart(do); err != nil {
			t.Fatal(err)
		}
		d.holds("a", "two\n")
		if !got.InPlace || !slices.Equal(got.Lost, c.lost) {
			t.Errorf("without %v: %+v, want lost %q", c.lacking, got, c.lost)
		}
		after := stat(t, d.path("a"))
		if kept := len(c.lost) == 0; (after.Mode == before.Mode && attribute(t, d.path("a")) == string(capability)) != kept {
			t.Errorf("without %v: mode %o, was %o; %q", c.lacking, after.Mode, before.Mode, attribute(t, d.path("a")))
		}
	}
}

// attribute returns the capabilities of a file.
func attribute(t *testing.T, path string) string {
	t.Helper()
	buf := make([]byte, 100)
	n, err := unix.Getxattr(path, "security.capability", buf)
	if err != nil && !errors.Is(err, unix.ENODATA) {
		t.Fatal(err)
	}
	return string(buf[:max(n, 0)])
}

// A full disk or a read-only one below the journal: nothing is changed, and the error says where.
func TestJournalDiskFull(t *testing.T) {
	d := newKeptDesk(t, durable)
	d.write("a", "one\n")
	if err := syscall.Mount("tmpfs", d.kept, "tmpfs", 0, "size=16k,mode=0700"); err != nil {
		lacks(t, "mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.kept, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	d = d.again()
	noise := make([]byte, 64<<10)
	rng := rand.New(rand.NewPCG(1, 1)) // which cannot be compressed
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	d.write("a", string(noise))
	_, err := d.put("a", "two\n", unseen)
	wantError(t, err, syscall.ENOSPC)
	d.holds("a", string(noise))
	if e := d.history(journal.Query{}); len(e) > 0 {
		t.Errorf("the history is %+v", e)
	}
	d.must(d.put("b", "small\n", unseen))
}
