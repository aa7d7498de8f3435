package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed ask_user_question.md
var askUserQuestionText string

type askUserQuestionInput struct {
	Questions []askUserQuestionItem `json:"questions" jsonschema:"what to ask" rule:"minitems=1 maxitems=4"`
}

type askUserQuestionItem struct {
	Question    string                  `json:"question" jsonschema:"the question" rule:"minlen=1 maxlen=2000"`
	Header      string                  `json:"header" jsonschema:"one or two words for it" rule:"minlen=1 maxlen=48"`
	Options     []askUserQuestionOption `json:"options" jsonschema:"what can be chosen" rule:"minitems=2 maxitems=4"`
	MultiSelect bool                    `json:"multiSelect,omitempty" jsonschema:"several may be chosen"`
	Preview     string                  `json:"preview,omitempty" jsonschema:"accepted and not shown"`
}

type askUserQuestionOption struct {
	Label       string `json:"label" jsonschema:"the choice" rule:"minlen=1 maxlen=240"`
	Description string `json:"description,omitempty" jsonschema:"what it means" rule:"maxlen=1200"`
}

var askUserQuestion = tool.Define(tool.Def[askUserQuestionInput]{
	Spec: tool.Spec{
		Name: "ask_user_question", Aliases: []string{"AskUserQuestion"}, Title: "Ask user", Description: askUserQuestionText,
		Hint: "ask the user to choose, clarify or confirm", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{ReadOnly: true, Ungated: true, Local: true},
	},
	Activity: func(askUserQuestionInput) string { return "Asking the user" },
	Run:      runAskUserQuestion,
})

func runAskUserQuestion(_ context.Context, _ tool.Env, _ askUserQuestionInput) (tool.Result, error) {
	return tool.Result{}, errors.New("ask_user_question is being built")
}
