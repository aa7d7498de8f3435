package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/tasks"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed task_create.md
var taskCreateText string

type taskCreateInput struct {
	Subject     string          `json:"subject" jsonschema:"title" rule:"minlen=1"`
	Description string          `json:"description" jsonschema:"what to do"`
	ActiveForm  string          `json:"activeForm,omitempty" jsonschema:"title while in progress"`
	Metadata    json.RawMessage `json:"metadata,omitempty" jsonschema:"any fields of your own"`
}

var taskCreate = tool.Define(tool.Def[taskCreateInput]{
	Spec: tool.Spec{
		Name: "task_create", Aliases: []string{"TaskCreate"}, Title: "Create task", Description: taskCreateText,
		Hint: "create or add a new tracked task", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Family: permission.FamilyNone,
		// Private and Ungated: it reaches only the list of this session or its owner, which guards itself.
		Traits:    tool.Traits{Private: true, Ungated: true, Additive: true, Local: true},
		ForAgents: tool.ChangingAgents,
		Example:   `{"subject":"one","description":"do it"}`,
		Finds:     []string{"TaskCreate", "create task", "create a new task", "add task", "new task", "task create"},
	},
	Activity: func(taskCreateInput) string { return "Creating a task" },
	Check:    checkTaskCreate,
	Run:      runTaskCreate,
})

func checkTaskCreate(in taskCreateInput) error {
	return planning.CheckTask("task_create", in.Subject, in.Description, in.ActiveForm, "")
}

func runTaskCreate(ctx context.Context, env tool.Env, in taskCreateInput) (tool.Result, error) {
	made, err := env.Tasks.Create(ctx, tasks.Draft{
		Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm,
		Metadata: planning.Metadata(in.Metadata),
	})
	if err != nil {
		return tool.Result{}, planning.TaskRefusal(ctx, "task_create", err)
	}
	return tool.Result{Text: fmt.Sprintf("Task %s created: %s", made.ID, wording.OneLine(made.Subject))}, nil
}
