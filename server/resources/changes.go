package resources

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

const (
	changesURI   = "codehand://changes"
	changePrefix = changesURI + "/" // the id of the change follows
	// historian is the tool that knows which changes a session may see, and how they are shown.
	historian = "file_history"
	// noChanges is what it says as JSON if it has looked at all of them.
	noChanges = `{"changes":[],"more":false}`
	// listedChanges is how many changes the list has at most: the newest.
	listedChanges = 200
	// glancedChanges and glanceTime bound how much of the journal resources/list may read, and for how long, to find
	// whether there are changes: clients list resources often, and a journal may hold a month.
	glancedChanges = 500
	glanceTime     = 50 * time.Millisecond
)

var changesResource = mcp.NewResource(changesURI,
	"changes", mcp.WithResourceDescription("What tools changed in this workspace, newest first."),
	mcp.WithMIMEType(textJSON))

// history is what the tool that lists changes answers to the caller's session. It fails with ErrNone if the call would
// need a person's permission, if the tool is switched off, or if there is nothing of the kind.
func (l *Library) history(ctx context.Context, v View, input map[string]any) (string, error) {
	t, ok := l.Find(historian)
	if !ok || !v.Reads() || v.State.Files == nil || v.Tenant.Off(t) || t.Unavailable(v.State) != "" {
		return "", ErrNone
	}
	raw, err := jsonrpc.Marshal(input)
	if err != nil {
		return "", err
	}
	said, err := l.Pipe.Explain(ctx, v.State, t, raw)
	if err != nil {
		return "", err
	}
	if said.Refusal != nil || said.Decision.Verdict != permission.Allow {
		return "", ErrNone
	}
	call, err := t.Bind(v.State, raw)
	if err != nil {
		return "", err
	}
	res, err := call.Run(ctx,
		tool.Env{State: v.State, Limit: maxPage - noteRoom, Progress: func(float64, float64, string) {}})
	if refused, ok := errors.AsType[*tool.Refusal](err); ok && refused.Code == tool.ChangeUnknown {
		return "", ErrNone
	}
	return res.Text, err
}

// changes are the newest ones that the caller's session may see, as JSON.
func (l *Library) changes(ctx context.Context, v View, most int) ([]json.RawMessage, error) {
	text, err := l.history(ctx, v, map[string]any{"format": "json", "limit": most})
	if err != nil {
		return nil, err
	}
	var list struct {
		Changes []json.RawMessage `json:"changes"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("changes: %w", err)
	}
	return list.Changes, nil
}

// listChanges lists the changes as one resource, if there are any, or may be some that a short look did not find. Each
// has an address of its own, which completions find.
func (l *Library) listChanges(ctx context.Context, v View) ([]mcp.Resource, error) {
	short, stop := context.WithTimeout(ctx, cmp.Or(l.Glance, glanceTime))
	defer stop()
	text, err := l.history(short, v, map[string]any{"format": "json", "limit": 1, "among": glancedChanges})
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return nil, err
	}
	if err == nil && text == noChanges {
		return nil, nil
	}
	return []mcp.Resource{changesResource}, nil
}

// readChanges returns the newest changes as JSON.
func (l *Library) readChanges(ctx context.Context, v View) (string, error) {
	list, err := l.changes(ctx, v, listedChanges)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	raw, err := jsonrpc.Marshal(append([]json.RawMessage{}, list...))
	if err == nil {
		err = json.Indent(&b, raw, "", " ")
	}
	return b.String(), err
}

// readChange returns lines of what a change did.
func (l *Library) readChange(ctx context.Context, v View, at resourceAt) (string, error) {
	text, err := l.history(ctx, v, map[string]any{"change_id": at.change})
	if err != nil {
		return "", err
	}
	return at.page(text)
}

// changeIDs are the ids of the newest changes.
func (l *Library) changeIDs(ctx context.Context, v View) ([]string, error) {
	list, err := l.changes(ctx, v, listedChanges)
	if errors.Is(err, ErrNone) {
		return nil, nil
	}
	var ids []string
	for _, raw := range list {
		var c struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, fmt.Errorf("changes: %w", err)
		}
		ids = append(ids, c.ID)
	}
	return ids, err
}
