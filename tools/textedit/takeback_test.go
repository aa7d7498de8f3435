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
