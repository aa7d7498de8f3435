package seen

import (
	"testing"

	"codehand/filestate/disk"
)

func contentOf(text string) Content {
	return Content{Bytes: []byte(text), Size: int64(len(text)), Sum: disk.DigestOf([]byte(text))}
}

// TestDecide goes through the table of the guard: every record, version and kind of change against every content.
func TestDecide(t *testing.T) {
	t.Parallel()
	now, other := contentOf("one\ntwo\n"), contentOf("three\n")
	part := part{Span{0, 4}, disk.DigestOf(now.Bytes[:4])}
	whole, head := now.whole(), &Record{Hash: now.Sum, Size: 8, Spans: []Span{{0, 4}}}
	own := &Record{Hash: now.Sum, Size: 8, Own: []disk.Digest{other.Sum}, Ranges: []ranged{{"r0123456789ab:3-9", Span{0, 4}}}}
	wasOwn := &Record{Hash: disk.DigestOf(nil), Own: own.Own, Ranges: own.Ranges}
	for _, c := range []struct {
		name       string
		known      *Record
		version    Version
		edit, all  Verdict // of a change of a part, and of one of everything
		lameMemory bool
	}{
		{name: "no record", edit: NotRead, all: NotRead},
		{name: "no memory", lameMemory: true, edit: NoMemory, all: NoMemory},
		{name: "all was seen", known: whole, edit: GoOn, all: GoOn},
		{name: "a part was seen", known: head, edit: GoOn, all: PartRead},
		{name: "nothing of it was seen", known: &Record{Hash: now.Sum, Size: 8}, edit: NotRead, all: NotRead},
		{name: "made by the session", known: own, edit: GoOn, all: PartRead},
		{name: "something else was seen", known: other.whole(), edit: Stale, all: Stale},
		{name: "its version", version: VersionOf(now.Sum, true), edit: GoOn, all: GoOn},
		{name: "its version, no memory", version: VersionOf(now.Sum, true), lameMemory: true, edit: GoOn, all: GoOn},
		{name: "its version, else seen", version: VersionOf(now.Sum, true), known: other.whole(), edit: GoOn, all: GoOn},
		{name: "its version of a view", version: VersionOf(now.Sum, false), known: whole, edit: GoOn, all: PartRead},
		{name: "another version", version: VersionOf(other.Sum, true), known: whole, edit: Stale, all: Stale},
		{name: "an own version", version: VersionOf(other.Sum, true), known: own, edit: GoOn, all: GoOn},
		{name: "an own version of a view", version: VersionOf(other.Sum, false), known: own, edit: GoOn, all: PartRead},
		{name: "an own version, changed since", version: VersionOf(other.Sum, true), known: wasOwn, edit: Stale, all: Stale},
		{name: "of a part", version: part.version(8), edit: GoOn, all: PartRead},
		{name: "of a part, another size", version: part.version(9), edit: Stale, all: Stale},
		{name: "an own one of a part", version: "r0123456789ab:3-9", known: own, edit: GoOn, all: PartRead},
		{name: "an own one of a part, changed since", version: "r0123456789ab:3-9", known: wasOwn, edit: Stale, all: Stale},
		{name: "of a part behind the end", version: "r0123456789ab:3-99", known: whole, edit: Stale, all: Stale},
	} {
		for _, all := range []bool{false, true} {
			claim, want := Claim{Version: c.version, Whole: all}, c.edit
			if all {
				want = c.all
			}
			if got := claim.Decide(c.known, c.lameMemory, &now); got != want {
				t.Errorf("%s, everything %v: got %d, want %d", c.name, all, got, want)
			}
			if got := claim.Decide(c.known, c.lameMemory, nil); got != GoOn {
				t.Errorf("%s, no file: got %d", c.name, got)
			}
			claim.Unseen = true
			if got := claim.Decide(c.known, c.lameMemory, &now); got != GoOn {
				t.Errorf("%s, unseen: got %d", c.name, got)
			}
		}
	}
}

// whole is the record of who has seen all of a content.
func (c Content) whole() *Record {
	return (*Record)(nil).See(c.Sum, disk.Stamp{Size: c.Size}, ViewOf(c.Size))
}

// A part serves a change within it, and no other.
func TestOutside(t *testing.T) {
	t.Parallel()
	now := contentOf("one\ntwo\nthree\n")
	span := Span{4, 8}
	claim := Claim{Version: part{span, disk.DigestOf(now.Bytes[4:8])}.version(now.Size)}
	for next, want := range map[string]bool{
		"one\ntwo\nthree\n":        false,
		"one\nTWO\nthree\n":        false,
		"one\nthree\n":             false,
		"one\ntwo\nmore\nthree\n":  false,
		"ONE\ntwo\nthree\n":        true,
		"one\ntwo\nTHREE\n":        true,
		"more\none\ntwo\nthree\n":  true,
		"one\ntwo\nthree\nmore.\n": true,
		"one\n":                    true,
		"":                         true,
	} {
		of, got := claim.Outside(nil, now, []byte(next))
		if got != want || of != span {
			t.Errorf("%q: outside of %v is %v, want %v", next, of, got, want)
		}
		if _, got := (Claim{Version: claim.Version, Unseen: true}).Outside(nil, now, []byte(next)); got {
			t.Errorf("%q: what was not to be seen is outside", next)
		}
		if _, got := (Claim{Version: VersionOf(now.Sum, false)}).Outside(nil, now, []byte(next)); got {
			t.Errorf("%q: the version of a whole content is one of a part", next)
		}
	}
}
