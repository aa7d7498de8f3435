package state

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestMain also is the entrance of the child processes that some tests start, and looks for file descriptors that the
// tests leave open.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childMark {
		os.Exit(child(os.Args[2]))
	}
	flag.Parse()
	before := openFiles()
	code := m.Run()
	if after := openFiles(); code == 0 && len(after) > len(before) {
		fmt.Fprintf(os.Stderr, "%d files were open before the tests, %d are after: %v\n", len(before), len(after), after)
		code = 1
	}
	os.Exit(code)
}

// openFiles lists what the descriptors of this process stand for, where the system says it.
func openFiles() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name, err := os.Readlink("/proc/self/fd/" + e.Name())
		// The runtime's poller stays open from its first use on.
		if err == nil && !strings.HasPrefix(name, "anon_inode:") {
			names = append(names, name)
		}
	}
	return names
}

// A fakeDisk is a directory whose syncs cost nothing, and whose operations fail when a test wants it. The operations
// are write, sync, truncate, open, rename, remove and syncdir.
type fakeDisk struct {
	disk

	mu    sync.Mutex
	fail  func(op, name string) error // nil: none fails
	short int                         // bytes that a write which fails leaves behind
	done  []string                    // operations that were tried, but for writes
}

func newFakeDisk(dir string) (*fakeDisk, error) {
	d, err := openDisk(dir)
	return &fakeDisk{disk: d}, err
}

// breaks makes operations fail from now on; nil mends.
func (d *fakeDisk) breaks(fail func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

func (d *fakeDisk) try(op, name string) error {
	d.mu.Lock()
	fail := d.fail
	if op != "write" {
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

func (d *fakeDisk) open(name string, flags int) (file, error) {
	if err := d.try("open", name); err != nil {
		return nil, err
	}
	f, err := d.disk.open(name, flags)
	if err != nil {
		return nil, err
	}
	return &fakeFile{file: f, disk: d, name: name}, nil
}

func (d *fakeDisk) rename(from, to string) error {
	if err := d.try("rename", to); err != nil {
		return err
	}
	return d.disk.rename(from, to)
}

func (d *fakeDisk) remove(name string) error {
	if err := d.try("remove", name); err != nil {
		return err
	}
	return d.disk.remove(name)
}

func (d *fakeDisk) sync() error { return d.try("syncdir", "") }

type fakeFile struct {
	file
	disk *fakeDisk
	name string
}

func (f *fakeFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.disk.try("write", f.name); err != nil {
		n, _ := f.file.WriteAt(b[:min(len(b), f.disk.short)], at)
		return n, err
	}
	return f.file.WriteAt(b, at)
}

func (f *fakeFile) Sync() error { return f.disk.try("sync", f.name) }

func (f *fakeFile) Truncate(size int64) error {
	if err := f.disk.try("truncate", f.name); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

// openFake opens an embedded Store on a disk that can fail.
func openFake(t *testing.T, o Options) (*embedded, *fakeDisk) {
	t.Helper()
	var d *fakeDisk
	s, err := openEmbedded(t.Context(), o, func(dir string) (disk, error) {
		var err error
		d, err = newFakeDisk(dir)
		return d, err
	})
	must(t, err)
	return s, d
}

func openQuiet(t *testing.T, o Options) Store {
	t.Helper()
	s, _ := openFake(t, o)
	return s
}

// restartQuiet opens the files of a running Store as a kill would leave them, in another directory.
func restartQuiet(t *testing.T, s Store, o Options) Store {
	t.Helper()
	o.Dir = copyOfFiles(t, s)
	must(t, s.Close())
	return openQuiet(t, o)
}

// copyOfFiles copies the files of a running Store. If it compacts meanwhile, they are copied again.
func copyOfFiles(t *testing.T, s Store) string {
	t.Helper()
	from := s.(*embedded).writer.disk.path("")
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
