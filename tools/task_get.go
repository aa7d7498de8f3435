package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed task_get.md
var taskGetText string

type taskGetInput struct {
	TaskID string `json:"taskId" jsonschema:"id of the task" rule:"minlen=1 maxlen=20"`
}

var taskGet = tool.Define(tool.Def[taskGetInput]{
	Spec: tool.Spec{
		Name: "task_get", Aliases: []string{"TaskGet"}, Title: "Get task", Description: taskGetText,
		Hint: "get one task with details", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{ReadOnly: true, Ungated: true, Idempotent: true, Local: true},
	},
	Activity: func(taskGetInput) string { return "Reading a task" },
	Run:      runTaskGet,
})

func runTaskGet(_ context.Context, _ tool.Env, _ taskGetInput) (tool.Result, error) {
	return tool.Result{}, errors.New("task_get is being built")
}
