package hooks

import (
	"strings"
	"testing"
	"time"

	"codehand/tools/permission"
)

func TestMatcher(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		yes  string // spellings, divided by blanks
		no   string
	}{
		{"", "Bash run_shell anything", ""},
		{"*", "Bash run_shell anything", ""},
		{"Bash", "Bash", "bash BashOutput MyBash run_shell"},
		{"run_shell", "run_shell", "Bash"},
		{"Bash|Edit", "Bash Edit", "Bash|Edit MultiEdit"},
		{"Bash, Edit ,Write", "Bash Edit Write", "Read"},
		{"mcp__git-hub__push", "mcp__git-hub__push", "mcp__git-hub__pull"},
		{"Edit.*", "Edit MultiEdit EditX", "Read"},
		{"^Edit$", "Edit", "MultiEdit"},
		{"mcp__.*", "mcp__a__b", "Bash"},
		{"(?i)bash", "Bash BASH", "sh"},
		{"Notebook(Edit|Read)", "NotebookEdit", "Edit"},
	}
	for _, tt := range tests {
		m, err := newMatcher(tt.text)
		must(t, err)
		for _, s := range strings.Fields(tt.yes) {
			if !m.matches([]string{"other", s}) {
				t.Errorf("%q does not match %s", tt.text, s)
			}
		}
		for _, s := range strings.Fields(tt.no) {
			if m.matches([]string{s, "other"}) {
				t.Errorf("%q matches %s", tt.text, s)
			}
		}
	}
	for _, text := range []string{"Bash(", "|", " ", ", ,"} {
		if _, err := newMatcher(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// Which hooks run for a call: by matcher and condition, identical ones once.
func TestMatching(t *testing.T) {
	t.Parallel()
	h := func(matcher, condition string, command ...string) Hook {
		return Hook{Event: PreToolUse, Matcher: matcher, If: permission.Rule{Text: condition, Origin: "hooks.toml:3"}, Command: command}
	}
	tests := []struct {
		name    string
		hooks   []Hook
		command string
		want    string
	}{
		{"alias and name", []Hook{h("Bash", "", "a"), h("run_shell", "", "b"), h("Edit", "", "c")}, "ls", "a b"},
		{"identical", []Hook{h("Bash", "", "a", "1"), h("*", "", "a", "1"), h("", "", "a", "2")}, "ls", "a1 a2"},
		{"condition", []Hook{h("Bash", "Bash(git push *)", "a"), h("Bash", "Bash(ls *)", "b")}, "git push origin", "a"},
		{"part of a command", []Hook{h("Bash", "Bash(git push *)", "a")}, "cd x && git push origin", "a"},
		{"other command", []Hook{h("Bash", "Bash(git push *)", "a")}, "git status", ""},
		{"nobody understands it", []Hook{h("Bash", "Bash(git push *)", "a")}, "git 'push", "a"},
		{"of another tool", []Hook{h("Bash", "WebFetch(domain:x.org)", "a")}, "git 'push", ""},
	}
	for _, tt := range tests {
		r, err := New(Options{Hooks: tt.hooks})
		must(t, err)
		e := shellEvent(t, tt.command)
		e.Name = PreToolUse
		var got []string
		for _, h := range r.matching(e) {
			got = append(got, strings.Join(h.Command, ""))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %v run, want %s", tt.name, got, tt.want)
		}
	}
	// One that is waited for is not replaced by one that is not.
	both := []Hook{{Event: PreToolUse, Command: []string{"a"}, Async: true}, {Event: PreToolUse, Command: []string{"a"}}}
	r, err := New(Options{Hooks: both})
	must(t, err)
	e := shellEvent(t, "ls")
	e.Name = PreToolUse
	if got := r.matching(e); len(got) != 2 {
		t.Errorf("%d run", len(got))
	}
}

// A guard for `git push` was not told of a push whose words the shell puts together. It is now told of what may be one,
// and of nothing else: who blocks whatever he is told of must not block everything with a variable.
func TestConditionOfComputedWords(t *testing.T) {
	t.Parallel()
	for condition, commands := range map[string]map[string]bool{
		"Bash(git push *)": {
			"$(printf git) push x": true, "g=git; $g push x": true, "`echo git` push": true, "gi? push": true, "git $(echo push) x": true, `git "pu$x" y`: true,
			"timeout 5 $x": true, `bash -c "$x"`: true, "true && $x": true, "git push $x": true, `"$HOME/bin/tool" x`: true,
			"echo $x": false, "git status $x": false, "echo '$x'": false, "for i in 1 2; do echo $i; done": false, "X=$y git status": false, "ls *.go": false,
			"echo $(date)": false, "cat {a,b}": false,
		},
		// The name in the condition was compared with the tool's own names alone, though Bash means every tool that runs commands.
		"Bash(git pull *)":      {"run_readonly: git pull $x": true, "run_readonly: echo $x": false},
		"run_shell(git push:*)": {"$g push": true, "git $x": true, "git stash $x": false},
		"Bash(rm -rf build)":    {"rm -rf $d": true, "rm $x": true, "rm -r $x": false, "rmdir $x": false},
		"Edit(//x/**)":          {"$g push": false},
	} {
		for command, want := range commands {
			r, err := New(Options{Hooks: []Hook{{Event: PreToolUse, If: permission.Rule{Text: condition, Origin: "hooks.toml:3"}, Command: []string{"a"}}}})
			must(t, err)
			line, of := strings.CutPrefix(command, "run_readonly: ")
			e := shellEvent(t, line)
			if e.Name = PreToolUse; of {
				e.Tool, e.Aliases, e.Request.Tool, e.Request.Aliases = "run_readonly", nil, "run_readonly", nil
			}
			if got := len(r.matching(e)) == 1; got != want {
				t.Errorf("%s: %s: run %v", condition, command, got)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ok := []string{"guard"}
	for want, h := range map[string]Hook{
		`there is no event "PreToolUsed"; the events are PreToolUse, PermissionRequest,`: {Event: "PreToolUsed", Command: ok},
		`the command is empty`:                                {Event: PreToolUse},
		`command "./guard": give an absolute path, or a name`: {Event: PreToolUse, Command: []string{"./guard"}},
		`a hook has between 1 ms and 10m0s, not 11m0s`:        {Event: PreToolUse, Command: ok, Timeout: 11 * time.Minute},
		`a hook has between 1 ms and 10m0s, not -1s`:          {Event: PreToolUse, Command: ok, Timeout: -time.Second},
		`matcher: error parsing regexp`:                       {Event: PreToolUse, Command: ok, Matcher: "Bash("},
		`Bash(`:                                               {Event: PreToolUse, Command: ok, If: permission.Rule{Text: "Bash(", Origin: "hooks.toml:8"}},
	} {
		h.Origin = "hooks.toml:8"
		_, err := New(Options{Hooks: []Hook{h, {Event: "Stop", Command: ok, Origin: "hooks.toml:9"}}})
		if err == nil {
			t.Errorf("%+v was taken", h)
			continue
		}
		has(t, "the error", err.Error(), want)
		has(t, "the error", err.Error(), "hooks.toml:8: ")
		has(t, "the error", err.Error(), `hooks.toml:9: there is no event "Stop"`)
	}
	if _, err := New(Options{Classifier: []string{"bin/judge"}}); err == nil || !strings.Contains(err.Error(), "permissions.classifier") {
		t.Error(err)
	}
}
