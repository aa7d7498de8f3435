package places

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codehand/server/auth/limits"
	"codehand/server/pipeline"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/toolset"
	"codehand/tools/tool"
)

// Admit says why the principal may not make a call of this target, or not now. If it may, the state is located. again
// says that the call comes back with an answer, in the same request, and was counted.
func (p Places) Admit(ctx context.Context, t *request.Turn, to *toolset.Target, again bool) pipeline.Admission {
	if refusal := t.Req.Tenant.Forbids(to.Tool); refusal != nil {
		return pipeline.Admission{Refused: refusal}
	}
	for _, place := range p.Queues {
		if ok, err := place.Wait(ctx); err == nil && !ok {
			return pipeline.Admission{Refused: tooManyCalls(time.Second)}
		}
	}
	// Not before its turn: it must see what the calls before it have written.
	located, refusal := sessions.Locate(ctx, t.State)
	if l := t.Req.Caller.Limits; l != nil && refusal == nil {
		if again {
			return pipeline.Admission{Located: located}
		}
		if after, ok := l.Call(); !ok { // last: a call that is refused counts for nothing
			refusal = tooManyCalls(after)
		}
	}
	if refusal == nil { // a call that was cancelled meanwhile ends in the pipeline
		refusal = to.Unknown(t.State.Catalog)
	}
	return pipeline.Admission{Refused: refusal, Located: located}
}

// Told says why the principal may not be told, or not now, what became of a call of a tool that it made before. That
// takes no turn, and counts as a call.
func Told(t *request.Turn, to tool.Tool) *tool.Refusal {
	refusal, l := t.Req.Tenant.Forbids(to), t.Req.Caller.Limits
	if refusal != nil || l == nil {
		return refusal
	}
	if after, ok := l.Call(); !ok {
		return tooManyCalls(after)
	}
	return nil
}

func tooManyCalls(after time.Duration) *tool.Refusal {
	seconds := max(1, int((after+time.Second-1)/time.Second))
	return &tool.Refusal{
		Code: tool.RateLimited,
		Text: fmt.Sprintf("Too many calls. Try again in %d s.", seconds),
		Meta: tool.Meta{Data: json.RawMessage(fmt.Sprintf(`{"retryAfterMs":%d}`, max(after, 0).Milliseconds()))},
	}
}

// Inner is Arrival.Find: it finds tools for calls that the call of this turn makes, which are those of its principal,
// under its scopes and quotas. A foreground command waits for its turn among those of the principal; the place among
// its calls is that of the outer one.
func (d *Desk) Inner(t *request.Turn, name string, arrive func()) (pipeline.Inner, bool) {
	to, ok := d.Tools.Get(name)
	if !ok || to.Dispatches() { // who names a tool needs none that finds it
		return pipeline.Inner{}, false
	}
	var place *limits.Turn
	d.arrival.Lock()
	if t.Req.Caller.Limits != nil && to.Spec.Scope == tool.ScopeShell {
		place = t.Req.Caller.Limits.Shell()
	}
	arrive()
	d.arrival.Unlock()
	leave := func() {
		if place != nil {
			place.Leave()
		}
		d.Kept(t.State.Results.Dir()) // it may have kept an output
	}
	admit := func(ctx context.Context) *tool.Refusal { return admitInner(ctx, t, to, place) }
	return pipeline.Inner{Tool: to, Admit: admit, Leave: leave}, true
}

// admitInner is Admit for a call that another one makes. place is that among the commands; nil: it needs none.
func admitInner(ctx context.Context, t *request.Turn, to tool.Tool, place *limits.Turn) *tool.Refusal {
	l := t.Req.Caller.Limits
	if refusal := t.Req.Tenant.Forbids(to); refusal != nil || l == nil {
		return refusal
	}
	if place != nil {
		if ok, err := place.Wait(ctx); err == nil && !ok {
			return tooManyCalls(time.Second)
		}
	}
	if after, ok := l.Call(); !ok {
		return tooManyCalls(after)
	}
	return nil
}
