package journal

import (
	"path/filepath"
	"sync"
	"testing"
)

// Journals that share their memory take no more of it than there is, the one not used for longest goes without, and every
// query finds all the same.
func TestIndexesAreShared(t *testing.T) {
	t.Parallel()
	const notes = 10
	all := NewIndexes(5 * notes * noteCost / 2) // enough for two with all that they learn, and not for three
	var js []*Journal
	for _, name := range []string{"a", "b", "c"} {
		j, err := Open(filepath.Join(t.TempDir(), name), Options{Fast: true, Indexes: all})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		for range notes {
			made(t, j)
		}
		js = append(js, j)
	}
	look := func(j *Journal) {
		if got, err := j.History(t.Context(), Query{Path: "/w/a"}); err != nil || len(got) != notes {
			t.Errorf("%d changes, %v, want %d", len(got), err, notes)
		}
	}
	for _, turn := range []struct{ use, lost int }{{0, 2}, {1, 2}, {2, 0}, {1, 0}, {0, 2}, {0, 2}, {2, 1}} {
		look(js[turn.use])
		sum := 0
		for _, j := range js {
			for _, d := range j.index.days {
				sum += d.bytes
			}
		}
		if sum != all.bytes || sum > all.most {
			t.Errorf("%d bytes are counted and %d taken, of %d", all.bytes, sum, all.most)
		}
		if len(js[turn.use].index.days) == 0 || len(js[turn.lost].index.days) > 0 {
			t.Errorf("after a query of %d it has %d days, and %d has %d", turn.use, len(js[turn.use].index.days), turn.lost, len(js[turn.lost].index.days))
		}
	}
	var done sync.WaitGroup
	for _, j := range js {
		for range 4 {
			done.Go(func() {
				for range 5 {
					look(j)
				}
			})
		}
	}
	done.Wait()
	for _, j := range js {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	if all.bytes != 0 || len(all.full) > 0 {
		t.Errorf("%d bytes of closed journals, %d of them", all.bytes, len(all.full))
	}
}
