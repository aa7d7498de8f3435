package seen

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// again repeats the random tests of an earlier run.
var again = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

func randoms(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *again
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestMoved(t *testing.T) {
	t.Parallel()
	// In these texts a capital letter is a byte that was seen, or in the second one that is covered.
	cases := []struct{ name, old, want string }{
		{"nothing changed", "ab|CD|", "ab|CD|"},
		{"insertion", "ab|CD|", "ab|X|CD|"},
		{"insertion at the end", "ab|CD|", "ab|CD|X|"},
		{"deletion of what was seen", "ab|CD|ef|", "ab|ef|"},
		{"deletion of what was not seen", "ab|CD|ef|", "CD|ef|"},
		{"change of a seen line", "ab|CD|ef|", "ab|CX|ef|"},
		{"change in a line that was not seen", "ab|cde|fg|", "ab|cXe|fg|"},
		{"the same change in several lines", "a1b|c1d|e1f|", "aXb|cXd|eXf|"},
		{"two changes far apart", "a|b|c|d|e|f|", "X|b|c|d|e|Y|"},
		{"an insertion and a deletion", "a|b|c|D|e|f|g|", "X|a|b|c|D|f|g|"},
		{"all is replaced", "ab|cd|", "X|Y|Z|"},
		{"a seen file grows", "AB|CD|", "AB|X|CD|"},
		{"nothing is left", "ab|CD|", ""},
		{"from nothing", "", "X|"},
	}
	for _, c := range cases {
		old, spans := decode(c.old)
		new, want := decode(c.want)
		if got := encode(new, moved(old, new, spans)); got != encode(new, want) {
			t.Errorf("%s: got %q, want %q", c.name, got, encode(new, want))
		}
	}
}

// decode makes a text and its coverage; the end of a line is covered if the byte before it is.
func decode(s string) (text []byte, spans []Span) {
	for i := range len(s) {
		c := s[i]
		if c == '|' {
			c = '\n'
		}
		if i > 0 && c == '\n' && 'A' <= s[i-1] && s[i-1] <= 'Z' || 'A' <= c && c <= 'Z' {
			spans = append(spans, Span{int64(i), int64(i + 1)})
		}
		text = append(text, bytes.ToLower([]byte{c})...)
	}
	return text, normal(spans, int64(len(s)))
}

func encode(text []byte, spans []Span) string {
	marks := bytes.Repeat([]byte("-"), len(text))
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			marks[i] = '+'
		}
	}
	return strings.ReplaceAll(string(text), "\n", "|") + " " + string(marks)
}

// TestMovedLines edits texts of different lines at random, line by line, so that it is known which
// line comes from where.
func TestMovedLines(t *testing.T) {
	t.Parallel()
	rng := randoms(t)
	for round := range 2000 {
		var old, new []byte
		var spans, want []Span
		fresh := 0
		add := func() {
			fresh++
			from := len(new)
			new = fmt.Appendf(new, "%c%d fresh\n", 'A'+rng.IntN(26), fresh)
			want = append(want, Span{int64(from), int64(len(new))})
		}
		for i := range rng.IntN(30) {
			line := fmt.Sprintf("%c%d/%d\n", 'a'+rng.IntN(26), i, rng.Uint32())
			seen := rng.IntN(2) == 0
			if seen {
				spans = append(spans, Span{int64(len(old)), int64(len(old) + len(line))})
			}
			old = append(old, line...)
			switch rng.IntN(10) {
			case 0: // deleted
			case 1: // replaced
				add()
			case 2: // one more before it
				add()
				fallthrough
			default:
				if seen {
					want = append(want, Span{int64(len(new)), int64(len(new) + len(line))})
				}
				new = append(new, line...)
			}
		}
		got := moved(old, new, normal(spans, int64(len(old))))
		if want := normal(want, int64(len(new))); !slices.Equal(got, want) {
			t.Fatalf("round %d:\nold  %q\nseen %v\nnew  %q\ngot  %v\nwant %v", round, old, spans, new, got, want)
		}
	}
}

func TestMovedOfLargeTexts(t *testing.T) {
	t.Parallel()
	old := bytes.Repeat([]byte("0123456789abcdef\n"), maxMoveBytes/17)
	new := bytes.ReplaceAll(old, []byte("7"), []byte("77"))
	if got := moved(old, new, []Span{{0, 17}}); isWhole(got, int64(len(new))) || !covers(got, Span{0, 8}) {
		t.Errorf("got %d ranges, want the beginning and not all", len(got))
	}
	if got := moved(old, new, wholeOf(int64(len(old)))); !isWhole(got, int64(len(new))) {
		t.Error("a file that was wholly seen is not any more")
	}
}

// Whatever changes, coverage is in order and within the new text, a wholly seen text stays so, nothing
// is lost where nothing changed, and nothing that was not seen is covered where nothing changed.
func FuzzMoved(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nx\nc\n"), int64(0), int64(2))
	f.Add([]byte(""), []byte("x"), int64(0), int64(0))
	f.Add([]byte("\n\n\n\n"), []byte("\n\n"), int64(1), int64(2))
	f.Fuzz(func(t *testing.T, old, new []byte, from, to int64) {
		spans := normal([]Span{{from, to}}, int64(len(old)))
		got := moved(old, new, spans)
		if again := normal(got, int64(len(new))); !slices.Equal(got, again) {
			t.Errorf("%v is not in order", got)
		}
		if isWhole(spans, int64(len(old))) && !isWhole(got, int64(len(new))) {
			t.Errorf("a wholly seen text became %v", got)
		}
		if same := moved(old, old, spans); !slices.Equal(same, spans) {
			t.Errorf("without a change %v became %v", spans, same)
		}
	})
}
