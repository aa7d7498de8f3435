package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"codehand/tools/mounts"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed list_mcp_resources.md
var listMcpResourcesText string

type listMcpResourcesInput struct {
	Server string `json:"server,omitempty" jsonschema:"absent: all" rule:"maxlen=100"`
}

// mostResources is how many resources a list has.
const mostResources = 500

// listMcpResources may start a server, as tool_search does; what it says stays between marks.
func listMcpResources(mounted *mounts.Mounts) tool.Tool {
	return tool.Define(tool.Def[listMcpResourcesInput]{
		Spec: tool.Spec{
			Name: "list_mcp_resources", Aliases: []string{"ListMcpResourcesTool"}, Title: "List MCP resources",
			Description: strings.TrimSpace(listMcpResourcesText) + mounted.Sentence(),
			Hint:        "list resources of mcp servers", Deferred: true, Scope: tool.ScopeRead,
			Family: permission.FamilyNone,
			// Ungated: a server may take its time.
			Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Ungated: true},
			ForAgents: tool.AllAgents,
			Example:   `{"server":"codehand"}`,
			NoTargets: "it lists what servers offer; rules about a server leave it out",
			Finds:     []string{"list mcp resources", "mcp resources", "resources of servers", "ListMcpResourcesTool"},
		},
		Activity: func(listMcpResourcesInput) string { return "Listing resources" },
		Check:    func(in listMcpResourcesInput) error { return mounted.Check(in.Server) },
		Run: func(ctx context.Context, env tool.Env, in listMcpResourcesInput) (tool.Result, error) {
			return runListMcpResources(ctx, env, mounted, in.Server)
		},
	})
}

func runListMcpResources(ctx context.Context, env tool.Env, mounted *mounts.Mounts, server string) (
	tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	servers := []string{server}
	if server == "" {
		servers = append([]string{mounts.Own}, mounted.Names()...)
	}
	var lines, notes, asked []string
	left := 0
	for _, name := range servers {
		switch d := mounts.Ruled(env.State, name, permission.Bypass); {
		case name == mounts.Own:
			own, err := ownResources(ctx, env)
			if err != nil {
				return tool.Result{}, err
			}
			lines = append(lines, own...)
		case d.Verdict != permission.Deny:
			asked = append(asked, name)
		case server != "":
			return tool.Result{}, tool.Refuse(tool.PermissionDenied, "Permission denied: the resources of server %s: "+
				"rule %s, %s. The operator can remove that rule.", name, d.Rule, d.Origin)
		}
	}
	for _, of := range mounted.Resources(ctx, env, asked, mostResources) {
		if r, ok := errors.AsType[*tool.Refusal](of.Err); ok && server == "" {
			notes = append(notes, "Left out: server "+of.Server+" ("+string(r.Code)+").")
		} else if of.Err != nil {
			return tool.Result{}, of.Err
		}
		left += of.Left
		for _, r := range of.All {
			uri := r.URI
			if r.Template != "" {
				uri = r.Template + " (template)"
			}
			lines = append(lines, resourceLine(of.Server, uri, r.Name, r.Title, r.MIME, r.Size))
		}
	}
	if n := len(lines) - mostResources; n > 0 {
		lines, left = lines[:mostResources], left+n
	}
	text := "No resources."
	if len(lines) > 0 {
		text = results.Fence(strings.Join(lines, "\n"))
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d more resources are left out.", left))
	}
	return tool.Result{Text: strings.Join(append([]string{text}, notes...), "\n")}, nil
}

func ownResources(ctx context.Context, env tool.Env) (lines []string, err error) {
	if env.Library == nil {
		return nil, nil
	}
	all, err := env.Library.List(ctx)
	if err != nil {
		return nil, wording.StateFault(ctx, err)
	}
	for _, r := range all {
		lines = append(lines, resourceLine(mounts.Own, r.URI, r.Name, r.Title, r.MIME, r.Size))
	}
	return lines, nil
}

// resourceLine is one line of the list. Names may be foreign.
func resourceLine(server, uri, name, title, mime string, size *int64) string {
	if title != "" && title != name {
		name += " (" + title + ")"
	}
	line := server + ": " + wording.LineOf(results.Clean(uri), 500)
	for _, part := range []string{wording.LineOf(results.Clean(name), 120), wording.LineOf(results.Clean(mime), 60)} {
		if part != "" {
			line += "  " + part
		}
	}
	if size != nil && *size >= 0 {
		line += "  " + results.Count(int(*size)) + " bytes"
	}
	return line
}
