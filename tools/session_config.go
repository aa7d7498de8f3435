package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed session_config.md
var sessionConfigText string

type sessionConfigInput struct {
	Key   string `json:"key,omitempty" jsonschema:"option; absent: list them" rule:"maxlen=100"`
	Value string `json:"value,omitempty" jsonschema:"new value; absent: show it" rule:"maxlen=4096"`
}

var sessionConfig = tool.Define(tool.Def[sessionConfigInput]{
	Spec: tool.Spec{
		Name: "session_config", Aliases: []string{"Config"}, Title: "Session options", Description: sessionConfigText,
		Hint: "show or change session options and settings", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{Private: true, Additive: true, Idempotent: true, Local: true},
	},
	Activity: func(sessionConfigInput) string { return "Reading session options" },
	Run:      runSessionConfig,
})

func runSessionConfig(_ context.Context, _ tool.Env, _ sessionConfigInput) (tool.Result, error) {
	return tool.Result{}, errors.New("session_config is being built")
}
