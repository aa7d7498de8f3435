package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed todo_write.md
var todoWriteText string

type todoWriteInput struct {
	Todos []todoWriteItem `json:"todos" jsonschema:"the whole list, in order" rule:"maxitems=200"`
}

type todoWriteItem struct {
	Content    string `json:"content" jsonschema:"what to do" rule:"minlen=1 maxrunes=1000"`
	Status     string `json:"status" jsonschema:"progress" rule:"enum=pending|in_progress|completed also=done:completed"`
	ActiveForm string `json:"activeForm,omitempty" jsonschema:"text while in progress" rule:"maxrunes=1000"`
	ID         string `json:"id,omitempty" rule:"maxrunes=100"`       // other agents number their items
	Priority   string `json:"priority,omitempty" rule:"maxrunes=100"` // the order says it
}

// todoWriteBytes is how many bytes of JSON the list may take: as many as a value of the Store.
const todoWriteBytes = 256 << 10

var todoWrite = tool.Define(tool.Def[todoWriteInput]{
	Spec: tool.Spec{
		Name: "todo_write", Aliases: []string{"TodoWrite"}, Title: "Write todos", Description: todoWriteText,
		Hint: "todo list: checklist of items, track progress, mark steps done", Deferred: true, MaxRunes: 10000,
		Scope: tool.ScopeRead, Family: permission.FamilyNone,
		// the list is one cell
		Traits:    tool.Traits{Private: true, Ungated: true, Additive: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Elsewhere: []string{"todo", "todowrite", "todoread"},
		Example:   `{"todos":[{"content":"one","status":"pending"}]}`,
		Finds: []string{
			"todo", "todos", "todo list", "todo write", "write a todo list", "TodoWrite", "TodoRead",
			"update the todo list", "create todo list", "manage todos", "track progress", "how do I track progress",
			"progress tracking", "keep track of steps", "checklist", "mark step done", "mark todo as completed",
			"list of steps", "multi-step work", "track multi-step work",
		},
	},
	Hidden:   []string{"todos.id", "todos.priority"},
	Activity: func(todoWriteInput) string { return "Writing the todo list" },
	Run:      runTodoWrite,
})

func runTodoWrite(ctx context.Context, env tool.Env, in todoWriteInput) (tool.Result, error) {
	list := make([]session.Todo, len(in.Todos))
	done, doing := 0, 0
	for i, item := range in.Todos {
		list[i] = session.Todo{Content: item.Content, Status: item.Status, ActiveForm: item.ActiveForm}
		switch item.Status {
		case "completed":
			done++
		case "in_progress":
			doing++
		}
	}
	kept := list
	if done == len(list) {
		kept = []session.Todo{} // nothing is left to keep in mind
	}
	if raw, _ := json.Marshal(kept); len(raw) > todoWriteBytes { // plain types: it does not fail
		return tool.Result{},
			tool.Refuse(tool.TooLarge,
				"The todo list is too large (%s). Limit: %s. Nothing was changed. Write shorter items, or leave out "+
					"completed ones.",
				results.Size(int64(len(raw))), results.Size(todoWriteBytes))
	}
	if _, err := env.Todos.Change(ctx, func([]session.Todo) ([]session.Todo, error) { return kept, nil }); err != nil {
		return tool.Result{}, wording.StateFault(ctx, err)
	}
	return tool.Result{Text: todoWriteAnswer(list, done, doing)}, nil
}

func todoWriteAnswer(list []session.Todo, done, doing int) string {
	lines := []string{fmt.Sprintf("Todos updated (%d of %d done).", done, len(list))}
	for _, item := range list {
		switch {
		case item.Status == "completed":
			lines = append(lines, "[x] "+wording.OneLine(item.Content))
		case item.Status == "pending":
			lines = append(lines, "[ ] "+wording.OneLine(item.Content))
		case item.ActiveForm != "":
			lines = append(lines, "[>] "+wording.OneLine(item.ActiveForm))
		default:
			lines = append(lines, "[>] "+wording.OneLine(item.Content))
		}
	}
	switch {
	case len(list) == 0:
		lines = append(lines, "(The list is empty now.)")
	case done == len(list):
		lines = append(lines, "(All are done, so the list was cleared.)")
	case doing > 1:
		lines = append(lines, fmt.Sprintf("(%d items are in_progress; keep one.)", doing))
	}
	return strings.Join(lines, "\n")
}
