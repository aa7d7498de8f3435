package filestate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate"
)

// A keptDesk is a desk whose changes go to a journal.
type keptDesk struct {
	desk
	j    *filestate.Journal
	kept string // directory of the journal
}

func newKeptDesk(t *testing.T, change ...func(*filestate.Options)) keptDesk {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, kept)
	d := newDesk(t, append([]func(*filestate.Options){func(o *filestate.Options) { o.Journal = j }}, change...)...)
	return keptDesk{d, j, kept}
}

func openJournal(t testing.TB, dir string) *filestate.Journal {
	t.Helper()
	j, err := filestate.OpenJournal(dir, filestate.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// again is the desk as a new process finds it.
func (d keptDesk) again() keptDesk {
	d.Helper()
	filestate.SettleLate(d.j)
	d.j = openJournal(d.T, d.kept)
	d.l = filestate.New(filestate.Options{Dir: d.TempDir(), Fast: true, Journal: d.j})
	return d
}

func (d keptDesk) history(q filestate.Query) []filestate.Entry {
	d.Helper()
	entries, err := d.j.History(d.Context(), q)
	if err != nil {
		d.Fatal(err)
	}
	return entries
}

// steps are the steps that take back a change: one for each of its files.
func (d keptDesk) steps(id string) []filestate.Step {
	d.Helper()
	var steps []filestate.Step
	for _, e := range d.history(filestate.Query{ID: id}) {
		for _, f := range e.Files {
			steps = append(steps, filestate.Step{ID: id, File: d.file(strings.TrimPrefix(f.Path, d.dir+"/"))})
		}
	}
	return steps
}

func (d keptDesk) undo(id string) ([]filestate.Change, error) {
	d.Helper()
	changes, err := d.l.Undo(d.Context(), filestate.By{Tool: "undo_change"}, d.steps(id)...)
	d.noTemps()
	return changes, err
}

func (d keptDesk) mustUndo(id string) filestate.Change {
	d.Helper()
	changes, err := d.undo(id)
	if err != nil {
		d.Fatal(err)
	}
	return changes[0]
}

// keepsContent says whether the journal has a content that somebody else gave a file, or any change found or left.
func (d keptDesk) keepsContent(want string) bool {
	d.Helper()
	return d.contents()[want]
}

// contents are all contents that the journal has.
func (d keptDesk) contents() map[string]bool {
	d.Helper()
	all := map[string]bool{}
	for _, e := range d.history(filestate.Query{Kept: true}) {
		for _, f := range e.Files {
			before, after, err := d.j.Contents(d.Context(), e.ID, f.Path)
			if err != nil {
				d.Fatal(err)
			}
			all[string(before)], all[string(after)] = true, true
		}
	}
	return all
}

// gone fails the test if there is such a file.
func (d keptDesk) gone(name string) {
	d.Helper()
	if _, err := os.Lstat(d.path(name)); err == nil {
		d.Fatalf("%s is there", name)
	}
}
