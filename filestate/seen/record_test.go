package seen

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/filestate/disk"
)

// What was shown adds up as long as the content is the same, and each view counts how often it came in a row.
func TestSee(t *testing.T) {
	t.Parallel()
	c, other := contentOf("one\ntwo\nthree\n"), contentOf("another one.\n.\n")
	var rec *Record
	for i, v := range []struct {
		of    Content
		spans []Span
		want  []Span
		again int
	}{
		{c, []Span{{0, 4}}, []Span{{0, 4}}, 0},
		{c, []Span{{2, 4}, {0, 2}}, []Span{{0, 4}}, 1},
		{c, []Span{{8, 99}}, []Span{{0, 4}, {8, 14}}, 0},
		{c, []Span{{}}, []Span{{0, 4}, {8, 14}}, 0},
		{c, nil, []Span{{0, 14}}, 0},
		{c, []Span{{0, 14}}, []Span{{0, 14}}, 1},
		{other, []Span{{0, 14}}, []Span{{0, 14}}, 0},
		{c, []Span{{0, 4}}, []Span{{0, 4}}, 0},
	} {
		rec = rec.See(v.of.Sum, disk.Stamp{Size: v.of.Size}, ViewOf(v.of.Size, v.spans...))
		if !slices.Equal(rec.Spans, v.want) || rec.Again != v.again || rec.Version() != VersionOf(v.of.Sum, rec.Whole()) {
			t.Errorf("view %d: got %+v, want %v, again %d", i, rec, v.want, v.again)
		}
	}
	if empty := ViewOf(0, Span{}); !empty.Whole() || !(*Record)(nil).See(disk.DigestOf(nil), disk.Stamp{}, empty).Whole() {
		t.Error("a view of an empty file does not show all of it")
	}
}

// After a difference was shown the new content is known as far as the old one was.
func TestAccept(t *testing.T) {
	t.Parallel()
	old, now := contentOf("one\ntwo\nthree\n"), contentOf("one\nTWO\nthree\n")
	changed := []Span{{4, 8}}
	for name, c := range map[string]struct {
		known *Record
		d     Difference
		want  []Span
	}{
		"all of it":             {nil, Difference{New: now.Bytes}, []Span{{0, 14}}},
		"a seen file":           {old.known(), Difference{Old: old.Bytes, New: now.Bytes}, []Span{{0, 14}}},
		"a part":                {old.known(Span{8, 14}), Difference{Old: old.Bytes, New: now.Bytes}, []Span{{4, 14}}},
		"by its version":        {nil, Difference{Was: VersionOf(old.Sum, true), Old: old.Bytes, New: now.Bytes}, []Span{{0, 14}}},
		"by that of a view":     {nil, Difference{Was: VersionOf(old.Sum, false), Old: old.Bytes, New: now.Bytes}, changed},
		"by that of another":    {nil, Difference{Was: VersionOf(now.Sum, true), Old: old.Bytes, New: now.Bytes}, changed},
		"unseen":                {nil, Difference{Old: old.Bytes, New: now.Bytes}, changed},
		"read again meanwhile":  {now.known(Span{0, 4}), Difference{Old: old.Bytes, New: now.Bytes}, []Span{{0, 8}}},
		"of an empty file":      {nil, Difference{Old: []byte{}, New: now.Bytes}, []Span{{0, 14}}},
		"to an empty file":      {old.known(), Difference{Old: old.Bytes, New: []byte{}}, nil},
		"where nothing differs": {old.known(Span{0, 4}), Difference{Old: old.Bytes, New: old.Bytes}, []Span{{0, 4}}},
	} {
		c.d.Path = "a"
		got := c.known.Accept(c.d)
		if got.Path != "a" || got.Hash != disk.DigestOf(c.d.New) || got.View != noView || !got.Stamp.Racy {
			t.Errorf("%s: the record is %+v", name, got)
		}
		if !slices.Equal(got.Spans, c.want) {
			t.Errorf("%s: got %v, want %v", name, got.Spans, c.want)
		}
	}
}

// What is known by its parts is known whole where all of them are in their places.
func TestOfAContent(t *testing.T) {
	t.Parallel()
	c := contentOf("one\ntwo\nthree\n")
	parts := func(spans ...Span) *Record {
		r := &Record{Size: c.Size}
		for _, s := range spans {
			p, err := partOf(t.Context(), bytes.NewReader(c.Bytes), s)
			if err != nil {
				t.Fatal(err)
			}
			r.Parts = append(r.Parts, p)
		}
		r.cover()
		return r
	}
	for now, want := range map[string]bool{
		"one\ntwo\nthree\n": true, "one\nTWO\nthree\n": true, "one\ntwo\nthree\nmore": true,
		"ONE\ntwo\nthree\n": false, "one\ntwo\n": false, "": false,
	} {
		r := parts(Span{0, 4}, Span{8, 14})
		got := r.Of(contentOf(now))
		if got.Hashed() != want || want && (got.Size != int64(len(now)) || !slices.Equal(got.Spans, r.Spans)) || !want && got != r {
			t.Errorf("%q: got %+v", now, got)
		}
	}
	if (*Record)(nil).Of(c) != nil {
		t.Error("nothing is known of a content, and something of this one")
	}
	if _, err := partOf(t.Context(), bytes.NewReader(c.Bytes), Span{8, 15}); !errors.Is(err, disk.ErrMoved) {
		t.Errorf("a part behind the end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := parts(Span{0, 4}).InPlace(ctx, bytes.NewReader(c.Bytes)); !errors.Is(err, context.Canceled) {
		t.Errorf("of a call that has ended: %v", err)
	}
}

// The parts that are remembered are the last ones, and what they cover is what was seen.
func TestSeeParts(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a")
	content := bytes.Repeat([]byte("0123456789"), maxParts)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size := int64(len(content))
	var rec *Record
	for i := range int64(maxParts + 3) {
		at := Span{9 * i, 9*i + 8}
		next, version, err := rec.SeeParts(t.Context(), file, disk.Stamp{Size: size}, ViewOf(size, at))
		if err != nil || version != (part{at, disk.DigestOf(content[at.From:at.To])}).version(size) {
			t.Fatalf("part %d: %s, %v", i, version, err)
		}
		rec = next
	}
	if len(rec.Parts) != maxParts || len(rec.Spans) != maxParts || rec.Spans[0].From != 27 || rec.Hashed() || rec.Whole() {
		t.Errorf("%d parts and %d spans are remembered, from %d on", len(rec.Parts), len(rec.Spans), rec.Spans[0].From)
	}
	head, err := HeadVersion(t.Context(), file, size)
	if want := (part{Span{0, size}, disk.DigestOf(content)}).version(size); head != want || err != nil {
		t.Errorf("the version of the head is %s, %v, want %s", head, err, want)
	}
	if empty, err := HeadVersion(t.Context(), file, 0); empty != VersionOf(disk.DigestOf(nil), true) || err != nil {
		t.Errorf("the version of the head of nothing is %s, %v", empty, err)
	}
}

// The same spans in another form are another view, of which what was seen adds up all the same.
func TestFormsAreOtherViews(t *testing.T) {
	t.Parallel()
	c := Content{Bytes: []byte("abc"), Size: 3, Sum: disk.DigestOf([]byte("abc"))}
	var rec *Record
	for i, v := range []struct {
		form  string
		again int
	}{{"", 0}, {"", 1}, {"lines", 0}, {"lines", 1}, {"", 0}} {
		rec = rec.See(c.Sum, disk.Stamp{Size: c.Size}, ViewOf(c.Size, Span{0, 2}).In(v.form))
		if rec.Again != v.again || rec.Whole() {
			t.Errorf("view %d: seen %d times before, want %d", i, rec.Again, v.again)
		}
	}
	if rec = rec.See(c.Sum, disk.Stamp{Size: c.Size}, ViewOf(c.Size, Span{2, 3}).In("lines")); !rec.Whole() {
		t.Error("views in several forms do not add up")
	}
}
