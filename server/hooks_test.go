package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/config"
	"codehand/tools"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// bashPath is where hook scripts find their shell.
func bashPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("bash")
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatal("needs bash: .ci/run installs it")
	}
	t.Skip("needs bash: install it")
	return ""
}

// hookScript writes a script and returns the command that runs it with these arguments.
func hookScript(t *testing.T, text string, args ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{bashPath(t), path}, args...)
}

// heard waits until hooks have written n lines to a file, and returns what they were told.
func heard(t *testing.T, path string, n int) []map[string]any {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(hangAfter)
	for {
		text, _ := os.ReadFile(path) // it is not there yet
		if strings.Count(string(text), "\n") >= n {
			var told []map[string]any
			for line := range strings.Lines(string(text)) {
				var m map[string]any
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				told = append(told, m)
			}
			return told
		}
		select {
		case <-late:
			t.Fatalf("%d lines are wanted:\n%s", n, text)
		case <-tick.C:
		}
	}
}

// Hooks learn when a session begins, when it comes back, and when it has ended, whatever ended it.
func TestSessionHooks(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	note := hookScript(t, `cat >>"$1"`, out)
	f := start(t, setup{change: func(c *config.Config) {
		c.Hooks.Entries = []config.Hook{
			{Event: hooks.SessionStart, Command: note, Origin: "config.toml:1"}, {Event: hooks.SessionEnd, Command: note, Origin: "config.toml:5"},
		}
	}})
	s, key := f.server.sessions, session.Key{Principal: localID, Session: kindHandle + handleOf}
	var want []string
	expect := func(line string) {
		t.Helper()
		want = append(want, line)
		var got []string
		for _, m := range heard(t, out, len(want)) {
			got = append(got, fmt.Sprintf("%v %v %v", m["hook_event_name"], m["source"], m["reason"]))
			if m["session_id"] != key.Session || m["cwd"] != f.work || m["permission_mode"] != "default" || m["tool_name"] != nil {
				t.Errorf("told %v", m)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	f.must(t, "list_files", `{"pattern":"*"}`)
	expect("SessionStart startup <nil>")
	f.must(t, "list_files", `{"pattern":"*"}`)

	unused(t, s) // the answer goes out before the call lets go of its session
	s.mu.Lock()
	s.now = func() time.Time { return time.Now().Add(s.after + 2*sweepEvery) }
	s.mu.Unlock()
	s.idle()
	expect("SessionEnd <nil> idle")
	s.mu.Lock()
	s.now = time.Now
	s.mu.Unlock()
	f.must(t, "list_files", `{"pattern":"*"}`)
	expect("SessionStart resume <nil>")
	s.end(key)
	expect("SessionEnd <nil> closed")
	s.end(key)
	f.must(t, "list_files", `{"pattern":"*"}`)
	expect("SessionStart resume <nil>")
	if err := f.server.Close(); err != nil {
		t.Error(err)
	}
	expect("SessionEnd <nil> shutdown") // Close has waited for it
}

// Over HTTP every session was told as one that comes back, because what its client had said of itself was there already.
func TestSessionHooksOverHTTP(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	note := hookScript(t, `cat >>"$1"`, out)
	o := siteSetup{hooks: []config.Hook{
		{Event: hooks.SessionStart, Command: note, Origin: "config.toml:1"}, {Event: hooks.SessionEnd, Command: note, Origin: "config.toml:5"},
	}}
	x := serveHTTP(t, o)
	c := x.client("").hello()
	expect := func(want ...string) {
		t.Helper()
		for i, m := range heard(t, out, len(want)) {
			if got := fmt.Sprintf("%v %v %v", m["hook_event_name"], m["source"], m["reason"]); got != want[i] {
				t.Fatalf("told %q, want %q", got, want[i])
			}
		}
	}
	c.does("list_files", `{"pattern":"*"}`)
	expect("SessionStart startup <nil>")
	x.stop()
	expect("SessionStart startup <nil>", "SessionEnd <nil> shutdown")
	o.data, o.work, o.tokens = x.data, x.work, x.tokens
	again := serveHTTP(t, o).client("")
	again.session = c.session
	again.does("list_files", `{"pattern":"*"}`)
	expect("SessionStart startup <nil>", "SessionEnd <nil> shutdown", "SessionStart resume <nil>")
}

// unused waits until no session is in use.
func unused(t *testing.T, s *sessions) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(hangAfter)
	for {
		calls := 0
		s.mu.Lock()
		for _, l := range s.live {
			calls += l.calls
		}
		s.mu.Unlock()
		if calls == 0 {
			return
		}
		select {
		case <-late:
			t.Fatalf("%d calls are left", calls)
		case <-tick.C:
		}
	}
}

// A server whose hooks cannot be understood does not start.
func TestHooksAreChecked(t *testing.T) {
	t.Parallel()
	cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), nil)
	cfg.Hooks.Entries = []config.Hook{{Event: "PreToolUse", Command: []string{"guard"}, Matcher: "Edit(", Origin: "config.toml:7"}}
	if _, err := New(Options{Config: cfg, Tools: tools.All()}); err == nil || !strings.Contains(err.Error(), "config.toml:7: matcher") {
		t.Errorf("got %v", err)
	}
}

// In mode auto the operator's classifier decides what the mode would ask about.
func TestClassifierCommand(t *testing.T) {
	t.Parallel()
	judge := hookScript(t, `read -r told; case $told in *'"tool":"run_shell"'*'make it'*'"mode":"auto"'*) exit 0;; *) exit 2;; esac`)
	f := start(t, setup{change: func(c *config.Config) {
		c.Permissions.Mode, c.Permissions.Classifier, c.Permissions.AskFallback = permission.Auto, judge, "deny"
	}})
	if got := f.must(t, "run_shell", `{"command":"touch a # make it"}`); strings.HasPrefix(got, "!") {
		t.Errorf("got %q", got)
	}
	if got := f.must(t, "run_shell", `{"command":"touch b"}`); !strings.HasPrefix(got, "! PERMISSION_DENIED: ") {
		t.Errorf("got %q", got)
	}
}
