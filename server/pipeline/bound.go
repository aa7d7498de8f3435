package pipeline

import (
	"context"
	"errors"
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

// bind is stage 7: the whole text is kept on disk, then it is cut to what tool and client allow. A tool that pages by
// itself is left alone: what read_file shows of a kept text must not be kept again.
//
// Before that, what no engine should have let through is made visible: a file name or an argument that is repeated in a
// refusal can hold escape sequences, and hidden text can fool a person who reads it.
func (c *call) bind(ctx context.Context, o *outcome) {
	text := o.text()
	*text, _ = results.Show(*text)
	if c.bound.Spec.MaxRunes == tool.Unbounded || c.state.Results == nil {
		return
	}
	f := results.Form{Runes: c.limit(), Bytes: maxText, Lines: c.state.Client.MaxLines}
	if n := c.state.Client.MaxBytes; n > 0 {
		f.Bytes = min(f.Bytes, n)
	}
	if o.refusal != nil {
		head := len(o.refusal.Code) + len(": ") // stands before the text
		f.Runes, f.Bytes = max(f.Runes-head, 1), max(f.Bytes-head, 1)
	}
	shown := c.state.Results.Bound(ctx, c.visit.id, c.bound.Spec.Name, *text, f)
	*text = shown.Text
	if shown.Cut {
		o.meta().Kept = &tool.Kept{Path: shown.Path, Bytes: shown.Bytes, Lines: shown.Lines, Shown: utf8.RuneCountInString(shown.Text)}
	}
}
