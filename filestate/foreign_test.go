package filestate_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// foreignSaves are what other programs do to a file.
var foreignSaves = map[string]func(d keptDesk, content string){
	"in place": func(d keptDesk, content string) { d.write("a", content) },
	"by rename": func(d keptDesk, content string) {
		d.write("other", content)
		d.rename("other", "a")
	},
	"removed and made anew": func(d keptDesk, content string) {
		_ = os.Remove(d.path("a"))
		d.write("a", content)
	},
}

// What another program saves at any step of a change is in the file afterwards, or in the journal.
func TestForeignSaveAtEveryStep(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	for name, save := range foreignSaves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, at := range filestate.Steps() {
				for times := 1; times <= 3; times++ { // and once more while that is put back
					d := newKeptDesk(t)
					d.write("a", "old")
					d.see("a")
					var saved []string
					d.beforeSteps(func(step string) error {
						if step == at || len(saved) > 0 && len(saved) < times {
							saved = append(saved, fmt.Sprintf("version %d", len(saved)))
							save(d, saved[len(saved)-1])
						}
						return nil
					})
					c, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"), Change: makes("new")})
					if stale, ok := errors.AsType[*filestate.StaleError](err); err != nil && (!ok || stale.New == nil) && !errors.Is(err, disk.ErrMoved) {
						t.Fatalf("save before %s: %v", at, err)
					}
					if err == nil && len(saved) == 0 && c[0].ID == "" {
						t.Fatalf("save before %s: %+v", at, c)
					}
					// Each later save replaces the one before it, unless that was displaced.
					if n := len(saved); n > 0 && d.read("a") != saved[n-1] && !d.keepsContent(saved[n-1]) {
						t.Fatalf("save %d before %s is lost: the file holds %q; %v", n, at, d.read("a"), err)
					}
					d.noTemps()
				}
			}
		})
	}
}

// What was displaced of a large file is known by its stamp, unless that proves nothing or a program has it open.
func TestForeignSaveOfALargeFile(t *testing.T) {
	t.Parallel()
	old := strings.Repeat("old line\n", 200_000)
	for name, hold := range map[string]bool{"held": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("a", old)
			d.age("a", time.Hour)
			d.see("a")
			f, err := os.OpenFile(d.path("a"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d.beforeSteps(func(step string) error {
				if step != "verify" {
					return nil
				}
				_, err := f.WriteString("new")
				if !hold {
					return errors.Join(err, f.Close())
				}
				return err
			})
			_, err = d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"), Change: makes("ours")})
			if e := wantStale(t, err); string(e.New) != "new"+old[3:] {
				t.Errorf("the refusal shows %.20q", e.New)
			}
			d.holds("a", "new"+old[3:])
		})
	}
}
