package filestate_test

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate"
)

// A single file that is mounted into a container cannot be replaced, and is written in place.
func TestMountPoint(t *testing.T) {
	d := newKeptDesk(t, durable)
	d.write("real", "a longer old content\n")
	d.write("a", "covered")
	if err := syscall.Mount(d.path("real"), d.path("a"), "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("mounting a file: %v; run the tests as root to have this case", err)
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

// A full disk or a read-only one below the journal: nothing is changed, and the error says where.
func TestJournalDiskFull(t *testing.T) {
	d := newKeptDesk(t, durable)
	d.write("a", "one\n")
	if err := syscall.Mount("tmpfs", d.kept, "tmpfs", 0, "size=16k,mode=0700"); err != nil {
		t.Skipf("mounting a small tmpfs: %v; run the tests as root to have this case", err)
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
	if e := d.history(filestate.Query{}); len(e) > 0 {
		t.Errorf("the history is %+v", e)
	}
	d.must(d.put("b", "small\n", unseen))
}
