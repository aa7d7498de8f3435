package pattern

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/tools/search/pattern/patterntest"
)

func never() bool { return false }

// linesOf searches a buffer as search does.
func linesOf(m *Matcher, buf []byte) (out []string) {
	m.Begin(buf)
	for from := 0; ; {
		at, to, ok := m.Next(buf, from)
		if !ok {
			return out
		}
		out = append(out, fmt.Sprintf("%d-%d", at, to))
		from = to + 1
	}
}

// slowLines asks the threads, which are another way to run the same code, about each line by itself.
func slowLines(p *Program, buf []byte) (out []string) {
	v := NewMatcher(p, never).slow()
	at := 0
	for line := range bytes.SplitSeq(bytes.TrimSuffix(buf, []byte{'\n'}), []byte{'\n'}) {
		if _, ok := v.find(line, 0, true); ok && len(buf) > 0 {
			out = append(out, fmt.Sprintf("%d-%d", at, at+len(line)))
		}
		at += len(line) + 1
	}
	return out
}

// The automaton finds the lines that the threads find, with one lane and with four, with a table and without, and when
// the table is full all the time.
func FuzzLines(f *testing.F) {
	for i := range uint64(100) {
		f.Add(i, i%4 == 0, 40)
	}
	f.Fuzz(func(t *testing.T, seed uint64, fold bool, n int) {
		r := rand.New(rand.NewPCG(seed, 1))
		pattern := patterntest.Random(r, 3)
		p, err := New(pattern, fold, false, false)
		if err != nil {
			return
		}
		buf := patterntest.RandomText(r, min(max(n, 0), 400))
		checkLines(t, pattern, p, buf)
	})
}

func checkLines(t *testing.T, pattern string, p *Program, buf []byte) {
	t.Helper()
	want := slowLines(p, buf)
	same := func(how string, got []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%q %s: lines %v, the threads find %v, in %q", pattern, how, got, want, buf)
		}
	}
	same("with literals", linesOf(NewMatcher(p, never), buf))
	bare := *p
	bare.need = needles{}
	same("with a table", linesOf(NewMatcher(&bare, never), buf))
	small := NewMatcher(&bare, never)
	small.automaton().limit = 8 << 10
	same("with a table of eight states", linesOf(small, buf))
	none := NewMatcher(&bare, never)
	none.automaton().resting = 1 << 30
	same("without a table", linesOf(none, buf))
	for line := range bytes.SplitSeq(bytes.TrimSuffix(buf, []byte{'\n'}), []byte{'\n'}) {
		if len(buf) == 0 {
			break
		}
		_, ok := small.slow().find(line, 0, false)
		if small.Match(line) != ok {
			t.Errorf("%q on %q: the automaton says %v", pattern, line, !ok)
		}
	}
}

func TestLinesOfAwkwardText(t *testing.T) {
	t.Parallel()
	buf := []byte(patterntest.Awkward())
	for _, pattern := range patterntest.Patterns {
		p, err := New(pattern, false, false, false)
		if err != nil {
			t.Fatal(err)
		}
		checkLines(t, pattern, p, buf)
	}
}

// In multiline mode the automaton never hides a match, and the first match is that of the threads from the start.
func FuzzMultiline(f *testing.F) {
	for i := range uint64(100) {
		f.Add(i, i%4 == 0, 40)
	}
	f.Fuzz(func(t *testing.T, seed uint64, fold bool, n int) {
		r := rand.New(rand.NewPCG(seed, 2))
		pattern := patterntest.Random(r, 3)
		p, err := New(pattern, fold, false, true)
		if err != nil {
			return
		}
		text := patterntest.RandomText(r, min(max(n, 0), 400))
		m := NewMatcher(p, never)
		m.automaton().limit = 64 << 10
		for from := 0; from <= len(text); {
			want, ok := m.slow().find(text, from, false)
			got, found := m.FindMultiline(text, from, false)
			if ok != found || want != got {
				t.Fatalf("%q from %d: %v %v, the threads find %v %v, in %q", pattern, from, got, found, want, ok, text)
			}
			if from = got.To; got.From == got.To {
				_, size := utf8.DecodeRune(text[from:])
				from += max(size, 1)
			}
			if !ok {
				break
			}
		}
	})
}

// Where the dialects agree, Go's regexp finds the same lines.
func FuzzGo(f *testing.F) {
	for i := range uint64(100) {
		f.Add(i, i%4 == 0, 40)
	}
	f.Fuzz(func(t *testing.T, seed uint64, fold bool, n int) {
		r := rand.New(rand.NewPCG(seed, 3))
		pattern := patterntest.Random(r, 3)
		// Our "$" is before a CR, too, and Go folds ASCII's \w.
		if strings.Contains(pattern, "$") || fold && (strings.Contains(pattern, "[") || strings.Contains(pattern, `\w`) ||
			strings.Contains(pattern, `\W`)) {
			return
		}
		p, err := New("(?-u)"+pattern, fold, false, false)
		if err != nil {
			return
		}
		theirs := pattern
		if fold {
			theirs = "(?i)" + pattern
		}
		re, err := regexp.Compile(theirs)
		if err != nil {
			return
		}
		m := NewMatcher(p, never)
		for line := range bytes.SplitSeq(patterntest.RandomText(r, min(max(n, 0), 400)), []byte{'\n'}) {
			if !utf8.Valid(line) || bytes.IndexByte(line, '\r') >= 0 {
				continue
			}
			if got, want := m.Match(line), re.Match(line); got != want {
				t.Errorf("%q fold %v on %q: %v, Go says %v", pattern, fold, line, got, want)
			}
			if at := re.FindIndex(line); at != nil {
				if s, ok := m.slow().find(line, 0, false); !ok || s != (Span{at[0], at[1]}) {
					t.Errorf("%q fold %v on %q: %v %v, Go says %v", pattern, fold, line, s, ok, at)
				}
			}
		}
	})
}

// A pattern that needs a new state at almost every byte neither grows without bound nor repeats work: its table stays
// within its limit, and the steps of threads are few for each byte.
func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = "abcdefghijklmnop_ez"[r.IntN(19)]
		if i%4000 == 3999 {
			text[i] = '\n'
		}
	}
	text[len(text)-1] = '\n'
	for _, pattern := range []string{
		`[a-z_]*e[a-z_]{14}z\d`, `(?:a|b|c|ab|bc)*[ae].{40}\d`, `(\w{1,40}e){3}\d`, `(a+)+\d`, `(.*){9}\d`, `(a?){200}a{200}\d`,
		`(?i)\w*[é-\x{3000}e]\w{100}\d`, strings.Repeat("(a|b|[a-z]{3})", 60) + `\d`,
	} {
		p, err := New(pattern, false, false, false)
		if err != nil {
			t.Fatal(pattern, err)
		}
		polls := 0
		m := NewMatcher(p, func() bool { polls++; return false })
		m.automaton().limit = 256 << 10
		if got := linesOf(m, text); len(got) > 0 {
			t.Errorf("%s: %d lines, want none", pattern, len(got))
		}
		d := m.automaton()
		if most := d.limit + 64<<10 + 12*len(p.code.insts); d.size() > most {
			t.Errorf("%s: a table of %d bytes, want %d at most", pattern, d.size(), most)
		}
		if most := 2 * (len(text)>>20 + 1) * (len(p.code.insts) + 20); polls > most+len(text)/blockSize {
			t.Errorf("%s: %d polls of %d steps each, want %d at most", pattern, polls, pollSteps, most)
		}
	}
}

// A long line with a full table is read once.
func TestFullTableKeepsItsPlace(t *testing.T) {
	t.Parallel()
	p, err := New(`[a-z]*e[a-z]{11}z!`, false, false, false)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(9, 9))
	line := make([]byte, 200_000)
	for i := range line {
		line[i] = byte('a' + r.IntN(26))
	}
	copy(line[150_000:], "eabcdefghijkz!")
	m := NewMatcher(p, never)
	m.automaton().limit = 64 << 10
	if !m.Match(line) {
		t.Error("the match is lost when the table is full")
	}
	if m.automaton().fed > len(line) {
		t.Errorf("read %d bytes of a line of %d", m.automaton().fed, len(line))
	}
}

// What the automaton does is told to stop in the middle of a text, as threads are.
func TestAutomatonStops(t *testing.T) {
	t.Parallel()
	p, err := New(`(?:\w{100}-){9}é`, false, false, false)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	m := NewMatcher(p, func() bool { asked++; return asked == 3 })
	m.automaton().resting = 1 << 30
	if m.Match([]byte(strings.Repeat("a", 1<<20))) || asked != 3 {
		t.Errorf("asked %d times whether to stop, want to stop at the third", asked)
	}
}
