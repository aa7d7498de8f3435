package running

import (
	"cmp"
	"context"
	"io"
	"strings"

	"codehand/tools/results"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// ShownOutput is a job's output within form. The whole is in the log, which the short form names. Of an output that is
// too long, lines are shown if the chunk begins where it begins, else the ends of the chunk.
func ShownOutput(ctx context.Context, env tool.Env, c shell.Chunk, form results.Form) results.Shown {
	shown := boundOutput(env, c, form)
	if !shown.Cut || c.Info.Monitor || c.Info.Fault != "" || // the log has more than events
		c.Next != c.Size || c.Info.State == shell.Running && c.Size > maxWaited {
		return shown
	}
	if text, ok := preview(ctx, env, c.Info, shown, gapOf(c), form); ok {
		shown.Text = text
	}
	return shown
}

// maxWaited is how much output of a running job is read again: what it prints meanwhile waits.
const maxWaited = 8 << 20

// gapOf is how many bytes of the middle of a whole output are not kept.
func gapOf(c shell.Chunk) int64 { return max(c.Gap, c.Info.Dropped) }

// preview shows lines of a whole output, which shown has the measures of. gap bytes of its middle are not kept.
func preview(ctx context.Context, env tool.Env, i shell.Info, shown results.Shown, gap int64, form results.Form) (
	text string, ok bool) {
	_, err := env.Shell.Read(ctx, i.ID, func(r io.Reader) error {
		text, ok = results.Preview(results.Spool{Path: shown.Path, Bytes: shown.Bytes, Lines: shown.Lines,
			Gap: gap, Ours: i.Inside}, r, form)
		return nil
	})
	return text, ok && err == nil
}

// Printed is a part of a job's output as it is shown. Foreign lines in the form of ours are told apart; what this
// server wrote itself, as the report of a sub-agent, has only ours.
func Printed(i shell.Info, part string) string { return results.Spool{Ours: i.Inside}.Printed(part) }

// boundOutput is a job's output within form, or its beginning and its end.
func boundOutput(env tool.Env, c shell.Chunk, form results.Form) results.Shown {
	head, tail, lines := Printed(c.Info, c.Head), Printed(c.Info, c.Tail), c.Lines
	if tail == "" && c.Tail != "" {
		tail = "\n" // nothing of it can be shown, but head is not all there is
	}
	if end := cmp.Or(c.Tail, c.Head); !strings.HasSuffix(end, "\n") {
		lines++
	}
	return env.Results.BoundFile(results.Spool{Path: c.Info.Log, Bytes: c.Size, Lines: lines, Fault: c.Info.Fault,
		Gap: gapOf(c)}, head, tail, form)
}

// streams shows both streams of a command. Each has half of the room, and what the other one leaves.
func (o *Outcome) streams(stdout, stderr shell.Chunk) (out, errs results.Shown) {
	form := o.form()
	most := min(maxFailure, form.Runes)
	form.Runes = max(most/2, most-int(min(stderr.Size, maxFailure)))
	out = boundOutput(o.Env, stdout, form)
	form.Runes = max(most/2, most-int(min(stdout.Size, maxFailure)))
	return out, boundOutput(o.Env, stderr, form)
}

// shortErrors is how many bytes of stderr are shown also where both streams are: among many other lines, what the
// command says of its failure may look like any other.
const shortErrors = 2000

// both shows lines of both streams of a command as they came, in one: then their numbers are those of the log. "": they
// cannot be shown.
func (o *Outcome) both(ctx context.Context, whole shell.Chunk, errs results.Shown) string {
	if whole.Info.Fault != "" {
		return ""
	}
	form := o.form()
	form.Runes = min(maxFailure, form.Runes)
	if errs.Bytes <= shortErrors {
		form.Runes = max(form.Runes-shortErrors, 1)
	}
	text, ok := preview(ctx, o.Env, whole.Info,
		results.Shown{Path: whole.Info.Log, Bytes: whole.Size, Lines: whole.Lines}, gapOf(whole), form)
	if !ok {
		return ""
	}
	if last := trimOutput(errs.Text); errs.Bytes <= shortErrors && !strings.Contains(text, last) {
		text += "\nStderr:\n" + last
	}
	return "\nStdout and stderr:\n" + text
}

// whole is the output of a command that has ended, from its two streams one after the other if the log does not hold
// it.
func (o *Outcome) whole(ctx context.Context, i shell.Info) (shell.Chunk, error) {
	if i.Fault == "" {
		return o.Env.Shell.Output(ctx, i.ID, 0, 4*o.Env.Limit)
	}
	out, errs, err := o.Env.Shell.Streams(ctx, i.ID, 4*o.Env.Limit)
	c := shell.Chunk{Info: i, Size: out.Size + errs.Size, Lines: out.Lines + errs.Lines, Head: out.Head,
		Tail: errs.Tail}
	switch {
	case out.Tail == "":
		c.Head += errs.Head
	case errs.Tail == "":
		c.Tail = out.Tail + errs.Head
	}
	return c, err
}

// keep keeps the whole output of a command that has ended: under the name of the call, where clients find it as a
// resource, else as the log that it is. The chunk names the place from then on.
func (o *Outcome) keep(job *shell.Job, c *shell.Chunk) *tool.Kept {
	if c.Info.Fault != "" {
		return nil
	}
	name := "run_shell"
	if o.Stays {
		name = "run_readonly"
	}
	kept := &tool.Kept{ID: o.Env.CallID, Path: c.Info.Log, Bytes: c.Size, Lines: c.Lines}
	if path, err := o.Env.Results.Link(o.Env.CallID, name, c.Info.Log); err == nil {
		kept.Path, c.Info.Log = path, path
	} else {
		kept.ID = ""
		job.Keep()
	}
	return kept
}

// SaidLast is a line with what a monitor that failed printed last to stderr, which is no event; "": nothing.
func SaidLast(i shell.Info) string {
	if i.LastErr == "" || i.State == shell.Completed {
		return ""
	}
	last := wording.LineOf(results.Clean(i.LastErr), 200)
	return "[stderr ended with: " + last + "; all that it printed is in " + i.Log + "]"
}
