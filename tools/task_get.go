package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/results"
	"codehand/tools/tasks"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed task_get.md
var taskGetText string

type taskGetInput struct {
	TaskID string `json:"taskId" jsonschema:"id of the task"`
}

var taskGet = tool.Define(tool.Def[taskGetInput]{
	Spec: tool.Spec{
		Name: "task_get", Aliases: []string{"TaskGet"}, Title: "Get task", Description: taskGetText,
		Hint: "read one task with all its details", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Family:    permission.FamilyNone,
		Traits:    tool.Traits{ReadOnly: true, Ungated: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Example:   `{"taskId":"1"}`,
		NoTargets: "it reads the session's own tasks",
		Finds:     []string{"TaskGet", "get task", "get task details", "task details by id", "+task get"},
	},
	Accept:   map[string]string{"task_id": "taskId"},
	Activity: func(taskGetInput) string { return "Reading a task" },
	Run:      runTaskGet,
})

func runTaskGet(ctx context.Context, env tool.Env, in taskGetInput) (tool.Result, error) {
	book, err := env.Tasks.Book(ctx)
	if err != nil {
		return tool.Result{}, planning.TaskRefusal(ctx, "task_get", err)
	}
	t, err := book.Find(planning.TaskID(in.TaskID))
	if err != nil {
		return tool.Result{}, planning.TaskRefusal(ctx, "task_get", err)
	}
	return tool.Result{Text: taskGetAnswer(book, t)}, nil
}

// taskGetAnswer has the description last: it may have many lines, and none of them must look like a field.
func taskGetAnswer(book tasks.Book, t tasks.Task) string {
	lines := []string{"Task " + t.ID + ": " + wording.OneLine(t.Subject), "status: " + t.Status}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	add("activeForm", wording.OneLine(t.ActiveForm))
	add("owner", wording.OneLine(t.Owner))
	add("blocks", strings.Join(t.Blocks, ", "))
	open := book.Blockers(t)
	waits := make([]string, len(t.BlockedBy))
	for i, id := range t.BlockedBy {
		if waits[i] = id; !slices.Contains(open, id) {
			waits[i] += " (completed)"
		}
	}
	add("blocked by", strings.Join(waits, ", "))
	if len(t.Metadata) > 0 {
		raw, _ := json.Marshal(t.Metadata) // it came as JSON
		add("metadata", wording.OneLine(string(raw)))
	}
	description, _ := results.Show(t.Description)
	add("description", results.Disown(description))
	return strings.Join(lines, "\n")
}
