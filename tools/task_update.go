package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"codehand/tools/tool"
)

//go:embed task_update.md
var taskUpdateText string

type taskUpdateInput struct {
	TaskID       string          `json:"taskId" jsonschema:"id of the task" rule:"minlen=1 maxlen=20"`
	Subject      string          `json:"subject,omitempty" jsonschema:"new title" rule:"maxlen=1000"`
	Description  string          `json:"description,omitempty" jsonschema:"new description" rule:"maxlen=40000"`
	ActiveForm   string          `json:"activeForm,omitempty" jsonschema:"the title while it is being done" rule:"maxlen=1000"`
	Status       string          `json:"status,omitempty" jsonschema:"new status" rule:"enum=pending|in_progress|completed|deleted"`
	Owner        string          `json:"owner,omitempty" jsonschema:"who works on it" rule:"maxlen=200"`
	AddBlocks    []string        `json:"addBlocks,omitempty" jsonschema:"ids of tasks that wait for this one" rule:"maxitems=500"`
	AddBlockedBy []string        `json:"addBlockedBy,omitempty" jsonschema:"ids of tasks that this one waits for" rule:"maxitems=500"`
	Metadata     json.RawMessage `json:"metadata,omitempty" jsonschema:"fields to merge; null deletes one"`
}

var taskUpdate = tool.Define(tool.Def[taskUpdateInput]{
	Spec: tool.Spec{
		Name: "task_update", Aliases: []string{"TaskUpdate"}, Title: "Update task", Description: taskUpdateText,
		Hint: "change status, owner or dependencies; complete or delete a task", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Traits: tool.Traits{Private: true, Ungated: true, Additive: true, Idempotent: true, Local: true},
	},
	Activity: func(taskUpdateInput) string { return "Updating a task" },
	Run:      runTaskUpdate,
})

func runTaskUpdate(_ context.Context, _ tool.Env, _ taskUpdateInput) (tool.Result, error) {
	return tool.Result{}, errors.New("task_update is being built")
}
