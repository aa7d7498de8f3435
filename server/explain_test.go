package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/engines"
	"codehand/server/explain"
	"codehand/tools"
)

// TestExplainLocal: an explanation is made by the code that decides, and runs nothing.
func TestExplainLocal(t *testing.T) {
	t.Parallel()
	root := leaktest.Dir(t)
	cfg := testSettings(t, root, filepath.Join(t.TempDir(), "state"), map[string]string{"permissions.deny": "Bash(git push *)", "permissions.ask": "Edit(gen/**)"})
	s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: cfg, Tools: tools.All}})
	must(t, err)
	defer s.Close()
	for _, c := range []struct {
		tool, input, verdict, rule string
		check                      func(explain.Explanation) bool
	}{
		{"Bash", `{"command":"ls && git push"}`, "deny", "Bash(git push *)", func(e explain.Explanation) bool {
			return e.Tool == "run_shell" && e.About == "git push" && e.Origin != "" && e.Command.Class == "write" && len(e.Command.Parts) == 2
		}},
		{"write_file", `{"file_path":"gen/a","content":"x"}`, "ask", "Edit(gen/**)", func(e explain.Explanation) bool { return e.Hard && e.AskedBy == "person" && e.Suggests == "" }},
		{"write_file", `{"file_path":"a","content":"x"}`, "ask", "", func(e explain.Explanation) bool {
			return e.AskedBy == "client" && e.Suggests == "Edit(//"+strings.TrimPrefix(filepath.ToSlash(root), "/")+"/a)" && e.Paths[0].Inside && e.Paths[0].Use == "write"
		}},
		{"read_file", `{"file_path":"a"}`, "allow", "", func(e explain.Explanation) bool { return e.Paths[0].Use == "read" }},
		{"read_file", `{"file_path":"/nowhere/a"}`, "deny", "", func(e explain.Explanation) bool { return e.Code == "OUTSIDE_ROOTS" && !e.Paths[0].Inside }},
		{"write_file", `{"file_path":"../a","content":"x"}`, "deny", "", func(e explain.Explanation) bool {
			return e.Code == "OUTSIDE_ROOTS" && e.Suggests == "" && e.AskedBy == ""
		}},
		{"read_file", `{}`, "deny", "", func(e explain.Explanation) bool { return e.Code == "INPUT_INVALID" }},
	} {
		e, err := s.Explain(t.Context(), c.tool, json.RawMessage(c.input))
		if err != nil || e.Verdict != c.verdict || e.Rule != c.rule || !c.check(e) {
			t.Errorf("%s %s: got %+v, %v", c.tool, c.input, e, err)
		}
	}
	if _, err := s.Explain(t.Context(), "no_such_tool", nil); err == nil {
		t.Error("a tool that does not exist was explained")
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("something was done: %v, %v", entries, err)
	}
}
