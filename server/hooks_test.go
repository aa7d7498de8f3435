package server

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/replaytest"
	"codehand/server/sessions"
	"codehand/tools"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// Hooks learn when a session begins, when it comes back, and when it has ended, whatever ended it.
func TestSessionHooks(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	note := replaytest.HookScript(t, `cat >>"$1"`, out)
	f := start(t, setup{change: func(c *config.Config) {
		c.Hooks.Entries = []config.Hook{
			{Event: hooks.SessionStart, Command: note, Origin: "config.toml:1"}, {Event: hooks.SessionEnd, Command: note, Origin: "config.toml:5"},
		}
	}})
	s, key := f.server.sessions, session.Key{Principal: auth.LocalID, Session: sessions.ByHandle + replaytest.Handle}
	var later atomic.Int64
	ended, told := 0, s.Ended
	s.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	s.Ended = func(st *session.State, why string) {
		told(st, why)
		ended++
	}
	var want []string
	expect := func(line string) {
		t.Helper()
		want = append(want, line)
		var got []string
		for _, m := range replaytest.Heard(t, out, len(want)) {
			got = append(got, fmt.Sprintf("%v %v %v", m["hook_event_name"], m["source"], m["reason"]))
			if m["session_id"] != key.Session || m["cwd"] != f.work || m["permission_mode"] != "default" || m["tool_name"] != nil {
				t.Errorf("told %v", m)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	f.Must(t, "list_files", `{"pattern":"*"}`)
	expect("SessionStart startup <nil>")
	f.Must(t, "list_files", `{"pattern":"*"}`)

	for limit := time.Now().Add(replaytest.HangAfter); ended == 0; runtime.Gosched() { // the answer goes out before the call lets go
		later.Add(int64(s.Idle + time.Hour))
		if s.DropIdle(); time.Now().After(limit) {
			t.Fatal("an idle session keeps its handles")
		}
	}
	expect("SessionEnd <nil> idle")
	f.Must(t, "list_files", `{"pattern":"*"}`)
	expect("SessionStart resume <nil>")
	s.End(key)
	expect("SessionEnd <nil> closed")
	s.End(key)
	f.Must(t, "list_files", `{"pattern":"*"}`)
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
	note := replaytest.HookScript(t, `cat >>"$1"`, out)
	o := siteSetup{hooks: []config.Hook{
		{Event: hooks.SessionStart, Command: note, Origin: "config.toml:1"}, {Event: hooks.SessionEnd, Command: note, Origin: "config.toml:5"},
	}}
	x := serveHTTP(t, o)
	c := x.client("").Hello()
	expect := func(want ...string) {
		t.Helper()
		for i, m := range replaytest.Heard(t, out, len(want)) {
			if got := fmt.Sprintf("%v %v %v", m["hook_event_name"], m["source"], m["reason"]); got != want[i] {
				t.Fatalf("told %q, want %q", got, want[i])
			}
		}
	}
	c.Does("list_files", `{"pattern":"*"}`)
	expect("SessionStart startup <nil>")
	x.stop()
	expect("SessionStart startup <nil>", "SessionEnd <nil> shutdown")
	o.data, o.work, o.tokens = x.data, x.work, x.tokens
	again := serveHTTP(t, o).client("")
	again.Session = c.Session
	again.Does("list_files", `{"pattern":"*"}`)
	expect("SessionStart startup <nil>", "SessionEnd <nil> shutdown", "SessionStart resume <nil>")
}

// A server whose hooks cannot be understood does not start.
func TestHooksAreChecked(t *testing.T) {
	t.Parallel()
	cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), nil)
	cfg.Hooks.Entries = []config.Hook{{Event: "PreToolUse", Command: []string{"guard"}, Matcher: "Edit(", Origin: "config.toml:7"}}
	if _, err := New(Options{Options: engines.Options{Config: cfg, Tools: tools.All}}); err == nil || !strings.Contains(err.Error(), "config.toml:7: matcher") {
		t.Errorf("got %v", err)
	}
}

// In mode auto the operator's classifier decides what the mode would ask about.
func TestClassifierCommand(t *testing.T) {
	t.Parallel()
	judge := replaytest.HookScript(t, `read -r told; case $told in *'"tool":"run_shell"'*'make it'*'"mode":"auto"'*) exit 0;; *) exit 2;; esac`)
	f := start(t, setup{change: func(c *config.Config) {
		c.Permissions.Mode, c.Permissions.Classifier, c.Permissions.AskFallback = permission.Auto, judge, "deny"
	}})
	if got := f.Must(t, "run_shell", `{"command":"touch a # make it"}`); strings.HasPrefix(got, "!") {
		t.Errorf("got %q", got)
	}
	if got := f.Must(t, "run_shell", `{"command":"touch b"}`); !strings.HasPrefix(got, "! PERMISSION_DENIED: ") {
		t.Errorf("got %q", got)
	}
}
