package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"codehand/tools/editing"
	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed exit_plan_mode.md
var exitPlanModeText string

type exitPlanModeInput struct {
	Plan    string            `json:"plan,omitempty" jsonschema:"whole text of the plan; replaces the plan file"`
	Prompts []json.RawMessage `json:"allowedPrompts,omitempty" jsonschema:"accepted and ignored"`
}

var exitPlanMode = tool.Define(tool.Def[exitPlanModeInput]{
	Spec: tool.Spec{
		Name: "exit_plan_mode", Aliases: []string{"ExitPlanMode"}, Title: "Exit plan mode",
		Description: exitPlanModeText, Hint: "leave plan mode: present plan for approval, start executing",
		Deferred: true, Personal: true, MaxRunes: 50_000, Scope: tool.ScopeWrite, Family: permission.FamilyNone,
		// what it gives back is a person's to give, within the operator's limit
		Traits:  tool.Traits{Private: true, Additive: true, Local: true},
		Card:    tool.Drawn,
		Example: `{"plan":"1. Think."}`,
		Finds: []string{
			"ExitPlanMode", "exit plan mode", "leave plan mode", "present plan to user", "submit plan for approval",
			"plan approval", "approve plan", "plan is ready, start executing", "select:exit_plan_mode",
		},
	},
	Hidden:   []string{"allowedPrompts"},
	Activity: func(exitPlanModeInput) string { return "Presenting the plan" },
	Question: askExitPlanMode,
	Run:      runExitPlanMode,
})

// exitPlanModeTrim takes a plan of blanks for none.
func exitPlanModeTrim(in exitPlanModeInput) exitPlanModeInput {
	if strings.TrimSpace(in.Plan) == "" {
		in.Plan = ""
	}
	return in
}

// exitPlanModeFind returns the plan to approve: the file, and the session's record of it.
func exitPlanModeFind(ctx context.Context, s *session.State,
	in exitPlanModeInput) (planning.File, session.Plan, error) {
	mode, _, err := s.InForce(ctx, time.Now())
	if err != nil {
		return planning.File{}, session.Plan{}, wording.StateFault(ctx, err)
	}
	if mode != permission.Plan {
		return planning.File{}, session.Plan{}, tool.Numbered(tool.NotInPlanMode, 1,
			"You are not in plan mode, so there is no plan to approve. Go on with the work; enter_plan_mode starts "+
				"a plan.")
	}
	known, err := s.Plan.Load(ctx)
	if err != nil {
		return planning.File{}, session.Plan{}, wording.StateFault(ctx, err)
	}
	var file planning.File
	if known.Path != "" {
		if file, err = planning.Read(ctx, s, known.Path); err != nil {
			return file, known, planning.LostRefusal(s, known.Path, err)
		}
	}
	switch {
	case !file.Blank() || in.Plan != "":
		return file, known, nil
	case file.Path == "":
		return file, known,
			tool.Numbered(tool.PlanEmpty, 2, `Pass the plan's text in "plan" first. There is no plan file yet.`)
	}
	return file, known, tool.Numbered(tool.PlanEmpty, 2, "Write the plan to %s first.", file.Path)
}

func askExitPlanMode(ctx context.Context, s *session.State, in exitPlanModeInput) (*tool.Question, error) {
	in = exitPlanModeTrim(in)
	file, known, err := exitPlanModeFind(ctx, s, in)
	if err != nil || planning.Bound(s) {
		return nil, err
	}
	return planning.Question(s, file, in.Plan, known.Before.AtMost(s.Highest)), nil
}

func runExitPlanMode(ctx context.Context, env tool.Env, in exitPlanModeInput) (tool.Result, error) {
	in = exitPlanModeTrim(in)
	file, known, err := exitPlanModeFind(ctx, env.State, in)
	if err != nil {
		return tool.Result{}, err
	}
	by := planning.Approval{Bound: planning.Bound(env.State)}
	if !by.Bound {
		if by, err = planning.Decide(env, in.Plan); err != nil {
			return tool.Result{}, err
		}
	}
	if known.Path == "" {
		if file.Path, err = planning.Create(ctx, env, "exit_plan_mode"); err != nil {
			return tool.Result{}, wording.PathRefusal(env, env.Plans, err)
		}
		if file, err = planning.Read(ctx, env.State, file.Path); err != nil {
			return tool.Result{}, wording.PathRefusal(env, file.Path, err)
		}
	}
	file, edited, meta, err := exitPlanModeSave(ctx, env, in, file, known.Path != "")
	if err != nil {
		return tool.Result{}, err
	}
	if by.Approved && edited && planning.OwnEdit(ctx, env, file.Path) {
		by = planning.Approval{Outdated: true}
	}
	if file.Blank() {
		by.Approved = false // the person has emptied it
	}
	mode := permission.Plan
	if by.Approved {
		mode = by.Mode(known).AtMost(env.Highest)
	}
	_, err = env.Plan.Change(ctx, func(p session.Plan) (session.Plan, error) {
		p.Path = file.Path
		return p, nil
	})
	if err == nil && by.Approved {
		mode, err = planning.Leave(ctx, env.State, mode)
	}
	if err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	return tool.Result{Text: by.Answer(file, edited, mode), Meta: meta}, nil
}

// exitPlanModeSave puts the plan's text into the file, unless that is not what it was when the person was asked: then
// it is the person's own version, which counts.
func exitPlanModeSave(ctx context.Context, env tool.Env, in exitPlanModeInput, file planning.File,
	asked bool) (planning.File, bool, tool.Meta, error) {
	if in.Plan == file.Text {
		return file, false, tool.Meta{}, nil
	}
	edited := asked && env.Answer.Outcome == tool.Accepted && env.Answer.Seen != file.Sum
	if edited || in.Plan == "" {
		return file, edited, tool.Meta{}, nil
	}
	changes, err := planning.Write(ctx, env, "exit_plan_mode", file, in.Plan)
	if errors.Is(err, planning.ErrChanged) {
		file, err = planning.Read(ctx, env.State, file.Path)
		return file, true, tool.Meta{}, wording.PathRefusal(env, file.Path, err)
	}
	if err != nil {
		return file, false, tool.Meta{}, editing.Guard{Name: "exit_plan_mode"}.Refusal(ctx, env, file.Path, err)
	}
	file.Text = in.Plan
	return file, false, editing.Meta(struct{}{}, changes...), nil
}
