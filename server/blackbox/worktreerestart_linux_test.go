package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A session that was in a git work tree when its server ended, or was killed right after the answer, is in it again, and
// leaves it as any other. One that was killed right after it left is not.
func TestWorktreeAfterRestart(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	const tree = ".codehand/worktrees/x"
	for _, action := range []string{"keep", "remove"} {
		p := newPlot(t)
		for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "n"}, {"config", "user.email", "e@x"},
			{"commit", "-q", "--allow-empty", "-m", "first"}} {
			cmd := exec.Command("git", append([]string{"-C", p.work}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		answer := func(s *replaytest.Spawned, name, args string) string {
			text, err := s.Call(name, json.RawMessage(args))
			must(t, err)
			return text
		}
		s := p.start()
		p.must(s, "enter_worktree", "name", "x")
		p.kill(s)
		s = p.start()
		p.must(s, "write_file", "file_path", "new.txt", "content", "new\n")
		p.end(s)
		s = p.start()
		if got := answer(s, "session_config", `{"key":"cwd"}`); !strings.Contains(got, tree) {
			t.Errorf("%s: after the restart: %s", action, got)
		}
		if got := answer(s, "enter_worktree", `{"name":"y"}`); !strings.HasPrefix(got, "! IN_WORKTREE: ") {
			t.Errorf("%s: %s", action, got)
		}
		if action == "remove" {
			if got := answer(s, "exit_worktree", `{"action":"remove"}`); !strings.HasPrefix(got, "! WORKTREE_DIRTY: ") {
				t.Errorf("what would be lost: %s", got)
			}
			p.must(s, "exit_worktree", "action", "remove", "discard_changes", true)
		} else {
			p.must(s, "exit_worktree", "action", "keep")
		}
		p.kill(s)
		s = p.start()
		_, err := os.Stat(filepath.Join(p.work, tree, "new.txt"))
		if kept := err == nil; kept != (action == "keep") {
			t.Errorf("%s: kept %t", action, kept)
		}
		if got := answer(s, "session_config", `{"key":"cwd"}`); strings.Contains(got, tree) {
			t.Errorf("%s: afterwards: %s", action, got)
		}
	}
}
