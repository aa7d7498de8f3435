package pipeline

import (
	"context"
	"sync/atomic"
)

// fakeHooks are hooks as functions; nil: they say nothing.
type fakeHooks struct {
	before, after func(context.Context, Event) (Outcome, error)
	ran           atomic.Int64 // of before
}

func (f *fakeHooks) Before(ctx context.Context, e Event) (Outcome, error) {
	f.ran.Add(1)
	if f.before == nil {
		return Outcome{}, nil
	}
	return f.before(ctx, e)
}

func (f *fakeHooks) After(ctx context.Context, e Event) (Outcome, error) {
	if f.after == nil {
		return Outcome{}, nil
	}
	return f.after(ctx, e)
}
