package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed task_list.md
var taskListText string

type taskListInput struct{}

var taskList = tool.Define(tool.Def[taskListInput]{
	Spec: tool.Spec{
		Name: "task_list", Aliases: []string{"TaskList"}, Title: "List tasks", Description: taskListText,
		Hint: "show or see all open, left or remaining tasks", Deferred: true, MaxRunes: 10000, Scope: tool.ScopeRead,
		Family:    permission.FamilyNone,
		Traits:    tool.Traits{ReadOnly: true, Ungated: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Example:   `{}`,
		NoTargets: "it reads the session's own tasks",
		Finds: []string{"TaskList", "list tasks", "task list", "+task list", "show all tasks",
			"which tasks are left"},
	},
	Activity: func(taskListInput) string { return "Listing tasks" },
	Run:      runTaskList,
})

func runTaskList(ctx context.Context, env tool.Env, _ taskListInput) (tool.Result, error) {
	book, err := env.Tasks.Book(ctx)
	if err != nil {
		return tool.Result{}, planning.TaskRefusal(ctx, "task_list", err)
	}
	var lines []string
	for _, t := range book.Tasks {
		line := fmt.Sprintf("%s [%s] %s", t.ID, t.Status, wording.OneLine(t.Subject))
		if t.Owner != "" {
			line += " (owner " + wording.OneLine(t.Owner) + ")"
		}
		if open := book.Blockers(t); len(open) > 0 {
			line += " blocked by " + strings.Join(open, ", ")
		}
		lines = append(lines, line)
	}
	if len(book.Tasks) == 0 {
		lines = []string{"There are no tasks. Make one with task_create."}
	}
	return tool.Result{Text: strings.Join(append(lines, planning.DamageNotes(book.Damaged)...), "\n")}, nil
}
