//go:build linux

package blackbox

import (
	"fmt"
	"strings"
)

// A way is one parameter of a tool through which a path comes in.
type way struct {
	tool  string
	param string // its name in the schema; "": none of the tool's own
	kind  wayKind
	codes string                           // what it answers for a path inside, alternatives separated by blanks; "-": no error
	args  func(path string) map[string]any // nil: this path means something else here
}

// A wayKind says how a way takes paths.
type wayKind int

const (
	readsPath   wayKind = iota // opens it
	writesPath                 // changes it
	inJournal                  // looks for what was changed there, whatever stands there now
	matchesPath                // takes it for a pattern of names
	namesThing                 // takes it for an id or a name
	runsCommand                // gives it to a shell
)

// one is the arguments of a tool that takes a path and more.
func one(param string, more ...any) func(string) map[string]any {
	return func(path string) map[string]any {
		args := map[string]any{param: path}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}
}

// unless leaves out paths that mean something else.
func unless(args func(string) map[string]any, paths ...string) func(string) map[string]any {
	return func(path string) map[string]any {
		for _, p := range paths {
			if path == p {
				return nil
			}
		}
		return args(path)
	}
}

// noDirectory leaves out what can only be a directory, which an edit refuses before it looks.
func noDirectory(args func(string) map[string]any) func(string) map[string]any {
	return func(path string) map[string]any {
		if strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") {
			return nil
		}
		return args(path)
	}
}

// inCommand puts a path into a command line. Bytes that no argument can have are left out.
func inCommand(line string) func(string) map[string]any {
	return func(path string) map[string]any {
		if path == "" || strings.Contains(path, "\x00") {
			return nil
		}
		return map[string]any{"command": fmt.Sprintf(line, "'"+path+"'")}
	}
}

// ways are all ways in. Those that make a file come last, since the others expect none.
func ways() []way {
	edit := map[string]any{"old_string": "here", "new_string": "gone"}
	return []way{
		{"read_file", "file_path", readsPath, "FILE_NOT_FOUND", one("file_path")},
		{"call_tool", "arguments", readsPath, "FILE_NOT_FOUND", func(p string) map[string]any {
			return map[string]any{"name": "read_file", "arguments": map[string]any{"file_path": p}}
		}},
		{"list_files", "path", readsPath, "FILE_NOT_FOUND", unless(one("path", "pattern", "**/*"), "")},
		{"grep_search", "path", readsPath, "FILE_NOT_FOUND", unless(one("path", "pattern", "here|root", "output_mode", "content"), "")},
		{"lsp", "filePath", readsPath, "FILE_NOT_FOUND LSP_UNAVAILABLE LSP_FAILED", one("filePath", "operation", "documentSymbol")},
		{"lsp_edit", "filePath", readsPath, "FILE_NOT_FOUND LSP_UNAVAILABLE LSP_FAILED", noDirectory(one("filePath", "operation", "organizeImports"))},
		{"list_files", "pattern", matchesPath, "", one("pattern")},
		{"grep_search", "glob", matchesPath, "", one("glob", "pattern", "here|root", "output_mode", "content")},
		{"file_history", "file_path", inJournal, "-", unless(one("file_path"), "")},
		{"show_changes", "path", inJournal, "-", unless(one("path"), "")},
		{"undo_change", "file_path", inJournal, "CHANGE_UNKNOWN", one("file_path")},
		{"file_history", "change_id", namesThing, "CHANGE_UNKNOWN", unless(one("change_id"), "")},
		{"undo_change", "change_id", namesThing, "CHANGE_UNKNOWN", one("change_id")},
		{"skill", "skill", namesThing, "SKILL_UNKNOWN", unless(one("skill"), "", "/")},
		{"job_output", "job_id", namesThing, "JOB_UNKNOWN", one("job_id")},
		{"job_stop", "job_id", namesThing, "JOB_UNKNOWN", one("job_id")},
		{"job_input", "job_id", namesThing, "JOB_UNKNOWN", one("job_id", "text", "x")},
		{"list_mcp_resources", "server", namesThing, "SERVER_UNKNOWN", unless(one("server"), "")},
		{"read_mcp_resource", "server", namesThing, "SERVER_UNKNOWN", unless(one("server", "uri", "codehand://guide/tools"), "")},
		{"read_mcp_resource", "uri", namesThing, "RESOURCE_UNKNOWN", one("uri", "server", "codehand")},
		{"task_get", "taskId", namesThing, "TASK_UNKNOWN", one("taskId")},
		{"task_update", "taskId", namesThing, "TASK_UNKNOWN", one("taskId", "status", "completed")},
		{"run_readonly", "command", runsCommand, "", inCommand("cat -- %s")},
		{"run_shell", "command", runsCommand, "", inCommand("cat %s")},
		{"run_shell", "command", runsCommand, "", inCommand("cd %s")},
		{"run_shell", "command", runsCommand, "", inCommand("echo made > %s")},
		{"edit_file", "file_path", writesPath, "FILE_NOT_FOUND", one("file_path", "old_string", "here", "new_string", "gone")},
		{"multi_edit", "file_path", writesPath, "STRING_NOT_FOUND FILE_NOT_FOUND", one("file_path", "edits", []any{edit})},
		{"multi_edit", "file_path", readsPath, "STRING_NOT_FOUND FILE_NOT_FOUND", one("file_path", "edits", []any{edit}, "dry_run", true)},
		{"multi_edit", "edits[].file_path", writesPath, "STRING_NOT_FOUND FILE_NOT_FOUND", func(p string) map[string]any {
			return map[string]any{"edits": []any{map[string]any{"old_string": "here", "new_string": "gone", "file_path": p}}}
		}},
		{"apply_patch", "patch", writesPath, "FILE_NOT_FOUND STRING_NOT_FOUND", inPatch("*** Update File: %s\n-here\n+gone")},
		{"apply_patch", "patch", writesPath, "FILE_NOT_FOUND", inPatch("*** Delete File: %s")},
		{"apply_patch", "patch", writesPath, "FILE_NOT_FOUND", inPatch("*** Update File: no-such-file\n*** Move to: %s")},
		{"notebook_edit", "notebook_path", writesPath, "FILE_NOT_FOUND", one("notebook_path", "cell_id", "a", "new_source", "gone")},
		{"edit_file", "file_path", writesPath, "-", one("file_path", "old_string", "", "new_string", "made")},
		{"write_file", "file_path", writesPath, "-", one("file_path", "content", "made")},
		{"save_file", "file_path", writesPath, "-", one("file_path", "uri", "data:,made")},
		{"apply_patch", "patch", writesPath, "FILE_EXISTS", inPatch("*** Add File: %s\n+made")},
	}
}

// inPatch puts a path into a section of a patch, where one without the blanks around it stands on a line of its own.
func inPatch(section string) func(string) map[string]any {
	return func(p string) map[string]any {
		if strings.TrimSpace(p) != p || p == "" || strings.ContainsAny(p, "\r\n") {
			return nil
		}
		return map[string]any{"patch": "*** Begin Patch\n" + fmt.Sprintf(section, p) + "\n*** End Patch"}
	}
}

// noPaths are the texts of tools that are no paths, with the reason.
var noPaths = map[string]string{
	"read_file.pages": "numbers", "grep_search.pattern": "an expression over lines", "grep_search.type": "a list of ours", "grep_search.output_mode": "a list of ours",
	"write_file.content": "content", "edit_file.old_string": "content", "edit_file.new_string": "content", "multi_edit.edits[].old_string": "content", "multi_edit.edits[].new_string": "content",
	"notebook_edit.new_source": "content", "notebook_edit.cell_id": "looked for in the notebook", "notebook_edit.cell_type": "a list of ours", "notebook_edit.edit_mode": "a list of ours",
	"write_file.version": "compared", "edit_file.version": "compared", "multi_edit.edits[].version": "compared", "notebook_edit.version": "compared",
	"run_shell.description": "shown", "job_output.filter": "an expression over lines", "skill.args": "text for the skill", "tool_search.query": "words",
	"session_digest.session": "compared",
	"call_tool.name":         "a list of ours", "session_config.key": "a list of ours", "session_config.value": "of a list of ours", "exit_plan_mode.plan": "content",
	"ask_user_question.questions[].question": "shown", "ask_user_question.questions[].header": "shown", "ask_user_question.questions[].options[].label": "shown", "ask_user_question.questions[].options[].description": "shown",
	"ask_user_question.questions[].options[].preview": "shown",
	"todo_write.todos[].content":                      "shown", "todo_write.todos[].status": "a list of ours", "todo_write.todos[].activeForm": "shown",
	"task_create.subject": "shown", "task_create.description": "shown", "task_create.activeForm": "shown", "task_create.metadata": "kept", "task_update.subject": "shown", "task_update.description": "shown",
	"agent.description": "shown", "agent.prompt": "text for a model", "agent.subagent_type": "a list of ours", "agent.model": "a list of the operator's", "agent.name": "shown",
	"agent.tasks[].description": "shown", "agent.isolation": "a list of ours", "agent.tasks[].prompt": "text for a model", "agent.tasks[].subagent_type": "a list of ours",
	"save_file.uri": "data:, http:, https: and codehand: alone", "save_file.version": "compared",
	"web_fetch.url": "http and https alone", "web_fetch.prompt": "shown",
	"monitor.command": "judged and started as that of run_shell", "monitor.description": "shown", "monitor.filter": "an expression over lines", "job_input.text": "typed", "job_input.keys[]": "a list of ours",
	"lsp.operation": "a list of ours", "lsp.query": "a word", "lsp_edit.operation": "a list of ours", "lsp_edit.query": "a word", "lsp_edit.newName": "a word",
	"enter_worktree.name": "letters, digits and a few signs", "enter_worktree.path": "compared with what git lists: TestEnterWorktreeRefused", "exit_worktree.action": "a list of ours",
	"task_update.activeForm": "shown", "task_update.metadata": "kept", "task_update.owner": "shown", "task_update.status": "a list of ours", "task_update.addBlocks[]": "numbers in the list", "task_update.addBlockedBy[]": "numbers in the list",
}
