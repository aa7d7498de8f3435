package team

import (
	"context"
	"encoding/json"
	"strings"

	"codehand/server/auth"
	"codehand/server/console"
)

// pageChanges are the console.Changes of a team: each is a call of the tool that a model would use, so the same rules
// and the same undo hold.
type pageChanges struct {
	team *Team
	of   *auth.Principal // whose they are, for an administrator; nil: of the person
}

// changesOf is console.Options.ChangesOf.
func (t *Team) changesOf(admin auth.Principal, principal string) (of console.Changes, ok bool) {
	who, ok := t.Porter.Rights(principal)
	if !admin.Admin || !ok {
		return nil, false
	}
	return pageChanges{t, &who}, true
}

// The tools behind the page.
const (
	listTool = "file_history"
	undoTool = "undo_change"
	pastTool = "session_digest"
)

// act makes a call for a person. failed: text says why it was refused.
func (p pageChanges) act(ctx context.Context, who auth.Principal, name string, args any) (text string, failed bool,
	err error) {
	if p.of != nil {
		who = *p.of
	}
	at, err := p.team.Tenants.Of(who)
	if err != nil {
		return "", false, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", false, err
	}
	return p.team.Behind.Act(ctx, at, name, raw)
}

// List is console.Changes.List.
func (p pageChanges) List(ctx context.Context, who auth.Principal, before string) (list []console.Change, more bool,
	said string, err error) {
	args := map[string]any{"format": "json", "limit": 200}
	if before != "" {
		args["before"] = before
	}
	text, failed, err := p.act(ctx, who, listTool, args)
	if err != nil || failed {
		return nil, false, text, err
	}
	var page struct {
		Changes []console.Change `json:"changes"`
		More    bool             `json:"more"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		return nil, false, "", err
	}
	return page.Changes, page.More, "", nil
}

// Show is console.Changes.Show.
func (p pageChanges) Show(ctx context.Context, who auth.Principal, id string) (text string, failed bool, err error) {
	return p.act(ctx, who, listTool, map[string]any{"change_id": id})
}

// Undo is console.Changes.Undo.
func (p pageChanges) Undo(ctx context.Context, who auth.Principal, id string, part console.Extent) (said string,
	done bool, err error) {
	text, failed, err := p.act(ctx, who, undoTool, struct {
		Change string `json:"change_id"`
		console.Extent
	}{id, part})
	if p.of != nil && err == nil && !failed {
		p.team.Event("page.undo", map[string]any{"p": p.of.ID, "by": who.ID, "change": id})
	}
	return strings.TrimSpace(text), err == nil && !failed, err
}

// HandOver is console.Changes.HandOver.
func (p pageChanges) HandOver(ctx context.Context, who auth.Principal, session string, whole bool) (string, error) {
	args := map[string]any{}
	if session != "" && !whole {
		args["session"] = session
	}
	text, _, err := p.act(ctx, who, pastTool, args)
	return text, err
}
