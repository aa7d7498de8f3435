package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/running"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/typing"
	"codehand/tools/wording"
)

//go:embed job_output.md
var jobOutputText string

type jobOutputInput struct {
	JobID   string `json:"job_id" jsonschema:"id of the job"`
	Block   bool   `json:"block,omitempty" jsonschema:"wait for the end, a monitor's event or a match of filter"`
	Timeout int    `json:"timeout_ms,omitempty" jsonschema:"longest wait" rule:"min=0 default=30000"`
	Filter  string `json:"filter,omitempty" jsonschema:"ripgrep syntax; only matching lines"`
}

var jobOutput = tool.Define(tool.Def[jobOutputInput]{
	Spec: tool.Spec{
		Name: "job_output", Aliases: []string{"TaskOutput", "BashOutput"}, Title: "Read job output",
		Description: jobOutputText, Hint: "read output of a background job", MaxRunes: 30_000, Scope: tool.ScopeShell,
		Family: permission.FamilyNone,
		// Ungated: it may wait for long, and changes only its own position
		Traits:    tool.Traits{ReadOnly: true, Ungated: true, Local: true},
		ForAgents: tool.AllAgents,
		Advice: tool.Advice{
			Rank: 60, With: []string{"run_shell"},
			Text: "Long commands belong in the background: run_in_background, then job_output.",
		},
		Example:   `{"job_id":"$JOB","block":true,"timeout_ms":600000}`,
		NoTargets: "a job is named, which no rule is about",
	},
	Accept: map[string]string{
		"task_id": "job_id", "bash_id": "job_id", "shell_id": "job_id", "id": "job_id", "timeout": "timeout_ms",
		"wait_ms": "timeout_ms",
	},
	Available: running.NoShell,
	Activity:  func(in jobOutputInput) string { return "Reading output of " + in.JobID },
	Check:     checkJobOutput,
	Run:       runJobOutput,
})

func checkJobOutput(in jobOutputInput) error {
	if in.Timeout > 600_000 || len(in.Filter) > 10_000 {
		return tool.Invalid("job_output", `"timeout_ms" must be at most 600000, and "filter" have at most 10000 bytes`)
	}
	if in.Filter == "" {
		return nil // an empty expression compiles, but not for nothing
	}
	_, err := running.Filter(in.Filter)
	return err
}

func runJobOutput(ctx context.Context, env tool.Env, in jobOutputInput) (tool.Result, error) {
	began, until := time.Now(), running.JobWait(env, in.Block, in.Timeout)
	if res, ok, err := jobScreen(ctx, env, in, until); ok || err != nil {
		return res, err
	}
	cursors, err := env.Cursors.Load(ctx)
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	var filter shell.LineFilter
	var matches func() bool
	if in.Filter != "" {
		if filter, err = running.Filter(in.Filter); err != nil {
			return tool.Result{}, err
		}
		matches = jobOutputMatches(ctx, env, in.JobID, cursors[in.JobID].At, filter)
	}
	info, err := running.Await(ctx, env, in.JobID, cursors[in.JobID].At, matches, until)
	if err != nil {
		return tool.Result{}, running.JobRefusal(ctx, env, in.JobID, err)
	}
	if cursors, err = env.Cursors.Load(ctx); err != nil { // another call may have read on meanwhile
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	max := 4 * env.Limit
	if filter != nil {
		max = jobOutputFiltered
	}
	c, err := env.Shell.Output(ctx, in.JobID, cursors[info.ID].At, max)
	if err != nil {
		return tool.Result{}, running.JobRefusal(ctx, env, in.JobID, err)
	}
	body, only := "(no new output)", ""
	if filter != nil {
		c, body, only = jobOutputFilter(c, filter)
	} else if c.Size > 0 {
		body = strings.TrimRight(running.ShownOutput(ctx, env, c, wording.Form(env, 500, 4)).Text, "\n")
	}
	text := jobOutputStatus(c) + only + jobOutputCut(in, c, began, until) + "\n" + body + c.Info.Missing()
	for _, note := range append(running.Troubles(c.Info), running.UnreachedNote(env, c), running.SaidLast(c.Info)) {
		if note != "" {
			text += "\n" + note
		}
	}
	if err := running.Consumed(ctx, env, cursors[info.ID], c); err != nil {
		text += "\n[the next call will show this output again]"
	}
	return tool.Result{Text: text, Meta: tool.Meta{Job: running.JobMeta(c.Info)}}, nil
}

// jobOutputCut says for the status that the call had to answer before its time was over; "": it did not.
func jobOutputCut(in jobOutputInput, c shell.Chunk, began, until time.Time) string {
	waited, wanted := max(until.Sub(began), 0), time.Duration(in.Timeout)*time.Millisecond
	if !in.Block || c.Info.State != shell.Running || time.Now().Before(until) || waited >= wanted {
		return ""
	}
	return fmt.Sprintf(", waited %s of %s, as long as this client may: call again", wording.Whole(waited),
		wording.Whole(wanted))
}

// jobScreen shows the screen of a job with a terminal; ok is false for any other, and where its server process is gone:
// then there is the output itself.
func jobScreen(ctx context.Context, env tool.Env, in jobOutputInput, until time.Time) (res tool.Result, ok bool,
	err error) {
	var filter shell.LineFilter
	if in.Filter != "" {
		if filter, err = running.Filter(in.Filter); err != nil {
			return res, false, err
		}
	}
	s, err := typing.LookAt(ctx, env, in.JobID, until, filter)
	switch {
	case errors.Is(err, shell.ErrNoScreen):
		return res, false, nil
	case err != nil:
		return res, false, running.JobRefusal(ctx, env, in.JobID, err)
	}
	return s.Result(ctx, env), true, nil
}

// jobOutputFiltered is how many bytes each of head and tail one filtered call looks through.
const jobOutputFiltered = 4 << 20

// jobOutputMatches returns what says, each time that it is asked, whether a line matches that a job printed since then,
// or since position after.
func jobOutputMatches(ctx context.Context, env tool.Env, id string, after int64, filter shell.LineFilter) func() bool {
	return func() bool {
		c, err := env.Shell.Output(ctx, id, after, jobOutputFiltered)
		if err != nil {
			return true // the call meets it, too
		}
		c, lines := matchingLines(c, filter)
		after = c.Next
		return len(lines) > 0
	}
}

// jobOutputFilter returns the lines that match, and says for the status how many these are.
func jobOutputFilter(c shell.Chunk, filter shell.LineFilter) (_ shell.Chunk, body, only string) {
	c, lines := matchingLines(c, filter)
	if len(lines) > 0 {
		only = fmt.Sprintf(", %d of them shown", len(lines))
	}
	if gap := c.Size - int64(len(c.Head)+len(c.Tail)); gap > 0 {
		where := "the whole output is in "
		if c.Gap > 0 {
			where = "what is kept of the output is in "
		}
		lines = append(lines, fmt.Sprintf("[%s in the middle were skipped without filtering; %s%s]",
			results.Size(gap), where, c.Info.Log))
	}
	if len(lines) == 0 {
		lines = []string{"(no new line matches)"}
	}
	return c, strings.Join(lines, "\n"), only
}

// matchingLines returns the lines that match. An unfinished last line of a running job is left for the next call, or a
// match in it could be missed.
func matchingLines(c shell.Chunk, filter shell.LineFilter) (shell.Chunk, []string) {
	if c.Info.State == shell.Running {
		last := &c.Head
		if c.Tail != "" {
			last = &c.Tail
		}
		if open := len(*last) - strings.LastIndexByte(*last, '\n') - 1; open < 64<<10 {
			*last = (*last)[:len(*last)-open]
			c.Size, c.Next = c.Size-int64(open), c.Next-int64(open)
		}
	}
	var lines []string
	for _, part := range []string{c.Head, c.Tail} {
		shown := strings.Split(running.Printed(c.Info, part), "\n")
		for line := range strings.Lines(results.Clean(part)) { // the same lines, as they match
			if filter.Match([]byte(line)) {
				lines = append(lines, shown[0])
			}
			shown = shown[1:]
		}
	}
	return c, lines
}

// jobOutputStatus says where the job is, and how much is new.
func jobOutputStatus(c shell.Chunk) string {
	lines := c.Lines
	if end := cmp.Or(c.Tail, c.Head); end != "" && !strings.HasSuffix(end, "\n") {
		lines++
	}
	if c.Info.Monitor {
		return running.JobState(c.Info) + ", " + wording.Plural(lines, "new event", "new events")
	}
	return running.JobState(c.Info) + ", " + wording.Plural(lines, "new line", "new lines")
}
