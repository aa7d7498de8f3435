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
	"codehand/tools/typing"
)

//go:embed run_shell.md
var runShellText string

type runShellInput struct {
	Command     string `json:"command" jsonschema:"bash command line" rule:"maxlen=100000"`
	Timeout     int    `json:"timeout,omitempty" jsonschema:"ms; default 120000, max 600000; jobs: max 2 h" rule:"min=1"`
	Description string `json:"description,omitempty" jsonschema:"in 5-10 words"`
	Background  bool   `json:"run_in_background,omitempty" jsonschema:"as a job; returns at once"`
	Terminal    bool   `json:"pty,omitempty" jsonschema:"with a terminal"`
	Sandbox     string `json:"sandbox,omitempty" jsonschema:"accepted if false or empty"`
	Unconfined  string `json:"dangerouslyDisableSandbox,omitempty" jsonschema:"accepted if false or empty"`
	Executable  string `json:"shellExecutable,omitempty" jsonschema:"accepted if false or empty"`

	danger string `json:"-"` // why a command with a terminal is dangerous; "": it is not

	moved []string `json:"-"` // files of protected names that git will want to change
}

// runShell promises nothing: a command can do anything, unless it is proved to change nothing.
func runShell(trees *changes.Trees) tool.Tool {
	return tool.Define(tool.Def[runShellInput]{
		Spec: tool.Spec{
			Name: "run_shell", Aliases: []string{"Bash"}, Title: "Run shell command", Description: runShellText,
			Hint: "run shell commands and background jobs", MaxRunes: 30_000, Scope: tool.ScopeShell,
			Family:    permission.FamilyBash,
			Card:      tool.Drawn,
			ForAgents: tool.ChangingAgents,
			Simple:    true,
			Elsewhere: []string{"bash", "shell", "exec", "execute", "run_shell_command", "terminal"},
			Advice: tool.Advice{
				Verb: "run", Rank: 80,
				Text: "Commit and push only when asked; the resource codehand://guide/tools says how.",
			},
			Example: `{"command":"touch made; sleep 600"}`,
			Finds:   []string{"Bash"},
		},
		Accept:    map[string]string{"cmd": "command", "timeout_ms": "timeout"},
		Hidden:    []string{"sandbox", "dangerouslyDisableSandbox", "shellExecutable"},
		Available: running.NoShell,
		Command:   func(in runShellInput) string { return in.Command },
		Weigh: func(s *session.State, in runShellInput, a *bash.Analysis) error {
			running.Weigh(s, a)
			a.Change(in.moved)
			keeping.Weigh(s, trees, a)
			if in.Terminal {
				a.Doubt("its terminal can be typed into")
			}
			return nil
		},
		Complete: func(ctx context.Context, s *session.State, in *runShellInput) error {
			in.moved = running.Moved(ctx, s, in.Command)
			if in.Terminal {
				in.Background = true
				in.danger = typing.Danger(s, in.Command)
			}
			return nil
		},
		Verdict: func(_ *session.State, in runShellInput) permission.Verdict {
			if in.danger != "" {
				return permission.Ask // no rule and no mode stands in for a person
			}
			return permission.Allow
		},
		Activity: func(in runShellInput) string { return running.Activity(in.Description, in.Command) },
		Check:    checkRunShell,
		Run: func(ctx context.Context, env tool.Env, in runShellInput) (tool.Result, error) {
			return runRunShell(ctx, env, trees, in)
		},
	})
}

func checkRunShell(in runShellInput) error {
	for _, v := range []string{in.Sandbox, in.Unconfined, in.Executable} {
		if v != "" && v != "false" {
			return tool.Invalid("run_shell", "no argument can change the sandbox or the shell; the operator sets them")
		}
	}
	if in.Command == "" || strings.ContainsRune(in.Command, 0) {
		return tool.Invalid("run_shell", `"command" must not be empty, nor contain a NUL character`)
	}
	if utf8.RuneCountInString(in.Description) > 200 {
		return tool.Invalid("run_shell", `"description" must have at most 200 characters`)
	}
	return nil
}

func runRunShell(ctx context.Context, env tool.Env, trees *changes.Trees, in runShellInput) (tool.Result, error) {
	timeout, clamped := runShellTimeout(env, in)
	terminal := typing.Size()
	if !in.Terminal {
		terminal = nil
	}
	job, o, err := running.Launch(ctx, env, trees, shell.Command{Text: in.Command, Timeout: timeout,
		Background: in.Background, Terminal: terminal})
	if err != nil {
		return tool.Result{}, err
	}
	o.Notes = append(o.Notes, clamped...)
	if in.Background {
		if in.Terminal {
			screen := typing.Opened(ctx, env, job.Info().ID, running.JobWait(env, true, runShellScreen))
			return o.Opened(job.Info(), screen), nil
		}
		return o.Started(job.Info()), nil
	}
	defer o.Watch.Drop()
	defer job.Release()
	info, err := o.Wait(ctx, job)
	if err == nil && info.State == shell.Running {
		lifetime := runShellLifetime
		if in.Timeout > 0 {
			lifetime = 0 // a deadline that was asked for stays
		}
		info = job.Detach(lifetime)
	}
	ctx = context.WithoutCancel(ctx) // what the command has printed is shown also to a call that was cancelled
	if info.State == shell.Running && err == nil {
		return o.Moved(ctx, info)
	}
	if tip := running.Tip(ctx, env, in.Command); tip != "" {
		o.Notes = append(o.Notes, tip)
	}
	return o.Ended(ctx, job, info, err)
}

// runShellLifetime is how long a job may run by default; runShellMost is the most that a caller may ask for.
const (
	runShellLifetime = 30 * time.Minute
	runShellMost     = 2 * time.Hour
)

// runShellScreen is how long a job with a terminal is waited for, in ms: most programs say something at once.
const runShellScreen = 3000

// runShellTimeout is the deadline of a command, or the lifetime of a job.
func runShellTimeout(env tool.Env, in runShellInput) (time.Duration, []string) {
	if in.Background {
		return running.Timeout(in.Timeout, runShellLifetime, runShellMost)
	}
	ms := time.Millisecond
	return running.Timeout(in.Timeout, time.Duration(env.Prefs.ShellDefaultMS)*ms,
		time.Duration(env.Prefs.ShellMaxMS)*ms)
}
