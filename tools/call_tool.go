package tools

import (
	_ "embed"
	"encoding/json"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

//go:embed call_tool.md
var callToolText string

type callToolInput struct {
	Name      string          `json:"name" jsonschema:"name of the tool"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"its arguments"`
}

// callTool has no traits: what its target promises counts. The scope is the least, since that of the target is asked
// for.
var callTool = tool.Define(tool.Def[callToolInput]{
	Spec: tool.Spec{
		Name: "call_tool", Title: "Call tool", Description: callToolText,
		Hint: "call a tool that is not listed", MaxRunes: 50000, Scope: tool.ScopeRead, Family: permission.FamilyNone,
		Traits:    tool.Traits{},
		Example:   `{"name":"list_files","arguments":{"pattern":"**/*","path":"$WORK"}}`,
		NoTargets: "the call that it makes has targets of its own",
	},
	Accept: map[string]string{"tool": "name", "tool_name": "name", "args": "arguments", "input": "arguments",
		"parameters": "arguments"},
	Activity: func(in callToolInput) string { return "Calling " + in.Name },
	Forward:  func(in callToolInput) (string, json.RawMessage) { return in.Name, in.Arguments },
})
