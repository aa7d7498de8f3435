package running

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/tools/confine"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// maxFailure is the most characters of output in the answer about a command that failed: the cause is rarely further
// away.
const maxFailure = 10_000

// An Outcome puts what became of a command into words. It is for one call and one goroutine.
type Outcome struct {
	Env   tool.Env
	Limit time.Duration // after which the command is ended
	Notes []string      // the last lines of the answer
	Stays bool          // the session's directory stays where it is, wherever the command went
	Watch *FileWatch    // of a command that may change files; nil: its changes are not listed
	asked *asker        // puts questions while it runs; nil: nobody can be asked
	// how far the kernel confines the command
	Confined confine.Command
	files    []changedFile // that changed, as far as they are told
	// the same, for the record of the call; recordCut: there are more, or they are not known
	record    []tool.FileChange
	recordCut bool
	last      string // the very last line of the answer; "": there is none
}

// Started answers a command that is a job from the start.
func (o *Outcome) Started(i shell.Info) tool.Result {
	text := fmt.Sprintf("Started job %s: %s\nOutput: %s\nRead new output with job_output, stop it with job_stop.", i.ID,
		JobLine(i), i.Log)
	return o.result(i, text)
}

// Opened answers a command that is a job with a terminal; screen is what that shows, "": it is not known.
func (o *Outcome) Opened(i shell.Info, screen string) tool.Result {
	text := fmt.Sprintf("Started job %s: %s\nType into it with job_input, see its screen with job_output, stop it "+
		"with job_stop.", i.ID, JobLine(i))
	if screen != "" {
		text += "\n" + screen
	}
	return o.result(i, text)
}

// Moved answers a command that has become a job because the call could not wait longer.
func (o *Outcome) Moved(ctx context.Context, i shell.Info) (tool.Result, error) {
	o.asked.end()
	o.slowBuild(time.Since(i.Start), false)
	c, err := o.Env.Shell.Output(ctx, i.ID, 0, 4*o.Env.Limit)
	if err != nil {
		return tool.Result{}, err
	}
	if err := Consumed(ctx, o.Env, session.Cursor{}, c); err != nil {
		o.Notes = append(o.Notes, "[job_output will show this output again]")
	}
	if o.Watch != nil {
		o.Watch.held.Leave()
		o.Notes = append(o.Notes, keptNotes(o.Watch.held)...)
		o.Watch.held = nil // it stays in the journal: the command goes on
	}
	if o.Watch != nil && o.Watch.span != nil {
		o.changed(ctx, i)
		o.Notes = append(o.Notes, "[files that it changes from now on are not listed, nor covered by undo_change]")
	}
	ends := ""
	if o.Limit > 0 {
		ends = ", where its timeout of " + wording.Whole(o.Limit) + " holds"
	}
	text := fmt.Sprintf("Still running after %s; moved to the background as %s%s. Output so far below, more with "+
		"job_output.\n", JobAge(i), i.ID, ends)
	return o.result(i, text+printed(ShownOutput(ctx, o.Env, c, o.form()).Text)+c.Info.Missing()), nil
}

// Ended answers a command that is over. stopped is why the call ended it, if it did.
func (o *Outcome) Ended(ctx context.Context, job *shell.Job, i shell.Info, stopped error) (tool.Result, error) {
	dir := i.Cwd
	if o.Stays {
		i.Cwd = ""
	}
	o.carryCwd(ctx, i)
	o.leftovers(ctx, i)
	o.slowBuild(i.End.Sub(i.Start), i.State == shell.TimedOut)
	if i.State == shell.Failed && stopped == nil {
		if meaning := shell.Meaning(i.Command, i.Exit, i.Err == 0); meaning != "" {
			o.Notes = append([]string{"[exit code 1: " + meaning + "]"}, o.Notes...)
		} else {
			if line := withheldLine(o.Env.Analysis, o.Env.Shell.Withheld()); line != "" {
				o.Notes = append(o.Notes, line)
			}
			return o.failed(ctx, job, i)
		}
	}
	if err := o.refused(ctx, i); err != nil {
		return tool.Result{}, err
	}
	c, err := o.whole(ctx, i)
	if err != nil {
		return tool.Result{}, err
	}
	said := c.Head + c.Tail
	for _, line := range []string{o.unmet(said, i.State == shell.Failed), o.unfetched(said)} {
		if line != "" && !slices.Contains(o.Notes, line) {
			o.Notes = append(o.Notes, line)
		}
	}
	shown := boundOutput(o.Env, c, o.form())
	var kept *tool.Kept
	if f, ok := o.fold(ctx, i, c.Size, o.form()); ok {
		kept = o.keep(job, &c)
		shown.Text = foldedText(f, c.Info.Log)
	} else if shown.Cut {
		kept = o.keep(job, &c)
		shown = ShownOutput(ctx, o.Env, c, o.form()) // with the path that it has now
	}
	text := printed(shown.Text)
	res := o.result(i, text)
	res.Meta.Kept = kept
	res.Saw = o.sight(c, dir, text)
	head := ""
	switch {
	case stopped != nil:
		res.Failed, head = tool.Interrupted, "Tool execution cancelled by user. The command was killed. Output so far:"
	case i.State == shell.TimedOut:
		res.Failed, head = tool.Timeout,
			fmt.Sprintf("Command timed out after %gs. Its processes were killed. Output so far:", o.Limit.Seconds())
	case i.State == shell.Overflow:
		res.Failed, head = tool.OutputLimit,
			"The command wrote too much output and was killed. Redirect its output to a file. Output so far:"
	case i.State != shell.Completed && i.State != shell.Failed:
		res.Failed, head = tool.CommandFailed, fmt.Sprintf("Command failed (%s). Output so far:", i.State)
	}
	if head != "" {
		res.Text = string(res.Failed) + ": " + head + "\n" + res.Text
	}
	return res, nil
}

// memoryLine says that the kernel ended a command that needed too much memory, and what helps.
func memoryLine(limit int64) string {
	return fmt.Sprintf("the kernel ended it because it and what it started needed more than %d MiB of memory. Let "+
		"it work on less at a time, such as fewer parallel jobs (make -j2, go test -p 1) or a part of the data; the "+
		"operator can raise sandbox.memory", limit>>20)
}

// crowdLine says that a command could not start a process, and what helps.
func crowdLine(limit int) string {
	return fmt.Sprintf("[a process or thread of this command could not be started: it may have %d at once; use fewer "+
		"parallel jobs, or the operator can raise sandbox.processes]", limit)
}

// failed answers a command with an exit code that is no answer, or a signal.
func (o *Outcome) failed(ctx context.Context, job *shell.Job, i shell.Info) (tool.Result, error) {
	stdout, stderr, err := o.Env.Shell.Streams(ctx, i.ID, 4*maxFailure)
	if err != nil {
		return tool.Result{}, err
	}
	stdout.Info, stderr.Info = i, i // the log holds both
	said := strings.Join([]string{stderr.Head, stderr.Tail, stdout.Head, stdout.Tail}, "\n")
	line := o.Confined.Explain(said, o.Env.Space.Cwd())
	if line == "" && strings.TrimSpace(said) == "" && silentlyUnreached(o.Env.Analysis, i.Exit) {
		line = o.Confined.NoNetwork()
	}
	if line == "" {
		line = o.unmet(said, true)
	}
	if line != "" {
		o.Notes = append(o.Notes, line)
	}
	if tip := halfWay(o.Env.Analysis, line); tip != "" {
		o.Notes = append(o.Notes, tip)
	}
	if i.Hit.Processes > 0 {
		o.Notes = append(o.Notes, crowdLine(i.Hit.Processes))
	}
	text := fmt.Sprintf("%s: Command failed (exit code %d)", tool.CommandFailed, i.Exit)
	if i.Signal != "" {
		text = fmt.Sprintf("%s: Command failed (signal %s)", tool.CommandFailed, i.Signal)
	}
	if i.Hit.Memory > 0 {
		text += ": " + memoryLine(i.Hit.Memory)
	}
	out, errs := o.streams(stdout, stderr)
	var kept *tool.Kept
	both := ""
	whole := shell.Chunk{Info: i, Size: stdout.Size + stderr.Size, Lines: out.Lines + errs.Lines}
	form := o.form()
	form.Runes = min(maxFailure, form.Runes)
	if f, ok := o.fold(ctx, i, whole.Size, form); ok {
		kept = o.keep(job, &whole)
		both = "\nStdout and stderr:\n" + trimOutput(foldedText(f, whole.Info.Log))
	} else if out.Cut || errs.Cut {
		kept = o.keep(job, &whole)
		stdout.Info, stderr.Info = whole.Info, whole.Info
		if both = o.both(ctx, whole, errs); both == "" {
			out, errs = o.streams(stdout, stderr)
		}
	}
	if out := trimOutput(out.Text); out != "" && both == "" {
		text += "\nStdout:\n" + out
	}
	if errs := trimOutput(errs.Text); errs != "" && both == "" {
		text += "\nStderr:\n" + errs
	}
	res := o.result(i, text+both)
	res.Failed, res.Meta.Kept = tool.CommandFailed, kept
	return res, nil
}

// form leaves room for our own lines.
func (o *Outcome) form() results.Form {
	return wording.Form(o.Env, 200+len(strings.Join(o.Notes, "\n")), 5+len(o.Notes))
}

// NoOutput stands for what a command that printed nothing has printed.
const NoOutput = "(no output)"

func printed(text string) string {
	if text = trimOutput(text); text == "" {
		return NoOutput
	}
	return text
}

// trimOutput drops leading blank lines and trailing white space.
func trimOutput(text string) string {
	text = strings.TrimRight(text, " \t\n")
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found || strings.TrimSpace(line) != "" {
			return text
		}
		text = rest
	}
}
