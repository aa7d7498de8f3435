package tools

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	subagent "codehand/tools/agent"
	"codehand/tools/catalog"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/skills"
	"codehand/tools/skills/loading"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed skill.md
var skillText string

type skillInput struct {
	Skill string `json:"skill,omitempty" jsonschema:"absent: list all"`
	Args  string `json:"args,omitempty" jsonschema:"for the skill"`
}

// skill is Private: it shows a text, and what the text asks for is done by calls of their own. That is why it is
// Ungated where it may run commands; else it takes a turn, so that the rules which it lends are there for the calls
// behind it.
func skill(runner *subagent.Runner) tool.Tool {
	return tool.Define(tool.Def[skillInput]{
		Spec: tool.Spec{
			Name: "skill", Aliases: []string{"Skill"}, Title: "Load skill", Description: skillText,
			Hint: "load a packaged skill's instructions", MaxRunes: 50_000, Scope: tool.ScopeRead,
			Family:    permission.FamilyNone,
			Traits:    tool.Traits{Private: true, Additive: true, Local: true},
			ForAgents: tool.ChangingAgents,
			Example:   `{}`,
		},
		Accept: map[string]string{"name": "skill", "skill_name": "skill", "arguments": "args"},
		Traits: func(s *session.State, in skillInput) tool.Traits {
			return tool.Traits{Ungated: s.Prefs.SkillShell && in.name() != ""}
		},
		Targets: func(_ *session.State, in skillInput) []permission.Target {
			if in.name() == "" {
				return nil
			}
			return []permission.Target{{Kind: permission.Name, Value: in.name()}}
		},
		Activity: func(in skillInput) string {
			if in.name() == "" {
				return "Listing skills"
			}
			return "Loading skill " + in.name()
		},
		Check: checkSkill,
		Run: func(ctx context.Context, env tool.Env, in skillInput) (tool.Result, error) {
			return runSkill(ctx, env, runner, in)
		},
	})
}

// checkSkill holds the limits that the schema has no room for: every conversation pays for its bytes.
func checkSkill(in skillInput) error {
	if len(in.Skill) > 200 || utf8.RuneCountInString(in.Args) > skills.MaxArguments {
		return tool.Invalid("skill", `"skill" must have at most 200 bytes, and "args" at most 10000 characters`)
	}
	return nil
}

// name is without the slash that people type before it.
func (in skillInput) name() string { return strings.TrimPrefix(strings.TrimSpace(in.Skill), "/") }

func runSkill(ctx context.Context, env tool.Env, runner *subagent.Runner, in skillInput) (tool.Result, error) {
	set, err := env.FindSkills(ctx)
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, env.Space.Cwd(), err)
	}
	if in.name() == "" {
		return tool.Result{Text: skillList(env, set)}, nil
	}
	k, ok := set.Find(in.name())
	switch {
	case !ok:
		return tool.Result{}, tool.Refuse(tool.SkillUnknown, "Unknown skill: %s. %s", wording.LineOf(in.name(), 100),
			skillsNear(set, in.name()))
	case k.ModelOff:
		return tool.Result{},
			tool.Refuse(tool.SkillUserOnly, "Only the user may run %s. Ask them to, or go on without it.", k.Name)
	case k.Fork:
		return tool.Result{}, forAgent(env, runner, k)
	}
	l := loading.Load{Env: env, Skill: k}
	return l.Run(ctx, in.Args)
}

// forAgent is the refusal of a skill that is written for a sub-agent. It is not started here: whether a sub-agent may
// run is decided about a call of agent.
func forAgent(env tool.Env, runner *subagent.Runner, k skills.Skill) error {
	kind := wording.LineOf(cmp.Or(k.Agent, subagent.General), 100)
	able := runner.InForce(env.Samples) != subagent.None && runner.Deeper(env.Depth) &&
		slices.ContainsFunc(env.Catalog, func(e catalog.Entry) bool { return e.Name == "agent" })
	if able {
		return tool.Refuse(tool.ToolDisabled, "The skill %s is for a sub-agent and is not loaded here. Call agent "+
			"with subagent_type %q and a prompt that holds the task and the text of %s.", k.Name, kind, k.File)
	}
	return tool.Refuse(tool.ToolDisabled, "The skill %s is not available: it is for a sub-agent of type %s, and none "+
		"can be started here. Read its text in %s and follow it yourself.", k.Name, kind, k.File)
}

// skillList is the answer to a call without a name. It leaves out skills that only a person may run. If the model
// misses a skill, the list says why it is not there.
func skillList(env tool.Env, set skills.Set) string {
	all := len(set.Skills)
	open := slices.DeleteFunc(slices.Clone(set.Skills), func(k skills.Skill) bool { return k.ModelOff })
	text := "There are no skills to run here. A skill is a directory NAME with a SKILL.md in .codehand/skills or " +
		".claude/skills.\n"
	if len(open) > 0 {
		text = skills.List(open)
	}
	if n := all - len(open); n > 0 {
		text += "[" + wording.Plural(n, "skill that only the user may run is",
			"skills that only the user may run are") + " left out]\n"
	}
	for i, d := range set.Dropped {
		if i == skillsDropped {
			text += "[" + wording.Plural(len(set.Dropped)-i, "more is", "more are") + " left out]\n"
			break
		}
		text += "[" + wording.ShownName(env, d.Path) + ": " + wording.LineOf(d.Reason, 200) + "]\n"
	}
	return strings.TrimSuffix(text, "\n")
}

const (
	skillsDropped = 5  // files that are no skills, and why, in one list
	skillsNamed   = 20 // skills that a refusal names
)

// skillsNear says which skills there are, those first that may have been meant.
func skillsNear(set skills.Set, name string) string {
	var names []string
	for _, k := range set.Skills {
		if !k.ModelOff {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return "There are none here."
	}
	far := func(other string) int {
		a, b := strings.ToLower(wording.Clip(name, 100)), strings.ToLower(other)
		if strings.Contains(b, a) || strings.Contains(a, b) {
			return 0
		}
		return catalog.Distance(a, b)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(far(a), far(b)) })
	if more := len(names) - skillsNamed; more > 0 {
		return "Available: " + strings.Join(names[:skillsNamed], ", ") + " and " + wording.Plural(more, "more.",
			"more.")
	}
	return "Available: " + strings.Join(names, ", ") + "."
}
