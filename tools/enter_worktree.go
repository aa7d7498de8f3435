package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/worktrees"
)

//go:embed enter_worktree.md
var enterWorktreeText string

type enterWorktreeInput struct {
	Name string `json:"name,omitempty" jsonschema:"of the new one; default: a random one" rule:"maxlen=64"`
	Path string `json:"path,omitempty" jsonschema:"instead: an existing one, as git worktree list has it" rule:"maxlen=4096"`
	// Stay makes one for a sub-agent, and leaves the session where it is.
	Stay bool `json:"stay,omitempty" jsonschema:"-"`
	// Own says that the session itself made the one at Path
	Own bool `json:"-"`
}

// enterWorktree is decided about as the command of git that it runs.
var enterWorktree = tool.Define(tool.Def[enterWorktreeInput]{
	Spec: tool.Spec{
		Name: "enter_worktree", Aliases: []string{"EnterWorktree"}, Title: "Enter work tree",
		Description: enterWorktreeText, Hint: "work in an isolated git worktree", Deferred: true, MaxRunes: 10_000,
		Scope: tool.ScopeShell, Family: permission.FamilyBash,
		Stands:    []string{"Bash", "run_shell"},
		ForAgents: tool.NoAgents,
		Example:   `{"name":"fix"}`,
		Finds:     []string{"EnterWorktree", "isolated git worktree", "new worktree"},
	},
	Hidden:    []string{"stay"},
	Available: running.NoBash,
	Command: func(in enterWorktreeInput) string {
		if in.Path != "" {
			return "git worktree list --porcelain"
		}
		return "git worktree add -b 'codehand/" + in.Name + "' '" + worktrees.Below + "/" + in.Name + "'"
	},
	Weigh: func(s *session.State, in enterWorktreeInput, a *bash.Analysis) error {
		running.Weigh(s, a)
		a.Settled = true
		return nil
	},
	Verdict: func(s *session.State, in enterWorktreeInput) permission.Verdict {
		if in.Path != "" && !in.Own {
			return permission.Ask // its files were not made by this session
		}
		return permission.Allow
	},
	Activity: func(in enterWorktreeInput) string { return "Entering work tree " + cmp.Or(in.Path, in.Name) },
	Check: func(in enterWorktreeInput) error {
		if in.Path != "" && (in.Name != "" || in.Stay) {
			return tool.Invalid("enter_worktree", `give "name" or "path", not both`)
		}
		if in.Name != "" {
			if why := worktrees.CheckName(in.Name); why != "" {
				return tool.Invalid("enter_worktree", fmt.Sprintf(`"name" takes %s`, why))
			}
		}
		return nil
	},
	Complete: func(ctx context.Context, s *session.State, in *enterWorktreeInput) (err error) {
		if in.Path != "" {
			in.Own, err = worktrees.Own(ctx, s, in.Path)
		} else if in.Name == "" {
			in.Name = worktrees.RandomName()
		}
		return err
	},
	Run: runEnterWorktree,
})

func runEnterWorktree(ctx context.Context, env tool.Env, in enterWorktreeInput) (tool.Result, error) {
	if env.Worktree != "" {
		return tool.Result{}, worktrees.There(env)
	}
	if in.Path != "" {
		at, err := worktrees.Known(ctx, env, env.Space.Abs(in.Path))
		if err == nil {
			err = worktrees.Enter(ctx, env, at)
		}
		return tool.Result{Text: fmt.Sprintf("Entered work tree %s. It is the current directory now.", at)}, err
	}
	at, made, err := worktrees.Make(ctx, env, in.Name)
	if err == nil && in.Stay {
		return tool.Result{Text: fmt.Sprintf("Made work tree %s on branch %s.", at, made.Branch)}, nil
	}
	if err == nil {
		err = worktrees.Enter(ctx, env, at)
	}
	return tool.Result{Text: fmt.Sprintf("Made and entered work tree %s on branch %s, from commit %.12s. It is the "+
		"current directory now: give paths in it. Call exit_worktree when done.", at, made.Branch, made.Base)}, err
}
