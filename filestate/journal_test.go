package filestate_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// callID is an id as calls have.
const callID = "k3x9q2mh5t7a2b4c"

func TestHistory(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "one\ntwo\nthree\n")
	by := journal.By{Principal: "p", Workspace: "w", Session: "s", Call: callID, Tool: "edit_file"}
	changes, err := d.l.Update(t.Context(), by,
		filestate.Edit{File: d.file("a"), Unseen: true, Change: func([]byte) ([]byte, error) { return []byte("one\n2\nthree\nfour\n"), nil }},
		filestate.Edit{File: d.file("x/b"), Change: func([]byte) ([]byte, error) { return []byte("new\n"), nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.ID != callID {
			t.Errorf("the change of %s has the id %q, want that of the call", c.Path, c.ID)
		}
	}
	second := d.must(d.put("a", "short\n", unseen))
	for _, at := range []keptDesk{d, d.again()} {
		got := at.history(journal.Query{})
		if len(got) != 2 || got[0].ID != second.ID || got[1].ID != callID {
			t.Fatalf("the history is %+v", got)
		}
		if e := got[1]; e.By != by || time.Since(e.Time) > time.Minute || e.Open || e.Undone || e.Unsure || len(e.Files) != 2 {
			t.Errorf("the change is %+v", e)
		}
		a, b := got[1].Files[0], got[1].Files[1]
		if a.Op != "update" || a.Added != 2 || a.Removed != 1 || a.Before != changes[0].Sums.Before || a.After != changes[0].Sums.After {
			t.Errorf("the updated file is %+v", a)
		}
		if b.Op != "create" || b.Added != 1 || b.Removed != 0 || b.Before != "" || b.Path != d.path("x/b") {
			t.Errorf("the new file is %+v", b)
		}
		before, after, err := at.j.Contents(t.Context(), callID, d.path("a"))
		if err != nil || string(before) != "one\ntwo\nthree\n" || string(after) != "one\n2\nthree\nfour\n" {
			t.Errorf("the contents are %q and %q, %v", before, after, err)
		}
		if before, after, err := at.j.Contents(t.Context(), callID, d.path("x/b")); err != nil || before != nil || string(after) != "new\n" {
			t.Errorf("the contents of the new file are %q and %q, %v", before, after, err)
		}
	}
	for _, c := range []struct {
		q    journal.Query
		want int
	}{
		{journal.Query{Limit: 1}, 1}, {journal.Query{Path: d.path("x/b")}, 1}, {journal.Query{Path: d.path("a")}, 2},
		{journal.Query{Workspace: "w"}, 1}, {journal.Query{Session: "other"}, 0}, {journal.Query{ID: callID}, 1}, {journal.Query{Path: "/none"}, 0},
		{journal.Query{Limit: 1, Fits: func(e journal.Entry) bool { return e.By.Workspace == "w" }}, 1},
		{journal.Query{Fits: func(journal.Entry) bool { return false }}, 0},
	} {
		if got := d.history(c.q); len(got) != c.want {
			t.Errorf("%+v finds %d changes, want %d", c.q, len(got), c.want)
		}
	}
	_, _, err = d.j.Contents(t.Context(), "aaaaaaaaaaaaaaaa", d.path("a"))
	wantError(t, err, journal.ErrNoChange)
}

// What did not happen is not in the history, and a change that changes nothing neither.
func TestHistoryHasOnlyWhatHappened(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "one\n")
	d.see("a")
	d.must(d.edit("a", "one", "one"))
	if _, err := d.edit("a", "absent", "x"); err == nil {
		t.Error("an edit of what is not there succeeded")
	}
	tick(t, d.path("a"))
	_, err := d.change("a", func([]byte) ([]byte, error) { d.write("a", "foreign\n"); return []byte("x"), nil })
	wantStale(t, err)
	if got := d.history(journal.Query{}); len(got) > 0 {
		t.Errorf("the history is %+v", got)
	}
}

// The same call twice: the second change has an id of its own.
func TestIDsDiffer(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	seen := map[string]bool{}
	for i := range 3 {
		c, err := d.l.Update(t.Context(), journal.By{Call: callID}, filestate.Edit{File: d.file("a"), Unseen: true,
			Change: func([]byte) ([]byte, error) { return fmt.Append(nil, i), nil }})
		if err != nil || len(c[0].ID) != 16 || seen[c[0].ID] {
			t.Fatalf("change %d: %+v, %v", i, c, err)
		}
		seen[c[0].ID] = true
	}
}

func TestJournalIsPrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are not kept there")
	}
	d := newKeptDesk(t)
	d.must(d.put("a", "x", unseen))
	files := 0
	if err := filepath.WalkDir(d.kept, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if files != 1 {
		t.Errorf("the journal has %d files, want 1", files)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(d.kept, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, link} {
		if _, err := journal.Open(dir, journal.Options{}); err == nil {
			t.Errorf("%s was taken for a journal", dir)
		}
	}
}

// Contents of any size and kind come back as they were.
func TestContentsComeBack(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	contents := []string{"", "x", "\n", strings.Repeat("line\r\n", 10_000), string(noise), string(noise[:100_000]) + "middle" + string(noise[100_000:]), "\x00\xff", ""}
	before := ""
	d.write("a", before)
	for i, next := range contents[1:] {
		c := d.must(d.put("a", next, unseen))
		was, is, err := d.j.Contents(t.Context(), c.ID, d.path("a"))
		if err != nil || string(was) != before || string(is) != next {
			t.Fatalf("content %d: %d and %d bytes came back, %v", i, len(was), len(is), err)
		}
		before = next
	}
}

// A file that is too large is changed and noted, and cannot be undone.
func TestTooLargeToKeep(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	d := newKeptDesk(t)
	large := bytes.Repeat([]byte("x"), 32<<20+1)
	d.write("a", string(large))
	c := d.must(d.put("a", "small", unseen))
	if !c.NoCopy {
		t.Error("the change does not say that there is no copy")
	}
	if e := d.history(journal.Query{}); len(e) != 1 || !e[0].Files[0].NoCopy {
		t.Errorf("the history is %+v", e)
	}
	_, err := d.undo(c.ID)
	wantError(t, err, journal.ErrNoCopy)
	_, _, err = d.j.Contents(t.Context(), c.ID, d.path("a"))
	wantError(t, err, journal.ErrNoCopy)
	d.holds("a", "small")
}

func TestRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRetention)
}

func testRetention(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := journal.Open(dir, journal.Options{KeepDays: 30, MaxBytes: 4000})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	d := keptDesk{newDesk(t, func(o *filestate.Options) { o.Journal = j }), j, nil, dir}
	old := d.must(d.put("a", "old", unseen))
	time.Sleep(29 * 24 * time.Hour)
	kept := d.must(d.put("b", "kept", unseen))
	time.Sleep(2 * 24 * time.Hour)
	d.recover() // which removes what is too old or too much
	if e := d.history(journal.Query{}); len(e) != 1 || e[0].ID != kept.ID {
		t.Fatalf("after 31 days the history is %+v", e)
	}
	_, err = d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: old.ID, File: d.file("a")})
	wantError(t, err, journal.ErrNoChange)
	var last filestate.Change
	for i := range 40 {
		last = d.must(d.put("a", fmt.Sprint(i), unseen))
	}
	d.recover() // which removes what is too old or too much
	got, size := d.history(journal.Query{}), sizeBelow(t, dir)
	if size > 4000 || len(got) < 3 || got[0].ID != last.ID {
		t.Errorf("the journal has %d bytes and %d changes; its limit is 4,000", size, len(got))
	}
	if _, _, err := j.Contents(t.Context(), got[len(got)-1].ID, d.path("a")); err != nil {
		t.Errorf("the oldest change that is left: %v", err)
	}
}

// The limit was one for all workspaces of a principal, so that much work in one took the history of the others.
func TestRetentionPerWorkspace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := journal.Open(dir, journal.Options{MaxBytes: 4000})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	d := keptDesk{newDesk(t, func(o *filestate.Options) { o.Journal = j }), j, nil, dir}
	put := func(workspace, text string) filestate.Change {
		changes, err := d.l.Update(t.Context(), journal.By{Workspace: workspace}, filestate.Edit{
			File: d.file("a"), Unseen: true, Change: func([]byte) ([]byte, error) { return []byte(text), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return changes[0]
	}
	quiet := put("/quiet", "of the quiet one")
	for i := range 40 {
		put("/busy", fmt.Sprint(i))
	}
	d.recover() // which removes what is too old or too much
	if e := d.history(journal.Query{Workspace: "/quiet"}); len(e) != 1 || e[0].ID != quiet.ID {
		t.Errorf("the quiet workspace has %+v", e)
	}
	busy := d.history(journal.Query{Workspace: "/busy"})
	if size := sizeBelow(t, dir); len(busy) < 3 || len(busy) > 39 || size > 4000+1000 {
		t.Errorf("the busy workspace has %d changes, and the journal %d bytes", len(busy), size)
	}
}

func sizeBelow(t *testing.T, dir string) (size int64) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return size
}

// What is no note, a part of one, or was changed is passed over and never undone with.
func TestDamagedNotes(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]int{"compressed": 100, "as it is": 20_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDamagedNotes(t, lines)
		})
	}
}

func testDamagedNotes(t *testing.T, lines int) {
	d := newKeptDesk(t)
	d.write("a", strings.Repeat("old\n", lines))
	c := d.must(d.put("a", "new\n", unseen))
	good := d.must(d.put("b", "new\n", unseen))
	var note string
	if err := filepath.WalkDir(d.kept, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, c.ID) {
			note = path
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-12] ^= 1
	foreign := bytes.Replace(whole, fmt.Appendf(nil, `"old_size":%d`, 4*lines), fmt.Appendf(nil, `"old_size":%d`, 4*lines-1), 1)
	for name, content := range map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)-1], "header only": whole[:20], "longer": append(bytes.Clone(whole), 0), "flipped": flipped,
		"other size": foreign, "no JSON": []byte("note\n"), "nothing": []byte("{}\n"),
	} {
		if err := os.WriteFile(note, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: c.ID, File: d.file("a")})
		wantError(t, err, journal.ErrNoCopy)
		d.holds("a", "new\n")
		if got := d.history(journal.Query{Path: d.path("b")}); len(got) != 1 || got[0].ID != good.ID {
			t.Errorf("%s: the other change is not found: %+v", name, got)
		}
	}
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", note); err != nil {
		t.Fatal(err)
	}
	if _, err := d.l.Undo(t.Context(), journal.By{}, filestate.Step{ID: c.ID, File: d.file("a")}); err == nil {
		t.Error("a link in the journal was followed")
	}
}
