package blackbox

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/server/replaytest"
)

// newcomerTime is how long a new user may take from the first command to two clients that work.
const newcomerTime = 5 * time.Minute

// TestReadmeSignIn: a new user types what docs/signin.md says, in an empty home, at the usual address. Claude Code
// and Codex then work on the files, each with one sign-in. The log says how long it took.
func TestReadmeSignIn(t *testing.T) {
	t.Parallel()
	long(t)
	if !inNetwork(t) { // in which the usual port is free, and the makers' hosts of metadata documents are hosts of the test
		return
	}
	modules, err := filepath.Abs(filepath.Join(benchOfClients, "node_modules"))
	must(t, err)
	programs := map[string]string{"claude": "@anthropic-ai/claude-code-linux-x64/claude", "codex": "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"}
	k := furnish(t)
	for name, file := range programs {
		if _, err := os.Stat(filepath.Join(modules, file)); err != nil {
			unavailable(t, "%s is not installed: cd testdata/bench/clients && npm ci", name)
		}
		must(t, os.Symlink(filepath.Join(modules, file), filepath.Join(k.home, "stub", name)))
	}
	must(t, os.Symlink(replaytest.Program(t), filepath.Join(k.home, "stub", "codehand")))
	var big strings.Builder
	for i := range 20_000 {
		big.WriteString(bigLine(i) + "\n")
	}
	work := filepath.Join(k.home, "project")
	replaytest.Lay(t, work, map[string]string{"big.txt": big.String()})
	trust := published(t, documents("http://localhost/callback", "http://127.0.0.1/callback"))
	ctx, cancel := context.WithTimeout(t.Context(), newcomerTime)
	defer cancel()
	command := func(line string, more ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "bash", "-euc", line)
		cmd.Dir, cmd.WaitDelay = work, 5*time.Second
		cmd.Env = append(append([]string{"SSL_CERT_FILE=" + trust, "TERM=xterm-256color", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}, k.env...), more...)
		for i, e := range cmd.Env {
			if e == "TMPDIR="+k.home { // a program below it would not be installed
				cmd.Env[i] = "TMPDIR=" + filepath.Join(k.home, "tmp")
			}
		}
		return cmd
	}
	must(t, os.Mkdir(filepath.Join(k.home, "tmp"), 0o700))
	said := func(line string) []string {
		t.Helper()
		text, err := os.ReadFile("../../docs/signin.md")
		must(t, err)
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Fatalf("docs/signin.md does not say %s", line)
		}
		return nil
	}
	type line = string
	const owner, serve, install line = "codehand owner new", "codehand serve --auth-mode owner", "codehand install claude-code codex --remote http://127.0.0.1:7433/mcp"
	logins := []line{"claude mcp login codehand", "codex mcp login codehand"}
	for _, l := range append([]line{owner, serve, install}, logins...) {
		said(l)
	}

	began := time.Now()
	password, err := command(owner).Output()
	must(t, err)
	s := startDaemon(t, command("exec "+serve, "CODEHAND_PERMISSIONS_MODE=acceptEdits"))
	d := &door{deployment: &deployment{t: t}, password: strings.TrimSpace(string(password)), s: s}
	if out, err := command("printf 'y\\ny\\n' | script -qec '" + install + "' /dev/null").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", install, err, out)
	}
	for i, login := range logins {
		var out replaytest.LockedBuffer
		cmd := command("script -qefc '" + login + "' /dev/null")
		cmd.Stdout, cmd.Stderr = &out, &out
		must(t, cmd.Start())
		k.browse(d, i+1)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", login, err, out.String())
		}
		if asked, err := url.Parse(k.urls()[i]); err != nil || asked.Host != "127.0.0.1:7433" {
			t.Errorf("%s opened %s", login, k.urls()[i])
		}
	}
	t.Logf("two clients are signed in after %s", time.Since(began))

	uses := []struct{ form, line string }{
		{"anthropic", `claude -p "Do what the steps say." --allowedTools mcp__codehand`},
		{"responses", `codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -c model=my-own -c model_provider=scripted ` +
			`-c "model_providers.scripted={name=\"scripted\",base_url=\"$MODEL/v1\",wire_api=\"responses\"}" "Do what the steps say."`},
	}
	for _, u := range uses {
		m := startModel(t, forms[u.form], stepsOfClients)
		out, err := command(u.line+" </dev/null", "MODEL="+m.url, "ANTHROPIC_BASE_URL="+m.url, "ANTHROPIC_API_KEY=none", "ENABLE_TOOL_SEARCH=true").CombinedOutput()
		m.mu.Lock()
		m.check(t, work)
		m.mu.Unlock()
		if t.Failed() {
			t.Fatalf("%v\n%.3000s", err, out)
		}
	}
	if n := len(k.urls()); n != len(logins) {
		t.Errorf("%d browsers were opened", n)
	}
	t.Logf("both have worked after %s", time.Since(began))
}
