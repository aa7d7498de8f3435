package journal

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"codehand/filestate/disk"
)

// made notes a change of one file, which takes back others.
func made(t testing.TB, j *Journal, undoes ...string) string {
	t.Helper()
	p, err := j.Begin(By{}, undoes, []Part{{Path: "/w/a", New: []byte("new"), After: disk.DigestOf([]byte("new"))}})
	if err != nil {
		t.Fatal(err)
	}
	p.Done(t.Context())
	return p.ID
}

func newJournal(t testing.TB) *Journal {
	t.Helper()
	j, err := Open(filepath.Join(t.TempDir(), "journal"), Options{Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// pageOf is the page of 4 before a change, as ids with a mark at those that are undone.
func pageOf(t testing.TB, j *Journal, before string) (ids []string) {
	t.Helper()
	entries, err := j.History(t.Context(), Query{Before: before, Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		id := e.ID
		if e.Undone {
			id += " undone"
		}
		ids = append(ids, id)
	}
	return ids
}

// Every page read the whole journal from the newest change on again.
func TestPagesContinue(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	var ids []string
	for range 7 {
		ids = append(ids, made(t, j))
	}
	undo := made(t, j, ids[0])
	if got, want := pageOf(t, j, ""), []string{undo, ids[6], ids[5], ids[4]}; !slices.Equal(got, want) {
		t.Fatalf("the first page is %v, want %v", got, want)
	}
	for n, day := range j.names() { // later readers pass over what is damaged
		if n.id == undo {
			if err := day.WriteFile(n.base(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := pageOf(t, j, ids[4]), []string{ids[3], ids[2], ids[1], ids[0] + " undone"}; !slices.Equal(got, want) {
		t.Errorf("the second page is %v, want %v", got, want)
	}
}

// A page counts for nothing any more when something was changed since: an undo of it may have been taken back.
func TestPagesBeginAnew(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	var ids []string
	for range 7 {
		ids = append(ids, made(t, j))
	}
	undo := made(t, j, ids[0])
	_ = pageOf(t, j, "")
	_ = made(t, j, undo)
	if got, want := pageOf(t, j, ids[4]), []string{ids[3], ids[2], ids[1], ids[0]}; !slices.Equal(got, want) {
		t.Errorf("the second page is %v, want %v", got, want)
	}
	if _, err := j.History(t.Context(), Query{Before: "aaaaaaaaaaaaaaaa", Limit: 4}); !errors.Is(err, ErrNoChange) {
		t.Errorf("before a change that there is not: %v, want ErrNoChange", err)
	}
}
