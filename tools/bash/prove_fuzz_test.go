package bash

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

func FuzzAnalyze(f *testing.F) {
	for _, name := range corpora {
		for _, r := range corpus(f, name) {
			f.Add(r.command)
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		a := Analyze(command, inRoot)
		switch {
		case a.Class == ReadOnly && a.Why != "":
			t.Fatalf("ReadOnly, but %q", a.Why)
		case a.Class != ReadOnly && (len(a.Why) < 4 || a.Why[0] != 'R' || !isDigit(a.Why[1]) || a.Why[2] != ' ' && a.Why[2] != ':'):
			t.Fatalf("%v: %q does not begin with a rule", a.Class, a.Why)
		}
		if a.Class != ReadOnly {
			return
		}
		if len(command) > maxCommand || !utf8.ValidString(command) || strings.Contains(command, "\\\n") {
			t.Fatal("ReadOnly although R0 forbids it")
		}
		for _, r := range command {
			if r != '\n' && r != '\t' && r != ' ' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Z) { // C would hold what is not assigned, too
				t.Fatalf("ReadOnly with %U", r)
			}
		}
		for _, more := range []string{"\nrm x", "\n>out", "\n$x", "\nls &", "\n(ls)"} {
			if Analyze(command+more, inRoot).Class == ReadOnly {
				t.Fatalf("still ReadOnly with %q behind it", more)
			}
		}
		for _, around := range [][2]string{{"rm x\n", ""}, {"(", "\n)"}, {"{ ", "\n}"}, {"x=1 ", ""}, {"sudo ", ""}} {
			if Analyze(around[0]+command+around[1], inRoot).Class == ReadOnly {
				t.Fatalf("still ReadOnly within %q and %q", around[0], around[1])
			}
		}
		parts(t, command)
	})
}

// parts checks that each statement of a ReadOnly command, and all up to it, are ReadOnly, too.
func parts(t *testing.T, command string) {
	if strings.Contains(command, "<<") {
		return // the text of a here-document stands behind its statement
	}
	for _, stmt := range newScript(command).file.Stmts {
		end := stmt.End().Offset()
		for _, text := range []string{command[:end], command[stmt.Pos().Offset():end]} {
			if a := Analyze(text, inRoot); a.Class != ReadOnly {
				t.Fatalf("%q is %v: %s", text, a.Class, a.Why)
			}
		}
		syntax.Walk(stmt, func(node syntax.Node) bool {
			switch node.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.Assign, *syntax.FuncDecl:
				t.Fatalf("ReadOnly with %T", node)
			}
			return true
		})
	}
}
