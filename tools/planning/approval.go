package planning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// An Approval is what became of the question about a plan. The zero value is none: plan mode stays.
type Approval struct {
	Approved bool   // the plan may be carried out
	accept   bool   // edits inside the roots need no further question
	feedback string // the person's words
	by       string // who approved; "": the user, who was asked
	nobody   bool   // there was no person to ask
	page     string // where a person can be asked; "": nowhere
	silent   bool   // no person answered
	Outdated bool   // the session itself changed the plan meanwhile
	Bound    bool   // the operator, or the user on the page, allows plan mode only
}

// Decide returns the person's answer, or the operator's setting for clients that cannot ask.
func Decide(env tool.Env, text string) (Approval, error) {
	a := env.Answer
	if a.Outcome == tool.Accepted {
		by := Approval{feedback: first(a.Values[planFeedback])}
		by.accept = slices.Equal(a.Values[planDecision], []string{approveAccept})
		by.Approved = by.accept || slices.Equal(a.Values[planDecision], []string{approveAsk})
		return by, nil
	}
	if a.Silent {
		return Approval{silent: true, page: env.PlanPage}, nil
	}
	if a.Outcome != tool.Unanswered {
		return Approval{}, nil // declined and cancelled mean: stay
	}
	switch env.PlanFallback {
	case "client":
		if text == "" {
			return Approval{},
				tool.Refuse(tool.PlanTextNeeded, `Pass the plan's text in "plan" so that it can be approved.`)
		}
		return Approval{Approved: true, by: approvedByClient}, nil
	case "auto":
		return Approval{Approved: true, by: approvedByNobody}, nil
	}
	return Approval{nobody: true, page: env.PlanPage}, nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Mode is what an approval leads to, before the operator's limit.
func (a Approval) Mode(p session.Plan) permission.Mode {
	if a.accept {
		return permission.AcceptEdits
	}
	return p.Before
}

// Bound says that no other mode than plan is allowed, by the operator or the user, so there is nothing to ask a person.
func Bound(s *session.State) bool {
	return permission.AcceptEdits.AtMost(s.Highest) == permission.Plan
}

// Leave sets the mode, and where the session started in plan mode, that it has left it. It returns the mode that is in
// force then, which is another one where the mode that was set stands for that in which the session starts.
func Leave(ctx context.Context, s *session.State, mode permission.Mode) (permission.Mode, error) {
	_, err := s.Mode.Change(ctx, func(permission.Mode) (permission.Mode, error) { return mode, nil })
	if err != nil {
		return mode, err
	}
	_, err = s.Plan.Change(ctx, func(p session.Plan) (session.Plan, error) {
		p.Left = true
		return p, nil
	})
	if err != nil {
		return mode, err
	}
	mode, _, err = s.InForce(ctx, time.Now())
	return mode, err
}

// Answer says what became of the plan.
func (a Approval) Answer(file File, edited bool, mode permission.Mode) string {
	said := ""
	if a.feedback != "" {
		said = " They said: " + a.feedback
	}
	switch {
	case a.Bound:
		return fmt.Sprintf("Plan mode stays on: the settings, or the user on the page, allow no other mode here. "+
			"The plan is saved at %s.",
			file.Path)
	case a.Outdated:
		return fmt.Sprintf("Plan mode stays on: the plan file changed while the user was deciding, so the answer does "+
			"not count. The plan is in %s. Call exit_plan_mode again to present it.", file.Path)
	case a.page != "":
		return fmt.Sprintf("Plan mode stays on: no person has approved the plan. The user is asked on %s as long as "+
			"that page is open: tell them, and call exit_plan_mode again. The plan is saved at %s.", a.page, file.Path)
	case a.nobody:
		return fmt.Sprintf("Plan mode stays on: no one can approve the plan. This client cannot ask its user, and "+
			"there is no page here on which the user could. "+
			"The plan is saved at %s. The user can read it there; the operator can set plan.approval_fallback to "+
			"client or auto, or the user can use a client that supports elicitation.", file.Path)
	case a.silent:
		return "Plan mode stays on: no person answered. The plan is saved at " + file.Path + "."
	case !a.Approved && said == "":
		return "The user wants to keep planning. Plan mode stays on. The plan is saved at " + file.Path + "."
	case !a.Approved:
		return "The user wants to keep planning." + said + "\nPlan mode stays on. The plan is saved at " + file.Path +
			"."
	}
	text := cmp.Or(a.by, approvedByUser) + " It is saved at " + file.Path
	if edited {
		text += " (edited by the user)"
	}
	return text + "." + said + "\nThe mode is " + mode.String() + " now.\n\n" + file.Text
}
