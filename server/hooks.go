package server

import (
	"context"
	"log/slog"
	"slices"

	"codehand/server/engines"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// useHooks makes the engine that runs the operator's programs, and lets the corridor and the sessions use it.
func (s *Server) useHooks(o engines.Options) error {
	runner, around, err := o.Hooks()
	if err != nil {
		return err
	}
	s.engines.hooks = runner
	if around {
		s.pipe.Hooks = runner
		h := herald{engines: s.engines, log: s.replies.Log}
		s.sessions.Began, s.sessions.Ended = h.began, h.ended
	}
	switch permissions := o.Config.Permissions; {
	case len(permissions.Classifier) > 0:
		s.pipe.Classify = runner.Classify
	case permissions.Mode == permission.Auto:
		s.replies.Log.Warn("permissions.mode auto acts like default, because there is no permissions.classifier",
			"from", o.Config.Origin("permissions.mode"))
	}
	return nil
}

// Where a session comes from.
const (
	startup = "startup" // nothing is known of it
	resume  = "resume"  // it is in the Store
)

const (
	// beginKey is there when hooks were told of the session.
	beginKey = "cell.begun"
)

// A herald tells hooks when sessions begin and end.
type herald struct {
	engines *shared
	log     *slog.Logger
}

// began tells hooks that a session has handles again, or for the first time.
func (h herald) began(st *session.State) {
	r := h.engines.hooks
	if !r.Wants(hooks.SessionStart) {
		return
	}
	e := pipeline.SessionEvent(hooks.SessionStart, st)
	e.Source = startup
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	memory := h.engines.memory(st.Key)
	keys, err := memory.Keys(ctx, "")
	if slices.ContainsFunc(keys, func(key string) bool {
		return key != sessions.ClientKey && key != sessions.NoticesCell
	}) {
		e.Source = resume
	} else if err == nil {
		err = memory.Set(ctx, beginKey, []byte("true"))
	}
	if err != nil {
		h.log.Warn("a session may have begun before", "error", err)
	}
	r.Tell(e)
}

// ended tells hooks that the handles of a session are gone.
func (h herald) ended(st *session.State, why string) {
	e := pipeline.SessionEvent(hooks.SessionEnd, st)
	e.Reason = why
	h.engines.hooks.Tell(e)
}

// memory is the part of the Store that one session has.
func (e *shared) memory(key session.Key) state.Store {
	return state.Scoped(e.store, "sess."+state.Hash(key.Principal)+"."+state.Hash(key.Session))
}

// activeCell names the value in which a session keeps the tools that it found.
const activeCell = "cell.active"

// active is what a session has found, without opening it: nothing begins because a client lists.
func (e *shared) active(key session.Key) session.Cell[[]string] {
	return session.NewCell[[]string](e.memory(key), activeCell)
}
