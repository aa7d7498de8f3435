package doctor

import (
	"path/filepath"
	"slices"
	"strings"
)

// ignoresWorkspace says whether the command line of another agent is known to run no program that files of the
// workspace name, as the lines of docs/agents.md are (TestAgentCLIsObeyNoWorkspace). Resumed ones are not looked at.
func ignoresWorkspace(argv []string) bool {
	has := func(words ...string) bool {
		for i := range argv {
			if end := i + len(words); end <= len(argv) && slices.Equal(argv[i:end], words) {
				return true
			}
		}
		return false
	}
	switch filepath.Base(argv[0]) {
	case "claude":
		return has("--setting-sources", "user") && has("--strict-mcp-config")
	case "codex":
		return has("--ignore-rules") && slices.ContainsFunc(argv, func(arg string) bool {
			return strings.HasPrefix(arg, "projects={'{cwd}'=") && strings.Contains(arg, "'untrusted'")
		})
	case "copilot":
		return has("-C", "{empty}")
	}
	return false
}
