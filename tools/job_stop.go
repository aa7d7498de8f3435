package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

//go:embed job_stop.md
var jobStopText string

type jobStopInput struct {
	JobID string `json:"job_id" jsonschema:"id of the job"`
}

var jobStop = tool.Define(tool.Def[jobStopInput]{
	Spec: tool.Spec{
		Name: "job_stop", Aliases: []string{"TaskStop", "KillShell"}, Title: "Stop job", Description: jobStopText,
		Hint: "stop a background job", MaxRunes: 2000, Scope: tool.ScopeShell, Family: permission.FamilyNone,
		// Private and Ungated: it reaches only jobs of this session, which guard themselves.
		Traits:    tool.Traits{Private: true, Ungated: true, Idempotent: true, Local: true},
		ForAgents: tool.ChangingAgents,
		Example:   `{"job_id":"$JOB"}`,
		NoTargets: "a job is named, which no rule is about",
	},
	Accept:    map[string]string{"task_id": "job_id", "bash_id": "job_id", "shell_id": "job_id", "id": "job_id"},
	Available: running.NoShell,
	Activity:  func(in jobStopInput) string { return "Stopping " + in.JobID },
	Run:       runJobStop,
})

func runJobStop(ctx context.Context, env tool.Env, in jobStopInput) (tool.Result, error) {
	before, err := env.Shell.Await(ctx, in.JobID, time.Now())
	if err != nil {
		return tool.Result{}, running.JobRefusal(ctx, env, in.JobID, err)
	}
	info := before
	if before.State == shell.Running {
		info, err = env.Shell.Stop(ctx, in.JobID)
	}
	if errors.Is(err, shell.ErrElsewhere) {
		return tool.Result{},
			tool.Refuse(tool.Busy, "Job %s runs in another server process. Nothing was done. Try again.", in.JobID)
	}
	if err != nil {
		return tool.Result{}, running.JobRefusal(ctx, env, in.JobID, err)
	}
	running.Told(ctx, env.State, info)
	text := fmt.Sprintf("Stopped job %s (%s) after %s.", info.ID, running.JobLine(info), running.JobAge(info))
	if info.State != shell.Killed || before.State != shell.Running {
		text = fmt.Sprintf("Job %s (%s) had already ended: %s after %s.", info.ID, running.JobLine(info), info.Ended(),
			running.JobAge(info))
	}
	return tool.Result{Text: text, Meta: tool.Meta{Job: running.JobMeta(info)}}, nil
}
