package filestate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
)

// A read of the new content may come between the rename and the record of the change. Neither then
// forgets what the other knows.
func TestReadBeforeAChangeIsRemembered(t *testing.T) {
	t.Parallel()
	l, dir := New(Options{Fast: true}), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	file := File{Dir: root, Name: "a", Path: filepath.Join(dir, "a")}
	if err := os.WriteFile(file.Path, []byte("1\n2\n3\n4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func(span Span) {
		t.Helper()
		r, err := l.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Saw(t.Context(), span); err != nil {
			t.Fatal(err)
		}
	}
	look(Span{From: 0, To: 2})
	w := &work{path: file.Path, name: "a", edit: Edit{File: file, Change: func([]byte) ([]byte, error) { return []byte("1\nX\n3\n4\n"), nil }}}
	defer closeAll([]*work{w})
	if err := errors.Join(w.open(), l.changeOne(t.Context(), w), l.write(t.Context(), []*work{w})); err != nil {
		t.Fatal(err)
	}
	look(Span{From: 6, To: 8})
	base := w.base
	c := l.remember(t.Context(), w)
	rec, err := l.records.Load(t.Context(), file.Path)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Span{{From: 0, To: 4}, {From: 6, To: 8}}; !slices.Equal(rec.Spans, want) || rec.Hash != w.after || c.Forgotten {
		t.Errorf("remembered are %v of %x, want %v of %x", rec.Spans, rec.Hash, want, w.after)
	}
	if !slices.Equal(rec.Own, []disk.Digest{base}) {
		t.Errorf("own versions are %v", rec.Own)
	}
}

// A deadlineLocker notes until when it may wait.
type deadlineLocker struct{ until []time.Time }

func (d *deadlineLocker) Lock(ctx context.Context, _ ...string) (func(), error) {
	until, _ := ctx.Deadline()
	d.until = append(d.until, until)
	return func() {}, nil
}

// The paths and the files behind them are locked one after the other, but wait 10 s together.
func TestOneWaitForAllLocks(t *testing.T) {
	t.Parallel()
	locker, dir := new(deadlineLocker), t.TempDir()
	l := New(Options{Locker: locker, Fast: true})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := Edit{File: File{Dir: root, Name: "a", Path: filepath.Join(dir, "a")}, Unseen: true, Change: func(b []byte) ([]byte, error) { return b, nil }}
	if _, err := l.Update(t.Context(), journal.By{}, e); err != nil {
		t.Fatal(err)
	}
	if until := locker.until; len(until) == 0 || until[0].IsZero() || len(slices.Compact(until)) != 1 {
		t.Errorf("the locks wait until %v, want one moment", until)
	}
}
