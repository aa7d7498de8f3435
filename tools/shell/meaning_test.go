package shell

import "testing"

func TestMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command string
		exit    int
		loud    bool
		want    string
	}{
		{command: "grep x a.txt", exit: 1, want: "no match"},
		{command: "cd src && rg foo | grep bar", exit: 1, want: "no match"},
		{command: "/usr/bin/grep -q 'a b' f; ", exit: 1, want: "no match"},
		{command: "git grep x", exit: 1, want: "no match"},
		{command: "git diff --exit-code", exit: 1, want: "files differ"},
		{command: "git push", exit: 1},
		{command: "diff a b", exit: 1, want: "files differ"},
		{command: "[ -f x ]", exit: 1, want: "false"},
		{command: "test -f x", exit: 1, want: "false"},
		{command: "find . -name x", exit: 1, loud: true, want: "incomplete"},
		// The first command of the list may be the one that failed.
		{command: "cd missing && grep x f", exit: 1, loud: true},
		{command: "grep x f", exit: 2},
		{command: "grep x f", exit: 0},
		{command: "grep x f && false", exit: 1},
		{command: "false; echo 'grep x'", exit: 1},
		{command: "! grep x f", exit: 1},
		{command: "grep $(cat p) f", exit: 1},
		{command: "grep \"$p\" f", exit: 1},
		{command: "grep x <<EOF\ngrep y\nEOF", exit: 1},
		{command: "false # grep x", exit: 1},
		{command: "grep 'x", exit: 1},
		{command: "grep x f &", exit: 1},
		{command: "grep a\\ b f", exit: 1},
		{command: "", exit: 1},
	} {
		if got := Meaning(c.command, c.exit, !c.loud); got != c.want {
			t.Errorf("Meaning(%q, %d, quiet %t) = %q, want %q", c.command, c.exit, !c.loud, got, c.want)
		}
	}
}
