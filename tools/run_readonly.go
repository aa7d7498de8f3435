package tools

import (
	"context"
	_ "embed"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed run_readonly.md
var runReadonlyText string

type runReadonlyInput struct {
	Command     string `json:"command" jsonschema:"bash command line" rule:"maxlen=10000"`
	Timeout     int    `json:"timeout,omitempty" jsonschema:"ms; default 60000, max 120000" rule:"min=1"`
	Description string `json:"description,omitempty" jsonschema:"what it does, 5-10 words"`
}

// runReadonly is a second shell because hints are static: clients run only what is always read-only side by side, and
// let only that through in their own plan modes.
var runReadonly = tool.Define(tool.Def[runReadonlyInput]{
	Spec: tool.Spec{
		Name: "run_readonly", Title: "Run read-only command", Description: runReadonlyText,
		Hint: "run shell commands that change nothing", MaxRunes: 30_000, Scope: tool.ScopeShell,
		Family:    permission.FamilyBash,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Local: true}, // Weigh refuses all else
		ForAgents: tool.AllAgents,
		Advice: tool.Advice{
			Rank: 30,
			Text: "For commands that change nothing, such as git log or git diff, use run_readonly.",
		},
		Example: `{"command":"sleep 60; ls"}`,
	},
	Hidden:    []string{"description"}, // what runs and changes nothing is shown as it is
	Accept:    map[string]string{"cmd": "command", "timeout_ms": "timeout"},
	Available: running.NoBash,
	Command:   func(in runReadonlyInput) string { return in.Command },
	Weigh: func(s *session.State, in runReadonlyInput, a *bash.Analysis) error {
		running.Weigh(s, a)
		if a.Contain(); a.Class == bash.ReadOnly {
			return nil
		}
		return running.NotReadOnly(in.Command, a.Reason())
	},
	Activity: func(in runReadonlyInput) string { return running.Activity(in.Description, in.Command) },
	Check:    checkRunReadonly,
	Run:      runRunReadonly,
})

func checkRunReadonly(in runReadonlyInput) error {
	if in.Command == "" || strings.ContainsRune(in.Command, 0) {
		return tool.Invalid("run_readonly", `"command" must not be empty, nor contain a NUL character`)
	}
	if utf8.RuneCountInString(in.Description) > 200 {
		return tool.Invalid("run_readonly", `"description" must have at most 200 characters`)
	}
	return nil
}

// The deadline of a command that only reads: the default, and the most.
const (
	runReadonlyPreset = 60 * time.Second
	runReadonlyMost   = 120 * time.Second
)

func runRunReadonly(ctx context.Context, env tool.Env, in runReadonlyInput) (tool.Result, error) {
	if err := running.StillReads(env, in.Command); err != nil {
		return tool.Result{}, err
	}
	confined, err := running.Confine(ctx, env, true, false, nil)
	if err != nil {
		return tool.Result{}, err
	}
	dir, notes, err := running.Dir(env)
	if err != nil {
		return tool.Result{}, err
	}
	timeout, early, more := runReadonlyTimeout(env, in)
	job, err := env.Shell.Start(ctx, shell.Command{Text: in.Command, Dir: dir, Timeout: timeout,
		Neutral: !env.Analysis.Held, Profile: confined.Profile, Level: confined.Level, Groups: confined.Groups,
		Spares: confined.Spares, Env: confined.Env, Serve: confined.Serve, Hold: confined.Hold})
	_ = dir.Close() // only a place to start from
	if err != nil {
		return tool.Result{}, wording.StartRefusal(err)
	}
	defer job.Release()
	alone := *env.State
	alone.Prefs.ShellBackgroundMS = 0 // it never becomes a job: it ends at its deadline
	env.State, env.AnswerBy = &alone, time.Time{}
	o := running.Outcome{Env: env, Confined: confined, Limit: timeout, Notes: append(notes, more...), Stays: true}
	info, err := o.Wait(ctx, job)
	if early && info.State == shell.TimedOut {
		o.Notes = append(o.Notes,
			"[this client does not wait longer; run_shell moves a long command to the background]")
	}
	if info.State == shell.Failed && info.Lines == 0 && shell.Meaning(info.Command, info.Exit, true) == "" {
		o.Notes = append(o.Notes, "[read-only here: files cannot be changed, and this command does not say what "+
			"failed; outside plan mode run_shell can change files]")
	}
	// what it has printed is shown also to a call that was cancelled
	return o.Ended(context.WithoutCancel(ctx), job, info, err)
}

// runReadonlyTimeout is the deadline of a command. It is early if the client will not wait for as long as was asked.
func runReadonlyTimeout(env tool.Env, in runReadonlyInput) (timeout time.Duration, early bool, notes []string) {
	most := min(runReadonlyMost, time.Duration(env.Prefs.ShellMaxMS)*time.Millisecond)
	timeout, notes = running.Timeout(in.Timeout, runReadonlyPreset, most)
	if env.AnswerBy.IsZero() {
		return timeout, false, notes
	}
	soon := max(time.Until(env.AnswerBy), 5*time.Second).Round(100 * time.Millisecond)
	if soon >= timeout {
		return timeout, false, notes
	}
	return soon, true, notes
}
