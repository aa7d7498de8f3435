package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"codehand/tools/mounts"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed read_mcp_resource.md
var readMcpResourceText string

type readMcpResourceInput struct {
	Server string `json:"server" jsonschema:"its name" rule:"minlen=1 maxlen=100"`
	URI    string `json:"uri" rule:"minlen=1 maxlen=4000" jsonschema:"as listed"`
}

// readMcpResource reads, as the protocol has it. An address carries to a mounted server whatever a model has read, so
// a server that the operator does not trust is asked about as a host is, unless a rule allows all of it.
func readMcpResource(mounted *mounts.Mounts) tool.Tool {
	return tool.Define(tool.Def[readMcpResourceInput]{
		Spec: tool.Spec{
			Name: "read_mcp_resource", Aliases: []string{"ReadMcpResourceTool"}, Title: "Read MCP resource",
			Description: strings.TrimSpace(readMcpResourceText) + mounted.Sentence(),
			Hint:        "read a resource of an mcp server by uri", Deferred: true, MaxRunes: 50_000,
			Scope: tool.ScopeRead, Family: permission.FamilyNone,
			// Ungated: a server may take its time.
			Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Ungated: true},
			ForAgents: tool.AllAgents,
			Example:   `{"server":"codehand","uri":"codehand://guide/tools"}`,
			NoTargets: "what this server keeps of the session is its own; a mounted server is a target",
			Finds:     []string{"read mcp resource", "mcp resource by uri", "ReadMcpResourceTool", "read resource"},
		},
		Activity: func(in readMcpResourceInput) string { return "Reading " + wording.LineOf(in.URI, 40) },
		Check:    func(in readMcpResourceInput) error { return mounted.Check(in.Server) },
		Targets: func(s *session.State, in readMcpResourceInput) []permission.Target {
			if in.Server == mounts.Own || mounted.Trusts(in.Server) ||
				mounts.Ruled(s, in.Server, permission.DontAsk).Verdict == permission.Allow {
				return nil
			}
			return []permission.Target{{Kind: permission.Domain, Value: "mcp__" + in.Server}}
		},
		Verdict: func(s *session.State, in readMcpResourceInput) permission.Verdict {
			if in.Server == mounts.Own {
				return permission.Allow
			}
			return mounts.Ruled(s, in.Server, permission.Bypass).Verdict // what a rule about the server says
		},
		Run: func(ctx context.Context, env tool.Env, in readMcpResourceInput) (tool.Result, error) {
			if in.Server == mounts.Own {
				return readOwnResource(ctx, env, in.URI)
			}
			return mounted.ReadResource(ctx, env, "read_mcp_resource", in.Server, in.URI)
		},
	})
}

func readOwnResource(ctx context.Context, env tool.Env, uri string) (tool.Result, error) {
	unknown := tool.Refuse(tool.ResourceUnknown, "This session has no resource %s. list_mcp_resources lists what "+
		"there is.", wording.LineOf(uri, 200))
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if env.Library == nil {
		return tool.Result{}, unknown
	}
	c, wrong, ok, err := env.Library.Read(ctx, uri)
	switch {
	case err != nil:
		return tool.Result{}, wording.StateFault(ctx, err)
	case !ok:
		return tool.Result{}, unknown
	case wrong != "":
		return tool.Result{}, tool.Invalid("read_mcp_resource", `"uri": `+wrong)
	case c.Data != nil:
		path, err := env.Results.Save(env.CallID, "read_mcp_resource", c.Data)
		if err != nil {
			return tool.Result{}, fmt.Errorf("keep a resource: %w", err)
		}
		return tool.Result{Text: fmt.Sprintf("Saved %s bytes (%s) to %s.", results.Count(len(c.Data)),
			wording.LineOf(c.MIME, 60), path)}, nil
	case c.Own:
		return tool.Result{Text: c.Text}, nil
	}
	return tool.Result{Text: results.Fence(c.Text)}, nil
}
