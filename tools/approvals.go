package tools

import (
	"context"
	"fmt"
	"slices"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The fields of the question about a plan, and what the first may hold.
const (
	planDecision   = "decision"
	planFeedback   = "feedback"
	approveAccept  = "approve, accept edits"
	approveAsk     = "approve, ask for edits"
	keepPlanning   = "keep planning"
	planShown      = 3_000 // characters of the plan in the question; the rest is in the file
	approvedByUser = "User has approved your plan."
)

// planQuestion asks a person about a plan: text, if the call brought it, else what is in the file. back is the mode from
// before plan mode. Where several conversations share the session, none of them may have the others' edits accepted.
func planQuestion(file planFile, text string, back permission.Mode, shared bool) *tool.Question {
	if text == "" {
		text = file.text
	}
	where := "The plan is not in a file yet."
	if file.path != "" {
		where = "Plan file: " + file.path
	}
	if back != permission.Default { // in which edits are not asked about, whatever the choice is called
		where += fmt.Sprintf("\n%q goes back to mode %s, in force before plan mode.", approveAsk, back)
	}
	choices := []string{approveAccept, approveAsk, keepPlanning}
	if shared && permission.AcceptEdits.AtMost(back) != permission.AcceptEdits {
		choices = []string{approveAsk, keepPlanning}
	}
	return &tool.Question{
		Title: "exit_plan_mode: approve this plan?",
		Text:  where + "\n\n" + planBeginning(file, text),
		Fields: []tool.Field{
			{Name: planDecision, Label: "Decision", Choices: choices},
			{Name: planFeedback, Label: "Feedback (optional)"},
		},
		Seen: file.sum,
	}
}

// planBeginning is as much of a plan as a question shows, and where the rest is.
func planBeginning(file planFile, text string) string {
	r := []rune(text)
	if len(r) <= planShown {
		return text
	}
	more, shown := len(r)-planShown, string(r[:planShown])
	if text == file.text {
		return shown + fmt.Sprintf("\n[the rest, %d characters, is in the plan file]", more)
	}
	return shown + fmt.Sprintf("\n[%d more characters are not shown, and the plan file does not hold them yet: to read them first, keep planning and ask for that]", more)
}

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

// leavePlanMode sets the mode, and where the session started in plan mode, that it has left it.
func leavePlanMode(ctx context.Context, s *session.State, mode permission.Mode) error {
	_, err := s.Mode.Change(ctx, func(permission.Mode) (permission.Mode, error) { return mode, nil })
	if err != nil {
		return err
	}
	_, err = s.Plan.Change(ctx, func(p session.Plan) (session.Plan, error) {
		p.Left = true
		return p, nil
	})
	return err
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
