package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/tools/catalog"
	"codehand/tools/tool"
)

// list replaces what mcp-go would list: no aliases, nothing that is switched off, the core before the deferred tools,
// by name within each part. What it leaves out stays callable, but for tools that a rule or the token forbids. The list
// depends on configuration, rights and whether the client can be asked alone, so its bytes are the same in every process.
func (s *Server) list(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	rec := recordFrom(ctx)
	ours := rec.place.listed
	if !rec.declares(ctx) {
		ours = rec.place.unasked
	}
	if foreign := len(result.Tools) - len(s.table); foreign > 0 { // of Extend
		for _, t := range result.Tools {
			if _, known := s.table[t.Name]; !known {
				ours = append(slices.Clip(ours), t)
			}
		}
	}
	result.Tools = ours
}

// declares says whether the client declared that it can be asked.
func (r *record) declares(ctx context.Context) bool {
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		return info.ClientCapabilities != nil && canElicit(info.ClientCapabilities.Elicitation)
	}
	return r.client != nil && r.client.CanAsk
}

// personal is a list for clients that cannot be asked: where a person must see a call, their own dialog shows it.
func (s *Server) personal(listed []mcp.Tool) []mcp.Tool {
	all := slices.Clone(listed)
	for i, d := range all {
		if !slices.ContainsFunc(s.tools, func(t tool.Tool) bool { return t.Spec.Name == d.Name && t.Spec.Personal }) {
			continue
		}
		meta := maps.Clone(d.Meta.AdditionalFields)
		meta["anthropic/requiresUserInteraction"] = true
		all[i].Meta = &mcp.Meta{AdditionalFields: meta}
	}
	return all
}

// arrange makes the list once, with the place.
func (p *place) arrange(tools []tool.Tool) []mcp.Tool {
	var kept []tool.Tool
	for _, t := range tools {
		if !p.off(t) {
			kept = append(kept, t)
		}
	}
	slices.SortFunc(kept, asListed)
	listed := make([]mcp.Tool, 0, len(kept))
	for _, t := range kept {
		listed = append(listed, describeTool(t))
	}
	return listed
}

// findable is every tool that sessions of this place may find, by name.
func (p *place) findable(tools []tool.Tool) []catalog.Entry {
	var all []catalog.Entry
	for _, t := range tools {
		if !p.off(t) {
			all = append(all, catalog.Entry{
				Name: t.Spec.Name, Aliases: t.Spec.Aliases, Description: t.Spec.Description, Hint: t.Spec.Hint,
				Deferred: t.Spec.Deferred, Schema: t.Schema,
			})
		}
	}
	slices.SortFunc(all, func(a, b catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// asListed orders tools: the core, then the deferred ones, each by name.
func asListed(a, b tool.Tool) int {
	if a.Spec.Deferred != b.Spec.Deferred {
		if a.Spec.Deferred {
			return 1
		}
		return -1
	}
	return strings.Compare(a.Spec.Name, b.Spec.Name)
}

// Digest is the SHA-256, in hex, of what every client of a release is told before it calls anything: the entries of
// tools/list, if nothing is switched off, each on a line, and the instructions. It depends on nothing else, so a list that
// differs was changed by the operator's settings, or by nobody who should have.
func Digest(tools []tool.Tool) (string, error) {
	sum := sha256.New()
	for _, t := range slices.SortedFunc(slices.Values(tools), asListed) {
		b, err := marshal(describeTool(t))
		if err != nil {
			return "", fmt.Errorf("tool %s: %w", t.Spec.Name, err)
		}
		sum.Write(append(b, '\n'))
	}
	sum.Write([]byte(instructions))
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// off says that no session of this place can use the tool: a bare deny rule or the token forbids it, or its back-end is
// missing.
func (p *place) off(t tool.Tool) bool {
	return p.rules.Off(t.Spec.Name, t.Spec.Aliases) || t.Unavailable(p.bare) != "" || p.forbids(t) != nil
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
	entries := make([]Entry, 0, len(s.local.listed))
	for _, d := range s.local.listed {
		b, err := marshal(d)
		if err != nil {
			continue // the self-check refused to start with such a tool
		}
		entries = append(entries, Entry{Tool: s.table[d.Name], JSON: b})
	}
	return entries
}
