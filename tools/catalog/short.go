package catalog

import "strings"

// renamed are names of other agents that are no alias of the tool that they mean. As an alias of agent, Task would hide
// the tools of tasks from those who search for a task.
var renamed = map[string]string{"UpdateTodo": "TodoWrite", "Task": "Agent", "PowerShell": "Bash"}

// Short is the short name of a tool that other agents call by the name of a type in their source: ReadTool,
// FileReadTool and ReadFileTool are Read, UpdateTodoTool is TodoWrite. Task is Agent and PowerShell is Bash, also
// without that ending. Other names are returned as they are, also those in which the word stands apart: Call_Tool.
func Short(name string) string {
	base, ok := strings.CutSuffix(name, "Tool")
	// mcp__server__SomeTool is what it says.
	if ok && (strings.TrimRight(base, "_- ") != base || base == "" || strings.Contains(name, "__")) {
		return name
	}
	if known, has := renamed[base]; has {
		return known
	}
	if !ok {
		return name
	}
	if base = strings.TrimSuffix(base, "V2"); base == "" {
		return name
	}
	for _, about := range []string{strings.TrimPrefix(base, "File"), strings.TrimSuffix(base, "File")} {
		if about != base && about != "" {
			return about
		}
	}
	return base
}
