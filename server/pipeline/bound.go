package pipeline

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"codehand/tools/results"
	"codehand/tools/tool"
)

// maxText is how many bytes of text one result may have, whatever tool and client allow.
const maxText = 400_000

// An outcome is what became of Run, seen the same way whether it is a Result or a Refusal.
type outcome struct {
	result  *tool.Result
	refusal *tool.Refusal // nil: it is a result
}

// newOutcome wraps what Run gave back. err is nil or a *tool.Refusal, of which a copy is taken: a tool may return the
// same one again.
func newOutcome(result *tool.Result, err error) outcome {
	o := outcome{result: result}
	if r, ok := refusal(err); ok {
		copied := *r
		o.refusal = &copied
	}
	return o
}

func refusal(err error) (*tool.Refusal, bool) { return errors.AsType[*tool.Refusal](err) }

func (o *outcome) text() *string {
	if o.refusal != nil {
		return &o.refusal.Text
	}
	return &o.result.Text
}

func (o *outcome) meta() *tool.Meta {
	if o.refusal != nil {
		return &o.refusal.Meta
	}
	return &o.result.Meta
}

func (o *outcome) shows() []string {
	if o.refusal != nil {
		return o.refusal.Shows
	}
	return o.result.Shows
}

func (o *outcome) failed() bool { return o.refusal != nil || o.result.Failed != "" }

func (o *outcome) err() error {
	if o.refusal != nil {
		return o.refusal // not as a typed nil
	}
	return nil
}

// bind is stage 7: the whole text is kept on disk, then it is cut to what tool and client allow, and to what the other
// calls of its turn leave.
//
// Before that, what no engine should have let through is made visible: a file name or an argument that is repeated in a
// refusal can hold escape sequences, and hidden text can fool a person who reads it.
func (c *call) bind(ctx context.Context, o *outcome) {
	text := o.text()
	*text, _ = results.Show(*text)
	c.bounded = true
	c.whole, c.paged = *text, c.bound.Spec.MaxRunes == tool.Unbounded && o.refusal == nil
	switch {
	case c.state.Results == nil:
		return
	case c.paged:
		c.bindPage(ctx, o)
	default:
		c.bindWhole(ctx, o, c.form(o))
	}
	c.shown = utf8.RuneCountInString(*text)
}

// form is what the text of one result may have.
func (c *call) form(o *outcome) results.Form {
	f := results.Form{Runes: c.limit(), Bytes: maxText, Lines: c.state.Client.MaxLines, JSON: c.state.Client.MaxJSON}
	if n := c.state.Client.MaxBytes; n > 0 {
		f.Bytes = min(f.Bytes, n)
	}
	if o.refusal != nil {
		head := len(o.refusal.Code) + len(": ") // stands before the text
		f.Runes, f.Bytes = max(f.Runes-head, 1), max(f.Bytes-head, 1)
		if f.JSON > 0 {
			f.JSON = max(f.JSON-head, 1)
		}
	}
	return f
}

// bindWhole cuts the text of a tool that does not page. What lies in a file already is not kept again.
func (c *call) bindWhole(ctx context.Context, o *outcome, f results.Form) {
	if c.bindBrief(ctx, o, f) {
		return
	}
	text, kept := o.text(), o.meta().Kept
	var shown results.Shown
	if kept != nil {
		shown = c.state.Results.Fit(*text, results.Whole{Path: kept.Path, Bytes: kept.Bytes, Lines: kept.Lines}, f)
	} else {
		shown = c.state.Results.Bound(ctx, c.visit.id, c.tool.Spec.Name, *text, f)
		if shown.Path != "" {
			kept = &tool.Kept{ID: c.visit.id, Path: shown.Path, Bytes: shown.Bytes, Lines: shown.Lines}
			o.meta().Kept = kept
		}
	}
	*text = shown.Text
}

// bindBrief says whether all of a refusal with a brief form is shown. If not, that takes its place, and nothing counts
// as seen: what stays is told in other words than what was to be read.
func (c *call) bindBrief(ctx context.Context, o *outcome, f results.Form) bool {
	if o.refusal == nil || o.refusal.Brief == "" {
		return false
	}
	shown := c.state.Results.Fit(o.refusal.Text, results.Whole{}, f)
	if !shown.Cut {
		return true
	}
	c.state.Results.Count(-utf8.RuneCountInString(shown.Text))
	c.forget(ctx, o.shows())
	r := o.refusal
	r.Text, _ = results.Show(r.Brief)
	r.Brief, r.Shows, r.Meta.Version = "", nil, ""
	c.whole = r.Text
	return false
}

// bindPage cuts what a tool that pages by itself shows only if the other calls of its turn have left no room for it:
// what read_file shows of a kept text must not be kept again. What is cut does not count as seen.
func (c *call) bindPage(ctx context.Context, o *outcome) {
	text := o.text()
	if n := o.result.Counted; n > 0 { // it is as short as it has to be
		c.state.Results.Count(utf8.RuneCountInString(*text) - n)
		return
	}
	w := results.Whole{Bytes: int64(len(*text)), Lines: strings.Count(*text, "\n") + 1}
	if paths := o.shows(); len(paths) == 1 {
		w.Path = paths[0]
	}
	shown := c.state.Results.Fit(*text, w, results.Form{})
	if !shown.Cut {
		return
	}
	*text = shown.Text
	o.meta().Version = ""
	c.forget(ctx, o.shows())
}

// count notes how much is shown, and adds what came to the text after it was bounded to what the calls of this turn
// show.
func (c *call) count(o *outcome) {
	shown := utf8.RuneCountInString(*o.text())
	if kept := o.meta().Kept; kept != nil {
		kept.Shown = shown
	}
	switch {
	case c.state.Results == nil:
	case c.arrival.inside != nil:
		c.state.Results.Count(-c.shown) // it is shown by the call that made it
	default:
		c.state.Results.Count(shown - c.shown)
	}
}
