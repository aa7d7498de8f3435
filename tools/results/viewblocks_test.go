package results

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		stack   Stack
		blocks  []string
		want    string
		partial string
		remarks []string
	}{
		{"all", Stack{}, []string{"a", "b\nc"}, "a\nb\nc", "", nil},
		{"asked", Stack{Asked: 1}, []string{"a", "b"}, "a", "", nil},
		{"place", Stack{First: 2, Asked: 1}, []string{"b", "c"}, "b", "", []string{"cells 2-2 of 3"}},
		{"hidden", Stack{}, []string{"\x1b", "\u202e\x00"}, "\\x1b\n\\u202e\\x00", "", []string{"3 characters are shown as escapes"}},
		{"lines", Stack{Form: Form{Lines: 3}}, []string{"a\nb", "c\nd"}, "a\nb", "PARTIAL view: cells 1-1 of 2 (limit: 3 lines). Continue with it.\n", nil},
		{"tokens", Stack{Tokens: 2}, []string{"abcd", "efgh"}, "abcd", "PARTIAL view: cells 1-1 of 2 (limit: 2 tokens). Continue with it.\n", nil},
		{"characters", Stack{Form: Form{Runes: 4}}, []string{"é", "é", "é"}, "é\né", "PARTIAL view: cells 1-2 of 3 (limit: 4 characters). Continue with it.\n", nil},
		{"JSON", Stack{Form: Form{JSON: 5}}, []string{"\t", "\t"}, "\t", "PARTIAL view: cells 1-1 of 2 (limit: 5 characters of JSON). Continue with it.\n", nil},
		{"bytes", Stack{Form: Form{Bytes: 4}}, []string{"é", "é"}, "é", "PARTIAL view: cells 1-1 of 2 (limit: 4 bytes). Continue with it.\n", nil},
		{"asked for more", Stack{Asked: 2, Form: Form{Runes: 2}}, []string{"a", "b"}, "a", "PARTIAL view: cells 1-1 of 2 (limit: 2 characters). Continue with it.\n", nil},
		{"nothing", Stack{}, nil, "", "", nil},
	} {
		s := c.stack
		s.Name, s.First = "cells", max(s.First, 1)
		s.Total = s.First - 1 + len(c.blocks)
		for _, b := range c.blocks {
			if !s.Add(b) {
				break
			}
		}
		if got := s.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if got := s.Partial("it"); got != c.partial {
			t.Errorf("%s: partial %q, want %q", c.name, got, c.partial)
		}
		if got := s.Remarks(s.First == 2); !slices.Equal(got, c.remarks) {
			t.Errorf("%s: remarks %q, want %q", c.name, got, c.remarks)
		}
	}
}

// A first block that is too large is cut, and what is cut is counted; nothing comes after it.
func TestStackCuts(t *testing.T) {
	t.Parallel()
	s := Stack{Name: "cells", First: 1, Total: 2, Form: Form{Runes: 100}}
	if !s.Add(strings.Repeat("é", 1<<20)) || s.Add("x") {
		t.Fatal("want the first block and no more")
	}
	text, mark, _ := strings.Cut(s.String(), "\n")
	if n := utf8.RuneCountInString(text); s.Cut != 1<<20-n || n < 30 || utf8.RuneCountInString(s.String()) > 100 {
		t.Errorf("%d characters are shown and %d cut", n, s.Cut)
	}
	if want := "... (truncated, " + Count(s.Cut) + " more characters)"; mark != want {
		t.Errorf("got %q, want %q", mark, want)
	}
}

// Whatever the blocks and the limits: the stack fits and is not empty.
func TestStackFits(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	alphabet := []string{"a", "é", "\u202e", "\xff", "😀", "\t", "\n", "long words of text "}
	for range 2000 {
		s := Stack{Name: "cells", First: 1, Total: 5, Form: Form{Runes: 80 + rng.IntN(400), Bytes: 240 + rng.IntN(900), JSON: 120 + rng.IntN(900)}, Tokens: 50 + rng.IntN(300)}
		for range 5 {
			var b strings.Builder
			for range rng.IntN(60) {
				b.WriteString(alphabet[rng.IntN(len(alphabet))])
			}
			if !s.Add(b.String()) {
				break
			}
		}
		got := s.String()
		_, quarters := weigh(got)
		if s.Blocks == 0 || utf8.RuneCountInString(got) > s.Form.Runes || len(got) > s.Form.Bytes || lengthInJSON(got) > s.Form.JSON || quarters > 4*s.Tokens || !utf8.ValidString(got) {
			t.Fatalf("seed %d: %d blocks, %d characters, %d bytes and %d quarters of a token in %+v and %d tokens",
				seed, s.Blocks, utf8.RuneCountInString(got), len(got), quarters, s.Form, s.Tokens)
		}
	}
}
