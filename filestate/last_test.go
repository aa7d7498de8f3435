package filestate_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// backwards is the content that one undo by path after the other leaves in a file, until there is none to take back; "-": no file.
func (d keptDesk) backwards(name string) (held []string) {
	d.Helper()
	for range 5 {
		e, err := d.l.Last(d.Context(), journal.Query{Path: d.path(name)})
		if err != nil {
			wantError(d.T, err, journal.ErrNoChange)
			return held
		}
		if _, err := d.undo(e.ID); err != nil {
			return append(held, err.Error())
		}
		b, err := os.ReadFile(d.path(name))
		if err != nil {
			b = []byte("-")
		}
		held = append(held, string(b))
	}
	return held
}

// A process that was killed between the note of a change and the change left a file that every undo by path stuck to: in a
// server that ran on, each call said that it took that change back, and none came to those before it.
func TestLastOfKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(d keptDesk) (id string) // after two changes from 0 to 2; the note of id is left open
		held []string
	}{
		{"never made", func(d keptDesk) string {
			id := d.must(d.put("a", "3", unseen)).ID
			d.write("a", "2")
			return id
		}, []string{"1", "0"}},
		{"made", func(d keptDesk) string { return d.must(d.put("a", "3", unseen)).ID }, []string{"2", "1", "0"}},
		{"a removal that was never made", func(d keptDesk) string {
			id := d.mustUndo(d.must(d.put("b", "new", unseen)).ID).ID
			d.write("b", "new")
			return id
		}, []string{"1", "0"}},
		{"an undo that was made", func(d keptDesk) string {
			return d.mustUndo(d.must(d.put("a", "3", unseen)).ID).ID
		}, []string{"1", "0"}},
		{"an undo that was never made", func(d keptDesk) string {
			id := d.mustUndo(d.must(d.put("a", "3", unseen)).ID).ID
			d.write("a", "3")
			return id
		}, []string{"2", "1", "0"}},
		{"an undo that was made, and taken back", func(d keptDesk) string {
			id := d.mustUndo(d.must(d.put("a", "3", unseen)).ID).ID
			d.mustUndo(id)
			return id
		}, []string{"2", "1", "0"}},
		{"an undo and what took that back, both made", func(d keptDesk) string {
			undo := d.mustUndo(d.must(d.put("a", "3", unseen)).ID).ID
			again := d.mustUndo(undo).ID
			d.leaveOpen(undo)
			return again
		}, []string{"2", "1", "0"}},
		{"an undo of one of two files that was made", func(d keptDesk) string {
			pair, err := d.l.Update(d.Context(), journal.By{}, unseenEdit(d, "a", "3"), unseenEdit(d, "b", "3"))
			if err != nil {
				d.Fatal(err)
			}
			part, err := d.l.UndoFiles(d.Context(), journal.By{}, filestate.Step{ID: pair[0].ID, File: d.file("a")})
			if err != nil {
				d.Fatal(err)
			}
			return part[0].ID
		}, []string{"1", "0"}},
		{"one of two files of a change over one that was never made", func(d keptDesk) string {
			never := d.must(d.put("a", "x", unseen)).ID
			d.write("a", "2")
			d.write("b", "0")
			pair, err := d.l.Update(d.Context(), journal.By{}, unseenEdit(d, "a", "3"), unseenEdit(d, "b", "3"))
			if err != nil {
				d.Fatal(err)
			}
			d.write("b", "0")
			d.leaveOpen(never)
			return pair[0].ID
		}, []string{"2", "1", "0"}},
		{"below a later change", func(d keptDesk) string {
			id := d.must(d.put("a", "lost", unseen)).ID
			d.write("a", "2")
			d.must(d.put("a", "3", unseen))
			return id
		}, []string{"2", "1", "0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("a", "0")
			d.must(d.put("a", "1", unseen))
			d.must(d.put("a", "2", unseen))
			d.leaveOpen(c.do(d))
			if got := d.backwards("a"); !slices.Equal(got, c.held) {
				t.Errorf("the undos leave %q, want %q", got, c.held)
			}
		})
	}
}

func unseenEdit(d keptDesk, name, content string) filestate.Edit {
	return filestate.Edit{File: d.file(name), Unseen: true, Change: makes(content)}
}

// A change that stopped half way, since another program saved the file meanwhile, and whose content was restored by
// hand.
func TestLastOfUnsure(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "0")
	d.must(d.put("a", "1", unseen))
	d.leaveOpen(d.must(d.put("a", "2", unseen)).ID)
	d.write("a", "foreign")
	d = d.again()
	d.recover()
	if got := d.backwards("a"); len(got) != 1 || !strings.HasSuffix(got[0], "is not what the change left") {
		t.Errorf("the undos leave %q", got)
	}
	d.holds("a", "foreign")
	d.write("a", "1")
	if got := d.backwards("a"); !slices.Equal(got, []string{"0"}) {
		t.Errorf("the undos leave %q", got)
	}
}

// A new file that a killed process never made is not there to be removed.
func TestLastOfKilledCreation(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	id := d.must(d.put("dir/a", "new")).ID
	if err := os.RemoveAll(d.path("dir")); err != nil {
		t.Fatal(err)
	}
	d.leaveOpen(id)
	_, err := d.l.Last(t.Context(), journal.Query{Path: d.path("dir/a")})
	wantError(t, err, journal.ErrNoChange)
}
