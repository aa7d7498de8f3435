package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"codehand/filestate/leaktest"
)

// TestMain also is the entrance of the child processes that some tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childMark {
		os.Exit(child(os.Args[2]))
	}
	leaktest.Main(m)
}

// A fakeDisk is a directory in memory, whose operations fail when a test wants it. The operations are read, write, sync,
// truncate, open, rename, remove and syncdir.
type fakeDisk struct {
	mu    sync.Mutex
	files map[string]*fakeFile
	fail  func(op, name string) error // nil: none fails
	short int                         // bytes that a write which fails leaves behind
	done  []string                    // operations that were tried, but for reads and writes
}

// A fakeFile is one file, and its own handle: nothing is at an offset.
type fakeFile struct {
	disk *fakeDisk
	name string // that it was opened with
	data []byte // covered by the lock of the disk
}

func newFakeDisk(files map[string][]byte) *fakeDisk {
	d := &fakeDisk{files: map[string]*fakeFile{}}
	for name, data := range files {
		d.files[name] = &fakeFile{disk: d, name: name, data: slices.Clone(data)}
	}
	return d
}

// breaks makes operations fail from now on; nil mends.
func (d *fakeDisk) breaks(fail func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

// content is what a kill would leave.
func (d *fakeDisk) content() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := map[string][]byte{}
	for name, f := range d.files {
		files[name] = slices.Clone(f.data)
	}
	return files
}

func (d *fakeDisk) try(op, name string) error {
	d.mu.Lock()
	fail := d.fail
	if op != "read" && op != "write" {
		d.done = append(d.done, op+" "+name)
	}
	d.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(op, name)
}

// tried returns the operations so far, and forgets them.
func (d *fakeDisk) tried() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := d.done
	d.done = nil
	return done
}

func (d *fakeDisk) path(name string) string { return "/fake/" + name }

func (d *fakeDisk) open(name string, flags int) (file, error) {
	if err := d.try("open", name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	switch {
	case f == nil && flags&os.O_CREATE == 0:
		return nil, fs.ErrNotExist
	case f != nil && flags&os.O_EXCL != 0:
		return nil, fs.ErrExist
	case f == nil:
		f = &fakeFile{disk: d, name: name}
		d.files[name] = f
	}
	return f, nil
}

func (d *fakeDisk) rename(from, to string) error {
	if err := d.try("rename", to); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[from]
	if !ok {
		return fs.ErrNotExist
	}
	delete(d.files, from)
	f.name, d.files[to] = to, f
	return nil
}

func (d *fakeDisk) remove(name string) error {
	if err := d.try("remove", name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.files[name]; !ok {
		return fs.ErrNotExist
	}
	delete(d.files, name)
	return nil
}

func (d *fakeDisk) names() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files)), nil
}

func (d *fakeDisk) sync() error { return d.try("syncdir", "") }

func (f *fakeFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.disk.try("read", f.name); err != nil {
		return 0, err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return bytes.NewReader(f.data).ReadAt(b, at)
}

func (f *fakeFile) WriteAt(b []byte, at int64) (int, error) {
	err := f.disk.try("write", f.name)
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err != nil {
		b = b[:min(len(b), f.disk.short)]
	}
	if end := int(at) + len(b); end > len(f.data) {
		f.data = append(f.data, make([]byte, end-len(f.data))...)
	}
	return copy(f.data[at:], b), err
}

func (f *fakeFile) Truncate(size int64) error {
	if err := f.disk.try("truncate", f.name); err != nil {
		return err
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.data = f.data[:min(int(size), len(f.data))]
	return nil
}

func (f *fakeFile) Sync() error { return f.disk.try("sync", f.name) }

func (f *fakeFile) Close() error { return nil }

func (f *fakeFile) Stat() (fs.FileInfo, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	file, err := fstest.MapFS{"f": {Data: f.data}}.Open("f")
	if err != nil {
		return nil, err
	}
	return file.Stat()
}

// openFake opens an embedded Store on a disk in memory.
func openFake(t *testing.T, d *fakeDisk, o Options) *embedded {
	t.Helper()
	s, err := openOn(t.Context(), d, func() error { return nil }, o)
	must(t, err)
	return s
}

// restartFake opens what a kill of a Store would leave.
func restartFake(t *testing.T, s *embedded, o Options) *embedded {
	t.Helper()
	d := newFakeDisk(s.writer.disk.(*fakeDisk).content())
	_ = s.Close() // it may be broken
	return openFake(t, d, o)
}

// copyOfFiles copies the files of a running Store. If it compacts meanwhile, they are copied again.
func copyOfFiles(t *testing.T, s *embedded) string {
	t.Helper()
	from := s.writer.disk.path("")
	for {
		dir := t.TempDir()
		before := listing(t, from)
		err := os.CopyFS(filepath.Join(dir, "store"), os.DirFS(from))
		if err == nil && slices.Equal(before, listing(t, from)) {
			return dir
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			names = append(names, fmt.Sprint(e.Name(), " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
	}
	return names
}

// openReal opens an embedded Store as a server does.
func openReal(t *testing.T, o Options) *embedded {
	t.Helper()
	s, err := Open(context.Background(), "embedded:", o)
	must(t, err)
	return s.(*embedded)
}
