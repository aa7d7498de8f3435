package tools

import (
	"context"
	_ "embed"

	"codehand/tools/handover"
	"codehand/tools/past"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

//go:embed session_digest.md
var sessionDigestText string

type sessionDigestInput struct {
	Session string `json:"session,omitempty" jsonschema:"only this one, as the digest names it" rule:"maxrunes=64"`
}

// sessionDigest has no record of calls where there is no engine.
func sessionDigest(records past.Records) tool.Tool {
	return tool.Define(tool.Def[sessionDigestInput]{
		Spec: tool.Spec{
			Name: "session_digest", Title: "Hand over", Description: sessionDigestText,
			Hint:     "handover, hand over: what happened last session, workspace history",
			Deferred: true, MaxRunes: 10_000, Scope: tool.ScopeRead, Family: permission.FamilyRead,
			Traits:  tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
			Example: `{}`,
			Finds: []string{
				"what happened last session", "continue where we left off", "hand over", "handover", "hand-over",
				"summary of earlier work", "history of this workspace", "what did the previous session do",
				"resume work from the last conversation", "session summary", "session digest",
				"what did earlier sessions do", "pick up where I left off", "unfinished tasks of earlier sessions",
				"which commands failed",
			},
		},
		Targets: func(s *session.State, _ sessionDigestInput) []permission.Target {
			return []permission.Target{{Kind: permission.Path, Value: s.Space.Cwd()}}
		},
		Activity: func(sessionDigestInput) string { return "Reading what was done here" },
		Run: func(ctx context.Context, env tool.Env, in sessionDigestInput) (tool.Result, error) {
			text, err := handover.Text(ctx, env, records, in.Session)
			return tool.Result{Text: text}, err
		},
	})
}
