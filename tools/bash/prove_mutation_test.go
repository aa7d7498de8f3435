package bash

import (
	"strings"
	"testing"
)

// wrappers put a command (X) into other commands. Nothing that is not ReadOnly becomes so.
var wrappers = []string{
	"ls; X", "X; ls", "ls && X", "X && ls", "ls || X", "X || true", "ls | X", "X | cat", "ls | X | wc -l", "X |& cat", // lists and pipes
	"ls\nX", "X\nls", "ls # note\nX", "X # note", "! X", // lines, comments, negation
	"echo $(X)", `echo "$(X)"`, "echo `X`", "cat <(X)", "ls >(X)", "echo ${x:-$(X)}", "echo $((1+$(X)))", // substitutions
	"{ X; }", "{ X\n}", "(X)", "if X; then ls; fi", "if true; then X; fi", "case x in x) X;; esac", // compounds
	"for i in 1; do X; done", "while X; do ls; done", "until X; do ls; done", "for ((;;)); do X; done",
	"f() { X; }; f", "function f { X; }", "X &", "coproc X", "time X", // functions, background
	"A=1 X", "A=$(X) ls", "export A=$(X)", // assignments
	"X >/dev/null", "X 2>&1", "X >out", "X <a.txt", "cd src && X", "cat <<EOF\n$(X)\nEOF", "cat <<< \"$(X)\"", // redirections
	`[ -n "$(X)" ]`, `test "$(X)" = x`, `[[ $(X) ]]`,
}

// TestMutations puts every command of the corpora that is not ReadOnly into every wrapper.
func TestMutations(t *testing.T) {
	t.Parallel()
	if len(wrappers) < 33 {
		t.Errorf("%d wrappers, want 33", len(wrappers))
	}
	n := 0
	for _, name := range corpora {
		for _, r := range corpus(t, name) {
			if r.class == "readonly" || half(r.command) {
				continue
			}
			for _, w := range wrappers {
				n++
				command := strings.ReplaceAll(w, "X", r.command)
				if class, _ := newScript(command).prove(inRoot); class == ReadOnly {
					t.Errorf("%q is ReadOnly, in %q", r.command, command)
				}
			}
		}
	}
	t.Logf("%d mutations, 0 ReadOnly", n)
	if n < 11_000 {
		t.Errorf("%d mutations, want 11,000", n)
	}
}

// half says whether a row is not ReadOnly only because it is no whole command: a wrapper may make it one.
func half(command string) bool {
	c := strings.TrimSpace(command)
	return c == "" || c == "!" || strings.HasPrefix(c, "#") || strings.HasSuffix(c, "&&") || strings.HasSuffix(c, "||") || strings.HasSuffix(c, "|")
}
