package blackbox

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A household is a home directory and a workspace in which commands of the built program run, as a person types them.
type household struct {
	t    *testing.T
	home string
	work string // resolved
	env  []string
}

func settle(t *testing.T) *household {
	t.Helper()
	h := &household{t: t, home: leaktest.Dir(t), work: leaktest.Dir(t)}
	h.env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + h.home,
		"XDG_STATE_HOME=" + filepath.Join(h.home, "state")}
	must(t, os.WriteFile(filepath.Join(h.work, "a.txt"), []byte("one\n"), 0o600))
	// An unknown program: the modes ask about it.
	must(t, os.WriteFile(filepath.Join(h.work, "any"), []byte("#!/bin/sh\ntouch touched && echo done\n"), 0o700))
	return h
}

func (h *household) command(args ...string) *exec.Cmd {
	cmd := exec.Command(replaytest.Program(h.t), args...)
	cmd.Env, cmd.Dir = h.env, h.work
	return cmd
}

// run runs a command to its end. It must end with this exit code.
func (h *household) run(code int, args ...string) (stdout, stderr string) {
	h.t.Helper()
	cmd := h.command(args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the code says it
	if got := cmd.ProcessState.ExitCode(); got != code {
		h.t.Fatalf("codehand %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// serve starts serve at a free port of loopback.
func (h *household) serve(args ...string) *daemon {
	h.t.Helper()
	return startDaemon(h.t, h.command(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// said waits until the server has said a line that pattern matches, and returns it.
func (d *daemon) said(t *testing.T, pattern string) string {
	t.Helper()
	line, re := "", regexp.MustCompile("(?m)"+pattern)
	replaytest.Until(t, "the server says "+pattern, func() bool {
		line = re.FindString(d.log.String())
		return line != ""
	})
	return line
}

// commandTools are the tools that start commands or follow them.
var commandTools = []string{"job_output", "job_stop", "run_readonly", "run_shell"}

// TestServeAlone: a bare serve ran no command, although only the person who had started it could connect. It does, as
// stdio does: rules decide, and the client's own dialog where the mode would ask.
func TestServeAlone(t *testing.T) {
	t.Parallel()
	h := settle(t)
	s := h.serve("--permissions-deny", "Bash(git push *)")
	s.said(t, `^codehand: sandbox level [123]: `)
	for _, modern := range []bool{false, true} {
		c := &replaytest.HTTPClient{T: t, URL: s.url + "/mcp"}
		if c.Modern = modern; !modern {
			c.Hello()
			for _, name := range commandTools {
				if !slices.Contains(c.Listed(), name) {
					t.Errorf("%s is not listed", name)
				}
			}
		}
		if got := c.Does("run_shell", `{"command":"./any"}`); !strings.HasPrefix(got, "done") {
			t.Errorf("modern %v: got %q", modern, got)
		}
		if got := c.Does("run_shell", `{"command":"git push origin"}`); !strings.HasPrefix(got, "! PERMISSION_DENIED: ") {
			t.Errorf("modern %v, against a rule: %q", modern, got)
		}
	}
}

// TestServeWebChats: chats on the web open a transport session for each call, so an edit was always of a file that was
// not read. What they read in one counts in the next: ChatGPT names its conversation, and for the others there is one.
func TestServeWebChats(t *testing.T) {
	t.Parallel()
	h := settle(t)
	s := h.serve()
	for _, c := range []struct {
		client, reads, edits string
		works                bool
	}{
		{"openai-mcp", `,"openai/session":"v1/one"`, `,"openai/session":"v1/one"`, true},
		{"openai-mcp", `,"openai/session":"v1/two"`, `,"openai/session":"v1/three"`, false},
		{"http-test", "", "", false},
		{"Anthropic/ClaudeAI", "", "", true},
		{"claude-ai", "", "", true},
		{"openai-mcp (ChatGPT)", "", "", true},
	} {
		must(t, os.WriteFile(filepath.Join(h.work, "a.txt"), []byte("one\n"), 0o600))
		call := func(name, args, meta string) string { // in a session of its own
			x := &replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Info: c.client}
			return x.Hello().Call("2", name, args, meta).Answer
		}
		call("read_file", `{"file_path":"a.txt"}`, c.reads)
		got := call("edit_file", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`, c.edits)
		if strings.Contains(got, "FILE_NOT_READ") == c.works || strings.Contains(got, "Edited a.txt") != c.works {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestServePages: a page of any local web server may call a serve without tokens. Nothing stands between it and a command
// as a client's dialog does, so what the mode would ask about is refused, unless the operator listed the page's origin.
func TestServePages(t *testing.T) {
	t.Parallel()
	h := settle(t)
	s := h.serve("--http-allowed-origins", "http://localhost:6274")
	for origin, runs := range map[string]bool{"http://localhost:3000": false, "http://localhost:6274": true, "": true} {
		for _, modern := range []bool{false, true} {
			c := &replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Modern: modern, Extra: map[string]string{}}
			if origin != "" {
				c.Extra["Origin"] = origin
			}
			if !modern {
				c.Hello()
			}
			got := c.Does("run_shell", `{"command":"./any"}`)
			_, err := os.Stat(filepath.Join(h.work, "touched"))
			if runs != strings.HasPrefix(got, "done") || runs != (err == nil) {
				t.Errorf("origin %q, modern %v: %q, %v", origin, modern, got, err)
			}
			if got := c.Does("run_shell", `{"command":"cat a.txt"}`); !strings.HasPrefix(got, "one") { // it only reads
				t.Errorf("origin %q, modern %v: %q", origin, modern, got)
			}
			_ = os.Remove(filepath.Join(h.work, "touched")) // where it ran
		}
	}
}

// TestServePageAsks: a page whose origin is not allowed cannot answer its own questions, profits by no rule, and
// changes nothing.
func TestServePageAsks(t *testing.T) {
	t.Parallel()
	h := settle(t)
	s := h.serve("--permissions-allow", "Bash(./any)")
	for name, header := range map[string][2]string{
		"page": {"Origin", "http://localhost:3000"},
	} {
		for _, modern := range []bool{false, true} {
			c := replaytest.OverHTTP(t, &replaytest.HTTPClient{T: t, URL: s.url + "/mcp/s/page-" + name, Extra: map[string]string{header[0]: header[1]}}, modern, replaytest.Declared)
			for _, call := range [][2]string{
				{"run_shell", `{"command":"./any"}`}, {"run_shell", `{"command":"touch touched; rm -rf a.txt"}`},
				{"write_file", `{"file_path":"new.txt","content":"x"}`},
			} {
				a := c.Call(call[0], call[1], replaytest.Never(t))
				if !a.Failed || !strings.HasPrefix(a.Text, "PERMISSION_DENIED: ") {
					t.Errorf("%s, modern %v, %s: %+v", name, modern, call, a)
				}
			}
			if a := c.Call("enter_plan_mode", `{}`, replaytest.Never(t)); !a.Failed {
				t.Errorf("%s, modern %v: %+v", name, modern, a)
			}
			if a := c.Call("run_shell", `{"command":"cat a.txt"}`, replaytest.Never(t)); !strings.HasPrefix(a.Text, "one") {
				t.Errorf("%s, modern %v: %+v", name, modern, a)
			}
		}
	}
	for _, made := range []string{"touched", "new.txt"} {
		if _, err := os.Stat(filepath.Join(h.work, made)); err == nil {
			t.Errorf("%s was made", made)
		}
	}
}

// TestServeShared: where other users can connect, or the policy wants a sandbox, no command runs, the tools for it are
// not listed, and the start and the refusal say why.
func TestServeShared(t *testing.T) {
	t.Parallel()
	for _, c := range leaktest.Some(2, []struct {
		name    string
		args    []string
		project string
		token   bool
		why     string
	}{
		{name: "tokens", token: true, why: "people with tokens can connect"},
		{name: "any user", args: []string{"--auth-local-peer", "any"}, why: "every user of this machine can connect (auth.local_peer)"},
		{name: "hosts", args: []string{"--http-allowed-hosts", "tools.example.com"}, why: "others can connect through a proxy (http.allowed_hosts, behind_proxy or trusted_proxies)"},
		{name: "public URL", args: []string{"--http-public-url", "https://tools.example.com"}, why: "others can connect to https://tools.example.com (http.public_url)"},
		{name: "policy", args: []string{"--sandbox-policy", "required"}, why: `sandbox.policy is "required"`},
		{name: "project", project: "sandbox.policy = 'required'\n", why: `a project file says sandbox.policy = "required"`},
	}) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := settle(t)
			client := &replaytest.HTTPClient{T: t}
			if c.token {
				out, _ := h.run(0, "token", "new", "alice")
				client.Token = strings.TrimSpace(out)
			}
			if c.project != "" {
				must(t, os.Mkdir(filepath.Join(h.work, ".codehand"), 0o700))
				must(t, os.WriteFile(filepath.Join(h.work, ".codehand", "config.toml"), []byte(c.project), 0o600))
			}
			s := h.serve(c.args...)
			client.URL = s.url + "/mcp"
			if confinedLevel(t, h) == 3 {
				s.said(t, `^codehand: sandbox level 3: `)
				must(t, os.WriteFile(filepath.Join(h.home, "private"), []byte("seen\n"), 0o644))
				c := client.Hello()
				if got := c.Does("run_shell", `{"command":"echo hi > f; cat f; cat '`+h.home+`/private'"}`); !strings.Contains(got, "hi\n") || strings.Contains(got, "seen") || !strings.Contains(got, "[sandbox level 3: ") {
					t.Errorf("run_shell: %q", got)
				}
				return
			}
			s.said(t, `^codehand: sandbox level [012]: .* not listed: .*because `+regexp.QuoteMeta(c.why))
			for _, name := range client.Hello().Listed() {
				if slices.Contains(commandTools, name) {
					t.Errorf("%s is listed", name)
				}
			}
			if got := client.Does("run_shell", `{"command":"echo hi"}`); !strings.HasPrefix(got, "! ") || !strings.Contains(got, c.why) {
				t.Errorf("run_shell: %q", got)
			}
			if got := client.Does("write_file", `{"file_path":"new.txt","content":"x"}`); strings.HasPrefix(got, "!") {
				t.Errorf("write_file: %s", got)
			}
		})
	}
}

// TestPolicyOnStdio: sandbox.policy = "required" was obeyed by serve alone, and commands ran unconfined on stdio.
func TestPolicyOnStdio(t *testing.T) {
	t.Parallel()
	h := settle(t)
	code := 1
	if confinedLevel(t, h) >= 2 {
		code = 0
	}
	out, errs := h.run(code, "call", "run_shell", "command=echo hi", "--sandbox-policy", "required")
	if code == 0 && out != "hi\n" || code == 1 && !strings.Contains(errs, "SANDBOX_UNAVAILABLE") {
		t.Errorf("got %q and %q", out, errs)
	}
}

// confinedLevel is the sandbox level that this machine proves. In CI it is the highest.
func confinedLevel(t *testing.T, h *household) int {
	t.Helper()
	cmd := h.command("doctor")
	out, _ := cmd.CombinedOutput() // other findings make it fail
	m := regexp.MustCompile(`sandbox +level (\d)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("doctor says no level: %s", out)
	}
	level := int(m[1][0] - '0')
	if level < 3 && os.Getenv("CI") != "" {
		t.Errorf("level %d in CI: %s", level, out)
	}
	return level
}

// TestQuotaOfRate: a token with calls_per_minute=5 let 100 calls pass at once.
func TestQuotaOfRate(t *testing.T) {
	t.Parallel()
	h := settle(t)
	out, _ := h.run(0, "token", "new", "alice", "--quota", "calls_per_minute=5")
	c := &replaytest.HTTPClient{T: t, URL: h.serve().url + "/mcp", Token: strings.TrimSpace(out)}
	c.Hello()
	passed := 0
	for range 25 {
		if got := c.Does("list_files", `{"pattern":"*"}`); !strings.HasPrefix(got, "! RATE_LIMITED: ") {
			passed++
		}
	}
	if passed < 5 || passed > 6 { // one may come back within a slow test
		t.Errorf("%d of 25 calls passed, want 5", passed)
	}
}

// TestTokensAreTold: the first token changed what a plain serve does, and nothing said so.
func TestTokensAreTold(t *testing.T) {
	t.Parallel()
	h := settle(t)
	_, told := h.run(0, "token", "new", "alice")
	for _, want := range []string{
		`"codehand serve" wants one from every client, and alice works in ` + h.home + "/state/codehand/workspaces/alice\n",
		"to serve the current directory to everyone with a token: codehand serve .\n",
		"to serve the current directory to yourself without a token, as before: codehand serve --auth-mode none\n",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("token new does not say %q:\n%s", want, told)
		}
	}
	if _, again := h.run(0, "token", "new", "bob", "--expires", "1h"); strings.Contains(again, "first token") {
		t.Errorf("the second one: %s", again)
	}
	// Both ways hold what is said of them.
	s := h.serve()
	s.said(t, `^codehand: auth mode token, because tokens were made; valid tokens: 2 of 2 in .*/tokens\.jsonl\. To serve only yourself, without tokens: --auth-mode none$`)
	s.kill()
	alone := &replaytest.HTTPClient{T: t, URL: h.serve("--auth-mode", "none").url + "/mcp"}
	if got := alone.Hello().Does("read_file", `{"file_path":"`+h.work+`/a.txt"}`); !strings.Contains(got, "one") {
		t.Errorf("without a token: %s", got)
	}
}

// TestAdministrator: the operator of serve sees what a principal's sessions did to files, and takes it back while they
// go on.
func TestAdministrator(t *testing.T) {
	t.Parallel()
	h := settle(t)
	alices, _ := h.run(0, "token", "new", "alice")
	bobs, _ := h.run(0, "token", "new", "bob")
	s := h.serve()
	alice := (&replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: strings.TrimSpace(alices)}).Hello()
	bob := (&replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: strings.TrimSpace(bobs)}).Hello()
	for _, c := range []*replaytest.HTTPClient{alice, bob} {
		for name, args := range map[string]string{"write_file": `{"file_path":"a.txt","content":"one\n"}`, "grep_search": `{"pattern":"("}`} {
			if got := c.Does(name, args); strings.HasPrefix(got, "! ") != (name == "grep_search") {
				t.Fatalf("%s: %s", name, got)
			}
		}
	}
	if got := alice.Does("edit_file", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`); strings.HasPrefix(got, "!") {
		t.Fatal(got)
	}
	file := func(who string) string {
		text, err := os.ReadFile(filepath.Join(h.home, "state/codehand/workspaces", who, "a.txt"))
		must(t, err)
		return string(text)
	}
	list, _ := h.run(0, "history", "--principal", "alice")
	if strings.Count(list, "a.txt") != 2 || !strings.Contains(list, "edit_file") {
		t.Errorf("history of alice:\n%s", list)
	}
	if list, _ := h.run(0, "history", "--principal", "bob", "a.txt", "--json"); strings.Count(list, `"id"`) != 1 {
		t.Errorf("history of bob:\n%s", list)
	}
	h.run(0, "undo", "--principal", "alice", "a.txt", "--dry-run")
	if got := file("alice"); got != "two\n" {
		t.Errorf("after a dry run: %q", got)
	}
	h.run(0, "undo", "--principal", "alice", "a.txt")
	if a, b := file("alice"), file("bob"); a != "one\n" || b != "one\n" {
		t.Errorf("undone: alice %q, bob %q", a, b)
	}
	// The session of alice is told, as of any change behind its back, and goes on.
	if got := alice.Does("edit_file", `{"file_path":"a.txt","old_string":"two","new_string":"three"}`); !strings.HasPrefix(got, "! FILE_CHANGED: ") {
		t.Errorf("an edit behind the undo: %s", got)
	}
	if got := alice.Does("edit_file", `{"file_path":"a.txt","old_string":"one","new_string":"three"}`); file("alice") != "three\n" {
		t.Errorf("the edit again: %s; %q", got, file("alice"))
	}

	sessions, _ := h.run(0, "sessions", "--principal", "alice")
	if !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  alice +\d+ +2 +\d+ +http-test/1 +m:`).MatchString(sessions) || strings.Contains(sessions, "bob") {
		t.Errorf("sessions of alice:\n%s", sessions)
	}
	if all, _ := h.run(0, "sessions", "--json"); !strings.Contains(all, `"principal": "bob"`) || !strings.Contains(all, `"principal": "alice"`) {
		t.Errorf("all sessions:\n%s", all)
	}
	if _, errs := h.run(3, "undo", "--principal", "carol", "a.txt"); !strings.Contains(errs, `there is no principal "carol"; there are: alice, bob`) {
		t.Errorf("an unknown principal: %s", errs)
	}
	h.run(0, "doctor", "--audit", filepath.Join(h.home, "state/codehand/audit"))
}

// TestNginxOnAnotherPort: with the sample as printed, clients on another port than 443 were told that their Host is not
// served, since nginx left the port out.
func TestNginxOnAnotherPort(t *testing.T) {
	t.Parallel()
	h := settle(t)
	out, _ := h.run(0, "token", "new", "alice")
	at := replaytest.Reserved(t)
	roots, cert, key := certified(t)
	n := startNginx(t, replace(t, shipped(t, "nginx/codehand.conf"), "listen 443 ssl;", "listen ADDRESS ssl;",
		"/etc/nginx/tools.example.com.crt", strconv.Quote(cert), "/etc/nginx/tools.example.com.key", strconv.Quote(key),
		"server 127.0.0.1:7433;", "server "+at+";"))
	_, port, err := net.SplitHostPort(n.address)
	must(t, err)
	public := "https://" + proxied + ":" + port
	startDaemon(t, h.command("serve", "--listen", at, "--http-behind-proxy", "true", "--http-public-url", public))
	q := (&replaytest.HTTPClient{T: t, Token: strings.TrimSpace(out)}).Request(t.Context(), http.MethodPost, public+"/mcp", hello)
	r, err := over(t, n.address, roots).Do(q)
	must(t, err)
	defer r.Body.Close()
	if got := replaytest.ReadReply(t, r); got.Status != http.StatusOK {
		t.Errorf("%d %s", got.Status, got.Answer)
	}
}
