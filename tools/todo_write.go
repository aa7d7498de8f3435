package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed todo_write.md
var todoWriteText string

type todoWriteInput struct {
	Todos []todoWriteItem `json:"todos" jsonschema:"the whole list, in order" rule:"maxitems=200"`
}

type todoWriteItem struct {
	Content    string `json:"content" jsonschema:"what is to be done" rule:"minlen=1 maxlen=4000"`
	Status     string `json:"status" jsonschema:"how far it is" rule:"enum=pending|in_progress|completed"`
	ActiveForm string `json:"activeForm,omitempty" jsonschema:"the same while it is being done" rule:"maxlen=4000"`
}

var todoWrite = tool.Define(tool.Def[todoWriteInput]{
	Spec: tool.Spec{
		Name: "todo_write", Aliases: []string{"TodoWrite"}, Title: "Write todos", Description: todoWriteText,
		Hint: "todo list of steps: a checklist to track progress", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{Private: true, Ungated: true, Additive: true, Idempotent: true, Local: true},
	},
	Activity: func(todoWriteInput) string { return "Writing the todo list" },
	Run:      runTodoWrite,
})

func runTodoWrite(_ context.Context, _ tool.Env, _ todoWriteInput) (tool.Result, error) {
	return tool.Result{}, errors.New("todo_write is being built")
}
