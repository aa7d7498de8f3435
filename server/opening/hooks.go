package opening

import (
	"context"
	"slices"

	"codehand/server/engines"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/tools/hooks"
	"codehand/tools/session"
)

// Where a session comes from.
const (
	startup = "startup" // nothing is known of it
	resume  = "resume"  // it is in the Store
)

const (
	// beginKey is there when hooks were told of the session.
	beginKey = "cell.begun"
)

// Began tells hooks that a session has handles again, or for the first time.
func (o *Opener) Began(st *session.State) {
	r := o.Engines.Hooks
	if !r.Wants(hooks.SessionStart) {
		return
	}
	e := pipeline.SessionEvent(hooks.SessionStart, st)
	e.Source = startup
	ctx, cancel := context.WithTimeout(context.Background(), engines.StoreTime)
	defer cancel()
	memory := o.Engines.Memory(st.Key)
	keys, err := memory.Keys(ctx, "")
	if slices.ContainsFunc(keys, func(key string) bool {
		return key != sessions.ClientKey && key != sessions.NoticesCell
	}) {
		e.Source = resume
	} else if err == nil {
		err = memory.Set(ctx, beginKey, []byte("true"))
	}
	if err != nil {
		o.Log.Warn("a session may have begun before", "error", err)
	}
	r.Tell(e)
}

// Ended tells hooks that the handles of a session are gone.
func (o *Opener) Ended(st *session.State, why string) {
	e := pipeline.SessionEvent(hooks.SessionEnd, st)
	e.Reason = why
	o.Engines.Hooks.Tell(e)
}
