package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed job_list.md
var jobListText string

type jobListInput struct{}

var jobList = tool.Define(tool.Def[jobListInput]{
	Spec: tool.Spec{
		Name: "job_list", Title: "List jobs", Description: jobListText, Hint: "list background jobs and their state",
		Deferred: true, Scope: tool.ScopeShell, Family: permission.FamilyNone,
		// Ungated: a command that runs must not keep a client from seeing what else runs
		Traits:    tool.Traits{ReadOnly: true, Ungated: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Example:   `{}`,
		NoTargets: "it names nothing",
		Finds:     []string{"list jobs", "running background jobs"},
	},
	Available: running.NoShell,
	Activity:  func(jobListInput) string { return "Listing jobs" },
	Run:       runJobList,
})

// jobListAge is how long a job that has ended is listed; it can be read for a day.
const jobListAge = time.Hour

func runJobList(ctx context.Context, env tool.Env, _ jobListInput) (tool.Result, error) {
	all, err := env.Shell.List(ctx)
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	var runs, over []string
	older := 0
	for _, i := range all {
		switch {
		case i.State == shell.Running:
			runs = append(runs, fmt.Sprintf("%s %s: %s", i.ID, running.JobSum(i), running.JobLine(i)))
		case time.Since(i.End) <= jobListAge:
			over = append(over, fmt.Sprintf("%s finished: %s: %s", i.ID, running.JobSum(i), running.JobLine(i)))
		default:
			older++
		}
	}
	lines := append(runs, over...)
	if older > 0 {
		lines = append(lines, "["+wording.Plural(older, "job", "jobs")+" more ended over an hour ago]")
	}
	if len(lines) == 0 {
		lines = []string{"No jobs."}
	}
	return tool.Result{Text: strings.Join(lines, "\n")}, nil
}
