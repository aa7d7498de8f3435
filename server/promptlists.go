package server

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/prompts"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// shownPrompts is what the client was shown of the prompts: its own, or without a connection that of its session in
// use; nil: the session is not in use.
func (t *turn) shownPrompts() *sessions.PromptMark {
	if t.Req.Client.Prompts != nil {
		return t.Req.Client.Prompts
	}
	return t.s.sessions.PromptMark(t.Req.Session, t.Req.Tenant)
}

// tellPrompts tells the client of a call, before the answer, that there are other prompts than those which it was
// shown. They may be those of another session than the call's. Skills are looked for only after a call that may have
// changed some, where prompts were listed, and for a bounded time: the answer waits for it.
func (t *toolCall) tellPrompts(ctx context.Context, result tool.Result) {
	shown := t.shownPrompts()
	of, ok := shown.Shown()
	if !ok || !t.mayChangeSkills(ctx, result) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.s.skillTime)
	defer cancel()
	all, err := t.promptsOf(ctx, of)
	if err != nil {
		// The next list has them.
		t.s.replies.Log.DebugContext(ctx, "skills were not looked for after a call", "err", err)
		return
	}
	if !shown.Moves(of, prompts.Digest(all)) {
		return
	}
	if t.Req.Client.Modern {
		t.s.hub.Announce(t.Req.Session, mcp.MethodNotificationPromptsListChanged)
		return
	}
	// a client that is not told sees them when it lists
	_ = t.Req.Peer.Notify(mcp.MethodNotificationPromptsListChanged, nil)
}

// promptsOf are the prompts of a session of the caller.
func (t *toolCall) promptsOf(ctx context.Context, key session.Key) ([]prompts.Prompt, error) {
	if key == t.State.Key {
		return t.s.gate.prompts.List(ctx, t.View())
	}
	state, release, err := t.s.sessions.Acquire(key, t.Req.Tenant)
	if err != nil {
		return nil, err
	}
	defer release()
	return t.s.gate.prompts.List(ctx, resources.View{State: state, Tenant: t.Req.Tenant})
}

// mayChangeSkills says whether a call may have changed which skills there are: it ran a command that may write, changed
// a file where skills are, or moved.
func (t *toolCall) mayChangeSkills(ctx context.Context, result tool.Result) bool {
	near := func(f tool.FileChange) bool { return nearSkills(t.Req.Tenant, f.Path) }
	if t.visit.Commanded() || slices.ContainsFunc(result.Meta.Files, near) {
		return true
	}
	cwd, err := t.State.Cwd.Load(ctx)
	return err == nil && cmp.Or(cwd, t.State.Usual.Cwd) != t.State.Space.Cwd()
}

// nearSkills says whether skills of a tenant may lie at a path.
func nearSkills(at *tenants.Tenant, file string) bool {
	for _, d := range at.SkillDirs {
		if rel, err := filepath.Rel(d.Path, file); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	return slices.Contains(parts, ".claude") || slices.Contains(parts, ".codehand")
}
