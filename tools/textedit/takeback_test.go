package textedit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// countedLines is a text of n lines.
func countedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func heads(before, after []byte) (all []string) {
	text, _ := Diff(before, after, 1<<20)
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "@@") {
			all = append(all, line)
		}
	}
	return all
}

// TestTakeBack: of two hunks one is taken back and the other stays, also where others wrote above, below and between;
// where they wrote into its lines, nothing is.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	before := countedLines(40)
	after := strings.NewReplacer("line 5\n", "five\n", "line 30\n", "thirty\nand more\n").Replace(before)
	heads := heads([]byte(before), []byte(after))
	if len(heads) != 2 {
		t.Fatal(heads)
	}
	replaced := func(s string, with ...string) string { return strings.NewReplacer(with...).Replace(s) }
	for name, c := range map[string]struct {
		now, head, want string
		err             error
	}{
		"first":        {after, heads[0], replaced(after, "five\n", "line 5\n"), nil},
		"second":       {after, heads[1], replaced(after, "thirty\nand more\n", "line 30\n"), nil},
		"above":        {"mine\n" + after, heads[1], "mine\n" + replaced(after, "thirty\nand more\n", "line 30\n"), nil},
		"between":      {replaced(after, "line 15\n", "x\ny\n"), heads[1], replaced(after, "line 15\n", "x\ny\n", "thirty\nand more\n", "line 30\n"), nil},
		"below":        {after + "mine", heads[1], replaced(after, "thirty\nand more\n", "line 30\n") + "mine", nil},
		"inside":       {replaced(after, "thirty\n", "THIRTY\n"), heads[1], "", ErrTouched},
		"beside":       {replaced(after, "line 4\n", "4\n"), heads[0], "", ErrTouched},
		"into":         {replaced(after, "and more\n", "and more\nmine\n"), heads[1], "", ErrTouched},
		"gone":         {"", heads[0], "", ErrTouched},
		"beyond":       {after, "@@ -90,2 +90,2 @@", "", ErrNoHunk},
		"no head":      {after, "-line 5", "", ErrNoHunk},
		"many digits":  {after, "@@ -99999999999999999999 +1 @@", "", ErrNoHunk},
		"before first": {after, "@@ -0,1 +0,1 @@", "", ErrNoHunk},
	} {
		got, err := TakeBack([]byte(before), []byte(after), []byte(c.now), c.head)
		if string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if got, err := TakeBack([]byte("one"), []byte("two\n"), []byte("two\nmine\n"), "@@ -1 +1 @@"); !errors.Is(err, ErrTouched) {
		t.Errorf("a last line without an end would be joined with another: %q, %v", got, err)
	}
}

// TestTakeBackAll: taking back all hunks of random changes, in any order, gives the text from before, byte for byte.
func TestTakeBackAll(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var was, is bytes.Buffer
		for i := range 1 + r.IntN(60) {
			line := fmt.Sprintf("%d\n", r.IntN(8)*i)
			if r.IntN(8) > 0 {
				was.WriteString(line)
			}
			if r.IntN(8) > 0 {
				is.WriteString(line)
			}
		}
		before, after := was.Bytes(), is.Bytes()
		now := after
		for _, head := range heads(before, after) {
			var err error
			if now, err = TakeBack(before, after, now, head); err != nil {
				break // equal lines may belong to either of two hunks: then nothing is guessed
			}
		}
		if hs := heads(before, after); len(hs) == 1 && !bytes.Equal(now, before) {
			t.Fatalf("%q to %q: %v gives %q", before, after, hs, now)
		}
	}
}

// TestTakeBackEach: with the hunks named that were taken back before, all hunks of random changes go back in any order,
// and give the text from before, byte for byte. What stands in between is what Without says.
func TestTakeBackEach(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		before, after := randomChange(r, 80)
		now, all, gone := after, heads(before, after), []string(nil)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, head := range all {
			next, err := TakeBack(before, after, now, head, gone...)
			gone = append(gone, head)
			left, lost := Without(before, after, gone...)
			if err != nil || lost != nil || !bytes.Equal(next, left) {
				t.Fatalf("%q to %q without %q: %v, %v, %q and %q", before, after, gone, err, lost, next, left)
			}
			now = next
		}
		if !bytes.Equal(now, before) {
			t.Fatalf("%q to %q: all of %q give %q", before, after, all, now)
		}
	}
}

func randomChange(r *rand.Rand, lines int) (before, after []byte) {
	var was, is bytes.Buffer
	for i := range 1 + r.IntN(lines) {
		line := fmt.Sprintf("%d\n", r.IntN(4)*i)
		if r.IntN(12) > 0 {
			was.WriteString(line)
		}
		if r.IntN(12) > 0 {
			is.WriteString(line)
		}
	}
	return was.Bytes(), is.Bytes()
}

// TestAround: of two changes, one after the other, the first goes back and the second stays; where they touch each other,
// nothing is guessed.
func TestAround(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after, now, want string
		err                      error
	}{
		"nothing else":  {"a\nb\n", "a\nB\n", "a\nB\n", "a\nb\n", nil},
		"below":         {"a\nb\nc\nd\n", "A\nA2\nb\nc\nd\n", "A\nA2\nb\nc\nD\nE\n", "a\nb\nc\nD\nE\n", nil},
		"above":         {"a\nb\nc\nd\n", "a\nb\nc\nD\n", "b\nc\nD\n", "b\nc\nd\n", nil},
		"between":       {"a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "A\nb\nd\nE\n", "a\nb\nd\ne\n", nil},
		"added at ends": {"b\n", "a\nb\n", "a\nb\nc\n", "b\nc\n", nil},
		"the same":      {"a\nb\n", "a\nB\n", "a\nb\n", "", ErrTouched},
		"beside":        {"a\nb\n", "a\nB\n", "A\nB\n", "", ErrTouched},
		"emptied":       {"a\nb\n", "a\nB\n", "", "", ErrTouched},
		"no last end":   {"a\nb\nc", "A\nb\nc", "A\nb\nc\n", "a\nb\nc\n", nil},
	} {
		got, err := Around([]byte(c.before), []byte(c.after), []byte(c.now))
		if string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
