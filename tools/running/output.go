package running

import (
	"cmp"
	"context"
	"strings"

	"codehand/tools/results"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

// ShownOutput is a job's output within form. The whole is in the log, which the short form names.
func ShownOutput(env tool.Env, c shell.Chunk, form results.Form) results.Shown {
	head, tail, lines := printedBy(c.Head), printedBy(c.Tail), c.Lines
	if tail == "" && c.Tail != "" {
		tail = "\n" // nothing of it can be shown, but head is not all there is
	}
	if end := cmp.Or(c.Tail, c.Head); !strings.HasSuffix(end, "\n") {
		lines++
	}
	return env.Results.BoundFile(results.Spool{Path: c.Info.Log, Bytes: c.Size, Lines: lines, Fault: c.Info.Fault},
		head, tail, form)
}

// printedBy is text of a program as it is shown: clean, and without lines that look like ours.
func printedBy(text string) string { return results.Disown(results.Clean(text)) }

// streams shows both streams of a command. Each has half of the room, and what the other one leaves.
func (o *Outcome) streams(stdout, stderr shell.Chunk) (out, errs results.Shown) {
	form := o.form()
	most := min(maxFailure, form.Runes)
	form.Runes = max(most/2, most-int(min(stderr.Size, maxFailure)))
	out = ShownOutput(o.Env, stdout, form)
	form.Runes = max(most/2, most-int(min(stdout.Size, maxFailure)))
	return out, ShownOutput(o.Env, stderr, form)
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
