package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// otherNames are how other agents call our tools in their sources, and ours.
var otherNames = map[string]string{
	"ReadTool": "read_file", "FileReadTool": "read_file", "ReadFileTool": "read_file",
	"WriteTool": "write_file", "FileWriteTool": "write_file",
	"EditTool": "edit_file", "FileEditTool": "edit_file", "EditFileTool": "edit_file",
	"MultiEditTool": "multi_edit", "MultiEditFileTool": "multi_edit", "NotebookEditTool": "notebook_edit",
	"GlobTool": "list_files", "GrepTool": "grep_search", "BashTool": "run_shell", "PowerShellTool": "run_shell", "PowerShell": "run_shell", "TaskStopTool": "job_stop",
	"WebFetchTool": "web_fetch", "WebSearchTool": "web_search", "SkillTool": "skill", "AgentTool": "agent", "TaskTool": "agent", "Task": "agent",
	"ToolSearchTool": "tool_search", "UpdateTodoTool": "todo_write", "SendMessageTool": "send_message",
	"ConfigTool": "session_config", "ExitPlanModeV2Tool": "exit_plan_mode",
}

// TestOtherNames: names that models know from other agents were refused with -32602, also those of tools that the
// client was listed.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true})
	c := replaytest.OnPipe(t, f.Wire, false, replaytest.Declared)
	for _, name := range slices.Sorted(maps.Keys(otherNames)) {
		want := otherNames[name]
		for _, a := range []replaytest.ElicitAnswer{
			c.Call(name, `{"no_such_parameter":1}`, replaytest.Never(t)),
			c.Call("call_tool", `{"name":"`+name+`","arguments":{"no_such_parameter":1}}`, replaytest.Never(t)),
		} {
			if a.Code != 0 || !strings.HasPrefix(a.Text, "INPUT_INVALID: Input validation failed for "+want+":") && !strings.HasPrefix(a.Text, "TOOL_DISABLED: "+want+" ") {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
	if a := c.Call("BashTool", `{"command":"echo here"}`, replaytest.Never(t)); a.Text != "here" {
		t.Errorf("%+v", a)
	}
	if a := c.Call("tool_search", `{"query":"select:NotebookEditTool"}`, replaytest.Never(t)); !strings.Contains(a.Text, `"name":"notebook_edit"`) {
		t.Errorf("%+v", a)
	}
	if a := c.Call("mcp__x__BashTool", `{"command":"echo here"}`, replaytest.Never(t)); a.Text == "here" {
		t.Errorf("%+v", a)
	}
}

// TestOtherNamesInRules: a rule BashTool(...) stopped the start, since no tool went by that name.
func TestOtherNamesInRules(t *testing.T) {
	t.Parallel()
	every := slices.Sorted(maps.Keys(otherNames))
	f := start(t, setup{silent: true, settings: map[string]string{"permissions.deny": strings.Join(every, ","), "tools.deferral": "off"}})
	c := replaytest.OnPipe(t, f.Wire, false, replaytest.Declared)
	list := string(c.Request(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)())
	for name, tool := range otherNames {
		if strings.Contains(list, `"name":"`+tool+`"`) {
			t.Errorf("%s is denied, and %s listed", name, tool)
		}
	}
	if !strings.Contains(list, `"name":"job_list"`) {
		t.Errorf("listed are %s", list)
	}
	f = start(t, setup{silent: true, settings: map[string]string{"permissions.deny": "BashTool(echo secret*),ReadFileTool(/secret/**),FileEditTool(/kept.txt)"}})
	c = replaytest.OnPipe(t, f.Wire, false, replaytest.Declared)
	for _, call := range [][2]string{
		{"run_shell", `{"command":"true && echo secret words"}`}, {"BashTool", `{"command":"echo secrets"}`},
		{"read_file", fmt.Sprintf(`{"file_path":%q}`, f.work+"/secret/a.txt")},
		{"write_file", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, f.work+"/kept.txt")},
	} {
		if a := c.Call(call[0], call[1], replaytest.Never(t)); !strings.HasPrefix(a.Text, "PERMISSION_DENIED: ") {
			t.Errorf("%s: %+v", call, a)
		}
	}
	if a := c.Call("run_shell", `{"command":"echo open"}`, replaytest.Never(t)); a.Text != "open" {
		t.Errorf("%+v", a)
	}
}
