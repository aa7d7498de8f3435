package disk_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"codehand/filestate/disk"
)

// old is the stamp of a file whose times have settled.
var old = disk.Stamp{Dev: 1, Ino: 2, Nlink: 1, Size: 3, Mtime: 4, Ctime: 5}

// A stamp proves a content only if all of it is equal and it was not racy when it was noted; a rename sets the ctime.
func TestStamps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change                  func(noted, now *disk.Stamp)
		same, proves, displaced bool
	}{
		"nothing":         {func(_, _ *disk.Stamp) {}, true, true, true},
		"device":          {func(_, now *disk.Stamp) { now.Dev++ }, false, false, false},
		"inode":           {func(_, now *disk.Stamp) { now.Ino++ }, false, false, false},
		"links":           {func(_, now *disk.Stamp) { now.Nlink++ }, false, false, false},
		"size":            {func(_, now *disk.Stamp) { now.Size++ }, false, false, false},
		"mtime":           {func(_, now *disk.Stamp) { now.Mtime++ }, false, false, false},
		"older mtime":     {func(_, now *disk.Stamp) { now.Mtime-- }, false, false, false},
		"ctime":           {func(_, now *disk.Stamp) { now.Ctime++ }, false, false, true},
		"noted racy":      {func(noted, _ *disk.Stamp) { noted.Racy = true }, true, false, false},
		"racy now":        {func(_, now *disk.Stamp) { now.Racy = true }, true, true, true},
		"no inodes":       {func(noted, now *disk.Stamp) { noted.Ino, now.Ino = 0, 0 }, true, true, false},
		"racy and a name": {func(noted, now *disk.Stamp) { noted.Racy = true; now.Ctime++ }, false, false, false},
	} {
		noted, now := old, old
		c.change(&noted, &now)
		if same, proves, displaced := noted.Same(now), noted.Proves(now), noted.ProvesDisplaced(now); same != c.same || proves != c.proves || displaced != c.displaced {
			t.Errorf("%s: same %v, proves %v, displaced %v; want %v, %v, %v", name, same, proves, displaced, c.same, c.proves, c.displaced)
		}
	}
}

// Times of less than two seconds ago, or in the future, prove nothing: the next change may have the same.
func TestRacy(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]time.Duration{
		"just now": 0, "in an hour": time.Hour, "an hour ago": -time.Hour, // its ctime is now
	} {
		for {
			f, now := fileOf(t, []byte("x")), time.Now()
			mtime := now.Add(from)
			if err := os.Chtimes(f.Name(), mtime, mtime); err != nil {
				t.Fatal(err)
			}
			s, err := disk.Restamp(f)
			if !s.Racy && time.Since(now) > time.Second {
				continue // the times have settled by now, so slow is this machine
			}
			if err != nil || !s.Racy || s.Size != 1 || s.Mtime != mtime.UnixNano() && runtime.GOOS == "linux" {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
			break
		}
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return // no stamp ever proves anything there
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for at := self; ; at = filepath.Dir(at) { // the root of the file system is older than the test
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if s := disk.StampOf(info); !s.Racy {
			if s.Ino == 0 || s.Nlink == 0 || s.Ctime == 0 || !s.Proves(disk.StampOf(info)) {
				t.Errorf("%s: %+v", at, s)
			}
			return
		}
		if at == filepath.Dir(at) {
			t.Fatalf("all that is above %s has changed within 2 s", self)
		}
	}
}

func TestRestamp(t *testing.T) {
	t.Parallel()
	f := fileOf(t, []byte("x"))
	before, err := disk.Restamp(f)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Name()); err != nil || !before.Same(disk.StampOf(info)) && runtime.GOOS != "windows" {
		t.Errorf("the handle and the name have other stamps: %+v, %v", before, err)
	}
	if _, err := f.WriteString("y"); err != nil {
		t.Fatal(err)
	}
	if after, err := disk.Restamp(f); err != nil || after.Same(before) {
		t.Errorf("%+v became %+v with a byte more, %v", before, after, err)
	}
	_ = f.Close()
	if _, err := disk.Restamp(f); err == nil {
		t.Error("a closed file has a stamp")
	}
}
