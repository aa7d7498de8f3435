package seen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/disk"
)

// known are the spans of a record with the content's digest.
func (c Content) known(spans ...Span) *Record {
	return (*Record)(nil).See(c.Sum, disk.Stamp{Size: c.Size}, ViewOf(c.Size, spans...))
}

// What a session knows after a change of its own, by what it knew before and what was read meanwhile.
func TestRecordOfAChange(t *testing.T) {
	t.Parallel()
	old, made, third := contentOf("one\ntwo\nx\nthree\n"), contentOf("one\n2\nx\nthree\n"), contentOf("third\n")
	first, last := Span{0, 4}, Span{10, 16}
	for name, c := range map[string]struct {
		change      Change
		now         *Record // as it is after the change
		memoryFails bool
		spans       []Span
		before      Version
		own         []disk.Digest
	}{
		"of a seen file": {
			Change{Known: old.known(), Old: &old, New: made}, old.known(), false,
			[]Span{{0, 14}}, VersionOf(old.Sum, true), []disk.Digest{old.Sum},
		},
		"of a part": {
			Change{Known: old.known(first), Old: &old, New: made}, old.known(first), false,
			[]Span{{0, 6}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"of everything": {
			Change{Claim: Claim{Whole: true}, Known: old.known(), Old: &old, New: made}, old.known(), false,
			[]Span{{0, 14}}, VersionOf(old.Sum, true), []disk.Digest{old.Sum},
		},
		"by a version": {
			Change{Claim: Claim{Version: VersionOf(old.Sum, true)}, Old: &old, New: made}, nil, false,
			[]Span{{0, 14}}, VersionOf(old.Sum, true), []disk.Digest{old.Sum},
		},
		"by the version of a view": {
			Change{Claim: Claim{Version: VersionOf(old.Sum, false)}, Old: &old, New: made}, nil, false,
			[]Span{{4, 6}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"of a new file": {
			Change{New: made}, nil, false,
			[]Span{{0, 14}}, "", nil,
		},
		"a read of the old content came between": {
			Change{Known: old.known(first), Old: &old, New: made}, old.known(first, last), false,
			[]Span{{0, 6}, {8, 14}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"a read of the new content came between": {
			Change{Known: old.known(first), Old: &old, New: made}, made.known(Span{8, 14}), false,
			[]Span{{0, 6}, {8, 14}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"it was forgotten meanwhile": {
			Change{Known: old.known(first), Old: &old, New: made}, nil, false,
			[]Span{{4, 6}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"the memory fails": {
			Change{Known: old.known(first), Old: &old, New: made}, nil, true,
			[]Span{{0, 6}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"it replaced what nobody had seen": {
			Change{Claim: Claim{Unseen: true}, Known: third.known(), Old: &old, New: made}, third.known(), false,
			[]Span{{4, 6}}, VersionOf(old.Sum, false), []disk.Digest{old.Sum},
		},
		"nothing was changed": {
			Change{Known: old.known(first), Old: &old, New: old}, old.known(first), false,
			[]Span{first}, VersionOf(old.Sum, false), nil,
		},
	} {
		c.change.Path, c.change.Stamp = "a", disk.Stamp{Ino: 7}
		got, before := c.change.Record(c.now, c.memoryFails)
		if got.Path != "a" || got.Stamp != c.change.Stamp || got.Hash != c.change.New.Sum || got.Size != c.change.New.Size {
			t.Errorf("%s: the record is %+v", name, got)
		}
		if !slices.Equal(got.Spans, c.spans) || before != c.before || !slices.Equal(got.Own, c.own) {
			t.Errorf("%s: got %v after %s, own %d; want %v after %s, own %d", name, got.Spans, before, len(got.Own), c.spans, c.before, len(c.own))
		}
	}
}

// A session may name the contents that it has replaced: the last 16, and only as long as no other program changes the
// file.
func TestOwnVersions(t *testing.T) {
	t.Parallel()
	at := func(i int) Content { return contentOf(fmt.Sprintf("content %d\n", i)) }
	var rec *Record
	for i := range ownVersions + 4 {
		old := at(i)
		rec, _ = Change{Claim: Claim{Whole: true}, Known: rec, Old: &old, New: at(i + 1)}.Record(rec, false)
	}
	now := at(ownVersions + 4)
	for i := range ownVersions + 4 {
		verdict := Claim{Version: VersionOf(at(i).Sum, true)}.Decide(rec, false, &now)
		if want := i >= 4; want != (verdict == GoOn) {
			t.Errorf("content %d of %d: %d", i, ownVersions+4, verdict)
		}
	}
	theirs := contentOf("theirs\n")
	rec, _ = Change{Claim: Claim{Unseen: true}, Known: rec, Old: &theirs, New: now}.Record(rec, false)
	if len(rec.Own) != 1 {
		t.Errorf("after a foreign change %d contents may be named, want that one", len(rec.Own))
	}
}

// What was a part of the old content is one of the new: its bytes as far as they are left, and what the change put into it
// or beside it.
func TestMovedRanges(t *testing.T) {
	t.Parallel()
	rng := randoms(t)
	for range 5000 {
		old := []byte(strings.Repeat("0123456789", 3)[:1+rng.IntN(30)])
		for i := range old {
			old[i] = byte('!' + i) // each byte once, so that it is known where it went
		}
		from := rng.IntN(len(old))
		v := ranged{"v", Span{int64(from), int64(from + 1 + rng.IntN(len(old)-from))}}
		at := rng.IntN(len(old) + 1)
		cut := rng.IntN(len(old) - at + 1)
		put := []byte(strings.Repeat("Z", rng.IntN(4)))
		new := slices.Concat(old[:at], put, old[at+cut:])
		content := func(b []byte) Content { return Content{Bytes: b, Size: int64(len(b))} }
		before := content(old)
		got := Change{Old: &before, New: content(new)}.movedRanges([]ranged{v, v})
		if len(got) != 1 || got[0].From < 0 || got[0].From > got[0].To || got[0].To > int64(len(new)) {
			t.Fatalf("%q to %q: %v of %v", old, new, got, v)
		}
		of := string(new[got[0].From:got[0].To])
		for i, b := range old {
			left := i < at || i >= at+cut
			inside := int64(i) >= v.From && int64(i) < v.To
			if left && inside != strings.Contains(of, string(b)) {
				t.Fatalf("%q to %q: %q of the range %v became %q", old, new, string(b), v, of)
			}
		}
		if touched := int64(at) <= v.To && int64(at+cut) >= v.From; touched && !strings.Contains(of, string(put)) {
			t.Fatalf("%q to %q: the range %v became %q, without what was put into it", old, new, v, of)
		}
	}
}

// A session may name the parts that it has seen of what it has replaced: the last 16, each where it is now.
func TestOwnVersionsOfParts(t *testing.T) {
	t.Parallel()
	old := contentOf(strings.Repeat("0123456789", 10))
	rec := &Record{Hash: old.Sum, Size: old.Size}
	for i := range int64(ownVersions + 4) {
		s := Span{5 * i, 5*i + 5}
		rec.Parts = append(rec.Parts, part{s, disk.DigestOf(old.Bytes[s.From:s.To])})
	}
	now := contentOf("more" + string(old.Bytes))
	last := rec.Parts[len(rec.Parts)-1]
	next, before := Change{Claim: Claim{Version: last.version(old.Size)}, Known: rec, Old: &old, New: now}.Record(rec, false)
	if len(next.Ranges) != ownVersions || before != VersionOf(old.Sum, false) {
		t.Errorf("%d parts may be named after %s, want %d", len(next.Ranges), before, ownVersions)
	}
	for i, p := range rec.Parts {
		claim := Claim{Version: p.version(old.Size)}
		if want, got := i >= 4, claim.Decide(next, false, &now); want != (got == GoOn) {
			t.Errorf("part %d: %d", i, got)
		}
	}
	if of, ok := next.fits(last.version(old.Size), now); !ok || of != (Span{last.From + 4, last.To + 4}) {
		t.Errorf("the last part is at %v now", of)
	}
}
