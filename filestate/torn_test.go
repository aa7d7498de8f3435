package filestate_test

import (
	"os"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// A file that cannot be replaced is written in place. If the process died in the middle it stayed torn: nothing knew its
// content, although the journal has the old one and the new one.
func TestRecoverTorn(t *testing.T) {
	t.Parallel()
	const old, next, long = "old content", "new conTENT", "new conTENT, and more"
	for _, c := range []struct{ name, old, next, torn string }{
		{"in the middle", old, next, next[:6] + old[6:]},
		{"a longer one in the middle", old, long, long[:9] + old[9:]},
		{"a longer one beyond the end", old, long, long[:15]},
		{"a shorter one in the middle", long, old, old[:3] + long[3:]},
		{"not cut yet", long, old, old + long[len(old):]},
		{"killed again while it was taken back", old, next, old[:2] + next[2:9] + old[9:]},
		{"killed again, the old one is longer", long, old, long[:15]},
	} {
		for _, how := range []string{"recover", "undo"} {
			t.Run(c.name+", "+how, func(t *testing.T) {
				t.Parallel()
				d := newKeptDesk(t)
				d.write("a", c.old)
				d.write("b", "old b")
				if err := update(t.Context(), d.l, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes(c.next)},
					filestate.Edit{File: d.file("b"), Unseen: true, Change: makes("new b")}); err != nil {
					t.Fatal(err)
				}
				d.write("a", c.torn)
				d.leaveOpen(callID)
				d = d.again()
				if how == "undo" {
					d.mustUndo(callID)
				} else {
					if r := d.recover(); len(r) != 1 || r[0].Outcome != "taken back" {
						t.Errorf("the repairs are %+v", r)
					}
					if e := d.history(journal.Query{}); len(e) > 0 {
						t.Errorf("the history is %+v", e)
					}
				}
				d.holds("a", c.old)
				d.holds("b", "old b")
				if !d.keepsContent(c.torn) {
					t.Error("the journal has no copy of the torn content")
				}
				d.noTemps()
			})
		}
	}
}

// A file that only looks torn, or was saved long after, belongs to another program and stays.
func TestRecoverLeavesWhatIsNotTorn(t *testing.T) {
	t.Parallel()
	const old, next = "old content", "new conTENT"
	for _, c := range []struct {
		name, now string
		saved     time.Duration // after the change
		link      bool
	}{
		{"another content", "new cXnTENT", 0, false},
		{"longer", next + "!", 0, false},
		{"shorter", next[:6], 0, false},
		{"saved later", next[:6] + old[6:], time.Hour, false},
		{"saved before", next[:6] + old[6:], -time.Hour, false},
		{"with another name", next[:6] + old[6:], 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("a", old)
			if err := update(t.Context(), d.l, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes(next)}); err != nil {
				t.Fatal(err)
			}
			d.write("a", c.now)
			d.age("a", -c.saved)
			if c.link {
				if err := os.Link(d.path("a"), d.path("other")); err != nil {
					t.Skipf("hard links: %v", err)
				}
			}
			d.leaveOpen(callID)
			d = d.again()
			if r := d.recover(); len(r) != 1 || r[0].Outcome != "unsure" {
				t.Errorf("the repairs are %+v", r)
			}
			d.holds("a", c.now)
		})
	}
}
