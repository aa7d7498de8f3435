package compare

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

// What lies between the changes is equal, what they cover is not, and what they say makes new of old.
func check(t *testing.T, old, new []string, changes []Change) {
	t.Helper()
	at := Change{}
	for i, c := range append(slices.Clone(changes), Change{len(old), len(old), len(new), len(new)}) {
		if c.OldFrom < at.OldTo || c.NewFrom < at.NewTo || !slices.Equal(old[at.OldTo:c.OldFrom], new[at.NewTo:c.NewFrom]) {
			t.Fatalf("the lines before change %d are not the same: %+v", i, changes)
		}
		if i > 0 && i < len(changes) && c.OldFrom == at.OldTo {
			t.Fatalf("nothing lies before change %d: %+v", i, changes)
		}
		if i < len(changes) && slices.Equal(old[c.OldFrom:c.OldTo], new[c.NewFrom:c.NewTo]) {
			t.Fatalf("change %d is none: %+v", i, changes)
		}
		at = c
	}
}

func TestLinesRandom(t *testing.T) {
	t.Parallel()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", s)
	r := rand.New(rand.NewPCG(s, 0))
	lines := func(n, kinds int) []string {
		out := make([]string, r.IntN(n+1))
		for i := range out {
			out[i] = strconv.Itoa(r.IntN(kinds))
		}
		return out
	}
	for range 3_000 {
		kinds := 1 + r.IntN(50)
		old := lines(40, kinds)
		new := slices.Clone(old)
		for range r.IntN(5) {
			from := r.IntN(len(new) + 1)
			to := from + r.IntN(len(new)-from+1)
			new = slices.Replace(new, from, to, lines(5, kinds)...)
		}
		check(t, old, new, Lines(old, new))
	}
}

// Long texts are split at lines that are unique in both, and where there are none they count as changed whole.
func TestLinesLong(t *testing.T) {
	t.Parallel()
	var old, new []string
	for i := range 10_000 {
		line := "}"
		if i%100 == 0 {
			line = "func " + strconv.Itoa(i)
		}
		old, new = append(old, line), append(new, line)
		if i%1000 == 500 {
			new = append(new, "added")
		}
	}
	changes := Lines(old, new)
	check(t, old, new, changes)
	if len(changes) != 10 {
		t.Errorf("%d changes, want the 10 lines that were added", len(changes))
	}
	alike, other := slices.Repeat([]string{"a", "b"}, 3_000), slices.Repeat([]string{"b", "a", "a"}, 2_000)
	changes = Lines(alike, other)
	check(t, alike, other, changes)
	if len(changes) != 1 {
		t.Errorf("%d changes in what is too long to be compared", len(changes))
	}
}

// More lines than there are runes below the surrogates keep their numbers apart.
func TestLinesManyNumbers(t *testing.T) {
	t.Parallel()
	old := make([]string, 0xe100)
	for i := range old {
		old[i] = strconv.Itoa(i)
	}
	new := slices.Clone(old)
	new[0xd7ff], new[0xd800], new[0xdfff] = new[0xd800], "x", "y"
	changes := Lines(old, new)
	check(t, old, new, changes)
	if len(changes) == 0 {
		t.Error("no change")
	}
}
