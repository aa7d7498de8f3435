package permission

import (
	"math/rand/v2"
	"strings"
	"testing"

	"codehand/tools/bash"
)

func TestMeets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, open string // a `?` of open is Any
		want       bool
	}{
		{"git push *", "git ?", true}, {"git push *", "git ? origin", true}, {"git push *", "? origin", true}, {"git push *", "git commit -m ?", false}, {"git push *", "git pu? x", true},
		{"git push *", "git pull?", false}, {"git push *", "?", true}, {"git push *", "cat ?", false}, {"rm *", "rm ?", true}, {"rm", "rm ?", true}, {"rm", "? rm", true}, {"rm x", "rm ? x", true}, {"rm x", "rmx?", false},
		{"* --force*", "git push ?", true}, {"* --force*", "git push", false}, {"*", "?", true}, {"git:*", "git ?", true}, {"docker run * -v *", "docker run ?", true}, {"docker run * -v *", "docker ps ?", false},
	} {
		if got := newGlob(c.rule).meets(strings.ReplaceAll(c.open, "?", string(bash.Any))); got != c.want {
			t.Errorf("%q and %q: %v", c.rule, c.open, got)
		}
	}
	if !newGlob("a").meets(strings.Repeat("b", maxOverlap+1)) {
		t.Error("a form that is too long is not compared, so it may be anything")
	}
}

// Whatever the shell makes of an open form, a rule that matches the outcome meets the form.
func TestMeetsAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	text := func(alphabet string, most int) string {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(b)
	}
	matched := 0
	for range 200_000 {
		rule, open := newGlob(text("ab *", 6)), strings.Trim(text("ab \x00", 6), " ")
		for strings.Contains(open, "\x00\x00") { // a word has one
			open = strings.ReplaceAll(open, "\x00\x00", "\x00")
		}
		var became strings.Builder
		for i := range len(open) {
			if open[i] == bash.Any {
				became.WriteString(text("ab ", 3))
			} else {
				became.WriteByte(open[i])
			}
		}
		line := strings.Join(strings.Fields(became.String()), " ") // an expansion that is empty leaves no blank
		if rule.match(line) {
			if matched++; !rule.meets(strings.Join(strings.Fields(open), " ")) {
				t.Fatalf("rule %q matches %q, but does not meet %q", rule.pieces, line, open)
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
}
