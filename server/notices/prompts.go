package notices

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/prompts"
	"codehand/server/request"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// ShownPrompts is what the client was shown of the prompts: its own, or without a connection that of its session in
// use; nil: the session is not in use.
func (n *Notifier) ShownPrompts(t *request.Turn) *sessions.PromptMark {
	if t.Req.Client.Prompts != nil {
		return t.Req.Client.Prompts
	}
	return n.Sessions.PromptMark(t.Req.Session, t.Req.Tenant)
}

// TellPrompts tells the client of a call, before the answer, that there are other prompts than those which it was
// shown. They may be those of another session than the call's. Skills are looked for only after a call that may have
// changed some, where prompts were listed, and for a bounded time: the answer waits for it. commanded: the call ran a
// command that may write.
func (n *Notifier) TellPrompts(ctx context.Context, t *request.Turn, commanded bool, result tool.Result) {
	shown := n.ShownPrompts(t)
	of, ok := shown.Shown()
	if !ok || !mayChangeSkills(ctx, t, commanded, result) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.SkillTime)
	defer cancel()
	all, err := n.promptsOf(ctx, t, of)
	if err != nil {
		// The next list has them.
		n.Replies.Log.DebugContext(ctx, "skills were not looked for after a call", "err", err)
		return
	}
	if !shown.Moves(of, prompts.Digest(all)) {
		return
	}
	if t.Req.Client.Modern {
		n.Hub.Announce(t.Req.Session, mcp.MethodNotificationPromptsListChanged)
		return
	}
	// a client that is not told sees them when it lists
	_ = t.Req.Peer.Notify(mcp.MethodNotificationPromptsListChanged, nil)
}

// promptsOf are the prompts of a session of the caller.
func (n *Notifier) promptsOf(ctx context.Context, t *request.Turn, key session.Key) ([]prompts.Prompt, error) {
	if key == t.State.Key {
		return n.Prompts.List(ctx, t.View())
	}
	state, release, err := n.Sessions.Acquire(key, t.Req.Tenant)
	if err != nil {
		return nil, err
	}
	defer release()
	return n.Prompts.List(ctx, resources.View{State: state, Tenant: t.Req.Tenant})
}

// mayChangeSkills says whether a call may have changed which skills there are: it ran a command that may write, changed
// a file where skills are, or moved.
func mayChangeSkills(ctx context.Context, t *request.Turn, commanded bool, result tool.Result) bool {
	near := func(f tool.FileChange) bool { return nearSkills(t.Req.Tenant, f.Path) }
	if commanded || slices.ContainsFunc(result.Meta.Files, near) {
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
