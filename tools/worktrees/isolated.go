package worktrees

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// settleTime is how long it may take to find out what a sub-agent left, and to remove what it did not change.
const settleTime = time.Minute

// An Isolated is a work tree that was made for a sub-agent.
type Isolated struct {
	At         string
	Made       session.Worktree
	Repository string // the directory of git that knows it, outside of it
}

// A Making is the input of the tool that makes a work tree, as one that is made for a sub-agent has it.
type Making struct {
	Name string `json:"name"`
	Stay bool   `json:"stay"` // the session does not move there
}

// Isolate is the work tree of this name that the session made, for a sub-agent. It refuses one whose repository the
// session could not change itself.
func Isolate(ctx context.Context, env tool.Env, name string) (Isolated, error) {
	all, err := env.Isolated.Load(ctx)
	if err != nil {
		return Isolated{}, wording.StateFault(ctx, err)
	}
	at := ""
	for path, made := range all.Made {
		if made.Branch == branchPrefix+name {
			at = path
		}
	}
	made, own := all.Made[at]
	if !own {
		return Isolated{}, fmt.Errorf("the session made no work tree %s", name)
	}
	tree := Isolated{At: at, Made: made, Repository: filepath.Join(made.Top, ".git")}
	if info, err := os.Lstat(tree.Repository); err == nil && info.IsDir() {
		return tree, nil
	}
	tree.Repository = ""
	if env.Confine != nil && slices.Contains(env.Space.Roots(), made.Top) {
		tree.Repository = env.Confine.Common(made.Top)
	}
	if tree.Repository != "" {
		return tree, nil
	}
	_ = Remove(ctx, env, at, made) // nothing is in it, and it is noted in the session if it stays
	return Isolated{}, tool.Refuse(tool.ToolDisabled, "agent cannot isolate a sub-agent here: the repository of %s "+
		"lies elsewhere, where a sub-agent may change nothing. Call it without isolation.", made.Top)
}

// Settle removes the work tree of a sub-agent that has ended if it left nothing there. The text is a line for its
// report: where its changes are, how they are merged and how they are thrown away; or that there are none.
func (i Isolated) Settle(ctx context.Context, env tool.Env) (line string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	at, branch := wording.LineOf(results.Clean(i.At), 1000), i.Made.Branch
	files, commits, err := changed(ctx, env, i.At, i.Made, true)
	if err == nil && len(files)+len(commits) == 0 {
		if err = Remove(ctx, env, i.At, i.Made); err == nil {
			_ = forget(ctx, env, i.At) // a path that is gone opens nothing
			return "[it changed nothing: its work tree is removed]"
		}
	}
	if err != nil {
		return fmt.Sprintf("[its work tree %s on branch %s stays: %s]", at, branch,
			wording.LineOf(results.Clean(err.Error()), 300))
	}
	commit := ""
	if len(files) > 0 {
		commit = fmt.Sprintf("git -C %s add -A && git -C %s commit -m ..., then ", wordOf(at), wordOf(at))
	}
	return fmt.Sprintf("[its changes are in work tree %s on branch %s: %s, %s. To merge them: %sgit merge %s. To look "+
		"or throw them away: enter_worktree with that path; then exit_worktree with action remove and "+
		"discard_changes]", at, branch, wording.Plural(len(files), "uncommitted file", "uncommitted files"),
		wording.Plural(len(commits), "commit", "commits"), commit, branch)
}

// wordOf is a path as a shell takes it, quoted only where that is needed.
func wordOf(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+@%:,", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') &&
			(r < 'a' || r > 'z')
	}) {
		return quoted(path)
	}
	return path
}

// forget drops a work tree that is gone from what the session knows.
func forget(ctx context.Context, env tool.Env, at string) error {
	_, err := env.Isolated.Change(ctx, func(all session.Worktrees) (session.Worktrees, error) {
		left := map[string]session.Worktree{}
		for path, made := range all.Made {
			if path != at {
				left[path] = made
			}
		}
		all.Made = left
		return all, nil
	})
	keep(ctx, env)
	return err
}

// Left is a work tree of a sub-agent that has ended, for one that goes on there. It refuses one that is gone.
func Left(ctx context.Context, env tool.Env, at string) (Isolated, error) {
	all, err := env.Isolated.Load(ctx)
	if err != nil {
		return Isolated{}, wording.StateFault(ctx, err)
	}
	made, own := all.Made[at]
	if info, err := os.Lstat(at); !own || err != nil || !info.IsDir() {
		return Isolated{}, tool.Refuse(tool.ToolDisabled, "send_message is not available: the sub-agent worked in the "+
			"work tree %s, which is removed. Start another one with agent.", at)
	}
	return Isolated{At: at, Made: made}, nil
}

// Own says whether the session itself made the work tree at a path, or an earlier one of this workspace did, as where
// it is shows: only these tools make any there. The error is a refusal.
func Own(ctx context.Context, s *session.State, path string) (bool, error) {
	all, err := s.Isolated.Load(ctx)
	if err != nil {
		return false, wording.StateFault(ctx, err)
	}
	real, inside := s.Space.Resolve(s.Space.Abs(path))
	_, own := all.Made[real]
	ours := strings.HasSuffix(filepath.ToSlash(filepath.Dir(real)), "/"+Below)
	return inside && (own || ours), nil
}
