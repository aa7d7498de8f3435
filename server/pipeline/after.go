package pipeline

import (
	"context"
	"slices"
	"strings"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/results"
)

// after is stage 8: hooks see what the model will see, and may add to it or take its place, within what the client
// takes. The gate is still closed, because a formatter writes files. A hook that fails takes nothing from a call that
// is done.
func (r *ran) after(ctx context.Context) {
	if r.pipe.Hooks == nil {
		return
	}
	var said hooks.Outcome
	if r.pipe.wants(hooks.PostToolUse) || r.pipe.wants(hooks.PostToolUseFailure) {
		e := r.event()
		e.Response, e.Failed, e.Took = *r.text(), r.failed(), r.record.Stages.Run
		var err error
		if said, err = r.pipe.Hooks.After(ctx, e); err != nil {
			r.pipe.log().WarnContext(ctx, "hooks after a call", "tool", e.Tool, "call", e.Call, "error", err)
			said = hooks.Outcome{}
		}
	}
	if said.Output != nil {
		r.replace(ctx, replacement(*said.Output, *r.text()))
	}
	r.add(ctx, said)
}

// replacement is what of a hook's text takes the place of text. A line that looks like one of ours is left as it is
// where text has it, too.
func replacement(by, text string) string {
	ours := map[string]bool{}
	for line := range strings.Lines(text) {
		ours[strings.TrimSuffix(line, "\n")] = true
	}
	lines := strings.Split(hooks.Clip(results.Clean(hooks.Clip(by))), "\n")
	for i, line := range lines {
		if !ours[line] {
			lines[i] = results.Disown(line)
		}
	}
	return strings.Join(lines, "\n")
}

// maxTold is of how many files hooks are told for one call: each starts a program, and a command can change thousands.
const maxTold = 100

// tellFound tells hooks of files that are not what the session has seen, when a call comes to them.
func (c *call) tellFound(ctx context.Context) {
	if !c.pipe.wants(hooks.FileChanged) || c.state.Files == nil {
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
		c.pipe.log().WarnContext(ctx, "look for changed files for the hooks", "tool", c.bound.Spec.Name, "error", err)
	}
	paths = paths[:0]
	for _, s := range stale {
		paths = append(paths, s.Path)
	}
	c.pipe.tellFiles(c.event(), paths)
}

// tellChanged tells hooks of the files that this call has changed.
func (r *ran) tellChanged() {
	if !r.pipe.wants(hooks.FileChanged) {
		return
	}
	var paths []string
	for _, f := range slices.Concat(r.meta().Files, r.record.changed) {
		paths = append(paths, f.Path)
	}
	r.pipe.tellFiles(r.event(), paths)
}

// tellFiles tells hooks of files that changed around the call of e.
func (p *Pipeline) tellFiles(e hooks.Event, paths []string) {
	if more := len(paths) - maxTold; more > 0 {
		p.log().Warn("hooks are not told of all files that changed", "tool", e.Tool, "call", e.Call, "left", more)
		paths = paths[:maxTold]
	}
	e.Name, e.Input = hooks.FileChanged, nil
	for _, e.File = range paths {
		p.Hooks.Tell(e)
	}
}

// unseen takes back that the session has seen what it changed, if its client left meanwhile: it will send the call
// again, and must find that it was carried out. The gate is still held.
func (r *ran) unseen(ctx context.Context) {
	if r.arrival.Lost == nil || r.state.Files == nil || !r.arrival.Lost() {
		return
	}
	for _, f := range r.meta().Files {
		if err := r.state.Files.Forget(ctx, f.Path); err != nil {
			r.pipe.log().WarnContext(ctx, "forget a change that nobody was told of", "path", f.Path, "error", err)
		}
	}
}

// saw lets a tool note what its text shows, if all of that goes out, with whatever is added. What a call shows that
// another one makes is noted by that one, if it shows the same.
func (r *ran) saw(ctx context.Context, text string) {
	switch {
	case !strings.HasPrefix(r.result.Text, text):
		r.result.Saw = nil
	case r.result.Saw != nil && r.arrival.inside == nil:
		r.result.Saw(ctx)
	}
}

// forget takes back that contents were shown, because another text stands in their place.
func (r *ran) forget(ctx context.Context, shows []string) {
	if r.state.Files == nil {
		return
	}
	for _, path := range shows {
		if err := r.state.Files.Forget(ctx, path); err != nil {
			r.pipe.log().WarnContext(ctx, "forget a file that was not shown after all", "path", path, "error", err)
		}
	}
}
