package splices_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"codehand/filestate/splices"
)

// random makes a splice of a content.
func random(r *rand.Rand, content string) splices.Splice {
	from := r.IntN(len(content) + 1)
	to := from + r.IntN(min(9, len(content)-from)+1)
	var add strings.Builder
	for range r.IntN(6) {
		add.WriteByte("xyz\n"[r.IntN(4)])
	}
	return splices.Splice{At: int64(from), Line: strings.Count(content[:from], "\n"), Old: []byte(content[from:to]), New: []byte(add.String())}
}

// Splices that come one after the other, joined, make of the first content what they make one by one; turned around
// they make the first content again; read in pieces the new one is what it is in memory.
func TestJoined(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(33, 8))
	for range 5000 {
		var text strings.Builder
		for range r.IntN(60) {
			text.WriteByte("ab\n"[r.IntN(3)])
		}
		was := text.String()
		now := was
		var list splices.List
		for range 1 + r.IntN(6) {
			s := random(r, now)
			list = list.With(s)
			now = now[:s.At] + string(s.New) + now[int(s.At)+len(s.Old):]
			valid(t, was, list)
		}
		if got, ok := list.Apply([]byte(was)); !ok || string(got) != now {
			t.Fatalf("%q becomes %q by %+v, want %q", was, got, list, now)
		}
		back := list.Back()
		valid(t, now, back)
		if got, ok := back.Apply([]byte(now)); !ok || string(got) != was {
			t.Fatalf("%q becomes %q again by %+v, want %q", now, got, back, was)
		}
		if nothing := list.WithAll(back); nothing.Grows() != 0 {
			t.Fatalf("there and back is %+v", nothing)
		} else if got, ok := nothing.Apply([]byte(was)); !ok || string(got) != was {
			t.Fatalf("there and back, %q becomes %q", was, got)
		}
		if got, ok := list.Narrow().Apply([]byte(was)); !ok || string(got) != now {
			t.Fatalf("%q becomes %q by fewer lines of %+v, want %q", was, got, list, now)
		}
		read := list.Read(strings.NewReader(was), int64(len(was)))
		if read.Size() != int64(len(now)) {
			t.Fatalf("the new size is %d, want %d", read.Size(), len(now))
		}
		from := r.IntN(len(now) + 1)
		part := make([]byte, r.IntN(len(now)-from+3))
		n, err := read.ReadAt(part, int64(from))
		want := now[from:min(len(now), from+len(part))]
		if string(part[:n]) != want || (n < len(part)) != errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%q from %d on: got %q, %v, want %q", now, from, part[:n], err, want)
		}
	}
}

// valid says that each splice names what stands at its place, in which line, and does not touch the one before it.
func valid(t *testing.T, content string, l splices.List) {
	t.Helper()
	end := int64(-1)
	for _, s := range l {
		if s.At <= end || strings.Count(content[:s.At], "\n") != s.Line || !strings.HasPrefix(content[s.At:], string(s.Old)) {
			t.Fatalf("%+v does not fit %q", s, content)
		}
		end = s.At + int64(len(s.Old))
	}
}

// Around a difference three lines stay, and of a line without an end no more than it takes.
func TestNarrow(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("line\n", 1000)
	s := splices.Between([]byte(text+"old\n"+text), []byte(text+"new\n"+text))
	if s.At != 5*997 || s.Line != 997 || string(s.Old) != "line\nline\nline\nold\nline\nline\nline\n" || string(s.New) != "line\nline\nline\nnew\nline\nline\nline\n" {
		t.Errorf("%+v", s)
	}
	long := bytes.Repeat([]byte("x"), 1<<20)
	s = splices.Between(append(long[:len(long):len(long)], 'a'), append(long[:len(long):len(long)], 'b'))
	if string(s.Old) != "a" || string(s.New) != "b" || s.At != 1<<20 {
		t.Errorf("of a long line %d and %d bytes are kept", len(s.Old), len(s.New))
	}
}

// A content that is shorter than it was said to be ends where it ends.
func TestReadOfLess(t *testing.T) {
	t.Parallel()
	l := splices.List{{At: 2, Old: []byte("c"), New: []byte("CC")}}
	got, err := io.ReadAll(io.NewSectionReader(l.Read(strings.NewReader("abcd"), 10), 0, 11))
	if string(got) != "abCCd" || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", got, err)
	}
}
