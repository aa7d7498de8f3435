package catalog

import "testing"

func TestShort(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ReadTool": "Read", "FileReadTool": "Read", "ReadFileTool": "Read", "WriteTool": "Write", "FileWriteTool": "Write", "WriteFileTool": "Write",
		"EditTool": "Edit", "FileEditTool": "Edit", "EditFileTool": "Edit", "MultiEditTool": "MultiEdit", "MultiEditFileTool": "MultiEdit",
		"NotebookEditTool": "NotebookEdit", "GlobTool": "Glob", "GrepTool": "Grep", "BashTool": "Bash", "PowerShellTool": "Bash", "PowerShell": "Bash",
		"Task": "Agent", "TaskTool": "Agent", "task": "task", "TaskStopTool": "TaskStop",
		"UpdateTodoTool": "TodoWrite", "TodoWriteTool": "TodoWrite", "ExitPlanModeV2Tool": "ExitPlanMode", "EnterPlanModeTool": "EnterPlanMode",
		"AgentTool": "Agent", "SkillTool": "Skill", "WebFetchTool": "WebFetch", "LSPTool": "LSP", "ListMcpResourcesTool": "ListMcpResources",
		"": "", "Tool": "Tool", "FileTool": "File", "Read": "Read", "read_file": "read_file", "mcp__s__ReadTool": "mcp__s__ReadTool", "readtool": "readtool",
		"V2Tool": "V2Tool", "Call_Tool": "Call_Tool", "call-Tool": "call-Tool", "Call Tool": "Call Tool",
	} {
		if got := Short(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
