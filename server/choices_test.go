package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/replaytest"
	"codehand/server/sessions"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// chooser is a client of the session with a handle, which calls itself name.
func chooser(x *httpSite, handle, name string) *replaytest.HTTPClient {
	c := x.client("")
	c.URL, c.Info = c.URL+"/s/"+handle, name
	return c.Hello()
}

// TestChoicesOutliveConnections: what a session has chosen holds for its other connections and after a restart, never
// beyond what the client's profile and the operator allow by then, and in no other session.
func TestChoicesOutliveConnections(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	must(t, os.Mkdir(filepath.Join(x.work, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(x.work, "sub/a.txt"), []byte(strings.Repeat("word ", 4000)+"\n"), 0o600))
	one := chooser(x, "choosing-handle", "one")
	one.Chooses("result_cap", "15000")
	one.Chooses("grep_mode", "count")
	one.Chooses("shell_timeout_ms", "300000")
	one.Chooses("read_dedup", "off")
	if got := one.Does("session_config", `{"key":"cwd","value":"sub"}`); !strings.HasPrefix(got, "cwd = "+x.work+"/sub (") {
		t.Fatal(got)
	}
	for range 2 { // before a restart and after it, with less of the operator's
		again := chooser(x, "choosing-handle", "again")
		again.Has("result_cap", "15000")
		again.Has("grep_mode", "count")
		again.Has("read_dedup", "off")
		again.Has("cwd", x.work+"/sub")
		if got := again.Does("grep_search", `{"pattern":"word"}`); !strings.HasPrefix(got, "a.txt:1\n") {
			t.Errorf("a search: %q", got)
		}
		for range 2 {
			if got := again.Does("read_file", `{"file_path":"a.txt"}`); strings.HasPrefix(got, "File unchanged") {
				t.Errorf("a second read: %q", got)
			}
		}
		small := chooser(x, "choosing-handle", "lmstudio") // its profile has 8,000
		small.Has("result_cap", "8000")
		other := chooser(x, "another-handle", "other")
		other.Has("result_cap", "50000")
		other.Has("grep_mode", "files_with_matches")
		other.Has("cwd", x.work)
		x = x.again(t, siteSetup{settings: map[string]string{"shell.max_timeout_ms": "200000"}})
	}
	last := chooser(x, "choosing-handle", "last")
	last.Has("shell_timeout_ms", "200000")
	last.Does("session_config", `{"key":"shell_timeout_ms","value":"default"}`)
	last.Has("shell_timeout_ms", "120000")
	must(t, os.RemoveAll(filepath.Join(x.work, "sub")))
	must(t, os.Symlink("/", filepath.Join(x.work, "sub"))) // it leads out of the roots by now
	last.Has("cwd", x.work)
}

// TestChoicesShared: where several conversations share a session, the answer says so, and no read is a stub.
func TestChoicesShared(t *testing.T) {
	t.Parallel()
	const shared = "\n[all conversations of this user in this workspace share these options]"
	x := serveHTTP(t, siteSetup{})
	must(t, os.WriteFile(filepath.Join(x.work, "a.txt"), []byte("one\n"), 0o600))
	one, two := x.client("").Of2026(), x.client("").Of2026()
	if got := one.Does("session_config", `{"key":"grep_mode","value":"count"}`); got != "grep_mode = count, chosen in this session (files_with_matches, content, count)"+shared {
		t.Errorf("set: %q", got)
	}
	if got := two.Does("session_config", `{"key":"grep_mode"}`); !strings.HasPrefix(got, "grep_mode = count, ") || !strings.HasSuffix(got, shared) {
		t.Errorf("of the other: %q", got)
	}
	if got := one.Does("session_config", `{}`); !strings.Contains(got, "\nread_dedup = off (off: several conversations share this session)\n") || !strings.HasSuffix(got, shared) {
		t.Errorf("all: %q", got)
	}
	if got := one.Does("session_config", `{"key":"read_dedup","value":"on"}`); !strings.HasPrefix(got, "! INPUT_INVALID: ") {
		t.Errorf("dedup: %q", got)
	}
	one.Does("read_file", `{"file_path":"a.txt"}`)
	if got := two.Does("session_config", `{"key":"read_state","value":"reset"}`); got != "1 file no longer counts as read. Read a file again before you change it."+shared {
		t.Errorf("reset: %q", got)
	}
}

// TestConfigurationIsFixed: no key of the configuration, in any of its spellings, can be set by a session, and a section
// neither.
func TestConfigurationIsFixed(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"p"}, values: map[string]auth.Values{"p": {Quota: map[string]string{"calls_per_minute": "0"}}}})
	c := x.client("p")
	c.URL, c.Info = c.URL+"/s/fixed-handle", "fixed"
	c.Hello()
	before := c.Does("session_config", `{}`)
	for _, s := range config.Settings() {
		section, _, _ := strings.Cut(s.Key, ".")
		for _, key := range []string{s.Key, s.Env, s.Flag, section, strings.ToUpper(s.Key)} {
			if !session.Fixed(key) {
				t.Errorf("%s is the operator's, and session.Fixed does not know it", key)
			}
		}
		if got := c.Does("session_config", fmt.Sprintf(`{"key":%q,"value":"on"}`, s.Key)); !strings.HasPrefix(got, "! CONFIG_FIXED: "+s.Key+" is set by the operator. A session can set: cwd, ") {
			t.Errorf("%s: %q", s.Key, got)
		}
	}
	if after := c.Does("session_config", `{}`); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestChoicesWithoutStore: a call that cannot read the session's choices runs nothing that they might forbid.
func TestChoicesWithoutStore(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	st := *x.server.local.Bare
	st.Choices = session.NewCell[session.Choices](brokenMemory{errors.New("the disk is down")}, "cell.choices")
	_, refusal := sessions.Locate(t.Context(), &st)
	if refusal == nil || refusal.Code != tool.StateUnavailable || strings.Contains(refusal.Text, "down") {
		t.Errorf("got %+v", refusal)
	}
}
