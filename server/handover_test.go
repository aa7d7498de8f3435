package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/replaytest"
)

// digestHas checks what a text holds and what it does not: a want that begins with `!`.
func digestHas(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if absent, not := strings.CutPrefix(want, "!"); not && strings.Contains(text, absent) || !not && !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

// fails3 is a call of run_shell that fails with exit code 3; mark stands in its command.
func fails3(mark string) string { return fmt.Sprintf(`{"command":"sh -c 'exit 3' %s"}`, mark) }

// TestHandOverOnStdio: a conversation learns what one before it did in another process, though no client can name that
// session again: its plan, its todo list, its tasks, the command that failed, and a change that it takes back. Without
// records it learns of changes alone, and nothing of what was done in another directory.
func TestHandOverOnStdio(t *testing.T) {
	t.Parallel()
	state, work, other := filepath.Join(leaktest.Dir(t), "state"), leaktest.Dir(t), leaktest.Dir(t)
	in := func(dir string, settings ...string) setup {
		o := setup{settings: map[string]string{"permissions.deny": "Read(secret/**)"}, change: func(c *config.Config) {
			c.StateDir, c.WorkDir, c.Roots, c.StdioHandle = state, dir, []string{dir}, ""
		}}
		for i := 0; i < len(settings); i += 2 {
			o.settings[settings[i]] = settings[i+1]
		}
		return o
	}
	secret := "gh" + "p_" + strings.Repeat("a1B2c3", 6)
	t.Run("first", func(t *testing.T) {
		f := start(t, in(work))
		f.Must(t, "write_file", `{"file_path":"a.txt","content":"one\n"}`)
		f.Must(t, "write_file", `{"file_path":"secret/b.txt","content":"one\n"}`)
		f.Must(t, "run_shell", fails3(secret))
		f.Must(t, "run_shell", fails3("secret/b.txt"))
		f.Must(t, "todo_write", `{"todos":[{"content":"write the parser","status":"in_progress"}]}`)
		f.Must(t, "task_create", `{"subject":"measure it","description":"all of it"}`)
		text := f.Must(t, "enter_plan_mode", `{}`)
		plan := regexp.MustCompile(`\S+/plans/\S+\.md`).FindString(text)
		if got := f.Must(t, "write_file", replaytest.AsJSON(t, "file_path", plan, "content", "# Move the parser\n")); strings.HasPrefix(got, "!") {
			t.Fatalf("%s\n%s", text, got)
		}
		digestHas(t, f.Must(t, "session_digest", `{}`), "Of this session, not approved yet:\n- `# Move the parser`", "`write the parser` (this session)")
	})
	t.Run("elsewhere", func(t *testing.T) {
		digestHas(t, start(t, in(other)).Must(t, "session_digest", `{}`), "Nothing is on record yet.")
	})
	t.Run("without records", func(t *testing.T) {
		text := start(t, in(work, "console.record", "false")).Must(t, "session_digest", `{}`)
		digestHas(t, text, "console.record is false", "a.txt", "!exit 3", "!parser", "!secret")
	})
	t.Run("second", func(t *testing.T) {
		f := start(t, in(work))
		text := f.Must(t, "session_digest", `{}`)
		digestHas(t, text, "not approved yet:\n- `# Move the parser`", "- [>] `write the parser` (session ", "- [ ] `task 1: measure it` (session ",
			"- exit 3, last ", "[masked github-token]", "!"+secret, "!secret/b.txt", "[hidden by a rule]", "write_file a.txt +1 -0 (new file) (session ", "`session-test/1`", ", 1 change")
		id := regexp.MustCompile(`(?m)^- (\S{16}) `).FindStringSubmatch(text)
		if id == nil {
			t.Fatal(text)
		}
		if got := f.Must(t, "undo_change", `{"change_id":"`+id[1]+`"}`); strings.HasPrefix(got, "!") {
			t.Error(got)
		}
		if _, err := os.Stat(filepath.Join(work, "a.txt")); err == nil {
			t.Error("the change is not taken back")
		}
	})
}

// TestHandOverOfPrincipals: over HTTP a conversation learns of others of its token, also after a restart, of the changes of
// its principal's other tokens, and nothing of another principal; the page has the same for its person.
func TestHandOverOfPrincipals(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}, settings: map[string]string{"sandbox.policy": "off", "sandbox.min_level": "1"}})
	a := x.client("alice").Hello()
	a.Does("write_file", `{"file_path":"a.txt","content":"one\n"}`)
	a.Does("todo_write", `{"todos":[{"content":"write the parser","status":"pending"}]}`)
	failed := a.Does("run_readonly", `{"command":"cat of-alice"}`)
	file := auth.OpenTokenFile(x.server.cfg.TokenFile())
	_, text, err := file.New(auth.Token{Principal: "alice"})
	must(t, err)
	x.tokens["alice again"] = text

	all := []string{"a.txt", "`write the parser` (session ", "of-alice"}
	if !strings.Contains(failed, "COMMAND_FAILED") {
		t.Fatal(failed)
	}
	digestHas(t, x.client("alice").Hello().Does("session_digest", `{}`), all...)
	digestHas(t, x.client("bob").Hello().Does("session_digest", `{}`), "Nothing is on record yet.", "!a.txt", "!parser", "!of-alice")
	must(t, x.stop())
	y := serveHTTP(t, siteSetup{principals: []string{"alice"}, data: x.data, work: x.work, tokens: x.tokens})
	digestHas(t, y.client("alice").Hello().Does("session_digest", `{}`), all...)
	digestHas(t, y.client("alice again").Hello().Does("session_digest", `{}`), "a.txt", "!parser", "!of-alice")
	digestHas(t, y.client("bob").Hello().Does("session_digest", `{}`), "!a.txt", "!parser", "!of-alice")
}

// TestHandOverOnThePage: a person reads on the page of serve what a model reads.
func TestHandOverOnThePage(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{settings: map[string]string{"sandbox.policy": "off"}})
	c := x.client("").Hello()
	c.Does("write_file", `{"file_path":"a.txt","content":"one\n"}`)
	c.Does("todo_write", `{"todos":[{"content":"write <b>the</b> parser","status":"pending"}]}`)
	b := browserOn(t, x)
	_, list := b.get("/changes")
	session := regexp.MustCompile(`changes\?session=([0-9a-f]{8})`).FindStringSubmatch(list)
	if session == nil {
		t.Fatal(list)
	}
	for _, path := range []string{"/handover", "/handover?session=" + session[1], "/handover?whole=1&session=" + session[1]} {
		status, text := b.get(path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		digestHas(t, text, "a.txt", "write &lt;b&gt;the&lt;/b&gt; parser", "(session "+session[1]+")", "<textarea", "readonly")
	}
	if _, text := b.get("/handover?session=00000000"); !strings.Contains(text, "Nothing is on record of session 00000000") {
		t.Error(text)
	}
}
