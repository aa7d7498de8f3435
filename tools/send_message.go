package tools

import (
	"context"
	_ "embed"

	subagent "codehand/tools/agent"
	"codehand/tools/delegating"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

//go:embed send_message.md
var sendMessageText string

type sendMessageInput struct {
	To      string `json:"to" jsonschema:"name or id of the sub-agent" rule:"minlen=1 maxrunes=100"`
	Message string `json:"message" jsonschema:"what it is to read" rule:"minlen=1 maxrunes=20000"`
}

func sendMessage(runner *subagent.Runner) tool.Tool {
	return tool.Define(tool.Def[sendMessageInput]{
		Spec: tool.Spec{
			Name: "send_message", Aliases: []string{"SendMessage"}, Title: "Message sub-agent",
			Description: sendMessageText, Hint: "message, talk to, continue or resume a running sub-agent",
			Deferred: true, Backed: true, MaxRunes: 32_000,
			Scope: tool.ScopeRead, Family: permission.FamilyNone,
			Traits:    tool.Traits{Ungated: true},
			Reports:   true,
			Example:   `{"to":"search","message":"Look in the tests, too."}`,
			NoTargets: "a sub-agent of this session is named, which no rule is about",
			Finds: []string{
				"send message to agent", "send a message", "continue a running sub-agent", "talk to running agent",
				"resume running agent", "message the running sub-agent", "send_message",
				"send follow-up message to agent", "message to agent", "SendMessage",
			},
		},
		Accept: map[string]string{"agent_id": "to", "name": "to", "recipient": "to", "content": "message",
			"prompt": "message"},
		Available: func(s *session.State) string {
			switch runner.InForce(s.Samples) {
			case subagent.None:
				return "no model back-end is configured, so no sub-agent runs"
			case subagent.Program:
				if len(runner.Command.Resume) == 0 {
					return "the back-end (agent.command) keeps no transcripts; agent.command.argv_resume can say how " +
						"to go on"
				}
			}
			return ""
		},
		Traits: func(s *session.State, _ sendMessageInput) tool.Traits {
			if runner.InForce(s.Samples) == subagent.Program {
				return tool.Traits{Ungated: true}
			}
			return tool.Traits{Private: true, Ungated: true}
		},
		Activity: func(in sendMessageInput) string { return "Messaging " + in.To },
		Run: func(ctx context.Context, env tool.Env, in sendMessageInput) (tool.Result, error) {
			return delegating.Send(ctx, env, runner, in.To, in.Message)
		},
	})
}
