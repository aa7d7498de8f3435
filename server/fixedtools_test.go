package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"codehand/tools"
	"codehand/tools/tool"
)

// fixed names the tools of golden files that show a list of tools: core ones and deferred ones, some with like names.
var fixed = []string{
	"read_file", "write_file", "edit_file", "call_tool", "job_stop", "tool_search", "ask_user_question", "enter_plan_mode",
	"exit_plan_mode", "task_create", "task_get", "task_list", "task_update", "todo_write",
}

// fixedTools is a small table that does not grow, so that golden files of one tool do not move when another is added.
func fixedTools(e tools.Engines) []tool.Tool {
	return slices.DeleteFunc(tools.All(e), func(t tool.Tool) bool { return !slices.Contains(fixed, t.Spec.Name) })
}

// What a tool declares for tests is shown to no client and found by no search.
func TestDeclarationsForTests(t *testing.T) {
	t.Parallel()
	hidden := fixtureTool("hidden", reader, func(context.Context, tool.Env, word) (tool.Result, error) { return tool.Result{}, nil })
	hidden.Spec.Deferred = true
	hidden.Spec.Example, hidden.Spec.NoTargets, hidden.Spec.Finds = `{"word":"frobnicate"}`, "frobnicate", []string{"frobnicate"}
	for _, modern := range []bool{false, true} {
		f := start(t, setup{make: func(e tools.Engines) []tool.Tool { return append(fixedTools(e), hidden) }, modern: modern})
		list, err := f.Request("tools/list", nil)
		must(t, err)
		found, err := f.Call("tool_search", json.RawMessage(`{"query":"select:hidden"}`))
		must(t, err)
		none, err := f.Call("tool_search", json.RawMessage(`{"query":"frobnicate"}`))
		must(t, err)
		if !strings.Contains(found, `"name":"hidden"`) || strings.Contains(string(list.Result)+found, "frobnicate") {
			t.Errorf("modern %v: %s\n%s", modern, list.Result, found)
		}
		if !strings.HasPrefix(none, "No matching deferred tools found.") {
			t.Errorf("modern %v: %s", modern, none)
		}
	}
}
