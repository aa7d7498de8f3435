package filestate_test

import (
	"errors"
	"testing"

	"codehand/filestate"
)

// An edit that proves nothing about what it replaces needs to have been shown that, by a view or by a version of all; and what
// it wrote counts as shown, even where a comparison would take it for what was there and was not.
func TestTouches(t *testing.T) {
	t.Parallel()
	touching := func(was, is span) func(*filestate.Edit) {
		return func(e *filestate.Edit) { e.Touches = func() (span, span) { return was, is } }
	}
	for _, large := range []bool{false, true} {
		d := newDesk(t)
		if large {
			d = largeDesk(t)
		}
		d.write("a", three)
		d.see("a", span{From: 0, To: 7})
		for _, v := range []filestate.Version{"", versionOf(three) + "p"} {
			_, err := d.edit("a", "two...\n", "2\n", touching(span{From: 6, To: 14}, span{From: 6, To: 9}), version(v))
			if !errors.Is(err, filestate.ErrPartRead) || d.read("a") != three {
				t.Errorf("large %v, version %q: %v", large, v, err)
			}
		}
		d.must(d.edit("a", "one...\n", "1\n", touching(span{From: 0, To: 7}, span{From: 0, To: 2})))
		// The same line once more, before one that was not shown.
		d.must(d.edit("a", "two...\n", "two...\ntwo...\n", touching(span{}, span{From: 2, To: 9})))
		d.must(d.edit("a", "two...\n", "2\n", touching(span{From: 2, To: 9}, span{From: 2, To: 4})))
		last := touching(span{From: 11, To: 18}, span{From: 11, To: 13})
		if _, err := d.edit("a", "three.\n", "3\n", last); !errors.Is(err, filestate.ErrPartRead) {
			t.Errorf("large %v: what was pushed on counts as shown: %v", large, err)
		}
		d.must(d.edit("a", "three.\n", "3\n", last, version(versionOf(d.read("a")))))
	}
}
