package pipeline

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"codehand/tools/results"
	"codehand/tools/tool"
)

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

// A ran is a call that has run: what became of it, and what its client is shown of that. Stages 7 to 9 change it.
type ran struct {
	*call
	outcome
	whole string // the text before it was bounded
	paged bool   // by its tool: it is not cut without need
	shown int    // characters of the text that the calls of the turn were counted with
}

// bind is stage 7: the whole text is kept on disk, then it is cut to what tool and client allow, and to what the other
// calls of its turn leave.
//
// Before that, it makes control and hidden characters visible, if an engine let some through: a file name or an
// argument in a refusal can hold escape sequences, and hidden text can fool a person who reads it.
func (r *ran) bind(ctx context.Context) {
	text := r.text()
	*text, _ = results.Show(*text)
	r.record.bounded = true
	r.whole, r.paged = *text, r.bound.Spec.MaxRunes == tool.Unbounded && r.refusal == nil
	switch {
	case r.state.Results == nil:
		return
	case r.paged:
		r.bindPage(ctx)
	default:
		r.bindWhole(ctx, r.form())
	}
	r.shown = utf8.RuneCountInString(*text)
}

// form is what the text of one result may have.
func (r *ran) form() results.Form {
	client := r.state.Client
	f := results.Form{
		Runes: limitOf(r.bound.Spec.MaxRunes, client), Bytes: client.MaxBytes, Lines: client.MaxLines,
		JSON: client.MaxJSON,
	}
	if r.refusal != nil {
		head := len(r.refusal.Code) + len(": ") // stands before the text
		for _, n := range []*int{&f.Runes, &f.Bytes, &f.JSON} {
			if *n > 0 {
				*n = max(*n-head, 1)
			}
		}
	}
	return f
}

// bindWhole cuts the text of a tool that does not page. What lies in a file already is not kept again.
func (r *ran) bindWhole(ctx context.Context, f results.Form) {
	if r.bindBrief(ctx, f) {
		return
	}
	text, kept := r.text(), r.meta().Kept
	var shown results.Shown
	if kept != nil {
		shown = r.state.Results.Fit(*text, results.Whole{Path: kept.Path, Bytes: kept.Bytes, Lines: kept.Lines}, f)
	} else {
		shown = r.state.Results.Bound(ctx, r.visit.id, r.tool.Spec.Name, *text, f)
		if shown.Path != "" {
			kept = &tool.Kept{ID: r.visit.id, Path: shown.Path, Bytes: shown.Bytes, Lines: shown.Lines}
			r.meta().Kept = kept
		}
	}
	*text = shown.Text
}

// bindBrief says whether all of a refusal with a brief form is shown. If not, that takes its place, and nothing counts
// as seen: what stays is told in other words than what was to be read.
func (r *ran) bindBrief(ctx context.Context, f results.Form) bool {
	if r.refusal == nil || r.refusal.Brief == "" {
		return false
	}
	shown := r.state.Results.Fit(r.refusal.Text, results.Whole{}, f)
	if !shown.Cut {
		return true
	}
	r.state.Results.Count(-utf8.RuneCountInString(shown.Text))
	r.forget(ctx, r.shows())
	said := r.refusal
	said.Text, _ = results.Show(said.Brief)
	said.Brief, said.Shows, said.Meta.Version = "", nil, ""
	r.whole = said.Text
	return false
}

// bindPage cuts what a tool that pages by itself shows only if the other calls of its turn have left no room for it:
// what read_file shows of a kept text must not be kept again. What is cut does not count as seen.
func (r *ran) bindPage(ctx context.Context) {
	text := r.text()
	if n := r.result.Counted; n > 0 { // it is as short as it has to be
		r.state.Results.Count(utf8.RuneCountInString(*text) - n)
		return
	}
	w := results.Whole{Bytes: int64(len(*text)), Lines: strings.Count(*text, "\n") + 1}
	if paths := r.shows(); len(paths) == 1 {
		w.Path = paths[0]
	}
	shown := r.state.Results.Fit(*text, w, results.Form{})
	if !shown.Cut {
		return
	}
	*text = shown.Text
	r.meta().Version = ""
	r.forget(ctx, r.shows())
}

// count notes how much is shown, and adds what came to the text after it was bounded to what the calls of this turn
// show.
func (r *ran) count() {
	shown := utf8.RuneCountInString(*r.text())
	if kept := r.meta().Kept; kept != nil {
		kept.Shown = shown
	}
	switch {
	case r.state.Results == nil:
	case r.arrival.inside != nil:
		r.state.Results.Count(-r.shown) // it is shown by the call that made it
	default:
		r.state.Results.Count(shown - r.shown)
	}
}
