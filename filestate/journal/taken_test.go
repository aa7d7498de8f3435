package journal

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"codehand/filestate/disk"
)

// A noted is what the model of TestTaken knows of a change: which files it has, and what it takes back.
type noted struct {
	id     string
	paths  []string
	undoes []string // whole changes
	part   string   // of this change the files in paths
}

// back says whether a file of the change at i was taken back: by a later one, which was not taken back itself in that
// file.
func back(all []noted, i int, path string) bool {
	for n := i + 1; n < len(all); n++ {
		takes := slices.Contains(all[n].undoes, all[i].id) ||
			all[n].part == all[i].id && slices.Contains(all[n].paths, path)
		if takes && !back(all, n, path) {
			return true
		}
	}
	return false
}

// In random sequences of changes, undos of whole changes and of some of their files, and undos of those, the history says
// of each file of each change whether it was taken back, whichever pages and paths it is asked for.
func TestTaken(t *testing.T) {
	t.Parallel()
	for range 30 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		j, err := Open(filepath.Join(t.TempDir(), "journal"), Options{Fast: true})
		if err != nil {
			t.Fatal(err)
		}
		var all []noted
		begin := func(h Header, paths []string) {
			var parts []Part
			for _, p := range paths {
				parts = append(parts, Part{Path: p, New: []byte("x"), After: disk.DigestOf([]byte("x"))})
			}
			p, err := j.begin(h, By{}, parts)
			if err != nil {
				t.Fatal(err)
			}
			n := noted{id: p.ID, paths: paths, undoes: h.Undoes}
			if h.Portion != nil {
				n.part = h.Portion.ID
			}
			if rng.IntN(8) == 0 {
				p.Unsure() // it counts as not made
				n.undoes, n.part = nil, ""
			} else {
				p.Done(t.Context())
			}
			all = append(all, n)
		}
		some := func(of []string) (out []string) {
			for _, i := range rng.Perm(len(of))[:1+rng.IntN(len(of))] {
				out = append(out, of[i])
			}
			return out
		}
		for range 12 {
			if len(all) == 0 || rng.IntN(3) == 0 {
				begin(Header{}, some([]string{"/a", "/b", "/c", "/d"}))
				continue
			}
			of := all[rng.IntN(len(all))]
			if rng.IntN(2) == 0 {
				begin(Header{Undoes: []string{of.id}}, of.paths)
			} else {
				begin(Header{Portion: &Portion{ID: of.id}}, some(of.paths))
			}
		}
		for range 3 {
			path := []string{"", "/a", "/c"}[rng.IntN(3)]
			q := Query{Path: path, Limit: rng.IntN(5)}
			for {
				entries, err := j.History(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					i := slices.IndexFunc(all, func(n noted) bool { return n.id == e.ID })
					gone := 0
					for _, p := range all[i].paths {
						want := back(all, i, p)
						if want {
							gone++
						}
						if e.Back(p) != want {
							t.Fatalf("seed %d: %s of %+v: taken back %v, want %v; all: %+v", seed, p, e, e.Back(p), want, all)
						}
					}
					if e.Undone != (gone == len(all[i].paths)) || e.Undone && e.UndoneFiles != nil {
						t.Fatalf("seed %d: %d of %d files are back, the history says %+v", seed, gone, len(all[i].paths), e)
					}
				}
				if q.Limit == 0 || len(entries) < q.Limit {
					break
				}
				q.Before = entries[len(entries)-1].ID
			}
		}
		_ = j.Close()
	}
}
