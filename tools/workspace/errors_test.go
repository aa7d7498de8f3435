package workspace

import (
	"errors"
	"fmt"
	"testing"
)

// A directory that was exchanged with an outward link between the look and the opening gave an unknown error, and the
// caller got an internal one.
func TestSwapped(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/out", "TOP/outside")
	f.link(t, "ws/loop", "loop")
	p, err := f.Open("a.txt", Read)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := f.Open("a.txt", Read)
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Dir.Close() // that is the case
	for name, c := range map[string]struct {
		place Place
		want  bool
	}{"out": {p, true}, "out/x.txt": {p, true}, "..": {p, true}, "loop": {p, false}, "none": {p, false}, "a.txt/x": {p, false}, "a.txt": {closed, false}} {
		_, err := c.place.Dir.Open(name)
		if err == nil {
			t.Fatalf("%s was opened", name)
		}
		if got := Swapped(fmt.Errorf("open: %w", err)); got != c.want {
			t.Errorf("%s: %t for %v", name, got, err)
		}
		if got := errors.Is(failed("/x", err), ErrChanging); got != c.want {
			t.Errorf("%s: failed says %v", name, failed("/x", err))
		}
	}
	if err := p.Dir.Close(); err != nil {
		t.Fatal(err)
	}
}
