package programs

import (
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A mistake in the table would make its proofs worthless without a sign.
func TestTable(t *testing.T) {
	t.Parallel()
	if _, err := parse(sources()); err != nil {
		t.Fatal(err)
	}
	kinds := " path dir write put move link key archive text pattern filter script rev list number seconds format command " +
		"shell name setting printed condition asks "
	for _, p := range All() {
		switch {
		case p.Looked == "":
			t.Errorf("%s: no version that was looked at", p.Name)
		case p.Looked == "unseen" && (p.Reads || p.Edits):
			t.Errorf("%s: proved, and nobody looked at it", p.Name)
		}
		for _, o := range []Operands{p.Operands, p.Proved} {
			for _, kind := range []string{o.First, o.Kind} {
				if kind != "" && !strings.Contains(kinds, " "+kind+" ") {
					t.Errorf("%s: kind %q has no meaning", p.Name, kind)
				}
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no colon": "ls\n", "no column": "ls: 1\n -a\n", "no row": " proved -a\n", "token": "ls: 1\n proved x\n",
		"kind": "ls: 1\n proved --a=y\n", "two letters with a value": "ls: 1\n proved -ab=\n", "include": "ls: 1\n proved @x\n",
		"count": "ls: 1\n proved <path x>\n", "danger": "ls: 1\n danger D1 -x: y\n", "deep": "ls: 1\n deep -x\n", "trait": "ls: 1\n traits x\n", "letter": "ls: 1\n known -ä\n",
		"twice": "ls, ls: 1\n",
	} {
		if _, err := parse([]string{text}); err == nil {
			t.Errorf("%s: %q was read", name, text)
		}
	}
}
