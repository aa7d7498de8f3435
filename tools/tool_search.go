package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed tool_search.md
var toolSearchText string

type toolSearchInput struct {
	Query      string `json:"query" jsonschema:"select:NAME,NAME for exact names, else words; +word must be in the name" rule:"minlen=1 maxlen=1000"`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"most tools to return" rule:"min=1 max=20 default=5"`
}

var toolSearch = tool.Define(tool.Def[toolSearchInput]{
	Spec: tool.Spec{
		Name: "tool_search", Aliases: []string{"ToolSearch"}, Title: "Find tools", Description: toolSearchText,
		Hint: "find and load further tools", MaxRunes: 50000, Scope: tool.ScopeRead,
		Traits: tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
	},
	Activity: func(toolSearchInput) string { return "Looking for tools" },
	Run:      runToolSearch,
})

func runToolSearch(_ context.Context, _ tool.Env, _ toolSearchInput) (tool.Result, error) {
	return tool.Result{}, errors.New("tool_search is being built")
}
