package server

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxCompletions is how many values one answer has (the protocol's own limit).
const maxCompletions = 100

// completions completes the variables of resource templates, with what the caller's session has.
type completions struct{ s *Server }

// CompleteResourceArgument returns ids that begin with what was typed, newest first. What it does not know has none.
func (c completions) CompleteResourceArgument(ctx context.Context, uri string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	rec := recordFrom(ctx)
	all, err := rec.ids(ctx, uri, arg.Name)
	if err != nil {
		rec.override = c.s.internal(ctx, "completion", err)
		return &mcp.Completion{}, nil
	}
	found := &mcp.Completion{Values: []string{}}
	for _, id := range all {
		if !strings.HasPrefix(id, arg.Value) {
			continue
		}
		found.Total++
		if len(found.Values) < maxCompletions {
			found.Values = append(found.Values, id)
		}
	}
	found.HasMore = found.Total > len(found.Values)
	return found, nil
}

// ids are those that a template's variable can have in the caller's session.
func (r *record) ids(ctx context.Context, uri, name string) ([]string, error) {
	if !r.reads() || name != "id" {
		return nil, nil
	}
	var ids []string
	switch {
	case strings.HasPrefix(uri, resultPrefix):
		kept, err := r.state.Results.List()
		for _, k := range kept {
			ids = append(ids, k.ID)
		}
		return ids, err
	case strings.HasPrefix(uri, jobPrefix):
		jobs, err := r.jobs(ctx)
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids, err
	}
	return nil, nil
}
