package tools

import (
	"context"
	_ "embed"
	"errors"

	"codehand/tools/tool"
)

//go:embed task_list.md
var taskListText string

type taskListInput struct{}

var taskList = tool.Define(tool.Def[taskListInput]{
	Spec: tool.Spec{
		Name: "task_list", Aliases: []string{"TaskList"}, Title: "List tasks", Description: taskListText,
		Hint: "show all tracked tasks, what is left or remains", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{ReadOnly: true, Ungated: true, Idempotent: true, Local: true},
	},
	Activity: func(taskListInput) string { return "Listing tasks" },
	Run:      runTaskList,
})

func runTaskList(_ context.Context, _ tool.Env, _ taskListInput) (tool.Result, error) {
	return tool.Result{}, errors.New("task_list is being built")
}
