//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// hang turns a hang into a failure.
const hang = time.Minute

// A served is a running codehand serve.
type served struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner // of its standard error
	seen  []string
	url   string
	hung  *time.Timer // kills it, so that a hang is a failure; each wait begins anew
}

// environment is one of its own for each test.
func environment(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"home", "state", "ws"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"HOME=" + dir + "/home", "XDG_STATE_HOME=" + dir + "/state", "PATH=" + os.Getenv("PATH"), "PWD=" + dir + "/ws"}
}

// program is this test binary, which is codehand if it is called so.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := exec.LookPath("codehand") // put there by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = env
	cmd.Dir = strings.TrimPrefix(env[len(env)-1], "PWD=")
	return cmd
}

// start starts codehand serve, and waits until it says where it listens.
func start(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	s := &served{t: t, cmd: program(t, env, append([]string{"serve"}, args...)...)}
	s.run()
	s.url = regexp.MustCompile(`https?://[^ ,]+`).FindString(s.line("version .* serves "))
	return s
}

func (s *served) run() {
	s.t.Helper()
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.lines = bufio.NewScanner(pipe)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.hung = time.AfterFunc(hang, func() { _ = s.cmd.Process.Kill() })
	s.t.Cleanup(func() {
		s.hung.Stop()
		_ = s.cmd.Process.Kill() // most have ended
		_ = s.cmd.Wait()         // and been waited for
	})
}

// line waits for a line of standard error.
func (s *served) line(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	s.hung.Reset(hang)
	for s.lines.Scan() {
		s.seen = append(s.seen, s.lines.Text())
		if re.MatchString(s.lines.Text()) {
			return s.lines.Text()
		}
	}
	s.t.Fatalf("it ended and never said %q, but:\n%s", pattern, strings.Join(s.seen, "\n"))
	return ""
}

func (s *served) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// exit waits for the end, and returns the code.
func (s *served) exit() int {
	s.t.Helper()
	s.hung.Reset(hang)
	for s.lines.Scan() {
		s.seen = append(s.seen, s.lines.Text())
	}
	err := s.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	return 0
}

// get returns status and body.
func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// alive asks for /healthz.
func alive(t *testing.T, c *http.Client, url string) {
	t.Helper()
	if status, body := get(t, c, url+"/healthz"); status != http.StatusOK || body != "ok" {
		t.Errorf("healthz: %d %q", status, body)
	}
}

// TestServeEnds: the first SIGTERM or SIGINT ends serve without a failure.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := start(t, environment(t), "--listen", "127.0.0.1:0")
			alive(t, http.DefaultClient, s.url)
			s.signal(sig)
			s.line("^codehand: stopping; ")
			if code := s.exit(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
			}
		})
	}
}

// A second signal ends the server without waiting for the drain, and the exit code names it. The lame duck keeps the
// drain of the first one waiting here.
func TestServeSecondSignal(t *testing.T) {
	t.Parallel()
	s := start(t, environment(t), "--listen", "127.0.0.1:0", "--http-lame-duck", "10m")
	alive(t, http.DefaultClient, s.url)
	s.signal(syscall.SIGTERM)
	s.line("^codehand: stopping; ")
	s.signal(syscall.SIGINT)
	if code := s.exit(); code != 130 {
		t.Errorf("exit code %d, want 130:\n%s", code, strings.Join(s.seen, "\n"))
	}
}

// TestServeTwice: the second server says who is in its way, and the first one does not notice.
func TestServeTwice(t *testing.T) {
	t.Parallel()
	env := environment(t)
	first := start(t, env, "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(first.url, "http://")
	refused := func(what string, env []string, args ...string) string {
		t.Helper()
		first.hung.Reset(hang)
		out, err := program(t, env, append([]string{"serve"}, args...)...).CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailed {
			t.Fatalf("%s: %v, want exit code 1:\n%s", what, err, out)
		}
		return string(out)
	}
	pid := regexp.QuoteMeta(strconv.Itoa(first.cmd.Process.Pid))
	out := refused("same directory", env, "--listen", "127.0.0.1:0")
	if !regexp.MustCompile(`(?m)^codehand: data dir .*/state/codehand is in use by pid ` + pid + `$`).MatchString(out) {
		t.Errorf("same directory: got\n%s", out)
	}
	if !regexp.MustCompile(`(?m)^hint: another codehand serve runs there: connect your clients to it, or stop it \(kill ` + pid + `\), or .* --http-data-dir DIR `).MatchString(out) {
		t.Errorf("same directory: no hint:\n%s", out)
	}
	out = refused("same address", environment(t), "--listen", address)
	hint := "choose another address with --listen\n"
	if runtime.GOOS == "linux" && os.Geteuid() == 0 { // others cannot be sure
		hint = "codehand has it already, pid " + pid + "; stop it, or " + hint
	}
	if !strings.Contains(out, "codehand: listen "+address+": address already in use\nhint: ") || !strings.HasSuffix(out, hint) {
		t.Errorf("same address: got\n%s", out)
	}
	alive(t, http.DefaultClient, first.url)
}

// TestServeReload: SIGHUP reads again and does not end the process.
func TestServeReload(t *testing.T) {
	t.Parallel()
	env := environment(t)
	file := filepath.Join(t.TempDir(), "config.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	s := start(t, env, "--config", file, "--listen", "127.0.0.1:0", "--auth-mode", "token")
	write("[http]\ndrain = \"3s\"\n[principals.alice]\nenabled = false\n")
	s.signal(syscall.SIGHUP)
	s.line("^codehand: http.drain changed; it takes effect after a restart$")
	s.line("^codehand: reloaded principals, issuers, tokens and certificates$")
	tokens := strings.TrimPrefix(env[1], "XDG_STATE_HOME=") + "/codehand/tokens.jsonl"
	if err := os.WriteFile(tokens, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	s.line(`^codehand: reload failed: .*tokens\.jsonl:1: .*; the old ones stay in use$`)
	alive(t, http.DefaultClient, s.url)
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
	}
}

// TestServeMetrics: an address for metrics serves them and nothing else, and the others serve none then.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, environment(t), "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
	at := regexp.MustCompile("http[^ ]+").FindString(s.line("^codehand: metrics at http.*/metrics "))
	if status, body := get(t, http.DefaultClient, at); status != http.StatusOK || !strings.Contains(body, "codehand_") {
		t.Errorf("metrics: %d\n%s", status, body)
	}
	for _, url := range []string{strings.TrimSuffix(at, "/metrics") + "/mcp", s.url + "/metrics"} {
		if status, _ := get(t, http.DefaultClient, url); status != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", url, status)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
	}
}

// TestServeAuditOut: the audit goes to standard output if audit.dir says so, and nothing else does.
func TestServeAuditOut(t *testing.T) {
	t.Parallel()
	env := append([]string{"CODEHAND_AUDIT_DIR=-"}, environment(t)...)
	s := &served{t: t, cmd: program(t, env, "serve", "--listen", "127.0.0.1:0")}
	var out strings.Builder
	s.cmd.Stdout = &out
	s.run()
	s.line("version .* serves ")
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
	}
	var events []string
	for line := range strings.Lines(out.String()) {
		var record struct{ Ev string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, record.Ev)
	}
	if want := []string{"serve.start", "serve.stop"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

// TestServeSocket serves on a unix socket, which only its owner may call, and takes it away at the end.
func TestServeSocket(t *testing.T) {
	t.Parallel()
	path := leaktest.Public(t) + "/s"
	s := &served{t: t, cmd: program(t, environment(t), "serve", "--listen", "unix:"+path)}
	s.run()
	s.line("serves .* at unix:" + path + "$")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	over := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	defer over.CloseIdleConnections()
	alive(t, over, "http://any")
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays behind: %v", err)
	}
}

// TestServeSystemd takes the socket that systemd opened, and tells it about start and end. A shell puts its own pid
// into the environment, as systemd does, before it becomes codehand.
func TestServeSystemd(t *testing.T) {
	t.Parallel()
	dir := leaktest.Public(t)
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dir + "/notify", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	passed, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	env := environment(t)
	codehand := program(t, env)
	s := &served{t: t, cmd: exec.CommandContext(t.Context(), "/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" serve --listen systemd:`, codehand.Path)}
	s.cmd.Dir, s.cmd.ExtraFiles = codehand.Dir, []*os.File{passed}
	s.cmd.Env = append(env, "LISTEN_FDS=1", "NOTIFY_SOCKET="+dir+"/notify")
	s.run()
	if err := errors.Join(l.Close(), passed.Close()); err != nil { // only the child has it now
		t.Fatal(err)
	}
	s.line("serves .* at " + regexp.QuoteMeta(url) + "$")
	says := func(want string) {
		t.Helper()
		if err := told.SetReadDeadline(time.Now().Add(hang)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		if n, err := told.Read(text); err != nil || string(text[:n]) != want {
			t.Errorf("systemd was told %q, %v; want %q", text[:n], err, want)
		}
	}
	says("READY=1")
	alive(t, http.DefaultClient, url)
	s.signal(syscall.SIGTERM)
	says("STOPPING=1")
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
	}
}

// TestAtEnd: what is told at the end has been told before the process goes on to end, however late its goroutine ran.
// Once in a few thousand runs on a loaded machine systemd was told nothing.
func TestAtEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	told := false
	done := atEnd(ctx, func() {
		for range 1_000 {
			runtime.Gosched() // lets goroutines that need not wait go first
		}
		told = true
	})
	cancel()
	if done(hang); !told {
		t.Error("the end was not told")
	}
	never := atEnd(t.Context(), func() { t.Error("told, but nothing ended") })
	never(hang)
	read := make(chan struct{})
	defer close(read)
	deaf := atEnd(ctx, func() { <-read })
	deaf(time.Millisecond) // and the end goes on
}
