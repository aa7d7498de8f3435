package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"codehand/filestate/disk"
)

// While another process makes changes and removes old ones, every query finds all changes of its file that ended before it
// began and are there when it ends, each once, the newest first, and none of another file.
func TestIndexBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	js := [2]*Journal{}
	for i := range js {
		var err error
		if js[i], err = Open(dir, Options{Fast: true}); err != nil {
			t.Fatal(err)
		}
		defer js[i].Close()
	}
	b := &book{gone: make(map[string]bool)}
	const changes, paths, readers = 120, 3, 2
	written := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(written)
		for i := range changes {
			b.write(t, js[i%2], fmt.Sprint("/w/", i%paths))
			if i%3 == 2 {
				b.remove(t, js[0])
			}
		}
	})
	for r := range readers {
		all.Go(func() {
			for n, done := 0, false; !done || n < 10; n++ {
				select {
				case <-written:
					done = true
				default:
				}
				b.read(t, js[n%2], fmt.Sprint("/w/", (r+n)%paths))
			}
		})
	}
	all.Wait()
	for i := range paths {
		path := fmt.Sprint("/w/", i)
		got, err := js[0].History(t.Context(), Query{Path: path})
		if want := b.of(path); err != nil || !slices.Equal(ids(got), want) {
			t.Errorf("at the end %s has %d changes, %v, want %d", path, len(got), err, len(want))
		}
	}
}

// A book is what the journal must have.
type book struct {
	mu   sync.Mutex
	made []Entry // the oldest first
	gone map[string]bool
}

func (b *book) write(t *testing.T, j *Journal, path string) {
	p, err := j.Begin(By{}, nil, []Part{{Path: path, New: []byte("new"), After: disk.DigestOf([]byte("new"))}})
	if err != nil {
		t.Error(err)
		return
	}
	p.Done(t.Context())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, Entry{ID: p.ID, Files: []EntryFile{{Path: path}}})
}

// remove removes the oldest note, as tidying does.
func (b *book) remove(t *testing.T, j *Journal) {
	var oldest noteName
	for n := range j.names() {
		oldest = n
	}
	b.mu.Lock()
	b.gone[oldest.id] = true
	b.mu.Unlock()
	if err := j.root.Remove(oldest.path()); err != nil {
		t.Error(err)
	}
}

// of are the ids of the changes of a file that are there, the newest first.
func (b *book) of(path string) (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range slices.Backward(b.made) {
		if e.Files[0].Path == path && !b.gone[e.ID] {
			found = append(found, e.ID)
		}
	}
	return found
}

func (b *book) read(t *testing.T, j *Journal, path string) {
	before := b.of(path)
	got, err := j.History(t.Context(), Query{Path: path})
	if err != nil {
		t.Error(err)
		return
	}
	for i, e := range got {
		if e.Files[0].Path != path || i > 0 && !e.Time.Before(got[i-1].Time) {
			t.Errorf("%s has at %d the change %+v", path, i, e)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range before {
		if !b.gone[id] && !slices.Contains(ids(got), id) {
			t.Errorf("%s lacks the change %s", path, id)
		}
	}
}

func ids(entries []Entry) (found []string) {
	for _, e := range entries {
		found = append(found, e.ID)
	}
	return found
}

// What was removed is not remembered.
func TestIndexForgets(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	for range 3 {
		made(t, j)
	}
	look := func(want int) {
		t.Helper()
		if got, err := j.History(t.Context(), Query{Path: "/w/a"}); err != nil || len(got) != want {
			t.Fatalf("%d changes, %v, want %d", len(got), err, want)
		}
	}
	look(3)
	full := j.index.all.bytes
	for n, day := range j.names() {
		if err := day.Remove(n.base()); err != nil {
			t.Fatal(err)
		}
	}
	look(0)
	if full == 0 || j.index.all.bytes != 0 {
		t.Errorf("the index has %d bytes of 3 notes, and %d of none", full, j.index.all.bytes)
	}
	made(t, j)
	look(1)
	day := ""
	for n := range j.names() {
		day = n.day()
	}
	if err := os.RemoveAll(filepath.Join(j.dir, day)); err != nil {
		t.Fatal(err)
	}
	look(0)
	if len(j.index.days) > 0 || j.index.all.bytes != 0 {
		t.Errorf("the index has %d days and %d bytes of an empty journal", len(j.index.days), j.index.all.bytes)
	}
}

// A day that cannot be read may have changes of any file, also of those that were known to be none of it.
func TestIndexOfUnreadableDay(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	made(t, j)
	if _, err := j.History(t.Context(), Query{Path: "/w/b"}); err != nil {
		t.Fatal(err)
	}
	var day string
	for n := range j.names() {
		day = filepath.Join(j.dir, n.day())
	}
	if err := os.Rename(day, filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Base(day), day); err != nil { // a link to itself, which even root cannot open
		t.Fatal(err)
	}
	got, err := j.History(t.Context(), Query{Path: "/w/b"})
	if _, unread := errors.AsType[*UnreadError](err); !unread || !errors.Is(err, syscall.ELOOP) || len(got) > 0 {
		t.Errorf("%d changes, %v, want an UnreadError", len(got), err)
	}
}

// A note that cannot be read may be of any file, until it was read once.
func TestIndexOfUnreadableNote(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; run the tests as an ordinary user to have this case")
	}
	j := newJournal(t)
	made(t, j)
	var path string
	for n := range j.names() {
		path = filepath.Join(j.dir, n.path())
	}
	look := func(path string, unreadable bool) {
		t.Helper()
		_, err := j.History(t.Context(), Query{Path: path})
		if _, unread := errors.AsType[*UnreadError](err); unread != unreadable || !unread && err != nil {
			t.Errorf("%s: %v, want an UnreadError: %t", path, err, unreadable)
		}
	}
	mode := func(mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	mode(0)
	look("/w/b", true)
	look("/w/a", true)
	mode(0o600)
	look("/w/b", false)
	mode(0)
	look("/w/b", false)
	look("/w/a", true)
}

// While a change ended, its note could be found under both names, and the change was listed twice.
func TestNoteUnderTwoNames(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	id := made(t, j)
	for n := range j.names() {
		open := n
		open.state = stateOpen
		if err := os.Link(filepath.Join(j.dir, n.path()), filepath.Join(j.dir, open.path())); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []Query{{}, {Path: "/w/a"}, {ID: id}} {
		if got, err := j.History(t.Context(), q); err != nil || !slices.Equal(ids(got), []string{id}) {
			t.Errorf("%+v finds %v, %v", q, ids(got), err)
		}
	}
}
