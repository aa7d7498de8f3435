//go:build unix

package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/disk"
	"codehand/filestate/leaktest"
)

// opened is a directory with a handle of it.
func opened(t *testing.T) (path string, dir *os.Root) {
	t.Helper()
	path = leaktest.Dir(t)
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return path, dir
}

// kinds puts one of every kind into a directory that an ordinary user can make.
func kinds(t *testing.T) (path string, dir *os.Root) {
	t.Helper()
	path, dir = opened(t)
	leaktest.Socket(t, filepath.Join(path, "socket"))
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(path, "fifo"), 0o600),
		dir.WriteFile("file", []byte("content"), 0o600), dir.WriteFile("empty", nil, 0o600), dir.Link("file", "other name"),
		dir.MkdirAll("directory/inner", 0o700), dir.WriteFile("directory/file", []byte("inner"), 0o600),
		dir.Symlink("file", "link"), dir.Symlink("nothing", "broken"), dir.Symlink("loop", "loop"), dir.Symlink("/etc", "out"),
		dir.Symlink("directory", "link to directory"), dir.Symlink("fifo", "link to fifo"),
	); err != nil {
		t.Fatal(err)
	}
	return path, dir
}

// Every kind but a regular file is refused in its own words, at once, and with the whole path.
func TestOpenRegular(t *testing.T) {
	t.Parallel()
	path, dir := kinds(t)
	for name, c := range map[string]struct {
		want error
		kind string
	}{
		"file":              {nil, ""},
		"empty":             {nil, ""},
		"other name":        {nil, ""},
		"directory/file":    {nil, ""},
		"directory":         {disk.ErrDirectory, ""},
		".":                 {disk.ErrDirectory, ""},
		"link":              {disk.ErrMoved, ""},
		"broken":            {disk.ErrMoved, ""},
		"loop":              {disk.ErrMoved, ""},
		"out":               {disk.ErrMoved, ""},
		"link to directory": {disk.ErrMoved, ""},
		"link to fifo":      {disk.ErrMoved, ""},
		"fifo":              {disk.ErrNotRegular, "FIFO"},
		"socket":            {disk.ErrNotRegular, "socket"},
		"missing":           {fs.ErrNotExist, ""},
		"missing/file":      {fs.ErrNotExist, ""},
		"file/file":         {syscall.ENOTDIR, ""},
	} {
		f, stamp, err := disk.OpenRegular(dir, name, filepath.Join(path, name))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
			continue
		}
		if err != nil {
			if e, ok := errors.AsType[*disk.NotRegularError](err); ok != (c.kind != "") || ok && e.Kind != c.kind || !strings.Contains(err.Error(), filepath.Join(path, name)) {
				t.Errorf("%s: got %q, want a %s and the path", name, err, c.kind)
			}
			continue
		}
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || !stamp.Same(disk.StampOf(info)) {
			t.Errorf("%s: the stamp %+v is not that of the file: %v", name, stamp, err)
		}
		_ = f.Close()
	}
}

func TestOpenRegularOfADevice(t *testing.T) {
	t.Parallel()
	dir, err := os.OpenRoot("/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, _, err = disk.OpenRegular(dir, "null", "/dev/null")
	if e, ok := errors.AsType[*disk.NotRegularError](err); !ok || e.Kind != "device" || err.Error() != "/dev/null is a device" {
		t.Errorf("got %v", err)
	}
}

func TestOpenRegularWithoutRight(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; run the tests as an ordinary user to have this case")
	}
	path, dir := opened(t)
	if err := dir.WriteFile("file", nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := disk.OpenRegular(dir, "file", path); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want that it is not permitted", err)
	}
}

// A directory is opened only where the name is one itself, and opening never blocks.
func TestChild(t *testing.T) {
	t.Parallel()
	_, dir := kinds(t)
	for name, want := range map[string]error{
		"directory": nil, "missing": fs.ErrNotExist, "link to directory": disk.ErrMoved, "out": disk.ErrMoved, "loop": disk.ErrMoved, "broken": disk.ErrMoved,
	} {
		got, err := disk.Child(dir, name)
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		if got == nil {
			continue
		}
		if b, err := got.ReadFile("file"); string(b) != "inner" {
			t.Errorf("%s holds %q: %v", name, b, err)
		}
		_ = got.Close()
	}
	for _, name := range []string{"file", "fifo", "socket"} {
		if got, err := disk.Child(dir, name); got != nil || err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("%s: got %v, want that it is no directory", name, err)
		}
	}
}

// No component of a path may be a link, wherever it leads.
func TestDescendAndReopen(t *testing.T) {
	t.Parallel()
	path, dir := kinds(t)
	for rel, want := range map[string]error{
		"": nil, ".": nil, "directory": nil, "directory/inner": nil,
		"link to directory": disk.ErrMoved, "link to directory/inner": disk.ErrMoved, "directory/missing": fs.ErrNotExist, "out/ssl": disk.ErrMoved,
	} {
		want2 := want
		if errors.Is(want, disk.ErrMoved) {
			want2 = fs.ErrNotExist // a canonical path in which a link stands is not there any more
		}
		below, err := disk.Descend(dir, rel)
		if !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", rel, err, want)
		}
		again, err := disk.Reopen(filepath.Join(path, rel))
		if !errors.Is(err, want2) {
			t.Errorf("%q again: got %v, want %v", rel, err, want2)
		}
		if below == nil || again == nil {
			continue
		}
		a, aErr := below.Stat(".")
		b, bErr := again.Stat(".")
		c, cErr := os.Stat(filepath.Join(path, rel))
		if err := errors.Join(aErr, bErr, cErr); err != nil || !os.SameFile(a, c) || !os.SameFile(b, c) {
			t.Errorf("%q is another directory: %v", rel, err)
		}
		_, _ = below.Close(), again.Close()
	}
	if _, err := dir.Stat("."); err != nil {
		t.Errorf("the directory was closed: %v", err)
	}
	if root, err := disk.Reopen("/"); err != nil {
		t.Error(err)
	} else {
		_ = root.Close()
	}
}

// changing lets name stand for good and for other in turns until the test ends, and for nothing in between.
func changing(t *testing.T, dir *os.Root, good, other string) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for here, next := good, other; ; here, next = next, here {
			if err := dir.Rename(here, "name"); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
			if err := dir.Rename("name", here); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
}

// enough is how often the file must be opened, and refused, until a test of changing names has shown something.
const enough = 200

// A name that stands for something else from one moment to the next is opened as the file that it was, or not at all: no
// link is followed, and no FIFO waited for.
func TestFilesThatChange(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"link to secret", "link to fifo", "link out", "fifo", "directory"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			path, dir := opened(t)
			if err := errors.Join(
				dir.WriteFile("good", []byte("good"), 0o600), dir.WriteFile("secret", []byte("secret"), 0o600), dir.Symlink("secret", "link to secret"),
				syscall.Mkfifo(filepath.Join(path, "fifo"), 0o600), dir.Symlink("fifo", "link to fifo"), dir.Symlink("/etc/passwd", "link out"), dir.Mkdir("directory", 0o700),
			); err != nil {
				t.Fatal(err)
			}
			changing(t, dir, "good", other)
			for n, no := 0, 0; n < enough || no < 10*enough; {
				f, _, err := disk.OpenRegular(dir, "name", "name")
				if err != nil {
					if no++; !errors.Is(err, disk.ErrMoved) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, disk.ErrNotRegular) && !errors.Is(err, disk.ErrDirectory) {
						t.Fatalf("got %v", err)
					}
					continue
				}
				n++
				b := make([]byte, 10)
				got, _ := f.ReadAt(b, 0)
				_ = f.Close()
				if string(b[:got]) != "good" {
					t.Fatalf("opened what holds %q", b[:got])
				}
			}
		})
	}
}

// The same of a directory.
func TestDirectoriesThatChange(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"link to secret", "link to fifo", "link out", "fifo", "file"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			path, dir := opened(t)
			if err := errors.Join(
				dir.MkdirAll("good/inner", 0o700), dir.Mkdir("secret", 0o700), dir.Symlink("secret", "link to secret"), dir.WriteFile("file", nil, 0o600),
				syscall.Mkfifo(filepath.Join(path, "fifo"), 0o600), dir.Symlink("fifo", "link to fifo"), dir.Symlink("/etc", "link out"),
			); err != nil {
				t.Fatal(err)
			}
			changing(t, dir, "good", other)
			for n, no := 0, 0; n < enough || no < 10*enough; {
				got, err := disk.Child(dir, "name")
				if err != nil {
					if no++; !errors.Is(err, disk.ErrMoved) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !strings.HasSuffix(err.Error(), "not a directory") {
						t.Fatalf("got %v", err)
					}
					continue
				}
				n++
				_, err = got.Stat("inner")
				_ = got.Close()
				if err != nil {
					t.Fatalf("opened another directory: %v", err)
				}
			}
		})
	}
}

// A file that has other names is asked about once it is open, and closed again where it is not to be used.
func TestOpenAsked(t *testing.T) {
	t.Parallel()
	path, dir := kinds(t)
	if err := dir.WriteFile("one name", []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	for _, c := range []struct {
		name  string
		says  error
		asked bool
		want  error
	}{
		{"one name", no, false, nil}, {"file", nil, true, nil}, {"file", no, true, no}, {"other name", no, true, no},
		{"link", no, false, disk.ErrMoved}, {"missing", no, false, fs.ErrNotExist},
	} {
		asked := false
		f, stamp, err := disk.OpenAsked(dir, c.name, filepath.Join(path, c.name), func(info fs.FileInfo) error {
			now, err := dir.Stat(c.name)
			asked = err == nil && os.SameFile(info, now)
			return c.says
		})
		if asked != c.asked || !errors.Is(err, c.want) || (f == nil) != (c.want != nil) || err == nil && stamp.Ino == 0 {
			t.Errorf("%s: asked %v, %v, stamp %+v; want asked %v, %v", c.name, asked, err, stamp, c.asked, c.want)
		}
		if f != nil {
			_ = f.Close()
		}
	}
	if f, _, err := disk.OpenAsked(dir, "file", path, nil); err != nil {
		t.Errorf("with nobody to ask: %v", err)
	} else {
		_ = f.Close()
	}
}
