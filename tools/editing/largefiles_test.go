package editing

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"codehand/tools/textedit"
)

// Several edits of a large file make of it what they make of any file, and are told in the same lines; or they leave it
// to the way of any file. Hunks of a patch come one behind the other.
func TestEditsOfLargeFiles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(33, 7))
	text := func(n int, of ...string) string {
		var b strings.Builder
		for range n {
			b.WriteString(of[random.IntN(len(of))])
		}
		return b.String()
	}
	made, several := 0, 0
	for range 20_000 {
		content := text(random.IntN(90), "a", "b", "c", "d", "\n", "\n", "é")
		hunks := random.IntN(3) == 0
		var edits []textedit.Edit
		for range 1 + random.IntN(4) {
			e := textedit.Edit{Old: text(1+random.IntN(4), "a", "b", "c", "d", "\n", "x"), New: text(random.IntN(4), "x", "y", "\n", "a")}
			if lines := strings.SplitAfter(content, "\n"); hunks {
				at := random.IntN(len(lines))
				e.Old = strings.TrimSuffix(strings.Join(lines[at:min(len(lines), at+1+random.IntN(2))], ""), "\n")
				e.Hunk = &textedit.Hunk{}
			}
			if e.Old != e.New && e.Old != "" {
				edits = append(edits, e)
			}
		}
		one := edited{from: strings.NewReader(content), size: int64(len(content))}
		ok := len(edits) > 0
		for i := range edits {
			if ok {
				var err error
				if ok, err = one.edit(t.Context(), edits, i); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !ok {
			continue
		}
		want, report, err := textedit.Apply([]byte(content), edits)
		if err != nil {
			t.Fatalf("%+v of %q were made, and cannot be: %v", edits, content, err)
		}
		got, fits := one.list.Apply([]byte(content))
		if !fits || string(got) != string(want) {
			t.Fatalf("%+v of %q make %q, want %q", edits, content, got, want)
		}
		if !reflect.DeepEqual(one.report.Edits, report.Edits) {
			t.Fatalf("%+v of %q are reported as %+v, want %+v", edits, content, one.report.Edits, report.Edits)
		}
		if made++; len(edits) > 1 {
			several++
		}
	}
	if made < 500 || several < 100 {
		t.Errorf("only %d were made, %d of them of several edits", made, several)
	}
}
