package running

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/tools/sandbox"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Activity says which command is run, and what it does if the model says so.
func Activity(description, command string) string {
	if description == "" {
		return "Running " + command
	}
	return "Running " + command + " (" + description + ")"
}

// AnswerBy is when a call that began at start must answer although its command still runs; zero: never.
func AnswerBy(env tool.Env, start time.Time) time.Time {
	var until time.Time
	if ms := env.Prefs.ShellBackgroundMS; ms > 0 {
		until = start.Add(time.Duration(ms) * time.Millisecond)
	}
	by := env.AnswerBy
	if by.IsZero() {
		return until
	}
	if soon := start.Add(5 * time.Second); by.Before(soon) {
		by = soon // the wait for a turn has taken the rest, but a short command is still worth it
	}
	if until.IsZero() || by.Before(until) {
		return by
	}
	return until
}

// Wait returns when the command has ended, or when the call must answer; then it still runs.
func (o *Outcome) Wait(ctx context.Context, job *shell.Job) (shell.Info, error) {
	until := AnswerBy(o.Env, time.Now())
	w := newWatch(o.Env, job.Last)
	for {
		step := time.Now().Add(lookEvery)
		last := !until.IsZero() && !step.Before(until) && !o.asked.waits()
		if last {
			step = until
		}
		info, err := job.Wait(ctx, step)
		if info.State != shell.Running {
			w.end(info)
		}
		if err != nil || last || info.State != shell.Running {
			return info, err
		}
		w.look(info, time.Now())
	}
}

// carryCwd keeps the directory in which a command ended, for later calls, if it lies in a root. The answer says where
// the next command begins if that has changed, and after a failure wherever it is not where sessions begin: a model
// that has forgotten its cd takes what is not found there for missing.
func (o *Outcome) carryCwd(ctx context.Context, i shell.Info) {
	before := o.Env.Space.Cwd()
	if i.Cwd == "" || i.State != shell.Completed && i.State != shell.Failed {
		return
	}
	if i.Cwd == before {
		if roots := o.Env.Space.Roots(); i.State == shell.Failed && len(roots) > 0 && before != roots[0] {
			o.begins(before)
		}
		return
	}
	if o.Env.Space.Inside(i.Cwd) {
		_, err := o.Env.Cwd.Change(ctx, func(string) (string, error) { return i.Cwd, nil })
		if err == nil {
			o.begins(i.Cwd)
			return
		}
	}
	o.Notes = append(o.Notes, "Shell cwd was reset to "+before)
}

// begins notes where the next command begins, unless the answer says so already.
func (o *Outcome) begins(dir string) {
	said := func(note string) bool { return strings.HasSuffix(note, "Shell cwd was reset to "+dir+"]") }
	if !slices.ContainsFunc(o.Notes, said) {
		o.Notes = append(o.Notes, "[current directory: "+dir+"]")
	}
}

// asideNote tells which protected names appeared while a command ran; "": none did.
func asideNote(i shell.Info) string {
	if i.Aside == "" {
		return ""
	}
	note := fmt.Sprintf("[made under a protected name, and so renamed to NAME%sXXXXXX, links removed: %s. ",
		sandbox.Aside, i.Aside)
	switch heads, names := besideGit(i.Aside); {
	case names == 0:
		return note + "git would take the directory for a repository of its own, so no command makes that file " +
			"beside .git, and no setting opens it: use another name]"
	case heads > 0:
		return note + "mv back to NAME asks the user, who can also set permissions.unprotect, but for HEAD beside " +
			".git: use another name for that]"
	}
	return note + "mv back to NAME asks the user, who can also set permissions.unprotect]"
}

// besideGit counts those of the names, divided by commas, that are HEAD beside a `.git`, and the others. HEAD is no
// protected name, so no setting opens it.
func besideGit(aside string) (heads, others int) {
	for name := range strings.SplitSeq(aside, ", ") {
		dir, base := path.Split(filepath.ToSlash(name))
		if base == "HEAD" && path.Base(dir) != ".git" && !strings.Contains("/"+dir, "/.git/") {
			heads++
		} else {
			others++
		}
	}
	return heads, others
}

// Troubles are lines about what the sandbox took away of what a command made.
func Troubles(i shell.Info) (lines []string) {
	if note := asideNote(i); note != "" {
		lines = append(lines, note)
	}
	return append(lines, i.Configs...)
}

// leftovers notes what a command left behind: processes, and files that are not what the session has seen.
func (o *Outcome) leftovers(ctx context.Context, i shell.Info) {
	if i.Left > 0 {
		o.Notes = append(o.Notes, "["+wording.Plural(i.Left, "background process was", "background processes were")+
			" killed; use run_in_background to keep one]")
	}
	o.Notes = append(o.Notes, Troubles(i)...)
	if o.Watch == nil {
		return
	}
	if note := droppedNote(o.Watch.held); note != "" {
		o.Notes = append(o.Notes, note)
	}
	if note := lostNote(o.Env, o.Watch.held); note != "" {
		o.Notes = append(o.Notes, note)
	}
	o.changed(ctx, i)
}

// changed notes what a command has changed so far.
func (o *Outcome) changed(ctx context.Context, i shell.Info) {
	hint, found := o.Watch.hint(ctx, o.Env, i.Command)
	if hint != "" {
		o.Notes = append(o.Notes, hint)
	}
	for _, c := range found.Changes {
		o.files = append(o.files, changedFile{Path: c.Path, Op: string(c.Op), Why: c.Why, Files: c.Files})
	}
	o.record, o.recordCut = found.record()
}

// A commandData is what programs learn of a command.
type commandData struct {
	ExitCode     int    `json:"exitCode"`
	Signal       string `json:"signal,omitempty"`
	DurationMS   int64  `json:"durationMs"`
	StdoutBytes  int64  `json:"stdoutBytes"`
	StderrBytes  int64  `json:"stderrBytes"`
	TimedOut     bool   `json:"timedOut"`
	SandboxLevel int    `json:"sandboxLevel"`
	Class        string `json:"class"` // what the command line can do at most, as far as it is known
	Cwd          string `json:"cwd,omitempty"`
	Job          string `json:"job,omitempty"`

	Changed []changedFile `json:"changed,omitempty"` // in the git work tree, by whomever, while the command ran
}

// result is an answer with its last lines and what programs learn of it.
func (o *Outcome) result(i shell.Info, text string) tool.Result {
	text += i.Doubtful()
	if news := o.Confined.News; news != "" {
		o.Notes = append(o.Notes, news)
	}
	if o.last != "" {
		o.Notes = append(o.Notes, o.last)
	}
	if len(o.Notes) > 0 {
		text += "\n" + strings.Join(o.Notes, "\n")
	}
	d := commandData{
		ExitCode: i.Exit, Signal: i.Signal, StdoutBytes: i.Out, StderrBytes: i.Err, TimedOut: i.State == shell.TimedOut,
		SandboxLevel: int(o.Confined.Level), Class: o.Env.Analysis.Class.String(), Cwd: i.Cwd,
		Changed: o.files,
	}
	if !i.End.IsZero() {
		d.DurationMS = i.End.Sub(i.Start).Milliseconds()
	}
	meta := tool.Meta{Sandbox: &tool.Confinement{Level: int(o.Confined.Level), Gaps: o.Confined.Gaps}}
	if i.Background {
		d.Job, meta.Job = i.ID, JobMeta(i)
	}
	meta.Data, meta.Changed, meta.ChangedCut = wording.Data(d), o.record, o.recordCut
	return tool.Result{Text: text, Meta: meta}
}
