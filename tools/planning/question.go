package planning

import (
	"fmt"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The fields of the question about a plan, and what the first may hold.
const (
	planDecision  = "decision"
	planFeedback  = "feedback"
	approveAccept = "approve, accept edits"
	approveAsk    = "approve, ask for edits"
	keepPlanning  = "keep planning"
	planShown     = 3_000 // characters of the plan in the question; the rest is in the file
)

// What an answer says of who approved a plan.
const (
	approvedByUser = "User has approved your plan."
	// its own dialog showed the text and let the call through
	approvedByClient = "Your client's dialog let this call through, which approves the plan; codehand itself asked " +
		"nobody."
	approvedByNobody = "The plan counts as approved: the operator has set plan.approval_fallback = \"auto\". Nobody " +
		"was asked."
)

// Question asks a person about a plan: text, if the call brought it, else what is in the file. back is the mode from
// before plan mode. Where several conversations share the session s, none of them may have the others' edits accepted.
func Question(s *session.State, file File, text string, back permission.Mode) *tool.Question {
	if text == "" {
		text = file.Text
	}
	where := "The plan is not in a file yet."
	if file.Path != "" {
		where = "Plan file: " + file.Path
	}
	if back != permission.Default { // in which edits are not asked about, whatever the choice is called
		where += fmt.Sprintf("\n%q returns to mode %s, which was active before plan mode.", approveAsk, back)
	}
	choices := []string{approveAccept, approveAsk, keepPlanning}
	if s.Shared && permission.AcceptEdits.AtMost(back) != permission.AcceptEdits {
		choices = []string{approveAsk, keepPlanning}
	}
	return &tool.Question{
		Title: "exit_plan_mode: approve this plan?",
		Text:  where + "\n\n" + beginning(file, text),
		Fields: []tool.Field{
			{Name: planDecision, Label: "Decision", Choices: choices},
			{Name: planFeedback, Label: "Feedback (optional)"},
		},
		Seen:   file.Sum,
		OnPage: s.PlanPage != "",
	}
}

// beginning is as much of a plan as a question shows, and where the rest is.
func beginning(file File, text string) string {
	r := []rune(text)
	if len(r) <= planShown {
		return text
	}
	more, shown := len(r)-planShown, string(r[:planShown])
	if text == file.Text {
		return shown + fmt.Sprintf("\n[the rest, %d characters, is in the plan file]", more)
	}
	return shown + fmt.Sprintf("\n[%d more characters are not shown and not yet in the plan file; to read them "+
		"first, keep planning and ask for them]", more)
}
