package tools

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/tasks"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed task_update.md
var taskUpdateText string

type taskUpdateInput struct {
	TaskID       string          `json:"taskId" jsonschema:"id of the task"`
	Subject      string          `json:"subject,omitempty" jsonschema:"new title"`
	Description  string          `json:"description,omitempty" jsonschema:"new description"`
	ActiveForm   *string         `json:"activeForm,omitempty" jsonschema:"title while in progress"`
	Status       string          `json:"status,omitempty" jsonschema:"new status" rule:"enum=pending|in_progress|completed|deleted"`
	Owner        *string         `json:"owner,omitempty" jsonschema:"who works on it"`
	AddBlocks    []string        `json:"addBlocks,omitempty" jsonschema:"ids of tasks that wait for this one"`
	AddBlockedBy []string        `json:"addBlockedBy,omitempty" jsonschema:"ids of tasks that this one waits for"`
	Metadata     json.RawMessage `json:"metadata,omitempty" jsonschema:"merged; null deletes"`
}

// taskUpdateDeleted is the status that ends a task.
const taskUpdateDeleted = "deleted"

var taskUpdate = tool.Define(tool.Def[taskUpdateInput]{
	Spec: tool.Spec{
		Name: "task_update", Aliases: []string{"TaskUpdate"}, Title: "Update task", Description: taskUpdateText,
		Hint: "change, modify, rename, finish, delete task: status, owner, dependencies", Deferred: true,
		MaxRunes: 10000, Scope: tool.ScopeRead, Family: permission.FamilyNone,
		// Private and Ungated: it reaches only the list of this session or its owner, which guards itself.
		Traits:    tool.Traits{Private: true, Ungated: true, Additive: true, Idempotent: true, Local: true},
		ForAgents: tool.ChangingAgents,
		Example:   `{"taskId":"1","status":"completed"}`,
		Finds: []string{
			"TaskUpdate", "update task", "update task status", "mark task completed", "set task in progress",
			"complete a task", "change a task", "delete task", "assign task owner", "+task update status",
		},
	},
	Accept:   map[string]string{"task_id": "taskId"},
	Activity: func(taskUpdateInput) string { return "Updating a task" },
	Check:    checkTaskUpdate,
	Run:      runTaskUpdate,
})

func checkTaskUpdate(in taskUpdateInput) error {
	of := func(given *string) string {
		if given == nil {
			return ""
		}
		return *given
	}
	return planning.CheckTask("task_update", in.Subject, in.Description, of(in.ActiveForm), of(in.Owner))
}

func runTaskUpdate(ctx context.Context, env tool.Env, in taskUpdateInput) (tool.Result, error) {
	change := tasks.Change{
		Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, Status: in.Status, Owner: in.Owner,
		AddBlocks: planning.TaskIDs(in.AddBlocks), AddBlockedBy: planning.TaskIDs(in.AddBlockedBy),
		Metadata: planning.Metadata(in.Metadata),
	}
	if in.Status == taskUpdateDeleted {
		change = tasks.Change{Delete: true}
	}
	before, after, err := env.Tasks.Update(ctx, planning.TaskID(in.TaskID), change)
	if err != nil {
		return tool.Result{}, planning.TaskRefusal(ctx, "task_update", err)
	}
	if change.Delete {
		after = before
		after.Status = taskUpdateDeleted
	}
	return tool.Result{Text: taskUpdateAnswer(before, after)}, nil
}

// taskUpdateAnswer says what is different now, one line each.
func taskUpdateAnswer(before, after tasks.Task) string {
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, "Task "+before.ID+": "+fmt.Sprintf(format, args...)+".")
	}
	for _, f := range []struct{ name, was, is string }{
		{"status", before.Status, after.Status}, {"subject", before.Subject, after.Subject},
		{"activeForm", before.ActiveForm, after.ActiveForm}, {"owner", before.Owner, after.Owner},
	} {
		if f.is != f.was {
			say("%s %s → %s", f.name, cmp.Or(wording.LineOf(f.was, 100), "none"),
				cmp.Or(wording.LineOf(f.is, 100), "none"))
		}
	}
	if before.Description != after.Description {
		say("description changed, %s now", wording.Plural(len([]rune(after.Description)), "character", "characters"))
	}
	if !maps.EqualFunc(before.Metadata, after.Metadata, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		say("metadata changed, %s now", wording.Plural(len(after.Metadata), "field", "fields"))
	}
	added := func(was, is []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(is),
			func(id string) bool { return slices.Contains(was, id) }), ", ")
	}
	if ids := added(before.Blocks, after.Blocks); ids != "" {
		say("blocks %s now", ids)
	}
	if ids := added(before.BlockedBy, after.BlockedBy); ids != "" {
		say("blocked by %s now", ids)
	}
	if lines == nil {
		say("nothing changed")
	}
	return strings.Join(lines, "\n")
}
