package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// maxFailure is the most characters of output in the answer about a command that failed: the cause is rarely further away.
const maxFailure = 10_000

// An outcome puts what became of a command into words.
type outcome struct {
	env   tool.Env
	limit time.Duration // after which the command is ended
	notes []string      // the last lines of the answer
	stays bool          // the session's directory stays where it is, wherever the command went
}

// started answers a command that is a job from the start.
func (o *outcome) started(i shell.Info) tool.Result {
	text := fmt.Sprintf("Started job %s: %s\nOutput: %s\nRead new output with job_output, stop it with job_stop.", i.ID, jobLine(i), i.Log)
	return o.result(i, text)
}

// moved answers a command that has become a job because the call could not wait longer.
func (o *outcome) moved(ctx context.Context, i shell.Info) (tool.Result, error) {
	c, err := o.env.Shell.Output(ctx, i.ID, 0, 4*o.env.Limit)
	if err != nil {
		return tool.Result{}, err
	}
	if err := consumed(ctx, o.env, session.Cursor{}, c); err != nil {
		o.notes = append(o.notes, "[job_output will show this output again]")
	}
	text := fmt.Sprintf("Still running after %s; moved to the background as %s. Output so far below, more with job_output.\n", jobAge(i), i.ID)
	return o.result(i, text+printed(shownOutput(o.env, c, o.form()).Text)+c.Info.Missing()), nil
}

// ended answers a command that is over. stopped is why the call ended it, if it did.
func (o *outcome) ended(ctx context.Context, job *shell.Job, i shell.Info, stopped error) (tool.Result, error) {
	dir := i.Cwd
	if o.stays {
		i.Cwd = ""
	}
	o.carryCwd(ctx, i)
	o.leftovers(ctx, i)
	if i.State == shell.Failed && stopped == nil {
		if meaning := shell.Meaning(i.Command, i.Exit, i.Err == 0); meaning != "" {
			o.notes = append([]string{"[exit code 1: " + meaning + "]"}, o.notes...)
		} else {
			return o.failed(ctx, job, i)
		}
	}
	c, err := o.whole(ctx, i)
	if err != nil {
		return tool.Result{}, err
	}
	shown := shownOutput(o.env, c, o.form())
	var kept *tool.Kept
	if shown.Cut {
		kept = o.keep(job, &c)
		shown = shownOutput(o.env, c, o.form()) // with the path that it has now
	}
	text := printed(shown.Text)
	res := o.result(i, text)
	res.Meta.Kept = kept
	res.Saw = o.sight(c, dir, text)
	head := ""
	switch {
	case stopped != nil:
		res.Failed, head = tool.Interrupted, "Interrupted by the client. The command was ended. Output so far:"
	case i.State == shell.TimedOut:
		res.Failed, head = tool.Timeout, fmt.Sprintf("Command timed out after %gs. Its processes were ended. Output so far:", o.limit.Seconds())
	case i.State == shell.Overflow:
		res.Failed, head = tool.OutputLimit, "The command wrote more than can be kept and was ended. Send its output to a file. Output so far:"
	case i.State != shell.Completed && i.State != shell.Failed:
		res.Failed, head = tool.CommandFailed, fmt.Sprintf("Command failed (%s). Output so far:", i.State)
	}
	if head != "" {
		res.Text = string(res.Failed) + ": " + head + "\n" + res.Text
	}
	return res, nil
}

// failed answers a command with an exit code that is no answer, or a signal.
func (o *outcome) failed(ctx context.Context, job *shell.Job, i shell.Info) (tool.Result, error) {
	stdout, stderr, err := o.env.Shell.Streams(ctx, i.ID, 4*maxFailure)
	if err != nil {
		return tool.Result{}, err
	}
	stdout.Info, stderr.Info = i, i // the log holds both
	text := fmt.Sprintf("%s: Command failed (exit code %d)", tool.CommandFailed, i.Exit)
	if i.Signal != "" {
		text = fmt.Sprintf("%s: Command failed (signal %s)", tool.CommandFailed, i.Signal)
	}
	out, errs := o.streams(stdout, stderr)
	var kept *tool.Kept
	if out.Cut || errs.Cut {
		whole := shell.Chunk{Info: i, Size: stdout.Size + stderr.Size, Lines: out.Lines + errs.Lines}
		kept = o.keep(job, &whole)
		stdout.Info, stderr.Info = whole.Info, whole.Info
		out, errs = o.streams(stdout, stderr)
	}
	if out := trimOutput(out.Text); out != "" {
		text += "\nStdout:\n" + out
	}
	if errs := trimOutput(errs.Text); errs != "" {
		text += "\nStderr:\n" + errs
	}
	res := o.result(i, text)
	res.Failed, res.Meta.Kept = tool.CommandFailed, kept
	return res, nil
}

// form leaves room for our own lines.
func (o *outcome) form() results.Form {
	return wording.Form(o.env, 200+len(strings.Join(o.notes, "\n")), 5+len(o.notes))
}

// noOutput stands for what a command that printed nothing has printed.
const noOutput = "(no output)"

func printed(text string) string {
	if text = trimOutput(text); text == "" {
		return noOutput
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
