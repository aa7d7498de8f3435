package filestate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/journal"
)

// A change that ended just while the history was read was missing from it: its note has another name then.
func TestHistoryOfWhatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"done", "unsure"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			older := d.must(d.put("a", "one\n"))
			newer := d.must(d.put("b", "two\n"))
			notes, err := filepath.Glob(filepath.Join(d.kept, "*", "*-"+older.ID+".done"))
			if err != nil || len(notes) != 1 {
				t.Fatalf("the notes are %v, %v", notes, err)
			}
			name := strings.TrimSuffix(notes[0], "done")
			if err := os.Rename(name+"done", name+"open"); err != nil {
				t.Fatal(err)
			}
			got := d.history(journal.Query{Fits: func(e journal.Entry) bool {
				if e.ID == newer.ID {
					if err := os.Rename(name+"open", name+end); err != nil {
						t.Error(err)
					}
				}
				return true
			}})
			if len(got) != 2 || got[1].ID != older.ID || got[1].Open || got[1].Unsure != (end == "unsure") {
				t.Errorf("the history is %+v", got)
			}
		})
	}
}
