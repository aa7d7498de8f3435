package catalog

import "strings"

// Short is the short name of a tool that other agents call by the name of a type in their source: ReadTool,
// FileReadTool and ReadFileTool are Read, UpdateTodoTool is TodoWrite. Other names are returned as they are, also those
// in which the word stands apart: Call_Tool.
func Short(name string) string {
	base, ok := strings.CutSuffix(name, "Tool")
	// mcp__server__SomeTool is what it says.
	if !ok || strings.TrimRight(base, "_- ") != base || base == "" || strings.Contains(name, "__") {
		return name
	}
	if base == "UpdateTodo" {
		return "TodoWrite"
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
