package server

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/tool"
)

// list replaces what mcp-go would list: no aliases, nothing that is switched off, the core before the deferred tools,
// by name within each part. What it leaves out stays callable, but for tools that a rule forbids. The list depends on
// configuration alone, so its bytes are the same in every process.
func (s *Server) list(_ context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	result.Tools = s.listed
}

// arrange makes the list once, at start.
func (s *Server) arrange(tools []tool.Tool) []mcp.Tool {
	var kept []tool.Tool
	for _, t := range tools {
		if !s.off(t) {
			kept = append(kept, t)
		}
	}
	slices.SortFunc(kept, func(a, b tool.Tool) int {
		if a.Spec.Deferred != b.Spec.Deferred {
			if a.Spec.Deferred {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Spec.Name, b.Spec.Name)
	})
	listed := make([]mcp.Tool, 0, len(kept))
	for _, t := range kept {
		listed = append(listed, describeTool(t))
	}
	return listed
}

// off says that no session of this process can use the tool: a bare deny rule forbids it, or its back-end is missing.
func (s *Server) off(t tool.Tool) bool {
	return s.rules.Off(t.Spec.Name, t.Spec.Aliases) || t.Unavailable(s.bare) != ""
}

// An Entry is one tool as tools/list shows it, for people.
type Entry struct {
	Tool tool.Tool
	JSON []byte // the entry of tools/list
}

// Tokens estimates what the entry costs in a model's context: bytes / 4.
func (e Entry) Tokens() int { return (len(e.JSON) + 3) / 4 }

// List returns what tools/list shows, in its order.
func (s *Server) List() []Entry {
	entries := make([]Entry, 0, len(s.listed))
	for _, d := range s.listed {
		b, err := marshal(d)
		if err != nil {
			continue // the self-check refused to start with such a tool
		}
		entries = append(entries, Entry{Tool: s.table[d.Name], JSON: b})
	}
	return entries
}
