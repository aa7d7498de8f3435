package agent

import (
	"slices"
	"strings"

	"codehand/tools/agent/loop"
)

// An Offered is a tool that the session of a sub-agent could use.
type Offered struct {
	loop.Tool
	Aliases []string
}

// never are tools that no sub-agent gets: no person answers its questions, it must not lift its own limits, and it
// needs no search for tools, since it is given all of its own.
var never = []string{
	"ask_user_question", "enter_plan_mode", "exit_plan_mode", "tool_search", "call_tool", "session_config",
	"send_message", toolName,
}

// synonyms are names that agent files of other programs have for our tools, besides aliases.
var synonyms = map[string][]string{
	"read": {"read_file"}, "view": {"read_file"}, "write": {"write_file"}, "create": {"write_file"},
	"edit": {"edit_file", "multi_edit", "write_file"}, "replace": {"edit_file"}, "patch": {"edit_file", "multi_edit"},
	"multiedit": {"multi_edit"}, "search": {"grep_search", "list_files"}, "grep": {"grep_search"},
	"grep_search": {"grep_search"}, "search_file_content": {"grep_search"}, "glob": {"list_files"},
	"list": {"list_files"}, "ls": {"list_files"}, "list_directory": {"list_files"}, "bash": {"run_shell"},
	"shell": {"run_shell"}, "execute": {"run_shell"}, "run_shell_command": {"run_shell"}, "terminal": {"run_shell"},
	"webfetch": {"web_fetch"}, "fetch": {"web_fetch"}, "web": {"web_fetch", "web_search"},
	"websearch": {"web_search"}, "google_web_search": {"web_search"}, "todo": {"todo_write"},
	"todowrite": {"todo_write"}, "todoread": {"todo_write"}, "notebook": {"notebook_edit"},
}

// Pick returns those of all that a sub-agent of the type gets, and the names in its list that are none of them. deeper
// says that it may start sub-agents of its own. A name with a pattern, as in Bash(git *), is not given, since the
// pattern would not be kept; in a list of what is taken away it stands for the whole tool.
func (t Type) Pick(all []Offered, deeper bool) (given []loop.Tool, unknown []string) {
	want := map[string]bool{}
	for _, name := range t.Tools {
		found := false
		for i := range all {
			if !strings.ContainsRune(name, '(') && goesBy(&all[i], name) {
				want[all[i].Name], found = true, true
			}
		}
		if !found && name != "*" {
			unknown = append(unknown, name)
		}
	}
	everything := t.Tools == nil || slices.Contains(t.Tools, "*")
	for i := range all {
		x := &all[i]
		switch {
		case !everything && !want[x.Name], t.ReadOnly && !x.ReadOnly && x.Name != "todo_write":
		case slices.Contains(never, x.Name) && (x.Name != toolName || !deeper):
		case slices.ContainsFunc(t.Without, func(name string) bool {
			name, _, _ = strings.Cut(name, "(")
			return name == "*" || goesBy(x, name)
		}):
		default:
			given = append(given, x.Tool)
		}
	}
	return given, unknown
}

// goesBy says whether a tool has this name, in any case: its own, an alias, or one of other programs.
func goesBy(x *Offered, name string) bool {
	return strings.EqualFold(x.Name, name) ||
		slices.ContainsFunc(x.Aliases, func(alias string) bool { return strings.EqualFold(alias, name) }) ||
		slices.Contains(synonyms[strings.ToLower(name)], x.Name)
}
