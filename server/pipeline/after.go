package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/textedit"
)

// maxHookDiff is how many bytes of a hook's change to a file are shown.
const maxHookDiff = 8_192

// after is stage 8: hooks see what the model will see, and may add to it or take its place. The gate is still closed,
// because a formatter writes files. A hook that fails takes nothing from a call that is done.
func (c *call) after(ctx context.Context, o *outcome) {
	if c.pipe.Hooks == nil {
		return
	}
	var said hooks.Outcome
	if c.wants(hooks.PostToolUse) || c.wants(hooks.PostToolUseFailure) {
		e := c.event()
		e.Response, e.Failed, e.Took = *o.text(), o.failed(), c.record.Stages.Run
		var err error
		if said, err = c.pipe.Hooks.After(ctx, e); err != nil {
			c.log().WarnContext(ctx, "hooks after a call", "tool", e.Tool, "call", e.Call, "error", err)
			said = hooks.Outcome{}
		}
	}
	if said.Output != nil {
		*o.text() = hookText(*said.Output)
		c.forget(ctx, o.shows())
	}
	if slices.Contains(said.Opinions, permission.Deny) {
		addLine(o.text(), strings.TrimSpace("[a hook objects] "+hookText(said.Reason)))
	}
	for _, more := range []string{c.found.Hooks.Context, said.Context} {
		if more = hookText(more); more != "" {
			addLine(o.text(), more)
		}
	}
	c.showHookChanges(ctx, o)
}

// tellFound tells hooks of files that are not what the session has seen, when a call comes to them.
func (c *call) tellFound(ctx context.Context) {
	if !c.wants(hooks.FileChanged) || c.state.Files == nil {
		return
	}
	var paths []string
	for _, t := range c.bound.Targets {
		if t.Kind == permission.Path {
			paths = append(paths, t.Value)
		}
	}
	if len(paths) == 0 {
		return
	}
	stale, err := c.state.Files.Changed(ctx, paths...)
	if err != nil && ctx.Err() == nil {
		c.log().WarnContext(ctx, "look for changed files for the hooks", "tool", c.bound.Spec.Name, "error", err)
	}
	paths = paths[:0]
	for _, s := range stale {
		paths = append(paths, s.Path)
	}
	c.tellFiles(paths)
}

// tellChanged tells hooks of the files that this call has changed.
func (c *call) tellChanged(o *outcome) {
	if !c.wants(hooks.FileChanged) {
		return
	}
	var paths []string
	for _, f := range slices.Concat(o.meta().Files, c.changed) {
		paths = append(paths, f.Path)
	}
	c.tellFiles(paths)
}

func (c *call) tellFiles(paths []string) {
	if len(paths) == 0 {
		return
	}
	e := c.event()
	e.Name, e.Input = hooks.FileChanged, nil
	for _, e.File = range paths {
		c.pipe.Hooks.Tell(e)
	}
}

// unseen takes back that the session has seen what it changed, if its client left meanwhile: it will send the call again,
// and must find that it was carried out. The gate is still held.
func (c *call) unseen(ctx context.Context, o *outcome) {
	if c.arrival.Lost == nil || c.state.Files == nil || !c.arrival.Lost() {
		return
	}
	for _, f := range o.meta().Files {
		if err := c.state.Files.Forget(ctx, f.Path); err != nil {
			c.log().WarnContext(ctx, "forget a change that nobody was told of", "path", f.Path, "error", err)
		}
	}
}

// forget takes back that contents were shown, because a hook put another text in their place.
func (c *call) forget(ctx context.Context, shows []string) {
	if c.state.Files == nil {
		return
	}
	for _, path := range shows {
		if err := c.state.Files.Forget(ctx, path); err != nil {
			c.log().WarnContext(ctx, "forget a file that a hook hid", "path", path, "error", err)
		}
	}
}

// showHookChanges tells what hooks did to the files that this call changed. A change that is shown whole counts as
// read, so that a formatter does not make the next edit fail.
func (c *call) showHookChanges(ctx context.Context, o *outcome) {
	var paths []string
	for _, f := range o.meta().Files {
		paths = append(paths, f.Path)
	}
	if len(paths) == 0 || c.state.Files == nil {
		return
	}
	stale, err := c.state.Files.Changed(ctx, paths...)
	if err != nil {
		c.log().WarnContext(ctx, "look for changes by hooks", "tool", c.bound.Spec.Name, "error", err)
	}
	for _, s := range stale {
		line := fmt.Sprintf("[a hook changed %s after this edit]", s.Path)
		if s.Old == nil || s.New == nil {
			addLine(o.text(), line)
			continue
		}
		diff, whole := textedit.Diff(s.Old, s.New, maxHookDiff)
		addLine(o.text(), line+"\n"+diff)
		if !whole {
			continue
		}
		if err := c.state.Files.Accept(ctx, s); err != nil {
			c.log().WarnContext(ctx, "remember a change by a hook", "path", s.Path, "error", err)
		}
	}
}

// addLine puts a line at the end of text.
func addLine(text *string, line string) {
	if *text != "" && !strings.HasSuffix(*text, "\n") {
		*text += "\n"
	}
	*text += line
}

// log is where the corridor writes; never nil.
func (c *call) log() *slog.Logger {
	if c.pipe.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.pipe.Log
}
