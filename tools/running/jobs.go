package running

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/search"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// JobRefusal answers an unknown job, which a foreign one also is, with the jobs that there are.
func JobRefusal(ctx context.Context, env tool.Env, id string, err error) error {
	if !errors.Is(err, shell.ErrUnknown) {
		return err
	}
	return tool.Refuse(tool.JobUnknown, "No job %s. Running: %s. Call job_list to see those that have ended.",
		wording.Clip(id, 80), JobNames(ctx, env))
}

// JobNames names the session's running jobs.
func JobNames(ctx context.Context, env tool.Env) string {
	infos, _ := env.Shell.List(ctx) // without a list the refusal is still right
	var names []string
	for _, i := range infos {
		if i.State == shell.Running {
			names = append(names, fmt.Sprintf("%s (%s)", i.ID, JobLine(i)))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// JobLine is a job's command as one short line.
func JobLine(i shell.Info) string {
	line, more, _ := strings.Cut(strings.TrimSpace(i.Command), "\n")
	if runes := []rune(line); len(runes) > 60 {
		line, more = string(runes[:60]), "more"
	}
	if more != "" {
		line += " …"
	}
	return results.Clean(line)
}

// JobAge is how long a job has run, or ran.
func JobAge(i shell.Info) string { return results.Seconds(i.Ran()) }

// JobSum is how a job ended, or that it runs, with its time and how much it printed: exit 0, 42 s, 310 lines.
func JobSum(i shell.Info) string {
	sum := i.How() + ", " + wording.Whole(i.Ran()) + ", "
	if i.Monitor {
		return sum + wording.Plural(i.Events, "event", "events")
	}
	return sum + wording.Plural(i.Lines, "line", "lines")
}

// NoShell says why a session has no commands; "": it has.
func NoShell(s *session.State) string {
	if s.Shell == nil && s.Prefs.NoShell == "" {
		return "this server has no shell"
	}
	return s.Prefs.NoShell
}

// NoBash says why a session has no commands that are proved to change nothing; "": it has. PowerShell is not read.
func NoBash(s *session.State) string {
	if why := NoShell(s); why != "" || s.Shell == nil {
		return why
	}
	if name := s.Shell.Dialect().PowerShell; name != "" {
		return "commands run in " + name + ", of which none is proved to be read-only; use run_shell"
	}
	return ""
}

// JobMeta is what programs learn of a job.
func JobMeta(i shell.Info) *tool.Job {
	return &tool.Job{ID: i.ID, State: string(i.State), Exit: i.Exit}
}

// Consumed moves the session's position in a job's output from where it was to the end of c. A position never moves
// back, whichever of two calls at the same time is the last to say so.
func Consumed(ctx context.Context, env tool.Env, was session.Cursor, c shell.Chunk) error {
	over := c.Info.State != shell.Running
	if c.Next <= was.At && (was.Announced || !over) {
		return nil
	}
	_, err := env.Cursors.Change(context.WithoutCancel(ctx),
		func(all map[string]session.Cursor) (map[string]session.Cursor, error) {
			if all == nil {
				all = map[string]session.Cursor{}
			}
			is := all[c.Info.ID]
			is.At, is.Events = max(is.At, c.Next), max(is.Events, c.Info.Events)
			is.Announced = is.Announced || over
			all[c.Info.ID] = is
			return all, nil
		})
	return err
}

// Filter compiles an expression of a model, of the syntax of searches. The error is a refusal.
func Filter(text string) (*search.LineFilter, error) {
	f, err := search.NewLineFilter(text)
	if bad, ok := errors.AsType[*search.PatternError](err); ok {
		return nil, wording.RegexRefusal(bad)
	}
	return f, err
}

// JobState says where a job is.
func JobState(i shell.Info) string {
	switch {
	case i.State == shell.Running:
		return "running for " + JobAge(i)
	case i.State == shell.Failed && i.Signal != "":
		return fmt.Sprintf("%s after %s, signal %s", i.State, JobAge(i), i.Signal)
	case i.State == shell.Completed, i.State == shell.Failed:
		return fmt.Sprintf("%s after %s, exit %d", i.State, JobAge(i), i.Exit)
	}
	return fmt.Sprintf("%s after %s", i.State, JobAge(i))
}

// JobWait is until when a call waits for a job; block false: not at all.
func JobWait(env tool.Env, block bool, ms int) time.Time {
	until := time.Now()
	if !block {
		return until
	}
	until = until.Add(time.Duration(ms) * time.Millisecond)
	if by := env.AnswerBy; !by.IsZero() && by.Before(until) {
		until = by
	}
	return until
}
