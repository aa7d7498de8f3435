package tools

import (
	"context"
	_ "embed"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/tools/bash"
	"codehand/tools/git/changes"
	"codehand/tools/keeping"
	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

//go:embed monitor.md
var monitorText string

type monitorInput struct {
	Description string `json:"description" jsonschema:"what it watches for, in 5-10 words" rule:"minlen=1 maxrunes=200"`
	Command     string `json:"command" jsonschema:"bash command line" rule:"maxlen=100000"`
	Timeout     int    `json:"timeout_ms,omitempty" jsonschema:"after which it is stopped; max 1800000" rule:"min=1 default=300000"`
	Filter      string `json:"filter,omitempty" jsonschema:"ripgrep syntax; lines without a match are no events" rule:"maxlen=10000"`

	moved []string `json:"-"` // files of protected names that git will want to change
}

// monitor is run_shell's job for a command whose lines are worth waking up for. It has run_shell's rules and hooks.
func monitor(trees *changes.Trees) tool.Tool {
	return tool.Define(tool.Def[monitorInput]{
		Spec: tool.Spec{
			Name: "monitor", Aliases: []string{"Monitor"}, Title: "Monitor command", Description: monitorText,
			Hint: "watch a command's output lines as events", Deferred: true, MaxRunes: 2000, Scope: tool.ScopeShell,
			Family:    permission.FamilyBash,
			Stands:    []string{"Bash", "run_shell"},
			Card:      tool.Drawn,
			ForAgents: tool.ChangingAgents,
			Elsewhere: []string{"bash", "shell", "execute", "run_shell", "run_shell_command", "terminal"},
			Example:   `{"description":"a file appears","command":"touch made; sleep 600"}`,
			Finds:     []string{"Monitor", "watch a log for errors", "stream events from a command"},
		},
		Accept:    map[string]string{"cmd": "command", "timeout": "timeout_ms"},
		Available: running.NoShell,
		Command:   func(in monitorInput) string { return in.Command },
		Weigh: func(s *session.State, in monitorInput, a *bash.Analysis) error {
			running.Weigh(s, a)
			a.Change(in.moved)
			keeping.Weigh(s, trees, a)
			return nil
		},
		Complete: func(ctx context.Context, s *session.State, in *monitorInput) error {
			in.moved = running.Moved(ctx, s, in.Command)
			return nil
		},
		Activity: func(in monitorInput) string { return running.Activity(in.Description, in.Command) },
		Check:    checkMonitor,
		Run: func(ctx context.Context, env tool.Env, in monitorInput) (tool.Result, error) {
			return runMonitor(ctx, env, trees, in)
		},
	})
}

func checkMonitor(in monitorInput) error {
	if in.Command == "" || strings.ContainsRune(in.Command, 0) {
		return tool.Invalid("monitor", `"command" must not be empty, nor contain a NUL character`)
	}
	if utf8.RuneCountInString(strings.TrimSpace(in.Description)) == 0 {
		return tool.Invalid("monitor", `"description" must not be blank`)
	}
	_, err := monitorFilter(in)
	return err
}

// monitorFilter is the filter of an input; nil: there is none.
func monitorFilter(in monitorInput) (shell.LineFilter, error) {
	if in.Filter == "" {
		return nil, nil
	}
	f, err := running.Filter(in.Filter)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// monitorMost is the longest that a monitor may run.
const monitorMost = 30 * time.Minute

func runMonitor(ctx context.Context, env tool.Env, trees *changes.Trees, in monitorInput) (tool.Result, error) {
	filter, err := monitorFilter(in)
	if err != nil {
		return tool.Result{}, err
	}
	timeout, clamped := running.Timeout(in.Timeout, monitorMost, monitorMost)
	job, o, err := running.Launch(ctx, env, trees, shell.Command{Text: in.Command, Timeout: timeout, Background: true,
		Monitor: &shell.Monitor{Filter: filter}})
	if err != nil {
		return tool.Result{}, err
	}
	o.Notes = append(o.Notes, clamped...)
	return o.Started(job.Info()), nil
}
