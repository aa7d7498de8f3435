package tools

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed ask_user_question.md
var askUserQuestionText string

type askUserQuestionInput struct {
	Questions []askUserQuestionItem `json:"questions" jsonschema:"what to ask" rule:"minitems=1 maxitems=4"`
}

type askUserQuestionItem struct {
	Question    string                  `json:"question" jsonschema:"the whole question" rule:"maxrunes=500"`
	Header      string                  `json:"header" jsonschema:"short title" rule:"maxrunes=12"`
	Options     []askUserQuestionOption `json:"options" jsonschema:"the choices" rule:"minitems=2 maxitems=4"`
	MultiSelect bool                    `json:"multiSelect,omitempty" jsonschema:"allow several choices"`
	Preview     string                  `json:"preview,omitempty"`
}

type askUserQuestionOption struct {
	Label       string `json:"label" jsonschema:"the choice" rule:"maxrunes=60"`
	Description string `json:"description,omitempty" jsonschema:"what it means" rule:"maxrunes=300"`
	Preview     string `json:"preview,omitempty"`
}

var askUserQuestion = tool.Define(tool.Def[askUserQuestionInput]{
	Spec: tool.Spec{
		Name: "ask_user_question", Aliases: []string{"AskUserQuestion"}, Title: "Ask user",
		Description: askUserQuestionText, Hint: "request input: ask the user to choose, clarify or confirm",
		Deferred: true, MaxRunes: 10_000, Scope: tool.ScopeRead, Family: permission.FamilyNone,
		Traits:    tool.Traits{ReadOnly: true, Ungated: true, Local: true},
		Example:   `{"questions":[{"question":"Which?","header":"Way","options":[{"label":"a"},{"label":"b"}]}]}`,
		NoTargets: "it reaches a person only",
		Finds: []string{
			"AskUserQuestion", "ask user a question", "ask user", "ask the user to choose", "question",
			"clarifying questions", "multiple choice question", "let the user choose between options", "user input",
			"ask for clarification", "user preference", "select: AskUserQuestion",
		},
	},
	Hidden: []string{"questions.preview", "questions.options.preview"},
	Available: func(s *session.State) string {
		if s.Client.CanAsk {
			return ""
		}
		return "this client cannot ask its user. Ask in your answer, or decide yourself and state the " +
			"assumption."
	},
	Activity: func(askUserQuestionInput) string { return "Asking the user" },
	Check:    checkAskUserQuestion, Question: askUserQuestionForm, Run: runAskUserQuestion,
})

// askUserQuestionShown is the input as a person sees it: nothing is invisible, and what stands in a line is one.
func askUserQuestionShown(in askUserQuestionInput) askUserQuestionInput {
	show := func(text string) string { text, _ = results.Show(strings.TrimSpace(text)); return text }
	line := func(text string) string { return show(strings.Join(strings.Fields(text), " ")) }
	in.Questions = slices.Clone(in.Questions)
	for i := range in.Questions {
		q := &in.Questions[i]
		q.Question, q.Header, q.Options = show(q.Question), line(q.Header), slices.Clone(q.Options)
		for j, o := range q.Options {
			q.Options[j] = askUserQuestionOption{Label: line(o.Label), Description: line(o.Description)}
		}
	}
	return in
}

func checkAskUserQuestion(in askUserQuestionInput) error {
	in, wrong := askUserQuestionShown(in), []string(nil)
	if n := utf8.RuneCountInString(askUserQuestionMessage(in, 40)); n > 3_950 {
		wrong = append(wrong,
			fmt.Sprintf(`"questions" must fit in 3,950 characters with invisible ones made visible, not %d`, n))
	}
	for i, q := range in.Questions {
		if q.Question == "" || q.Header == "" {
			wrong = append(wrong, fmt.Sprintf(`"questions[%d]" needs a question and a header that are not blank`, i))
		}
		seen := map[string]bool{"": true}
		for j, o := range q.Options {
			if seen[o.Label] {
				wrong = append(wrong, fmt.Sprintf(
					`"questions[%d].options[%d].label" must not be blank or the same as another label: %q`, i, j,
					o.Label))
			}
			seen[o.Label] = true
		}
	}
	if wrong != nil {
		return tool.Invalid("ask_user_question", wrong...)
	}
	return nil
}

// askUserQuestionForm has for each question a choice, which may be left open, and a text that is added to it. All
// is said in the message, since some clients show no more; what is too long there is cut evenly, and fits at 40.
func askUserQuestionForm(_ context.Context, _ *session.State, in askUserQuestionInput) (*tool.Question, error) {
	in = askUserQuestionShown(in)
	q := &tool.Question{Title: "ask_user_question: " + wording.Plural(len(in.Questions), "question", "questions")}
	for most := 300; q.Text == "" || most >= 40 && utf8.RuneCountInString(q.Title+q.Text) > 3_990; most -= 10 {
		q.Text = askUserQuestionMessage(in, most)
	}
	for i, item := range in.Questions {
		name := fmt.Sprintf("q%d", i+1)
		f := tool.Field{Name: name, Label: item.Header, About: item.Question, Many: item.MultiSelect, Optional: true}
		for _, o := range item.Options {
			f.Choices = append(f.Choices, o.Label)
			f.Titles = append(f.Titles, wording.Clip(strings.TrimSuffix(o.Label+": "+o.Description, ": "), 120))
		}
		q.Fields = append(q.Fields, f, tool.Field{Name: name + "_other", Label: item.Header + ": own answer",
			About: "Added to the choice. Not for secrets."})
	}
	return q, nil
}

// askUserQuestionMessage has all questions with their options, each description cut to most characters.
func askUserQuestionMessage(in askUserQuestionInput, most int) string {
	var b strings.Builder
	for _, q := range in.Questions {
		fmt.Fprintf(&b, "\n%s: %s\n", q.Header, q.Question)
		for _, o := range q.Options {
			fmt.Fprintf(&b, "- %s\n", strings.TrimSuffix(o.Label+": "+wording.Clip(o.Description, most), ": "))
		}
	}
	return strings.TrimSpace(b.String())
}

func runAskUserQuestion(ctx context.Context, env tool.Env, in askUserQuestionInput) (tool.Result, error) {
	lines, open := []string(nil), 0
	for i, q := range askUserQuestionShown(in).Questions {
		name := fmt.Sprintf("q%d", i+1)
		chosen, given := env.Answer.Values[name]
		answer := wording.Chosen(chosen, given, strings.Join(env.Answer.Values[name+"_other"], "\n"))
		if answer == "" {
			answer, open = " (no answer)", open+1
		}
		lines = append(lines, q.Header+":"+answer)
	}
	switch {
	case env.Answer.Silent:
		return tool.Result{Text: "No person answered. Decide yourself and state the assumption."}, ctx.Err()
	case env.Answer.Outcome != tool.Accepted || open == len(lines):
		return tool.Result{Text: "No answer. Decide yourself and state the assumption."}, ctx.Err()
	case open > 0:
		lines = append(lines, "["+wording.Plural(open, "question has", "questions have")+
			" no answer; decide yourself and state the assumption]")
	}
	return tool.Result{Text: strings.Join(lines, "\n")}, ctx.Err()
}
