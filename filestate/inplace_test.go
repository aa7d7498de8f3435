package filestate_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"codehand/filestate"
)

// A file whose owner cannot be kept is written in place, where the journal has the old content.
func TestInPlace(t *testing.T) {
	t.Parallel()
	t.Run("written and undone", func(t *testing.T) {
		t.Parallel()
		d := newKeptDesk(t, durable)
		d.write("a", "a longer old content")
		d.see("a")
		d.beforeSteps(notOurs)
		c := d.must(d.put("a", "new"))
		if !c.InPlace || !c.Durable {
			t.Errorf("the change is %+v", c)
		}
		d.holds("a", "new")
		if u := d.mustUndo(c.ID); !u.InPlace {
			t.Errorf("the undo is %+v", u)
		}
		d.holds("a", "a longer old content")
		d.must(d.edit("a", "longer", "new"))
	})
	t.Run("not with other names", func(t *testing.T) {
		t.Parallel()
		d := newKeptDesk(t)
		d.write("a", "old")
		if err := os.Link(d.path("a"), d.path("b")); err != nil {
			lacking(t, "hard links: %v", err)
		}
		d.beforeSteps(notOurs)
		_, err := d.put("a", "new", unseen)
		if e, ok := errors.AsType[*filestate.WriteError](err); !ok || e.Step != "owner" {
			t.Errorf("got %v, want a WriteError of the step owner", err)
		}
		d.holds("a", "old")
	})
	t.Run("fails", func(t *testing.T) {
		t.Parallel()
		d := newKeptDesk(t)
		d.write("a", "old")
		d.beforeSteps(func(step string) error {
			if step == "write in place" {
				return syscall.ENOSPC
			}
			return notOurs(step)
		})
		_, err := d.put("a", "new", unseen)
		wantError(t, err, syscall.ENOSPC)
		d.holds("a", "old")
	})
	t.Run("somebody is faster", func(t *testing.T) {
		t.Parallel()
		d := newKeptDesk(t)
		d.write("a", "old")
		d.see("a")
		tick(t, d.path("a"))
		d.beforeSteps(notOurs)
		_, err := d.change("a", func([]byte) ([]byte, error) { d.write("a", "foreign"); return []byte("new"), nil })
		wantStale(t, err)
		d.holds("a", "foreign")
	})
	t.Run("taken back", func(t *testing.T) {
		t.Parallel()
		d := newKeptDesk(t)
		d.write("a", "old a")
		d.write("z", "old z")
		renames := 0
		d.beforeSteps(func(step string) error {
			if step == "rename" {
				if renames++; renames == 1 {
					return syscall.EIO
				}
			}
			return notOurs(step)
		})
		err := update(t.Context(), d.l, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes("new a")},
			filestate.Edit{File: d.file("b"), Change: makes("new b")})
		wantError(t, err, syscall.EIO)
		d.holds("a", "old a")
		d.gone("b")
	})
}
