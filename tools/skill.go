package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed skill.md
var skillToolText string

type skillToolInput struct {
	Skill string `json:"skill,omitempty" jsonschema:"name of the skill; absent: list them" rule:"maxlen=200"`
	Args  string `json:"args,omitempty" jsonschema:"arguments for the skill" rule:"maxlen=40000"`
}

var skillTool = tool.Define(tool.Def[skillToolInput]{
	Spec: tool.Spec{
		Name: "skill", Aliases: []string{"Skill"}, Title: "Load skill", Description: skillToolText,
		Hint: "load a packaged skill's instructions", MaxRunes: 50000, Scope: tool.ScopeRead,
		Traits: tool.Traits{Private: true, Additive: true, Local: true},
	},
	Activity: func(skillToolInput) string { return "Loading a skill" },
	Run:      runSkillTool,
})

func runSkillTool(_ context.Context, _ tool.Env, _ skillToolInput) (tool.Result, error) {
	return tool.Result{}, errors.New("skill is being built")
}
