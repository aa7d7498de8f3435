package sessions

import (
	"context"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Locate gives the state its cwd as of now, and the rules that go with it, and what the session has chosen for itself.
// It reads the Store once, and returns what it read, for stage 2 of the pipeline. A call that waits for its turn does
// so before, not after.
// A cwd that no longer lies in a root counts as none; one that was removed stays, and the tools say so.
func Locate(ctx context.Context, st *session.State) (session.Snapshot, *tool.Refusal) {
	shown, err := st.Look(ctx)
	if err != nil {
		return shown, NotRead(ctx, "the current directory is", err)
	}
	cwd, err := st.Cwd.In(ctx, shown)
	if err != nil {
		return shown, NotRead(ctx, "the current directory is", err)
	}
	st.Usual = session.Usual{Cwd: st.Space.Cwd(), MaxRunes: st.Client.MaxRunes, Prefs: st.Prefs}
	if cwd != "" && st.Space.Inside(cwd) {
		st.Space = st.Space.At(cwd)
	}
	trees, err := st.Isolated.In(ctx, shown)
	if err != nil {
		return shown, NotRead(ctx, "the current work tree is", err)
	}
	if st.Worktree = ""; trees.In != "" && st.Space.Inside(trees.In) {
		st.Worktree = trees.In
		// it has the same files, so what rules say of those at the top of the workspace holds for these
		at := []string{trees.In}
		st.Rules, st.Clean = st.Rules.AlsoFrom(at), st.Clean.AlsoFrom(at)
	}
	st.Rules = st.Rules.Moved(st.Space.Cwd())
	chosen, err := st.Choices.In(ctx, shown)
	if err != nil {
		return shown, NotRead(ctx, "the options of this session are", err)
	}
	limit, err := st.Limit.In(ctx, shown)
	if err != nil {
		return shown, NotRead(ctx, "what a person set for this session is", err)
	}
	st.Start, st.Highest = limit.Of(st.Modes)
	st.Said = limit.News
	if err := st.Narrow(ctx, shown); err != nil {
		return shown, NotRead(ctx, "what a person set for this session is", err)
	}
	now := chosen.Under(st.Usual)
	st.Client.MaxRunes, st.Prefs = now.MaxRunes, now.Prefs
	reachPlan(ctx, st, shown)
	return shown, nil
}

// NotRead is the refusal of a call for which the Store was not read. For one that was cancelled it need not be down.
func NotRead(ctx context.Context, what string, err error) *tool.Refusal {
	if ctx.Err() != nil {
		return &tool.Refusal{Code: tool.Interrupted, Text: "Tool execution cancelled by user.",
			Cause: context.Cause(ctx)}
	}
	return &tool.Refusal{Code: tool.StateUnavailable, Text: "The state store does not answer, so " + what +
		" not known. Try again.", Cause: err}
}

// reachPlan opens the session's plan file, which lies outside the roots mostly: for changes in plan mode, and to be
// read later. If the Store does not say, it stays closed.
func reachPlan(ctx context.Context, st *session.State, shown session.Snapshot) {
	plan, err := st.Plan.In(ctx, shown)
	if err != nil || plan.Path == "" {
		return
	}
	if mode, _, err := st.InForceIn(ctx, shown, time.Now()); err == nil && mode == permission.Plan {
		st.Space = st.Space.Writable(plan.Path)
		return
	}
	st.Space = st.Space.ReadableFile(plan.Path)
}
