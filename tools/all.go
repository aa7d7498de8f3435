package tools

import "codehand/tools/tool"

// All makes every tool over these engines, by group; lists for models and people are sorted by name. The slice is the
// caller's.
func All(e Engines) []tool.Tool {
	return []tool.Tool{
		// Files.
		readFile,
		writeFile,
		editFile,
		multiEdit,
		applyPatch,
		saveFile(e.Web),
		notebookEdit,
		listFiles,
		grepSearch,
		fileHistory,
		showChanges,
		undoChange,
		lsp,
		lspEdit,
		// Commands.
		runShell(e.Trees),
		runReadonly,
		monitor(e.Trees),
		jobOutput,
		jobInput,
		jobStop,
		jobList,
		// Work trees.
		enterWorktree,
		exitWorktree,
		// The web.
		webFetch(e.Web),
		webSearch(e.WebSearch),
		// Further tools.
		skill(e.Agents),
		toolSearch(e.Mounts),
		callTool,
		listMcpResources(e.Mounts),
		readMcpResource(e.Mounts),
		// Sub-agents.
		agent(e.Agents),
		sendMessage(e.Agents),
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
		sessionDigest(e.Past),
	}
}
