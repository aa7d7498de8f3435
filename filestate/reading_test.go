package filestate_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/leaktest"
)

func TestSightOfParts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\ntwo\nthree\n")
	v := versionOf("one\ntwo\nthree\n")
	type span = filestate.Span
	steps := []struct {
		name  string
		spans []span
		want  filestate.Sight
	}{
		{"head", []span{{From: 0, To: 4}}, filestate.Sight{Version: v + "p"}},
		{"head again", []span{{From: 0, To: 4}}, filestate.Sight{Version: v + "p", Again: 1}},
		{"head in two parts is the same view", []span{{From: 2, To: 4}, {From: 0, To: 2}}, filestate.Sight{Version: v + "p", Again: 2}},
		{"middle", []span{{From: 4, To: 8}}, filestate.Sight{Version: v + "p"}},
		{"head is not again in a row", []span{{From: 0, To: 4}}, filestate.Sight{Version: v + "p"}},
		{"nothing", []span{{}}, filestate.Sight{Version: v + "p"}},
		{"the rest makes it whole", []span{{From: 8, To: 1 << 40}}, filestate.Sight{Version: v, Whole: true}},
		{"whole", nil, filestate.Sight{Version: v, Whole: true}},
		{"whole again", []span{{From: 0, To: 14}}, filestate.Sight{Version: v, Whole: true, Again: 1}},
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("one\ntwo\nthree\n")))
	for _, s := range steps {
		s.want.Sum = sum
		if got := d.see("a", s.spans...); got != s.want {
			t.Errorf("%s: got %+v, want %+v", s.name, got, s.want)
		}
	}
	d.write("a", "other\n")
	if got := d.see("a", span{From: 0, To: 1}); got.Whole || got.Again != 0 {
		t.Errorf("ranges of another content add up: %+v", got)
	}
}

func TestEmptyFileIsWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "")
	if s := d.see("a", filestate.Span{}); !s.Whole || s.Version != versionOf("") {
		t.Errorf("got %+v", s)
	}
	d.must(d.put("a", "x"))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("dir/a", "x")
	if err := os.Symlink("a", d.path("dir/link")); err != nil {
		t.Fatal(err)
	}
	cases := map[string]error{
		"dir":       disk.ErrDirectory,
		"dir/link":  disk.ErrMoved,
		"missing":   fs.ErrNotExist,
		"no/parent": fs.ErrNotExist,
	}
	for name, want := range cases {
		_, err := d.l.Open(t.Context(), d.file(name))
		wantError(t, err, want)
		if !strings.Contains(err.Error(), d.path(name)) {
			t.Errorf("%s: the error does not name the path: %v", name, err)
		}
	}
	root := d.file("a")
	root.Name, root.Path = ".", d.dir
	_, err := d.l.Open(t.Context(), root)
	wantError(t, err, disk.ErrDirectory)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.l.Open(ctx, d.file("dir/a"))
	wantError(t, err, context.Canceled)
}

func TestSawNoticesChanges(t *testing.T) {
	t.Parallel()
	changes := map[string]func(desk){
		"other size":  func(d desk) { d.write("a", "longer than it was") },
		"same size":   func(d desk) { d.write("a", "ONE\n") },
		"replaced":    func(d desk) { d.write("b", "one\n"); d.rename("b", "a") },
		"removed":     func(d desk) { _ = os.Remove(d.path("a")) },
		"truncated":   func(d desk) { _ = os.Truncate(d.path("a"), 1) },
		"other times": func(d desk) { d.age("a", time.Hour) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write("a", "one\n")
			r := d.open("a")
			tick(t, d.path("a"))
			change(d)
			_, err := r.Saw(t.Context())
			wantError(t, err, disk.ErrMoved)
			_, err = d.edit("a", "one", "two")
			if !errors.Is(err, filestate.ErrNotRead) && name != "removed" {
				t.Errorf("a failed read set something: %v", err)
			}
		})
	}
}

// What was given out counts, to its last byte, not the times: they can be the same after a change in the same tick.
func TestSawComparesWhatWasGivenOut(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4, 1<<20 + 1} {
		for _, changes := range []bool{true, false} {
			d := newDesk(t)
			d.write("a", strings.Repeat("a", size))
			f, err := os.OpenFile(d.path("a"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r := d.open("a")
			if _, err := r.ReadAt(make([]byte, size), 0); err != nil {
				t.Fatal(err)
			}
			if changes {
				if _, err := f.WriteAt([]byte("b"), int64(size-1)); err != nil {
					t.Fatal(err)
				}
			}
			filestate.KeepStamp(r) // as a coarse clock would
			_, err = r.Saw(t.Context())
			if changes {
				wantError(t, err, disk.ErrMoved)
			} else if err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSawOfALargeFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("big", "")
	if err := os.Truncate(d.path("big"), 1<<30+1); err != nil {
		lacking(t, "a sparse file of 1 GiB: %v", err)
	}
	r := d.open("big")
	if s, err := r.Saw(t.Context(), filestate.Span{From: 0, To: 10}); err != nil || s != (filestate.Sight{}) {
		t.Errorf("got %+v and %v, want no version and no error", s, err)
	}
	_, err := d.edit("big", "x", "y", unseen)
	wantError(t, err, disk.ErrTooLarge)
}

func TestChangeToALargeFile(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "takes a gigabyte of memory")
	d := newDesk(t)
	d.write("small", "x")
	_, err := d.change("small", func([]byte) ([]byte, error) { return make([]byte, 1<<30+1), nil }, unseen)
	wantError(t, err, disk.ErrTooLarge)
}

func TestSawEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", strings.Repeat("x", 1<<20))
	r := d.open("a")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	_, err := r.Saw(ctx)
	wantError(t, err, errBroken)
}

func TestStampOfAReading(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "one\n")
	d.age("a", -time.Hour) // as young as can be, however long it takes to open it
	r := d.open("a")
	s := r.Stamp()
	if s.Size != 4 || r.Size() != 4 || !s.Racy || s.Mtime == 0 {
		t.Errorf("the stamp is %+v", s)
	}
}

// A content that did not change is not hashed again, and its version is still right.
func TestSawOfASettledFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	d.write("a", string(content))
	first := d.see("a", filestate.Span{From: 0, To: 10})
	if err := filestate.Settle(t.Context(), d.l, d.path("a")); err != nil {
		t.Fatal(err)
	}
	if second := d.see("a"); second.Version+"p" != first.Version || !second.Whole {
		t.Errorf("got %+v after %+v", second, first)
	}
}

// What one process remembers the next one knows.
func TestMemoryOutlivesTheLedger(t *testing.T) {
	t.Parallel()
	m := newMapMemory()
	remember := func(o *filestate.Options) { o.Memory = m }
	d := newDesk(t, remember)
	d.write("a", "one\nrest\n")
	d.see("a", filestate.Span{From: 0, To: 2})
	d.l = filestate.New(filestate.Options{Memory: m, Fast: true})
	d.must(d.edit("a", "one", "two"))
	_, err := d.put("a", "x")
	wantError(t, err, filestate.ErrPartRead)
	for key := range m.all() {
		if !strings.HasPrefix(key, "seen.") || len(key) != len("seen.")+32 {
			t.Errorf("the key %q is not a token and a hash", key)
		}
	}
}

// A record that cannot be read is as good as none.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	m := newMapMemory()
	d := newDesk(t, func(o *filestate.Options) { o.Memory = m })
	d.write("a", "one\n")
	d.see("a")
	for key := range m.all() {
		if err := m.Set(t.Context(), key, []byte(`{"hash":"12"}`)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.edit("a", "one", "two")
	wantError(t, err, filestate.ErrNotRead)
}

func (d desk) open(name string) *filestate.Reading {
	d.Helper()
	r, err := d.l.Open(d.Context(), d.file(name))
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = r.Close() })
	return r
}

func (d desk) rename(from, to string) {
	d.Helper()
	if err := os.Rename(d.path(from), d.path(to)); err != nil {
		d.Fatal(err)
	}
}

// A busyMemory lets something happen after it has given out a value.
type busyMemory struct {
	*mapMemory
	then func()
}

func (m *busyMemory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	value, rev, err := m.mapMemory.Get(ctx, key)
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return value, rev, err
}

// TestSawBesideAnother: two calls read one file at once. The record that the first has read when the second comes is
// not written back over that of the second.
func TestSawBesideAnother(t *testing.T) {
	t.Parallel()
	m := &busyMemory{mapMemory: newMapMemory()}
	d := newDesk(t, func(o *filestate.Options) { o.Memory = m })
	d.write("a", "one\ntwo\nthree\n")
	d.see("a", filestate.Span{From: 0, To: 4})
	m.then = func() { d.see("a", filestate.Span{From: 4, To: 8}) }
	if sight := d.see("a", filestate.Span{From: 8, To: 14}); !sight.Whole {
		t.Errorf("after all three lines: %+v", sight)
	}
	d.must(d.put("a", "all of it was seen"))
}

// TestForgottenBesideSaw: what is forgotten while a call reads the file stays forgotten.
func TestForgottenBesideSaw(t *testing.T) {
	t.Parallel()
	m := &busyMemory{mapMemory: newMapMemory()}
	d := newDesk(t, func(o *filestate.Options) { o.Memory = m })
	d.write("a", "one\ntwo\n")
	d.see("a", filestate.Span{From: 0, To: 4})
	m.then = func() {
		if err := d.l.Forget(t.Context(), d.path("a")); err != nil {
			t.Error(err)
		}
	}
	if sight := d.see("a", filestate.Span{From: 4, To: 8}); sight.Whole {
		t.Errorf("half of it was forgotten: %+v", sight)
	}
	_, err := d.put("a", "x")
	wantError(t, err, filestate.ErrPartRead)
}
