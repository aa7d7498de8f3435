package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/worktrees"
)

//go:embed exit_worktree.md
var exitWorktreeText string

type exitWorktreeInput struct {
	Action  string `json:"action" jsonschema:"keep or remove" rule:"enum=keep|remove"`
	Discard bool   `json:"discard_changes,omitempty" jsonschema:"remove also what is not committed or merged"`
}

// exitWorktree is decided about as the command of git that it runs.
var exitWorktree = tool.Define(tool.Def[exitWorktreeInput]{
	Spec: tool.Spec{
		Name: "exit_worktree", Aliases: []string{"ExitWorktree"}, Title: "Exit work tree",
		Description: exitWorktreeText, Hint: "leave or remove a git worktree", Deferred: true, MaxRunes: 10_000,
		Scope: tool.ScopeShell, Family: permission.FamilyBash,
		Stands:    []string{"Bash", "run_shell"},
		ForAgents: tool.NoAgents,
		Example:   `{"action":"keep"}`,
		Finds:     []string{"ExitWorktree", "leave worktree", "remove worktree"},
	},
	Available: running.NoBash,
	Command: func(in exitWorktreeInput) string {
		switch {
		case in.Action != "remove":
			return "git worktree list --porcelain"
		case in.Discard:
			return "git worktree remove --force ."
		}
		return "git worktree remove ."
	},
	Weigh: func(s *session.State, in exitWorktreeInput, a *bash.Analysis) error {
		running.Weigh(s, a)
		a.Settled = true
		return nil
	},
	Activity: func(in exitWorktreeInput) string { return "Leaving the work tree (" + in.Action + ")" },
	Run:      runExitWorktree,
})

func runExitWorktree(ctx context.Context, env tool.Env, in exitWorktreeInput) (tool.Result, error) {
	all, err := env.Isolated.Load(ctx)
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	if all.In == "" {
		return tool.Result{}, tool.Refuse(tool.NotInWorktree,
			"This session works in no work tree that enter_worktree moved into. There is nothing to leave.")
	}
	at := all.In
	made, own := all.Made[at]
	if in.Action == "keep" {
		back, err := worktrees.Leave(ctx, env, false)
		text := fmt.Sprintf("Left work tree %s, which stays. The current directory is %s.", at, back)
		if own {
			text = fmt.Sprintf("Left work tree %s, which stays with its branch %s. The current directory is %s.", at,
				made.Branch, back)
		}
		return tool.Result{Text: text}, err
	}
	if !own {
		return tool.Result{}, tool.Refuse(tool.NotInWorktree, "This session did not make %s, so it does not remove "+
			"it. Call exit_worktree with keep.", at)
	}
	if err := exitWorktreeClean(ctx, env, all, in.Discard); err != nil {
		return tool.Result{}, err
	}
	if err := worktrees.Remove(ctx, env, at, made); err != nil {
		return tool.Result{}, err
	}
	back, err := worktrees.Leave(ctx, env, true)
	return tool.Result{Text: fmt.Sprintf("Removed work tree %s and its branch %s. The current directory is %s.", at,
		made.Branch, back)}, err
}

// exitWorktreeClean refuses to remove a work tree with which something would be lost, or ends its jobs if that is
// wanted.
func exitWorktreeClean(ctx context.Context, env tool.Env, all session.Worktrees, discard bool) error {
	jobs, err := worktrees.Jobs(ctx, env, all.Entered)
	if err != nil {
		return err
	}
	if discard {
		for _, i := range jobs {
			if info, err := env.Shell.Stop(ctx, i.ID); err == nil {
				running.Told(ctx, env.State, info)
			}
		}
		return nil
	}
	lines, err := worktrees.Dirty(ctx, env, all.In, all.Made[all.In])
	if err != nil {
		return err
	}
	if len(jobs) > 0 {
		lines = append(lines, fmt.Sprintf("running jobs: %s", running.JobNames(ctx, env)))
	}
	if len(lines) == 0 {
		return nil
	}
	return tool.Refuse(tool.WorktreeDirty, "Nothing was removed: with %s these would be lost. Commit and merge them, "+
		"call exit_worktree with keep, or if the user agrees with discard_changes.\n%s", all.In,
		strings.Join(lines, "\n"))
}
