package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A Record is one call for the audit: who, what, why it was allowed, what became of it. It holds no contents and no
// secrets.
type Record struct {
	Started bool // the call is about to run; else it is done

	Time          time.Time // the call entered the corridor
	Call          string
	Ref           string // of an internal error; else ""
	Key           session.Key
	Client        string
	ClientVersion string
	From          From

	Tool     string
	Via      string // the alias or the dispatcher that was called
	Digest   string // SHA-256 of the input that counted, hex; "": it was not valid
	ReadOnly bool
	Mode     string

	Verdict string // deny, ask, allow; "": the call did not come so far
	Rule    string // that gave it; "": the mode's default
	Origin  string
	Asked   bool // a person answered

	Code      string // "ok", else that of the refusal; PENDING while a person is asked
	Cancelled bool
	Stages    Stages
	Runes     int    // of the text shown
	Kept      string // path of the whole, if it was cut
	Files     []tool.FileChange
}

// Stages says how long each stage took.
type Stages struct {
	Validate, Plan, Before, Permit, Gate, Run, Bound, After time.Duration
}

// Codes of a Record beside those of refusals.
const (
	codeOK      = "ok"
	codePending = "PENDING"
)

// decided notes the decision.
func (r *Record) decided(d permission.Decision) {
	switch d.Verdict {
	case permission.Allow:
		r.Verdict = "allow"
	case permission.Ask:
		r.Verdict = "ask"
	default:
		r.Verdict = "deny"
	}
	r.Rule, r.Origin = d.Rule, d.Origin
}

// fault turns a panic, and any error that is not for the model, into an internal error, and writes it to the log under
// its reference.
func (c *call) fault(panicked any, err error) error {
	_, refused := refusal(err)
	switch {
	case panicked != nil:
		e := &InternalError{Ref: newRef(), Panic: true, Err: fmt.Errorf("panic: %v", panicked)}
		c.log().Error("internal error", "ref", e.Ref, "tool", c.tool.Spec.Name, "call", c.visit.id, "panic", panicked, "stack", string(debug.Stack()))
		c.record.Ref = e.Ref
		return e
	case err == nil, refused, errors.Is(err, tool.ErrPending):
		return err
	}
	e := &InternalError{Ref: newRef(), Err: err}
	c.log().Error("internal error", "ref", e.Ref, "tool", c.tool.Spec.Name, "call", c.visit.id, "error", err)
	c.record.Ref = e.Ref
	return e
}

// finish is stage 10, and fills in what only the end knows. It runs whatever happened, and returns the error that the
// caller gets: of a refusal a copy, since a tool may return the same one again.
func (c *call) finish(ctx context.Context, result *tool.Result, err error) error {
	r := &c.record
	r.Cancelled = ctx.Err() != nil
	o := newOutcome(result, err)
	switch {
	case o.refusal != nil:
		r.Code = string(o.refusal.Code)
		r.Runes = utf8.RuneCountInString(o.refusal.Error())
		c.log().InfoContext(ctx, "refused", "tool", r.Tool, "call", r.Call, "code", r.Code, "cause", o.refusal.Cause)
		err = o.refusal
	case errors.Is(err, tool.ErrPending):
		r.Code = codePending
	case err != nil:
		r.Code = string(tool.Internal)
	default:
		r.Code = cmp.Or(string(result.Failed), codeOK)
		r.Runes = utf8.RuneCountInString(result.Text)
	}
	m := o.meta()
	r.Files = m.Files
	if m.Kept != nil {
		r.Kept = m.Kept.Path
	}
	m.Millis = time.Since(r.Time).Milliseconds()
	if r.Verdict != "" {
		m.Decision = &tool.Decided{Verdict: r.Verdict, Rule: r.Rule, Asked: r.Asked}
	}
	c.tell()
	return err
}

// tell hands the record over. A listener that panics must not take the call with it.
func (c *call) tell() {
	if c.pipe.Record == nil {
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			c.log().Error("record of a call", "call", c.visit.id, "panic", panicked, "stack", string(debug.Stack()))
		}
	}()
	c.pipe.Record(c.record)
}

func newRef() string { return strings.ToUpper(randomText(8)) }
