package bash

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// hostileNames are what globs may match and links lead to.
var hostileNames = []string{"'x; touch made\n$(id)`id`", "-rf", "a b", "\"", "\\", "*", "~", "", "#x", "a=b", "&", "\xff", "{a,b}", "!x"}

// shapeOf is what a text runs, without its words: the programs, and what bash makes of other words than literal ones.
func shapeOf(t testing.TB, text string) (shape []string) {
	t.Helper()
	text = strings.ToValidUTF8(text, "?") // the parser takes no other
	s := newScript(text)
	if s.file == nil {
		t.Fatalf("%q does not parse: %v", text, s.err)
	}
	syntax.Walk(s.file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if name := n.Args[0].Lit(); name != "exit" {
				shape = append(shape, name)
			}
			for _, w := range n.Args {
				for _, part := range w.Parts {
					if lit, ok := part.(*syntax.Lit); ok && strings.ContainsAny(lit.Value, globs) && w.Lit() != "[" {
						shape = append(shape, "glob "+lit.Value)
					}
				}
			}
		case *syntax.CmdSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.Subshell, *syntax.FuncDecl:
			shape = append(shape, fmt.Sprintf("%T", n))
		case *syntax.Redirect:
			shape = append(shape, n.Op.String())
		case *syntax.BinaryCmd:
			if !strings.HasPrefix(text[n.Y.Pos().Offset():], "exit;") {
				shape = append(shape, n.Op.String())
			}
		}
		return true
	})
	return shape
}

// checkBind binds a command that is ReadOnly to the worst names, and to none.
func checkBind(t testing.TB, command string) {
	t.Helper()
	looked := 0
	bound, err := Bind(command, "/proj", func(dir string, w Word) (Found, error) {
		if looked++; !strings.HasPrefix(dir, "/") || w.Text == "" || w.Glob == "" && strings.ContainsAny(w.Glob, globs) {
			t.Fatalf("%q: looks from %q for %+v", command, dir, w)
		}
		f := Found{Words: hostileNames, More: hostileNames}
		if w.Look&Enters != 0 {
			f = Found{Words: []string{hostileNames[0]}, Dir: "/proj/x"}
		}
		if w.Glob == "" {
			f.Words = f.Words[:1]
		}
		return f, nil
	})
	if err != nil {
		return // it says why
	}
	want := slices.DeleteFunc(shapeOf(t, command), func(s string) bool { return strings.HasPrefix(s, "glob ") })
	if got := shapeOf(t, bound.Text); !slices.Equal(got, want) {
		t.Fatalf("%q: bound is %q, which runs %q, not %q", command, bound.Text, got, want)
	}
	same, err := Bind(command, "/proj", func(string, Word) (Found, error) { return Found{}, nil })
	if err == nil && looked == 0 && same.Text != command && !strings.ContainsAny(command, globs) {
		t.Fatalf("%q: nothing was looked for, but it is %q", command, same.Text)
	}
}

// Whatever files are called, and wherever links lead, a bound command runs what was proved, and no glob is left in it.
func TestBindCorpora(t *testing.T) {
	t.Parallel()
	bound := 0
	for _, name := range corpora {
		for _, r := range corpus(t, name) {
			if binds(r.command) {
				checkBind(t, r.command)
				bound++
			}
		}
	}
	if bound < 500 {
		t.Errorf("only %d commands were bound", bound)
	}
}

func FuzzBind(f *testing.F) {
	for _, name := range corpora {
		for _, r := range corpus(f, name) {
			f.Add(r.command)
		}
	}
	for _, command := range []string{"cd a && cat *", "! cd a 2>/dev/null; cat < b*", "cd a <<'E'\nE\ngrep -R x . | sort", "date --reference='a b'", "[ -f a* ]", "git -C a log -- *.go"} {
		f.Add(command)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if binds(command) {
			checkBind(t, command)
		}
	})
}

// binds says whether the server binds the command.
func binds(command string) bool {
	a := Analyze(command, inRoot)
	return a.Class == ReadOnly || a.IfBound
}

// A file named -toolexec=./x made `go list *` run ./x although it was called read-only: go's words stayed as globs.
func TestBindLeavesNoGlob(t *testing.T) {
	t.Parallel()
	commands := 0
	for name := range provedNames() {
		for _, words := range []string{"*", "*/x", "?x", "[a]", "x *", "-e *", "x*", "./*", "< ./*", "list *", "list */x", "list -e *", "list x*", "list ./*", "mod why *", "mod why x*", "doc *", "log *", "log -- *", "log -- ./*"} {
			command := name + " " + words
			if !binds(command) {
				continue
			}
			commands++
			checkBind(t, command)
			// what leads outside is not said to the command
			bound, err := Bind(command, "/proj", func(string, Word) (Found, error) { return Found{}, nil })
			if err == nil {
				t.Errorf("%s: a glob was left: %q", command, bound.Text)
			}
		}
	}
	if commands < 100 {
		t.Errorf("only %d commands were bound", commands)
	}
	for _, command := range []string{"go list *", "go list */x", "go list -e *", "go list ?x", "go list -- *", "go list x*", "go mod why *", "go mod why -m [a-z]*"} {
		if binds(command) {
			t.Errorf("%s: a name may be an option of go", command)
		}
	}
}

// From which directory a word is looked at: that in which the command runs, if it runs.
func TestBindDirectories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"cat f", "/w"},
		{"cd a && cat f", "/w/a"},
		{"cd a; cat f", "/w/a"},
		{"cd a\ncd b && cat f", "/w/a/b"},
		{"cd /w/b && cat f", "/w/b"},
		{"cd missing && cat f", ""},
		{"cd missing; cat f", "/w"},
		{"cd missing || cat f", "/w"},
		{"cd a || cat f", ""},
		{"cd a | cat f", "/w"},
		{"true | cd a; cat f", "/w"},
		{"! cd a || cat f", "/w/a"},
		{"cd missing && cd a; cat f", "/w"},
		{"ls && cd a; cat f", "/w/a /w"},
		{"ls && cd a && cat f", "/w/a"},
		{"cd missing || cd a; cat f", "/w/a"},
		{"cd a && cd missing; cat f", "/w/a"},
		{"cd a && ls | cat f", "/w/a"},
		{"git -C a log f", "/w/a"},
		{"git -C a -C b log f", "/w/a/b"},
		{"cd b && git -C a log f; cat f", "/w/b/a /w/b"},
	} {
		var from []string
		_, err := Bind(c.command, "/w", func(dir string, w Word) (Found, error) {
			switch {
			case w.Look&Enters == 0 && w.Text == "f":
				from = append(from, dir)
			case w.Look&Enters == 0:
			case w.Text == "missing":
				return Found{Words: []string{Nowhere + w.Text}}, nil
			case strings.HasPrefix(w.Text, "/"):
				return Found{Dir: w.Text}, nil
			default:
				return Found{Dir: dir + "/" + w.Text}, nil
			}
			return Found{}, nil
		})
		if got := strings.Join(from, " "); err != nil || got != c.want {
			t.Errorf("%s: f is looked for in %q, %v, want %q", c.command, got, err, c.want)
		}
	}
	_, err := Bind("ls && cd a; cat f", "/w", func(dir string, w Word) (Found, error) { return Found{Words: []string{dir}, Dir: "/w/a"}, nil })
	if err == nil {
		t.Error("a word that means one of two files is bound")
	}
}
