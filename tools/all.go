package tools

import "codehand/tools/tool"

// All returns every tool, by group; lists for models and people are sorted by name. The slice is the caller's.
func All() []tool.Tool {
	return []tool.Tool{
		// Files.
		readFile,
		writeFile,
		editFile,
		multiEdit,
		notebookEdit,
		listFiles,
		grepSearch,
		fileHistory,
		showChanges,
		undoChange,
		// Commands.
		runShell,
		runReadonly,
		jobOutput,
		jobStop,
		jobList,
		// The web.
		webFetch,
		webSearch,
		// Further tools.
		skill,
		toolSearch,
		callTool,
		// Sub-agents.
		agent,
		sendMessage,
		// Planning.
		enterPlanMode,
		exitPlanMode,
		todoWrite,
		taskCreate,
		taskGet,
		taskList,
		taskUpdate,
		// The session.
		askUserQuestion,
		sessionConfig,
	}
}
