// Package toolset says which tools there are: by name and alias, through a dispatcher, and as a client lists them; and
// what is known of the clients that do.
package toolset

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/catalog"
	"codehand/tools/results"
	"codehand/tools/tool"
)

// maxTaught is how many characters of a schema an answer teaches.
const maxTaught = 4_000

// A Set is the tools of a server. It does not change, and is safe for concurrent use.
type Set struct {
	All   []tool.Tool
	Lists Lists

	table map[string]tool.Tool // by name and alias
}

// Rights is what a Set asks a tenant: whether none of its sessions can use a tool.
type Rights interface{ Off(t tool.Tool) bool }

// New makes a Set. The error names two tools that one name could mean, or a name in tools.always that none has.
func New(all []tool.Tool, lists Lists) (Set, error) {
	set := Set{All: all, table: map[string]tool.Tool{}, Lists: lists}
	owner := map[string]string{} // by name in lower case: call_tool takes names in any
	for _, t := range all {
		own := t.Spec.Name
		for _, n := range append([]string{own}, t.Spec.Aliases...) {
			other, taken := owner[strings.ToLower(n)]
			if taken && (other != own || n == own) { // an alias may be the name in another case
				return set, fmt.Errorf("tool %s: the name %s is taken by %s", own, n, other)
			}
			owner[strings.ToLower(n)] = own
			set.table[n] = t
		}
	}
	return set, lists.check(all)
}

// Get finds a tool by its name or an alias, as they are written.
func (set Set) Get(name string) (tool.Tool, bool) {
	t, ok := set.table[name]
	return t, ok
}

// find finds a tool by its name or an alias, in any case. Spaces around it are no part of it: an error that names them
// would read as if the tool that it proposes were unknown.
func (set Set) find(name string) (t tool.Tool, ok bool) {
	name = strings.TrimSpace(name)
	if t, ok = set.table[name]; ok {
		return t, true
	}
	for known, t := range set.table { // no two tools have names that differ in case alone: New
		if strings.EqualFold(known, name) {
			return t, true
		}
	}
	return tool.Tool{}, false
}

// A Target is the tool that a call is for, with its input. Decisions about a call use it and not the called name, which
// may be an alias or that of a dispatcher.
type Target struct {
	Tool    tool.Tool
	Input   json.RawMessage
	Through bool // a dispatcher was called
	// refused: the dispatcher's input names nothing that can be called, and Tool is the dispatcher; known is what the
	// caller can find. nil: it names something.
	refused func(known []catalog.Entry) *tool.Refusal
}

// Follow returns the target of a call of t by a tenant: t, or what a dispatcher leads to. A dispatcher that is switched
// off leads nowhere, so that it is refused itself.
func (set Set) Follow(at Rights, t tool.Tool, input json.RawMessage) Target {
	own := Target{Tool: t, Input: input}
	if !t.Dispatches() || at.Off(t) {
		return own
	}
	name, inner, ok := t.Forward(input)
	if !ok {
		return own // Bind has the words
	}
	found, known := set.find(name)
	switch {
	case !known:
		own.refused = func(known []catalog.Entry) *tool.Refusal { return set.noSuchTool(at, known, name) }
	case found.Dispatches():
		own.refused = func([]catalog.Entry) *tool.Refusal {
			return &tool.Refusal{
				Code: tool.InputInvalid,
				Text: found.Spec.Name + " cannot be called through " + t.Spec.Name +
					`. Give the tool that you need as "name".`,
			}
		}
	default:
		return Target{Tool: found, Input: inner, Through: true}
	}
	return own
}

// Unknown is the refusal of a call that names nothing that can be called; nil: it names something.
func (t *Target) Unknown(known []catalog.Entry) *tool.Refusal {
	if t.refused == nil {
		return nil
	}
	return t.refused(known)
}

// Schema is the schema of the target for a model whose input did not fit, cut if it is long.
func (t *Target) Schema() string {
	schema, name := []rune(string(t.Tool.Schema)), t.Tool.Spec.Name
	if len(schema) <= maxTaught {
		return "The schema of " + name + ": " + string(schema)
	}
	return "The schema of " + name + ", cut: " + string(schema[:maxTaught-1]) + "…"
}

// noSuchTool is Unknown for a model that chose the name by itself.
func (set Set) noSuchTool(at Rights, known []catalog.Entry, name string) *tool.Refusal {
	text := "Unknown tool: " + results.Line(name, 80) + "."
	if near := catalog.Nearest(known, name); len(near) > 0 {
		text += " Nearest: " + strings.Join(near, ", ") + "."
	}
	if set.Findable(at) {
		text += " Use " + Finder + " to find tools."
	}
	return &tool.Refusal{Code: tool.UnknownTool, Text: text}
}

// Findable says whether the sessions of a tenant can search for tools.
func (set Set) Findable(at Rights) bool {
	t, ok := set.table[Finder]
	return ok && !at.Off(t)
}

// Unknown is the error for a tool name that does not exist, with the names of known that may have been meant.
func (set Set) Unknown(known []catalog.Entry, name string) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("unknown tool %q", results.Line(name, 80))}
	if near := catalog.Nearest(known, name); len(near) > 0 {
		e.Message += `; nearest: "` + strings.Join(near, `", "`) + `"`
		e.Data = map[string]any{"nearest": near}
	}
	return e
}
