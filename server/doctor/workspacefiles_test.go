package doctor

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestIgnoresWorkspace: doctor said nothing of an agent that runs what files of the workspace name. The lines of
// docs/agents.md do not, and each of their flags counts.
func TestIgnoresWorkspace(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?s)\nargv = \[(.*?)\]\n(?:env_allow|`+"```"+`)`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 3 {
		t.Fatalf("%d command lines", len(lines))
	}
	for _, line := range lines {
		var argv []string
		for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(line[1], -1) {
			argv = append(argv, m[1])
		}
		if !ignoresWorkspace(argv) {
			t.Errorf("%q may obey files of the workspace", argv)
		}
		kept := argv[:1:1]
		for _, arg := range argv[1:] {
			if !strings.HasPrefix(arg, "--setting") && !strings.HasPrefix(arg, "--ignore") && arg != "-C" {
				kept = append(kept, arg)
			}
		}
		if ignoresWorkspace(kept) {
			t.Errorf("%q is taken to obey no files", kept)
		}
	}
	if ignoresWorkspace([]string{"/usr/bin/other", "--setting-sources", "user", "--strict-mcp-config"}) {
		t.Error("nothing is known of another program")
	}
}
