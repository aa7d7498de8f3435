package running

import (
	"strings"
	"testing"
	"time"

	"codehand/tools/bash"
	"codehand/tools/confine"
	"codehand/tools/tool"
)

// The first build in the sandbox is slow because its caches are empty, and nothing said so: in plan mode the first
// `go vet` ended at its deadline without a word.
func TestSlowBuild(t *testing.T) {
	t.Parallel()
	const first, next, again = "[the first build of commands: ", "the next one is faster]", "so call again]"
	for _, c := range []struct {
		command  string
		reads    bool
		timedOut bool
		empty    []string
		took     time.Duration
		want     []string
	}{
		{"cd a && go test ./...", false, false, []string{"go", "npm"}, slowAfter, []string{first, next}},
		{"npm ci", false, false, []string{"npm"}, time.Minute, []string{first, next}},
		{"go test ./...", false, false, []string{"npm"}, time.Hour, nil},
		{"go test ./...", false, false, []string{"go"}, slowAfter - 1, nil},
		{"sleep 100", false, true, []string{"go", "npm"}, time.Hour, nil},
		{"go test ./...", false, true, nil, time.Hour, nil},
		{"go vet ./...", true, true, []string{"go"}, time.Second, []string{first, "those that only read", again}},
		{"go vet ./...", true, false, []string{"go"}, slowAfter, []string{first, "those that only read", next}},
		{"go vet ./...", true, true, nil, time.Minute, []string{"[what was built so far stays ", again}},
		{"go vet ./...", true, false, nil, time.Minute, nil},
		{"sleep 100", true, true, []string{"go"}, time.Minute, nil},
	} {
		a := bash.Analyze(c.command, nil)
		if a.Class = bash.Writes; c.reads {
			a.Class = bash.ReadOnly
		}
		o := Outcome{Env: tool.Env{Analysis: &a}, Confined: confine.Command{Empty: c.empty}}
		o.slowBuild(c.took, c.timedOut)
		notes := strings.Join(o.Notes, "")
		if len(c.want) == 0 && notes != "" {
			t.Errorf("%s after %s: %q", c.command, c.took, notes)
		}
		for _, w := range c.want {
			if !strings.Contains(notes, w) {
				t.Errorf("%s after %s: %q, not in %q", c.command, c.took, w, notes)
			}
		}
	}
}
