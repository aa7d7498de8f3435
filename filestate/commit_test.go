package filestate_test

import (
	"errors"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// A change that may not be committed any more leaves every file as it was. One that stopped in the middle of a file
// stays open in the journal, and is settled by who may change the files now.
func TestMayNotCommit(t *testing.T) {
	t.Parallel()
	denied := errors.New("another one changes these files")
	for _, c := range trials() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stopped := 0
			for most := 0; ; most++ { // so many looks let it pass
				looks := 1 << 10
				d := newKeptDesk(t, durable, func(o *filestate.Options) {
					o.MayCommit = func() error {
						if looks--; looks < 0 {
							return denied
						}
						return nil
					}
				})
				c.setUp(d)
				before, notes := tree(t, d.dir), len(d.history(journal.Query{}))
				d.beforeSteps(c.fails)
				looks = most
				err := c.run(t.Context(), d.l, d.file)
				if err == nil {
					if stopped == 0 || strings.Contains(c.name, "several") && stopped < 3 {
						t.Errorf("it was made after %d looks", most)
					}
					if made := tree(t, d.dir); made == before {
						t.Error("nothing was changed")
					}
					return
				}
				stopped++
				wantError(t, err, denied)
				if _, torn := errors.AsType[*filestate.RollbackError](err); torn {
					if e := d.history(journal.Query{ID: callID}); len(e) != 1 || !e[0].Open {
						t.Fatalf("after %d looks the journal has %+v", most, e)
					}
					d.leaveOpen(callID)
					r := d.again().recover()
					if len(r) != 1 || r[0].Outcome == journal.OutcomeUnsure {
						t.Errorf("after %d looks the repairs are %+v", most, r)
					} else if r[0].Outcome == journal.OutcomeDone { // all but the last step
						if after := tree(t, d.dir); strings.Contains(after, "old a") {
							t.Errorf("after %d looks a is not whole", most)
						}
						continue
					}
				}
				if after := tree(t, d.dir); after != before {
					t.Fatalf("after %d looks the files are other ones", most)
				}
				if got := kept(d.history(journal.Query{})); got != notes {
					t.Fatalf("after %d looks the history has %d changes, not %d", most, got, notes)
				}
				d.noTemps()
			}
		})
	}
}

// kept counts changes of ours.
func kept(all []journal.Entry) (n int) {
	for _, e := range all {
		if e.Kept == "" {
			n++
		}
	}
	return n
}

// A process that was stopped just before the exchange goes on when another one has settled its change: it writes
// nothing.
func TestStoppedBeforeExchange(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(d keptDesk) error{
		"update": func(d keptDesk) error { _, err := d.put("a", "new", unseen); return err },
		"create": func(d keptDesk) error { _, err := d.put("b", "new"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("a", "old")
			before := tree(t, d.dir)
			d.beforeSteps(func(step string) error {
				if step == "rename" {
					open := d.history(journal.Query{Limit: 1})
					d.leaveOpen(open[0].ID)
					if r := d.again().recover(); len(r) != 1 || r[0].Outcome != journal.OutcomeNot {
						t.Errorf("the repairs are %+v", r)
					}
				}
				return nil
			})
			if err := make(d); err == nil {
				t.Error("it was made")
			}
			if after := tree(t, d.dir); after != before {
				t.Errorf("\n%s became\n%s", before, after)
			}
			if e := d.history(journal.Query{}); len(e) > 0 {
				t.Errorf("the history is %+v", e)
			}
			d.noTemps()
		})
	}
}

// Where no other process changes the files, a note of another machine is settled at once. Else it may be of one that
// lives.
func TestRecoverAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		d := newKeptDesk(t)
		d.write("a", "old")
		d.must(d.put("a", "new", unseen))
		id := d.history(journal.Query{})[0].ID
		d.write("a", "old")
		d.leaveOpenBy(id, func(header map[string]any) {
			header["host"] = map[string]any{"name": "another", "boot": "x", "ids": "y"}
		})
		j, err := journal.Open(d.kept, journal.Options{Fast: true, Alone: alone})
		if err != nil {
			t.Fatal(err)
		}
		r, err := filestate.New(filestate.Options{Journal: j, Fast: true}).Recover(t.Context())
		if err != nil || (len(r) == 1) != alone {
			t.Errorf("alone %v: the repairs are %+v, %v", alone, r, err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
