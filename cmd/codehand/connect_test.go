package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestConnect runs connect as a client does, against an endpoint that answers each request with the path and the token
// that it got. Below /denied it takes no token.
func TestConnect(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || strings.HasPrefix(r.URL.Path, "/denied") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // a client that is gone is the script's failure
			"jsonrpc": "2.0", "id": m.ID, "result": []string{r.URL.Path, r.Header.Get("Authorization")},
		})
	}))
	t.Cleanup(s.Close)
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/connect",
			RequireExplicitExec: true,
			Setup: func(e *testscript.Env) error {
				e.Setenv("URL", s.URL)
				e.Setenv("HOME", e.WorkDir)
				e.Setenv("XDG_STATE_HOME", e.WorkDir)
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				// exits CODE COMMAND… runs a command that must end with this code.
				"exits": func(ts *testscript.TestScript, _ bool, args []string) {
					if got := exitCode(ts.Exec(args[1], args[2:]...)); got != args[0] {
						ts.Fatalf("exit code %s, want %s", got, args[0])
					}
				},
			},
		})
	})
}

// TestBearer: a token is taken out of the environment, and read again from its file; a file that others can read, and
// what is no token, are refused without repeating it.
func TestBearer(t *testing.T) {
	t.Setenv("TEST_BEARER", " sesame\n")
	get, from, err := bearer(connectFlags{tokenEnv: "TEST_BEARER"})
	if err != nil || get() != "sesame" || from != "variable TEST_BEARER" {
		t.Errorf("got %q, %v", from, err)
	}
	if v, ok := os.LookupEnv("TEST_BEARER"); ok {
		t.Errorf("a child would see %q", v)
	}
	path := filepath.Join(t.TempDir(), "token")
	put := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	put("first\n", 0o600)
	get, from, err = bearer(connectFlags{tokenFile: path})
	if err != nil || get() != "first" || from != "file "+path {
		t.Fatalf("got %q, %v", from, err)
	}
	put("second\n", 0o600)
	if got := get(); got != "second" {
		t.Errorf("after a change: %s", got)
	}
	put("", 0o600) // in mid-change
	if got := get(); got != "second" {
		t.Errorf("while it is empty: %s", got)
	}
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{"sesame", 0o640, "chmod 600"}, {"sesame", 0o604, "chmod 600"}, {"", 0o600, "no token found"}, {"sesame open", 0o600, "not a token"},
		{"sesame\x00", 0o600, "not a token"}, {"sésame", 0o400, "not a token"},
	} {
		if runtime.GOOS == "windows" && c.want == "chmod 600" {
			continue // it has no such bits
		}
		put(c.text, c.mode)
		_, _, err := bearer(connectFlags{tokenFile: path})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.text != "" && strings.Contains(err.Error(), c.text) {
			t.Errorf("%q with mode %o: %v, want %q", c.text, c.mode, err, c.want)
		}
		_ = os.Chmod(path, 0o600) // for the next one
	}
	if _, _, err := bearer(connectFlags{tokenFile: filepath.Dir(path)}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// TestConversation: the first name that is there wins, and what is no handle becomes one, always the same.
func TestConversation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given     bool
		flag      string
		codehand  string
		claude    string
		copilot   string
		want      string
		wantError bool
	}{
		{given: true, flag: "my-session", codehand: "other-session", want: "my-session"},
		{given: true, flag: "short", wantError: true},
		{given: true, wantError: true},
		{codehand: "my-session", claude: "other-session", want: "my-session"},
		{claude: "0b2c3a2e-5a3c-4f0e-8b5e-3f3f3f3f3f3f", copilot: "x", want: "0b2c3a2e-5a3c-4f0e-8b5e-3f3f3f3f3f3f"},
		{copilot: "a:b", want: "m6b2ghvl62gmybta7e24batcqk65eja7"},
		{codehand: "short", want: "7gyapc256wlnf2qzaegaag55acpgkhpc"},
		{want: ""},
	} {
		env := map[string]string{"CODEHAND_SESSION": c.codehand, "CLAUDE_CODE_SESSION_ID": c.claude, "COPILOT_AGENT_SESSION_ID": c.copilot}
		got, err := conversationOf(c.given, c.flag, func(name string) string { return env[name] })
		if got != c.want || (err != nil) != c.wantError {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}
