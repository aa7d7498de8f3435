package pipeline

import (
	"context"
	"sync"
	"sync/atomic"

	"codehand/tools/hooks"
)

// fakeHooks are hooks as functions; nil: they say nothing.
type fakeHooks struct {
	before, asked, after func(context.Context, hooks.Event) (hooks.Outcome, error)
	ran                  atomic.Int64 // of before

	mu   sync.Mutex
	told []hooks.Event
}

func (f *fakeHooks) Before(ctx context.Context, e hooks.Event) (hooks.Outcome, error) {
	f.ran.Add(1)
	if f.before == nil {
		return hooks.Outcome{}, nil
	}
	return f.before(ctx, e)
}

func (f *fakeHooks) After(ctx context.Context, e hooks.Event) (hooks.Outcome, error) {
	if f.after == nil {
		return hooks.Outcome{}, nil
	}
	return f.after(ctx, e)
}

func (f *fakeHooks) Asked(ctx context.Context, e hooks.Event) (hooks.Outcome, error) {
	if f.asked == nil {
		return hooks.Outcome{}, nil
	}
	return f.asked(ctx, e)
}

func (f *fakeHooks) Wants(string) bool { return true }

func (f *fakeHooks) Tell(e hooks.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, e)
}
