package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// jobRefusal answers an unknown job, which a foreign one also is, with the jobs that there are.
func jobRefusal(ctx context.Context, env tool.Env, id string, err error) error {
	if !errors.Is(err, shell.ErrUnknown) {
		return err
	}
	return tool.Refuse(tool.JobUnknown, "No job %s. Running: %s.", wording.Clip(id, 80), runningJobs(ctx, env))
}

// runningJobs names the session's running jobs.
func runningJobs(ctx context.Context, env tool.Env) string {
	infos, _ := env.Shell.List(ctx) // without a list the refusal is still right
	var names []string
	for _, i := range infos {
		if i.State == shell.Running {
			names = append(names, fmt.Sprintf("%s (%s)", i.ID, jobLine(i)))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// jobLine is a job's command as one short line.
func jobLine(i shell.Info) string {
	line, more, _ := strings.Cut(strings.TrimSpace(i.Command), "\n")
	if runes := []rune(line); len(runes) > 60 {
		line, more = string(runes[:60]), "more"
	}
	if more != "" {
		line += " …"
	}
	return results.Clean(line)
}

// jobAge is how long a job has run, or ran.
func jobAge(i shell.Info) string {
	if i.End.IsZero() {
		return results.Seconds(time.Since(i.Start))
	}
	return results.Seconds(i.End.Sub(i.Start))
}

// noShell says why a session has no commands; "": it has.
func noShell(s *session.State) string {
	if s.Shell == nil && s.Prefs.NoShell == "" {
		return "this server has no shell"
	}
	return s.Prefs.NoShell
}

// jobMeta is what programs learn of a job.
func jobMeta(i shell.Info) *tool.Job {
	return &tool.Job{ID: i.ID, State: string(i.State), Exit: i.Exit}
}

// consumed moves the session's position in a job's output from where it was to the end of c. A position never moves
// back, whichever of two calls at the same time is the last to say so.
func consumed(ctx context.Context, env tool.Env, was session.Cursor, c shell.Chunk) error {
	over := c.Info.State != shell.Running
	if c.Next <= was.At && (was.Announced || !over) {
		return nil
	}
	_, err := env.Cursors.Change(context.WithoutCancel(ctx), func(all map[string]session.Cursor) (map[string]session.Cursor, error) {
		if all == nil {
			all = map[string]session.Cursor{}
		}
		is := all[c.Info.ID]
		is.At = max(is.At, c.Next)
		is.Announced = is.Announced || over
		all[c.Info.ID] = is
		return all, nil
	})
	return err
}
