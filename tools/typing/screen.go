package typing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/running"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/terminal"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A Screen is what a call shows of the terminal of a job.
type Screen struct {
	Info  shell.Info
	Lines int    // that left the screen since the session's last look
	Text  string // those lines, then the screen, or that it is as it was
	was   session.Cursor
	is    session.Cursor
}

// LookAt waits until a job with a terminal is quiet, at most until then, and looks at its screen; filter leaves only
// lines that match, nil: all. Errors are those of shell.TerminalOf, and the cause of ctx.
func LookAt(ctx context.Context, env tool.Env, id string, until time.Time, filter shell.LineFilter) (Screen, error) {
	job, term, err := shell.TerminalOf(ctx, env.Shell, id)
	if err == nil {
		err = job.AwaitQuiet(ctx, until)
	}
	if err != nil {
		return Screen{}, err
	}
	info := job.Info() // before the screen: if the job ends meanwhile, the caller comes again
	cursors, err := env.Cursors.Load(ctx)
	if err != nil {
		return Screen{}, wording.StateFault(ctx, err)
	}
	was := cursors[id]
	d := term.Display(was.At, was.Screen)
	s := Screen{Info: info, Lines: int(d.Missed) + len(d.Gone), was: was,
		is: session.Cursor{At: d.Next, Screen: d.Sum, Announced: was.Announced}}
	if filter != nil {
		s.Text = matching(append(d.Gone, d.Rows...), filter)
		return s, nil
	}
	var parts []string
	if d.Missed > 0 {
		parts = append(parts, fmt.Sprintf("[%s left the screen before these; the whole output is in %s]",
			wording.Plural(int(d.Missed), "line", "lines"), info.Log))
	}
	known := seenBefore(d)
	left := min(known, len(d.Gone))
	d.Gone = d.Gone[left:]
	rows := screenRows(d, known-left)
	if len(d.Gone) > 0 {
		all := results.Printed(strings.Join(fewer(d.Gone, info.Log), "\n"))
		gone := results.CutMiddle(all, min(maxGone, env.Limit-len([]rune(rows))-maxNotes))
		parts = append(parts, gone)
		if gone != all {
			parts = append(parts, "[the whole output is in "+info.Log+"]")
		}
	}
	s.Lines -= min(known, s.Lines)
	if d.Sum == was.Screen && d.Next == was.At {
		rows = "(screen unchanged)"
	}
	parts = append(parts, rows)
	if d.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("[%s were printed too fast to be drawn; the whole output is in %s]",
			results.Size(d.Skipped), info.Log))
	}
	s.Text = strings.Join(parts, "\n")
	return s, nil
}

const (
	// maxGone is the most characters of lines that left the screen in one answer: the screen is what counts.
	maxGone = 10_000
	// maxNotes is room for what else stands in an answer.
	maxNotes = 1000
)

// How many lines that left the screen one answer shows, of their beginning and of their end: what is cut by its number
// of lines would be kept in a file that has not all of them.
const (
	firstGone = 200
	lastGone  = 800
)

// fewer leaves out the middle of lines that left the screen.
func fewer(gone []string, log string) []string {
	left := len(gone) - firstGone - lastGone
	if left <= 0 {
		return gone
	}
	note := fmt.Sprintf("[%s that left the screen are not shown; the whole output is in %s]",
		wording.Plural(left, "line", "lines"), log)
	return slices.Concat(gone[:firstGone], []string{note}, gone[len(gone)-lastGone:])
}

// leastSeen is how many lines must be as they were so that they are left out.
const leastSeen = 3

// seenBefore is how many lines of those that left the screen, and of the screen behind them, the session has seen there
// when it looked last.
func seenBefore(d terminal.Display) int {
	if d.Alternate || d.Missed > 0 {
		return 0
	}
	now := slices.Concat(d.Gone, d.Rows)
	n := 0
	for n < min(len(now), len(d.Before)) && now[n] == d.Before[n] {
		n++
	}
	if n < leastSeen {
		return 0
	}
	return n
}

// screenRows is a line about the screen, and its rows behind the first ones, which the session has seen.
func screenRows(d terminal.Display, seen int) string {
	text := fmt.Sprintf("[screen %dx%d, ", d.Columns, d.Height)
	if d.Alternate {
		text += "full-screen program, "
	}
	if seen > 0 {
		text += fmt.Sprintf("rows 1-%d as before, ", seen)
		d.Rows = d.Rows[seen:]
	}
	if d.Hidden {
		text += "cursor hidden]"
	} else {
		text += fmt.Sprintf("cursor at row %d, column %d]", d.Row, d.Column)
	}
	if len(d.Rows) == 0 {
		return text
	}
	return text + "\n" + results.Printed(strings.Join(d.Rows, "\n"))
}

// matching are the lines that match, as they are shown.
func matching(all []string, filter shell.LineFilter) string {
	var found []string
	for _, line := range all {
		if filter.Match([]byte(line)) {
			found = append(found, results.Printed(line))
		}
	}
	if len(found) == 0 {
		return "(no new line matches)"
	}
	return strings.Join(found, "\n")
}

// Resize changes the size of the terminal of a job. Errors are refusals.
func Resize(ctx context.Context, env tool.Env, id string, columns, rows int) error {
	_, term, err := shell.TerminalOf(ctx, env.Shell, id)
	if err == nil {
		err = term.Resize(sandbox.Window{Columns: uint16(columns), Rows: uint16(rows)})
	}
	return Refusal(ctx, env.State, id, err)
}

// Size is that of a new terminal.
func Size() *sandbox.Window { return &sandbox.Window{Columns: 80, Rows: 24} }

// Opened is the screen of a job that has begun, as soon as it is quiet, at the latest until then; "": the call has
// ended, or the Store does not answer.
func Opened(ctx context.Context, env tool.Env, id string, until time.Time) string {
	s, err := LookAt(ctx, env, id, until, nil)
	if err != nil {
		return ""
	}
	return s.Text + s.Seen(ctx, env)
}

// Seen notes that the session has seen the screen; a line says that it could not be noted, "": it was.
func (s Screen) Seen(ctx context.Context, env tool.Env) string {
	over := s.Info.State != shell.Running
	if s.is == s.was && (s.was.Announced || !over) {
		return ""
	}
	_, err := env.Cursors.Change(context.WithoutCancel(ctx),
		func(all map[string]session.Cursor) (map[string]session.Cursor, error) {
			if all == nil {
				all = map[string]session.Cursor{}
			}
			is := s.is
			is.At = max(is.At, all[s.Info.ID].At)
			is.Announced = all[s.Info.ID].Announced || over
			all[s.Info.ID] = is
			return all, nil
		})
	if err != nil {
		return "\n[the next call will show this output again]"
	}
	return ""
}

// Result is a result that shows the screen.
func (s Screen) Result(ctx context.Context, env tool.Env) tool.Result {
	text := running.JobState(s.Info) + ", " + wording.Plural(s.Lines, "new line", "new lines") + "\n" + s.Text +
		s.Info.Missing()
	if notes := running.Troubles(s.Info); len(notes) > 0 {
		text += "\n" + strings.Join(notes, "\n")
	}
	return tool.Result{Text: text + s.Seen(ctx, env), Meta: tool.Meta{Job: running.JobMeta(s.Info)}}
}
