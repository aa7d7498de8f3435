package lines_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/lines"
)

// again repeats the random tests of an earlier run.
var again = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

func randoms() (seed uint64, random *rand.Rand) {
	if seed = *again; seed == 0 {
		seed = rand.Uint64()
	}
	return seed, rand.New(rand.NewPCG(seed, 0))
}

// split is what Split does, by the standard library.
func split(content string) []string {
	return slices.DeleteFunc(strings.SplitAfter(content, "\n"), func(line string) bool { return line == "" })
}

// common is the length of a longest common subsequence: what a diff leaves out at most.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if row[j+1] = max(above, row[j]); a[i] == b[j] {
				row[j+1] = diagonal + 1
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// pairs checks that lines which are said to belong together are equal and in order, and counts them.
func pairs(t *testing.T, a, b []string) (n int) {
	t.Helper()
	names := &lines.Names{}
	old, now := strings.Join(a, ""), strings.Join(b, "")
	was, is := lines.Split([]byte(old), 0, len(old), names), lines.Split([]byte(now), 0, len(now), names)
	i, j := 0, 0
	for _, p := range lines.Aligned(was.Names, is.Names) {
		if p.A < i || p.B < j || p.N < 1 || p.A+p.N > len(a) || p.B+p.N > len(b) || !slices.Equal(a[p.A:p.A+p.N], b[p.B:p.B+p.N]) {
			t.Fatalf("%q and %q: %+v does not belong together", a, b, p)
		}
		i, j, n = p.A+p.N, p.B+p.N, n+p.N
	}
	return n
}

func sides(a, b string) (head, tail int) {
	head = lines.Prefix([]byte(a), []byte(b))
	return head, lines.Suffix([]byte(a[head:]), []byte(b[head:]))
}

// text makes up to 12 lines of that many words, some of them empty, the last one with or without an end.
func text(random *rand.Rand, words int) string {
	var b strings.Builder
	for range random.IntN(12) {
		b.WriteString(strings.Repeat("x", random.IntN(words)) + "\n")
	}
	if random.IntN(2) == 0 {
		b.WriteString("end")
	}
	return b.String()
}

// What is said of two contents is never better than the best that there is, and never worse than what both begin and end with.
func TestAgainstALongestCommonPart(t *testing.T) {
	t.Parallel()
	seed, random := randoms()
	for range 20_000 {
		words := 1 + random.IntN(12)
		old, now := text(random, words), text(random, words)
		a, b := split(old), split(now)
		head, tail := sides(old, now)
		added, removed := lines.Changed([]byte(old), []byte(now), head, tail)
		if best := common(a, b); removed < len(a)-best || added < len(b)-best {
			t.Fatalf("seed %d: %q and %q: +%d -%d, and a diff has +%d -%d", seed, old, now, added, removed, len(b)-best, len(a)-best)
		}
		n := pairs(t, a, b)
		if added != len(b)-n || removed != len(a)-n {
			t.Fatalf("seed %d: %q and %q: +%d -%d, and %d lines belong together", seed, old, now, added, removed, n)
		}
	}
}

// Where no line occurs twice, nothing is missed that keeps its order.
func TestAlignedOfLinesThatDiffer(t *testing.T) {
	t.Parallel()
	seed, random := randoms()
	some := func() (out []string) {
		for _, i := range random.Perm(14)[:random.IntN(15)] {
			out = append(out, string(rune('a'+i))+"\n")
		}
		return out
	}
	for range 20_000 {
		a, b := some(), some()
		if random.IntN(2) == 0 {
			slices.Sort(a)
		}
		if got, want := pairs(t, a, b), common(a, b); got != want {
			t.Fatalf("seed %d: %q and %q have %d lines in common, got %d", seed, a, b, want, got)
		}
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after  string
		added, removed int
	}{
		"nothing":                 {"a\nb\n", "a\nb\n", 0, 0},
		"both empty":              {"", "", 0, 0},
		"a new file":              {"", "a\nb\n", 2, 0},
		"no file any more":        {"a\nb", "", 0, 2},
		"an end of the last line": {"a\nb", "a\nb\n", 1, 1},
		"one line of three":       {"a\nb\nc\n", "a\nx\nc\n", 1, 1},
		"within a line":           {"a\nbefore\nc\n", "a\nbe-fore\nc\n", 1, 1},
		"the same line again":     {"a\na\n", "a\na\na\n", 1, 0},
		"two lines made one":      {"ab\ncd\n", "abcd\n", 1, 2},
		"one line made two":       {"abcd\n", "ab\ncd\n", 2, 1},
		"a line moved down":       {"a\nb\nc\n", "b\nc\na\n", 1, 1},
		"line ends":               {"a\nb\n", "a\r\nb\r\n", 2, 2},
		"no line end":             {"abc", "axc", 1, 1},
		"lines that were split":   {"x\nab", "x\na\nb", 2, 1},
		"bytes that are no text":  {"\xff\x00\nb\n", "\xfe\x00\nb\n", 1, 1},
	} {
		head, tail := sides(c.before, c.after)
		if added, removed := lines.Changed([]byte(c.before), []byte(c.after), head, tail); added != c.added || removed != c.removed {
			t.Errorf("%s: +%d -%d, want +%d -%d", name, added, removed, c.added, c.removed)
		}
	}
}

// A change of more lines than are compared was counted as one of 200,001.
func TestChangedOfManyLines(t *testing.T) {
	t.Parallel()
	const many = 2*lines.MaxLines + 7
	for name, c := range map[string]struct {
		before, after  string
		added, removed int
	}{
		"a new file":          {"", strings.Repeat("\n", many), many, 0},
		"its last line is":    {"", strings.Repeat("\n", many) + "x", many + 1, 0},
		"no file any more":    {strings.Repeat("\n", many), "", 0, many},
		"one line of many":    {strings.Repeat("a\n", many), strings.Repeat("a\n", many-1) + "b\n", 1, 1},
		"few instead of many": {"x\n" + strings.Repeat("a\n", many) + "y\n", "b\n", 1, many + 2},
		"as many as compared": {strings.Repeat("a\n", lines.MaxLines), "b\n", 1, lines.MaxLines},
	} {
		head, tail := sides(c.before, c.after)
		if added, removed := lines.Changed([]byte(c.before), []byte(c.after), head, tail); added != c.added || removed != c.removed {
			t.Errorf("%s: +%d -%d, want +%d -%d", name, added, removed, c.added, c.removed)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	names := &lines.Names{}
	content := []byte("skipped\na\n\na\nb")
	got := lines.Split(content, 8, len(content), names)
	if !slices.Equal(got.Names, []int{0, 1, 0, 2}) || !slices.Equal(got.Starts, []int{8, 10, 11, 13, 14}) {
		t.Errorf("got %+v", got)
	}
	if other := lines.Split([]byte("b\na\n"), 0, 4, names); !slices.Equal(other.Names, []int{3, 0}) {
		t.Errorf("b with its end and a are %v, want 3 and 0", other.Names)
	}
	if empty := lines.Split(content, 8, 8, names); len(empty.Names) != 0 || !slices.Equal(empty.Starts, []int{8}) {
		t.Errorf("no lines are %+v", empty)
	}
	many := bytes.Repeat([]byte("\n"), lines.MaxLines+5)
	if got := lines.Split(many, 0, len(many), names); len(got.Names) != lines.MaxLines+1 || len(got.Starts) != lines.MaxLines+2 {
		t.Errorf("%d lines and %d starts of too many", len(got.Names), len(got.Starts))
	}
}

// Contents are compared by blocks first: a difference on each side of their ends is found to the byte.
func TestPrefixAndSuffix(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 12_289} {
		same := bytes.Repeat([]byte("0123456789\n"), size/11+1)[:size]
		if p, s := lines.Prefix(same, same), lines.Suffix(same, same); p != size || s != size {
			t.Errorf("%d equal bytes: %d at the beginning, %d at the end", size, p, s)
		}
		for _, at := range []int{0, 1, 4095, 4096, 4097, 8191, 8192, size - 1} {
			if at < 0 || at >= size {
				continue
			}
			other := bytes.Clone(same)
			other[at] ^= 0x80
			if p, s := lines.Prefix(same, other), lines.Suffix(same, other); p != at || s != size-1-at {
				t.Errorf("byte %d of %d differs: %d at the beginning, %d at the end", at, size, p, s)
			}
			if p, s := lines.Prefix(same, other[:at]), lines.Suffix(same, other[at+1:]); p != at || s != size-1-at {
				t.Errorf("%d and %d bytes of %d: %d at the beginning, %d at the end", at, size-1-at, size, p, s)
			}
		}
	}
}

// Lines that are said to belong together are equal and in order, and what a change is said to add and remove is what the
// numbers of lines differ by.
func FuzzAligned(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n")
	f.Add("", "x")
	f.Add("\n\n\n\n", "\n\n")
	f.Add("a\nb\na\nc", "c\na\nb\na\n")
	f.Fuzz(func(t *testing.T, old, now string) {
		a, b := split(old), split(now)
		pairs(t, a, b)
		head, tail := sides(old, now)
		added, removed := lines.Changed([]byte(old), []byte(now), head, tail)
		if added < 0 || removed < 0 || added-removed != len(b)-len(a) {
			t.Errorf("%q and %q: +%d -%d of %d and %d lines", old, now, added, removed, len(b), len(a))
		}
	})
}
