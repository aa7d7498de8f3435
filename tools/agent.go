package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"sync"

	subagent "codehand/tools/agent"
	"codehand/tools/delegating"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

//go:embed agent.md
var agentText string

type agentInput struct {
	Description string      `json:"description,omitempty" jsonschema:"3 to 5 words" rule:"maxrunes=100"`
	Prompt      string      `json:"prompt,omitempty" jsonschema:"all of it" rule:"maxrunes=100000"`
	Type        string      `json:"subagent_type,omitempty" jsonschema:"default general-purpose" rule:"maxrunes=64"`
	Model       string      `json:"model,omitempty" jsonschema:"only if asked for" rule:"maxrunes=200"`
	Background  bool        `json:"run_in_background,omitempty" jsonschema:"read it with job_output"`
	Name        string      `json:"name,omitempty" jsonschema:"a-z 0-9 -, for send_message" rule:"maxrunes=40"`
	Tasks       []agentTask `json:"tasks,omitempty" jsonschema:"instead of prompt" rule:"maxitems=5"`
	Isolation   string      `json:"isolation,omitempty" jsonschema:"-" rule:"maxrunes=40"`
	Effort      string      `json:"effort,omitempty" jsonschema:"-" rule:"maxrunes=40"`
}

type agentTask struct {
	Description string `json:"description,omitempty" jsonschema:"3 to 5 words" rule:"maxrunes=100"`
	Prompt      string `json:"prompt" jsonschema:"the whole task" rule:"minlen=1 maxrunes=100000"`
	Type        string `json:"subagent_type,omitempty" jsonschema:"its type" rule:"maxrunes=64"`
}

// agent is Ungated, because the calls of a sub-agent take turns of their own. Where a sub-agent works through such
// calls it is Private: each is decided about by itself, in the mode of its parent. A command line of another agent is
// neither, since the server does not see what it does.
func agent(runner *subagent.Runner) tool.Tool {
	return tool.Define(tool.Def[agentInput]{
		Spec: tool.Spec{
			Name: "agent", Aliases: []string{"Agent"}, Title: "Run sub-agent", Description: agentText,
			Hint: "delegate work to a sub-agent", Deferred: true, MaxRunes: 32_000, Scope: tool.ScopeRead,
			Family:    permission.FamilyNone,
			Traits:    tool.Traits{Ungated: true},
			ForAgents: tool.StartingAgents,
			Reports:   true,
			Answers:   runner.Executor(),
			Example: `{"description":"find the entry point","prompt":"Find where the program starts.",` +
				`"subagent_type":"explore"}`,
			Finds: []string{
				"sub-agent", "delegate work", "run a subagent", "spawn agent", "launch agent for exploration",
				"parallel agents", "explore the codebase with an agent", "second opinion by another agent",
				"delegate research", "start a sub-agent",
			},
		},
		Accept: map[string]string{"type": "subagent_type", "agent_type": "subagent_type", "agent": "subagent_type",
			"task": "prompt"},
		Hidden: []string{"isolation", "effort"},
		Traits: func(s *session.State, _ agentInput) tool.Traits {
			switch runner.InForce(s.Samples) {
			case subagent.None:
				return tool.Traits{ReadOnly: true, Private: true, Ungated: true, Local: true}
			case subagent.Program:
				return tool.Traits{Ungated: true}
			}
			return tool.Traits{Private: true, Ungated: true}
		},
		Targets: func(_ *session.State, in agentInput) []permission.Target {
			var targets []permission.Target
			for _, t := range in.all() {
				targets = append(targets, permission.Target{Kind: permission.Name, Value: subagent.TypeKey(t.Type)})
			}
			return targets
		},
		Activity: func(in agentInput) string {
			all := in.all()
			if len(all) > 1 {
				return fmt.Sprintf("Running %d sub-agents", len(all))
			}
			return "Sub-agent: " + cmp.Or(all[0].Description, all[0].Type)
		},
		Check: checkAgent,
		Run: func(ctx context.Context, env tool.Env, in agentInput) (tool.Result, error) {
			return runAgent(ctx, env, runner, in)
		},
	})
}

// all are the tasks of the input, one or several, each with its type; at least one, for an input that was not checked.
func (in agentInput) all() []agentTask {
	all := slices.Clone(in.Tasks)
	if len(all) == 0 {
		all = []agentTask{{in.Description, in.Prompt, in.Type}}
	}
	for i := range all {
		all[i].Type = cmp.Or(all[i].Type, in.Type, subagent.General)
	}
	return all
}

var agentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9-]*$`) })

func checkAgent(in agentInput) error {
	switch {
	case in.Isolation != "":
		return tool.Refuse(tool.ToolDisabled, "agent cannot isolate a sub-agent (isolation): this version makes no "+
			"worktrees. Call it without isolation; changes of the sub-agent are in the journal under its own id.")
	case in.Prompt == "" && len(in.Tasks) == 0:
		return tool.Invalid("agent", `"prompt" is required`)
	case in.Prompt != "" && len(in.Tasks) > 0:
		return tool.Invalid("agent", `give "prompt" or "tasks", not both`)
	case in.Name != "" && len(in.Tasks) > 0:
		return tool.Invalid("agent", `"name" is for one sub-agent, not for "tasks"`)
	case !agentName().MatchString(in.Name):
		return tool.Invalid("agent", `"name" may have a-z, 0-9 and - only`)
	}
	return nil
}

func runAgent(ctx context.Context, env tool.Env, runner *subagent.Runner, in agentInput) (tool.Result, error) {
	d := delegating.Delegation{
		Env: env, Runner: runner, Background: in.Background, Name: in.Name, Model: in.Model, Effort: in.Effort,
	}
	for _, t := range in.all() {
		d.Tasks = append(d.Tasks, delegating.Task{
			Title: t.Description, Prompt: t.Prompt, Type: t.Type,
		})
	}
	return d.Run(ctx)
}
