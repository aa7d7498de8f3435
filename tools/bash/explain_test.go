package bash

import (
	"fmt"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"sort -rk2 a -o b":         "write sort: -r proved; -k proved text; -o known path that it writes; a operand path",
		"git -C d log --output=x":  "write git log: -C proved directory; --output=x known path that it writes",
		"git log -p HEAD":          "readonly git log: -p proved; HEAD operand rev",
		"rm -rf x":                 "dangerous rm: -r danger D1; -f danger D1; x operand write",
		"timeout 5 ls -la; frob x": "write timeout: 5 operand text; ls -la command / write :",
	} {
		var got []string
		for _, e := range Explain(command, inRoot) {
			var words []string
			for _, w := range e.Words {
				words = append(words, strings.TrimSpace(strings.Join([]string{w.Text, w.Column, w.Means}, " ")))
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s: %s", e.Class, e.Row, strings.Join(words, "; "))))
		}
		if g := strings.Join(got, " / "); g != want {
			t.Errorf("%s:\ngot  %s\nwant %s", command, g, want)
		}
	}
}
