package tools

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed enter_plan_mode.md
var enterPlanModeText string

type enterPlanModeInput struct{}

// enterPlanMode needs no permission: it only takes power away.
var enterPlanMode = tool.Define(tool.Def[enterPlanModeInput]{
	Spec: tool.Spec{
		Name: "enter_plan_mode", Aliases: []string{"EnterPlanMode"}, Title: "Enter plan mode",
		Description: enterPlanModeText, Hint: "start planning mode: design complex work before coding", Deferred: true,
		MaxRunes: 10_000, Scope: tool.ScopeWrite, Family: permission.FamilyNone,
		// besides the mode it makes an empty file of its own
		Traits:  tool.Traits{Private: true, Additive: true, Idempotent: true, Local: true},
		Example: `{}`,
		Finds: []string{
			"plan mode", "planning", "EnterPlanMode", "enter plan mode", "start planning", "design before coding",
			"+plan enter",
		},
	},
	Available: func(s *session.State) string {
		if s.Client.CanAsk || s.PlanFallback != "console" || s.PlanPage != "" {
			return ""
		}
		return "this client cannot ask its user, so nobody could approve the plan. The operator can set " +
			"plan.approval_fallback to client."
	},
	Activity: func(enterPlanModeInput) string { return "Entering plan mode" },
	Run:      runEnterPlanMode,
})

func runEnterPlanMode(ctx context.Context, env tool.Env, _ enterPlanModeInput) (tool.Result, error) {
	now := time.Now()
	mode, _, err := env.InForce(ctx, now)
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	known, err := env.Plan.Load(ctx)
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	plan := planning.File{}
	if known.Path != "" {
		if plan, err = planning.Read(ctx, env.State, known.Path); err != nil {
			plan = planning.File{} // what stands in its place now is no plan
		}
	}
	if plan.Sum == "" {
		if plan.Path, err = planning.Create(ctx, env, "enter_plan_mode"); err != nil {
			return tool.Result{}, wording.PathRefusal(env, env.Plans, err)
		}
	}
	there := mode == permission.Plan
	_, err = env.Plan.Change(ctx, func(p session.Plan) (session.Plan, error) {
		p.Path, p.Last = plan.Path, now
		if !there {
			p.Before = mode
		}
		return p, nil
	})
	if err == nil && !there {
		_, err = env.Mode.Change(ctx, func(permission.Mode) (permission.Mode, error) { return permission.Plan, nil })
	}
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	return tool.Result{Text: enterPlanModeAnswer(env, plan, there)}, nil
}

// enterPlanModeAnswer carries the rules that other systems put into the prompt.
func enterPlanModeAnswer(env tool.Env, plan planning.File, there bool) string {
	text := fmt.Sprintf("Plan mode is on. Plan file: %s\n", plan.Path)
	if there {
		text = fmt.Sprintf("Already in plan mode. Plan file: %s\n", plan.Path)
	}
	if !plan.Blank() {
		text += fmt.Sprintf("A plan exists at %s; read it first.\n", plan.Path)
	}
	text += `Only reading is allowed now, with the file and search tools and with commands that change nothing (run_readonly).
The plan file is the one file that may be written, with write_file, edit_file or multi_edit.
Explore what is there, design the change, and write the plan into that file: what changes where, and how it will be checked.
Then call exit_plan_mode with the plan's text, which asks the user. Do not ask for approval in text.`
	if env.Shared {
		text += "\n[plan mode applies to all conversations of this user in this workspace; it ends 60 min after " +
			"their last call]"
	}
	return text
}
