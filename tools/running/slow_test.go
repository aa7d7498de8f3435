package running

import (
	"strings"
	"testing"
	"time"

	"codehand/tools/bash"
	"codehand/tools/confine"
	"codehand/tools/tool"
)

// The first build in the sandbox is slow because its caches are empty, and nothing said so.
func TestSlowBuild(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command string
		empty   []string
		took    time.Duration
		want    bool
	}{
		{"cd a && go test ./...", []string{"go", "npm"}, slowAfter, true},
		{"npm ci", []string{"npm"}, time.Minute, true},
		{"go test ./...", []string{"npm"}, time.Hour, false},
		{"go test ./...", []string{"go"}, slowAfter - 1, false},
		{"sleep 100", []string{"go", "npm"}, time.Hour, false},
		{"go test ./...", nil, time.Hour, false},
	} {
		a := bash.Analyze(c.command, nil)
		o := Outcome{Env: tool.Env{Analysis: &a}, Confined: confine.Command{Empty: c.empty}}
		o.slowBuild(c.took)
		if got := strings.Contains(strings.Join(o.Notes, ""), "[the first build of commands: "); got != c.want {
			t.Errorf("%s after %s: %q", c.command, c.took, o.Notes)
		}
	}
}
