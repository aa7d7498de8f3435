package tools

import (
	"context"
	"fmt"
	"slices"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// An approval is what became of the question about a plan. The zero value is none: plan mode stays.
type approval struct {
	approved bool
	accept   bool   // edits inside the roots need no further question
	feedback string // the person's words
	note     string // who decided, if no person did
	nobody   bool   // nobody could be asked
	outdated bool   // the session itself changed the plan meanwhile
	bound    bool   // the operator allows plan mode only
}

// decideApproval reads the person's answer, or says what the operator has set for when nobody can be asked.
func decideApproval(env tool.Env, text string) (approval, error) {
	a := env.Answer
	if a.Outcome == tool.Accepted {
		by := approval{feedback: first(a.Values[planFeedback])}
		by.accept = slices.Equal(a.Values[planDecision], []string{approveAccept})
		by.approved = by.accept || slices.Equal(a.Values[planDecision], []string{approveAsk})
		return by, nil
	}
	if a.Outcome != tool.Unanswered {
		return approval{}, nil // declined and cancelled mean: stay
	}
	switch env.PlanFallback {
	case "client":
		if text == "" {
			return approval{}, tool.Refuse(tool.PlanTextNeeded, `Pass the plan's text in "plan" so that it can be approved.`)
		}
		return approval{approved: true}, nil // its own dialog showed the text and let the call through
	case "auto":
		return approval{approved: true, note: `[nobody was asked: the operator has set plan.approval_fallback = "auto"]`}, nil
	}
	return approval{nobody: true}, nil
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// mode is what an approval leads to, before the operator's limit.
func (a approval) mode(p session.Plan) permission.Mode {
	if a.accept {
		return permission.AcceptEdits
	}
	return p.Before
}

// boundToPlan says that the operator allows no other mode than plan, so there is nothing to ask a person.
func boundToPlan(s *session.State) bool {
	return permission.AcceptEdits.AtMost(s.Highest) == permission.Plan
}

// leavePlanMode sets the mode, and where the session started in plan mode, that it has left it. It returns the mode that is in
// force then, which is another one where the mode that was set stands for that in which the session starts.
func leavePlanMode(ctx context.Context, s *session.State, mode permission.Mode) (permission.Mode, error) {
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

// answer says what became of the plan.
func (a approval) answer(file planFile, edited bool, mode permission.Mode) string {
	said := ""
	if a.feedback != "" {
		said = " They said: " + a.feedback
	}
	switch {
	case a.bound:
		return fmt.Sprintf("Plan mode stays: the operator allows no other mode here. The plan is saved at %s.", file.path)
	case a.outdated:
		return fmt.Sprintf("Plan mode stays: the plan file was changed while the user was asked, so the answer was about another plan. "+
			"The plan is in %s. Call exit_plan_mode again to present it.", file.path)
	case a.nobody:
		return fmt.Sprintf("Plan mode stays: nobody can approve the plan here. This client cannot ask its user, and there is no page for it in this version. "+
			"The plan is saved at %s. The user can read it there; the operator can set plan.approval_fallback to client or auto, or the user can connect with a client that takes questions.", file.path)
	case !a.approved && said == "":
		return "The user wants to keep planning. Plan mode stays. The plan is saved at " + file.path + "."
	case !a.approved:
		return "The user wants to keep planning." + said + "\nPlan mode stays. The plan is saved at " + file.path + "."
	}
	text := approvedByUser + " It is saved at " + file.path + "."
	if edited {
		text = approvedByUser + " It is saved at " + file.path + " (edited by the user)."
	}
	text += said + "\nThe mode is " + mode.String() + " now.\n\n" + file.text
	if a.note != "" {
		text += "\n" + a.note
	}
	return text
}
