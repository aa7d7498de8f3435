package filestate_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// A desk is a directory with one session's ledger on it.
type desk struct {
	*testing.T
	dir string
	l   *filestate.Ledger
}

func newDesk(t *testing.T, change ...func(*filestate.Options)) desk {
	t.Helper()
	dir := leaktest.Dir(t)
	o := filestate.Options{Dir: t.TempDir(), Fast: true}
	for _, c := range change {
		c(&o)
	}
	return desk{t, dir, filestate.New(o)}
}

func durable(o *filestate.Options) { o.Fast = false }

func (d desk) path(name string) string { return filepath.Join(d.dir, name) }

// file returns the File of name as a workspace would, closed at the end of the test.
func (d desk) file(name string) filestate.File {
	d.Helper()
	f := openFile(d.T, d.path(name))
	d.Cleanup(func() { _ = f.Close() })
	return f
}

func openFile(t testing.TB, path string) filestate.File {
	t.Helper()
	f, err := fileAt(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fileAt opens the deepest directory above path that exists.
func fileAt(path string) (filestate.File, error) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	for {
		root, err := os.OpenRoot(dir)
		if err == nil {
			return filestate.File{Dir: root, Name: name, Path: path}, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return filestate.File{}, err
		}
		dir, name = filepath.Dir(dir), filepath.Join(filepath.Base(dir), name)
	}
}

// staleAge is more than a temporary file must have to be taken for a left-over.
const staleAge = time.Hour

func (d desk) write(name, content string) {
	d.Helper()
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(d.path(name), []byte(content), 0o644); err != nil {
		d.Fatal(err)
	}
}

func (d desk) read(name string) string {
	d.Helper()
	b, err := os.ReadFile(d.path(name))
	if err != nil {
		d.Fatal(err)
	}
	return string(b)
}

// age sets the times of a file back, so that its stamp proves something.
func (d desk) age(name string, by time.Duration) {
	d.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(d.path(name), then, then); err != nil {
		d.Fatal(err)
	}
}

// see reads name as read_file does and notes the spans (none: all).
func (d desk) see(name string, spans ...filestate.Span) filestate.Sight {
	d.Helper()
	s, err := d.trySee(name, spans...)
	if err != nil {
		d.Fatal(err)
	}
	return s
}

func (d desk) trySee(name string, spans ...filestate.Span) (filestate.Sight, error) {
	d.Helper()
	f := openFile(d.T, d.path(name))
	defer f.Close()
	r, err := d.l.Open(d.Context(), f)
	if err != nil {
		return filestate.Sight{}, err
	}
	defer r.Close()
	buf := make([]byte, r.Size())
	if _, err := r.ReadAt(buf, 0); err != nil && len(buf) > 0 {
		d.Fatal(err)
	}
	return r.Saw(d.Context(), spans...)
}

// edit replaces old by new in name, as edit_file does.
func (d desk) edit(name, old, new string, more ...func(*filestate.Edit)) (filestate.Change, error) {
	d.Helper()
	return d.change(name, func(b []byte) ([]byte, error) {
		if !strings.Contains(string(b), old) {
			return nil, errAbsent
		}
		return []byte(strings.Replace(string(b), old, new, 1)), nil
	}, more...)
}

// put replaces all of name, as write_file does.
func (d desk) put(name, content string, more ...func(*filestate.Edit)) (filestate.Change, error) {
	d.Helper()
	more = append(more, func(e *filestate.Edit) { e.Whole = true })
	return d.change(name, func([]byte) ([]byte, error) { return []byte(content), nil }, more...)
}

var errAbsent = errors.New("absent")

func (d desk) change(name string, change func([]byte) ([]byte, error), more ...func(*filestate.Edit)) (filestate.Change, error) {
	d.Helper()
	e := filestate.Edit{File: d.file(name), Change: change}
	for _, m := range more {
		m(&e)
	}
	changes, err := d.l.Update(d.Context(), journal.By{}, e)
	d.noTemps()
	if err != nil {
		return filestate.Change{}, err
	}
	return changes[0], nil
}

func version(v filestate.Version) func(*filestate.Edit) {
	return func(e *filestate.Edit) { e.Version = v }
}

func unseen(e *filestate.Edit) { e.Unseen = true }

// must fails the test on an error.
func (d desk) must(c filestate.Change, err error) filestate.Change {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
	return c
}

// holds fails the test unless the file has that content.
func (d desk) holds(name, want string) {
	d.Helper()
	if got := d.read(name); got != want {
		d.Fatalf("%s holds %q, want %q", name, got, want)
	}
}

// noTemps fails the test if a temporary file was left.
func (d desk) noTemps() {
	d.Helper()
	if left := temps(d.T, d.dir); len(left) > 0 {
		d.Fatalf("temporary files were left: %v", left)
	}
}

func temps(t testing.TB, dir string) []string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".codehand-") {
			left = append(left, path)
		}
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// wantError fails the test unless err is want.
func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// wantStale returns the StaleError that err must be.
func wantStale(t testing.TB, err error) *filestate.StaleError {
	t.Helper()
	e, ok := errors.AsType[*filestate.StaleError](err)
	if !ok {
		t.Fatalf("got %v, want a StaleError", err)
	}
	return e
}

// A brokenMemory fails.
type brokenMemory struct{}

var errBroken = errors.New("store is away")

func (brokenMemory) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, errBroken }
func (brokenMemory) Set(context.Context, string, []byte) error           { return errBroken }
func (brokenMemory) Delete(context.Context, string) error                { return errBroken }
func (brokenMemory) Keys(context.Context, string) ([]string, error)      { return nil, errBroken }

// A mapMemory is a Memory that tests can look into.
type mapMemory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func newMapMemory() *mapMemory { return &mapMemory{values: make(map[string][]byte)} }

func (m *mapMemory) all() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values)
}

func (m *mapMemory) len() int { return len(m.all()) }

func (m *mapMemory) Get(_ context.Context, key string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], 1, nil
}

func (m *mapMemory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = bytes.Clone(value)
	return nil
}

func (m *mapMemory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

func (m *mapMemory) Keys(_ context.Context, prefix string) ([]string, error) {
	var keys []string
	for key := range m.all() {
		if strings.HasPrefix(key, prefix+".") {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// tick waits until the clock of the file system has moved on since path was changed.
func tick(t testing.TB, path string) {
	t.Helper()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(t.TempDir(), "clock")
	for {
		if err := os.WriteFile(scratch, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		now, err := os.Stat(scratch)
		if err != nil {
			t.Fatal(err)
		}
		if now.ModTime().After(before.ModTime()) {
			return
		}
		_ = os.Remove(scratch)
	}
}
