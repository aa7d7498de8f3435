package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"codehand/tools/tool"
)

//go:embed task_create.md
var taskCreateText string

type taskCreateInput struct {
	Subject     string          `json:"subject" jsonschema:"title" rule:"minlen=1 maxlen=1000"`
	Description string          `json:"description" jsonschema:"what is to be done" rule:"maxlen=40000"`
	ActiveForm  string          `json:"activeForm,omitempty" jsonschema:"the title while it is being done" rule:"maxlen=1000"`
	Metadata    json.RawMessage `json:"metadata,omitempty" jsonschema:"any fields of your own"`
}

var taskCreate = tool.Define(tool.Def[taskCreateInput]{
	Spec: tool.Spec{
		Name: "task_create", Aliases: []string{"TaskCreate"}, Title: "Create task", Description: taskCreateText,
		Hint: "create or add a new tracked task", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{Private: true, Ungated: true, Additive: true, Local: true},
	},
	Activity: func(taskCreateInput) string { return "Creating a task" },
	Run:      runTaskCreate,
})

func runTaskCreate(_ context.Context, _ tool.Env, _ taskCreateInput) (tool.Result, error) {
	return tool.Result{}, errors.New("task_create is being built")
}
