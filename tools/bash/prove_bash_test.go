package bash

import (
	"context"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"codehand/filestate/leaktest"
)

// TestBashReadsTheSame has bash read every command of the corpora that is ReadOnly, with functions in the place of all
// commands that say with which words they were called. bash may leave out what stands behind `||`, but runs nothing that
// was not proved.
func TestBashReadsTheSame(t *testing.T) {
	t.Parallel()
	bash := needBash(t)
	dir := newRunWorkspace(t, bash).dir
	calls := 0
	for _, name := range corpora {
		for _, r := range leaktest.Some(4, corpus(t, name)) {
			if Analyze(r.command, inRoot).Class == ReadOnly {
				calls += sameInBash(t, bash, dir, r.command)
			}
		}
	}
	t.Logf("bash called %d commands, each as it was proved", calls)
	if calls < 125 {
		t.Errorf("bash called %d commands, want at least 125", calls)
	}
}

// sameInBash returns how many commands bash called for a text.
func sameInBash(t *testing.T, bash, dir, command string) int {
	t.Helper()
	proved := map[string]bool{}
	s := newScript(command)
	syntax.Walk(s.file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			var words strings.Builder
			for _, w := range spell(command, call.Args) {
				words.WriteString(w.text + "\x01")
			}
			proved[words.String()] = true
		}
		return true
	})
	var script strings.Builder
	script.WriteString("set -f; exec 9>&1\n_h() { local b; builtin printf -v b '%s\\x01' \"$@\"; builtin printf '%s\\x02' \"$b\" >&9; }\ncommand_not_found_handle() { _h \"$@\"; }\n")
	for _, name := range slices.Concat(slices.Collect(maps.Keys(provedNames())), []string{"git", "go", "find", "echo", "printf", "test", "[", "command",
		"node", "npm", "gcc", "clang", "make", "cmake", "bash", "ruby", "php", "python", "python3", "perl", "java"}) {
		script.WriteString(name + "() { _h " + name + " \"$@\"; }\n")
	}
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--noprofile", "--norc", "-c", script.String()+commandIn(dir, command))
	cmd.Dir, cmd.Env = dir, []string{"PATH=/nonexistent", "LANG=C.UTF-8"}
	out, _ := cmd.Output() // the status is that of the last command
	calls := 0
	for call := range strings.SplitSeq(strings.ReplaceAll(string(out), dir, "/proj"), "\x02") {
		if call == "" {
			continue
		}
		calls++
		if !proved[call] {
			t.Errorf("%q: bash calls %q, which was not proved", command, strings.Split(strings.TrimSuffix(call, "\x01"), "\x01"))
		}
	}
	if calls == 0 {
		t.Errorf("%q: bash calls nothing", command)
	}
	return calls
}
