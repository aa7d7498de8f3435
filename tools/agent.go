package tools

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	subagent "codehand/tools/agent"
	"codehand/tools/delegating"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/worktrees"
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
	Isolation   string      `json:"isolation,omitempty" jsonschema:"own git work tree" rule:"enum=worktree"`
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
			Hint: "delegate or hand off work to a sub-agent", Deferred: true, MaxRunes: 32_000, Scope: tool.ScopeRead,
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
		Hidden: []string{"effort"},
		Traits: func(s *session.State, in agentInput) tool.Traits {
			switch runner.InForce(s.Samples) {
			case subagent.None:
				return tool.Traits{ReadOnly: true, Private: true, Ungated: true, Local: true}
			case subagent.Program:
				return tool.Traits{Ungated: true}
			}
			// a work tree is made where a command of git would need no question
			return tool.Traits{Private: in.Isolation == "" || s.Confine.Trusted(), Ungated: true}
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
	if in.Isolation != "" {
		d.Isolate = func(ctx context.Context) (worktrees.Isolated, error) { return isolateAgent(ctx, env) }
	}
	for _, t := range in.all() {
		d.Tasks = append(d.Tasks, delegating.Task{
			Title: t.Description, Prompt: t.Prompt, Type: t.Type,
		})
	}
	return d.Run(ctx)
}

// isolateAgent makes a work tree for a sub-agent, by a call of enter_worktree: rules, modes and hooks decide about it
// as if the model had called that, but nobody is asked once more: the approval of this call is enough.
func isolateAgent(ctx context.Context, env tool.Env) (worktrees.Isolated, error) {
	if env.Worktree != "" || env.Apart.Tree != "" {
		return worktrees.Isolated{}, tool.Refuse(tool.InWorktree, "This session works in a work tree already, and so "+
			"do its sub-agents. Call agent without isolation.")
	}
	if env.Call == nil {
		return worktrees.Isolated{}, tool.Refuse(tool.ToolDisabled, "agent cannot isolate a sub-agent from within "+
			"another call. Call it directly.")
	}
	name := worktrees.RandomName()
	input := wording.Data(worktrees.Making{Name: name, Stay: true})
	var loan *tool.Loan
	if !env.Prefs.ManagedRules {
		loan = &tool.Loan{Skill: "agent", Rules: []string{"Bash(git worktree add *)"},
			Life: time.Minute}
	}
	if _, err := env.Call(ctx, "enter_worktree", input, loan); err != nil {
		return worktrees.Isolated{}, err
	}
	return worktrees.Isolate(ctx, env, name)
}
