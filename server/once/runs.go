package once

import (
	"context"
	"errors"

	"codehand/filestate/journal"
	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/tools/tool"
)

// A making is a call that is being made, by the first of the requests for it.
type making struct {
	sum    string
	ctx    context.Context // of the call
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it is over

	// Guarded by Records.mu.
	led    bool    // the request that makes it was not cancelled
	others int     // further requests for it that were not
	final  bool    // out is for all of them; false: the next one makes the call, or finds what became of it
	out    outcome // valid after done
}

// An outcome is what a request for a call gets: an answer, or else a result or a refusal.
type outcome struct {
	answer request.Answer
	result tool.Result
	err    error
}

// A Caller is one request for a call, as Do uses it. Its functions run in the goroutine of Do.
type Caller struct {
	// Make makes the call. It calls Attempt.Begin before it does anything that must not be done twice.
	Make func(ctx context.Context, a *Attempt) request.Answer
	// Tell makes an answer of a result or a refusal.
	Tell func(ctx context.Context, result tool.Result, err error) request.Answer
	// Aside gives back all that could keep the attempt waiting which this request waits for; Back takes it again.
	Aside, Back func()
	// Admit says why the principal may have no answer now; nil: it may.
	Admit func() error
	// History returns changes of files, as journal.History does.
	History func(ctx context.Context, q journal.Query) ([]journal.Entry, error)
	// Settled is told of a call that was cut off, when it is known what becomes of it.
	Settled func(call, tool, became string)
}

// Do makes a call, unless it was made or is being made: then it says what became of that. ctx ends when the request is
// cancelled; the call goes on while another request for it waits.
func (r *Records) Do(ctx context.Context, k Key, c Caller) request.Answer {
	for aside := false; ; {
		inner, x, first, err := r.enter(ctx, k)
		if err != nil {
			return c.Tell(ctx, tool.Result{}, err)
		}
		if first {
			if aside {
				c.Back()
			}
			return r.lead(ctx, inner, k, x, c)
		}
		if !aside {
			aside = true
			c.Aside()
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			r.leave(x, context.Cause(ctx), false)
			return c.Tell(ctx, tool.Result{}, cancelled(ctx))
		}
		if x.final && x.sum == k.sum {
			return x.out.tell(ctx, c)
		}
	}
}

// enter joins the run of a call, or begins it.
func (r *Records) enter(ctx context.Context, k Key) (inner context.Context, x *making, first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.runs[k.store]; x != nil {
		if x.sum != k.sum && x.ctx.Err() == nil { // else it is over at once, and the id may be free
			return nil, nil, false, otherCall(k)
		}
		x.others++
		return nil, x, false, nil
	}
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	x = &making{sum: k.sum, ctx: inner, cancel: cancel, done: make(chan struct{}), led: true}
	r.runs[k.store] = x
	return inner, x, true, nil
}

// leave says that a request for a call was cancelled. A connection that is lost ends the call only if nobody else waits
// for it.
func (r *Records) leave(x *making, cause error, lead bool) {
	r.mu.Lock()
	if lead {
		x.led = false
	} else {
		x.others--
	}
	alone := !x.led && x.others == 0
	r.mu.Unlock()
	if alone || !errors.Is(cause, jsonrpc.ErrClosed) {
		x.cancel(cause)
	}
}

// Followed says whether other requests wait for the call than the one that makes it.
func (a *Attempt) Followed() bool {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	return a.run.others > 0
}

// lead makes the call of a run, or finds what became of it. ctx is that of the request, inner that of the run.
func (r *Records) lead(ctx, inner context.Context, k Key, x *making, c Caller) request.Answer {
	var out outcome
	final := false
	defer func() { // also after a panic, whose call was cut off
		r.mu.Lock()
		x.out, x.final = out, final
		delete(r.runs, k.store)
		r.mu.Unlock()
		x.cancel(nil)
		close(x.done)
	}()
	stop := context.AfterFunc(ctx, func() { r.leave(x, context.Cause(ctx), true) })
	defer stop()

	p, err := r.look(inner, k)
	if err != nil {
		return c.Tell(inner, tool.Result{}, err)
	}
	if p.memo != nil {
		if err := c.Admit(); err != nil {
			return c.Tell(inner, tool.Result{}, err)
		}
		became, made := r.settle(inner, p, c)
		if !p.Done {
			c.Settled(p.Call, p.Tool, became.word(made))
		}
		if made {
			out, final = became, true
			return out.tell(inner, c)
		}
	}
	a := &Attempt{r: r, key: k, run: x, past: p}
	out.answer = c.Make(inner, a)
	cause := context.Cause(inner)
	switch cut := out.answer.Interrupted || out.answer.Err != nil; {
	case a.begun == nil: // nothing was done: the next request may have a client that can be asked
	case !cut:
		a.done(context.WithoutCancel(inner), out.answer)
		final = true
	case errors.Is(cause, jsonrpc.ErrCancelled): // for all who wait
		a.void(context.WithoutCancel(inner))
		final = true
	}
	return out.answer
}

// tell makes the answer to one request.
func (o outcome) tell(ctx context.Context, c Caller) request.Answer {
	if o.err != nil || o.answer.Result == nil && o.answer.Err == nil {
		return c.Tell(ctx, o.result, o.err)
	}
	return o.answer
}

// word is the outcome of a call that was cut off, for the record.
func (o outcome) word(made bool) string {
	switch {
	case !made:
		return "again"
	case o.err == nil:
		return "done"
	}
	if refusal, ok := errors.AsType[*tool.Refusal](o.err); ok && refusal.Code == tool.OutcomeUnknown {
		return "unknown"
	}
	return "not known yet"
}
