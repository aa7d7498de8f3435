package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/catalog"
	"codehand/tools/results"
	"codehand/tools/tool"
)

const (
	// finder is the tool by which a model finds the others.
	finder = "tool_search"
	// maxTaught is how many characters of a schema an answer teaches.
	maxTaught = 4_000
)

// An aim is the tool that a call is for, with its input. Whoever decides about a call looks at it and not at the name
// that was called, which may be an alias or that of a dispatcher.
type aim struct {
	tool    tool.Tool
	input   json.RawMessage
	through bool // a dispatcher was called
	// refused: the dispatcher's input names nothing that can be called, and tool is the dispatcher; known is what the caller
	// can find. nil: it names something.
	refused func(known []catalog.Entry) *tool.Refusal
}

// aim is what a call is for; nil: the request is no call of a tool of ours. It is found when the call comes in, before the
// call takes its places in the queues, and does not change. It belongs to the goroutine that has the record.
func (s *Server) aim(rec *record) *aim {
	if rec.aim == nil && rec.env.Method == string(mcp.MethodToolsCall) {
		if t, ours := s.table[rec.env.Name]; ours {
			found := s.aimAt(rec.place, t, rec.env.Arguments)
			rec.aim = &found
		}
	}
	return rec.aim
}

// aimAt follows a dispatcher. One that is switched off here leads nowhere, so that it is refused itself.
func (s *Server) aimAt(at *place, t tool.Tool, input json.RawMessage) aim {
	own := aim{tool: t, input: input}
	if !t.Dispatches() || at.off(t) {
		return own
	}
	name, inner, ok := t.Forward(input)
	if !ok {
		return own // Bind has the words
	}
	target, known := s.find(name)
	switch {
	case !known:
		own.refused = func(known []catalog.Entry) *tool.Refusal { return s.noSuchTool(at, known, name) }
	case target.Dispatches():
		own.refused = func([]catalog.Entry) *tool.Refusal {
			return &tool.Refusal{Code: tool.InputInvalid, Text: target.Spec.Name + " cannot be called through " + t.Spec.Name + `. Put the tool that you need into "name".`}
		}
	default:
		return aim{tool: target, input: inner, through: true}
	}
	return own
}

// misled is the refusal of a call that names nothing that can be called; nil: it names something.
func (a *aim) misled(known []catalog.Entry) *tool.Refusal {
	if a.refused == nil {
		return nil
	}
	return a.refused(known)
}

// find finds a tool by its name or an alias, in any case. Blanks around it are no part of it: an error that names them
// would read as if the tool that it proposes were unknown.
func (s *Server) find(name string) (t tool.Tool, ok bool) {
	name = strings.TrimSpace(name)
	if t, ok = s.table[name]; ok {
		return t, true
	}
	for known, t := range s.table { // no two tools have names that differ in case alone: selfCheck
		if strings.EqualFold(known, name) {
			return t, true
		}
	}
	return tool.Tool{}, false
}

// noSuchTool is unknownTool for a model that chose the name by itself.
func (s *Server) noSuchTool(at *place, known []catalog.Entry, name string) *tool.Refusal {
	text := "Unknown tool: " + results.Line(name, 80) + "."
	if near := catalog.Nearest(known, name); len(near) > 0 {
		text += " Nearest: " + strings.Join(near, ", ") + "."
	}
	if s.findable(at) {
		text += " Use " + finder + " to find tools."
	}
	return &tool.Refusal{Code: tool.UnknownTool, Text: text}
}

// findable says whether the sessions of a place can search for tools.
func (s *Server) findable(at *place) bool {
	t, ok := s.table[finder]
	return ok && !at.off(t)
}

// teach says what a model needs whose input for a tool does not fit: the schema, if a dispatcher was to bring it there,
// else where a schema is found that was never shown. "": it has seen it.
func (s *Server) teach(ctx context.Context, rec *record) string {
	t, name := rec.aim.tool, rec.aim.tool.Spec.Name
	if rec.aim.through {
		schema := []rune(string(t.Schema))
		if len(schema) <= maxTaught {
			return "The schema of " + name + ": " + string(schema)
		}
		return "The schema of " + name + ", cut: " + string(schema[:maxTaught-1]) + "…"
	}
	if !s.lists.defers(t) || rec.state.Client.SeesAll || !s.findable(rec.place) {
		return ""
	}
	if active, err := rec.state.Active.Load(ctx); err == nil && slices.Contains(active, name) {
		return ""
	}
	return "The schema of this tool was not loaded. Call " + finder + ` with "select:` + name + `".`
}
