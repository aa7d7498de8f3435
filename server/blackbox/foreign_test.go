package blackbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The tests of this file drive `codehand serve` with clients of other projects. testdata/clients/checks says what they
// must get, and for TypeScript .ci/conformance/clients/checks.mjs; each check is one line there.

// hang is when something that does not end is a failure.
const hang = 60 * time.Second

// A foreign is a client under test.
type foreign struct {
	name   string
	modern bool   // it speaks 2026-07-28, too
	script string // below .ci/conformance/clients; "": a program of testdata/clients
}

var foreigners = []foreign{
	{name: "typescript-sdk-1", script: "sdk1.mjs"},
	{name: "typescript-sdk-2", script: "sdk2.mjs", modern: true},
	{name: "gosdk", modern: true},
	{name: "mcpgo", modern: true},
}

// A wireKind is a way to connect.
type wireKind struct{ transport, era string }

var wireKinds = []wireKind{{"http", "legacy"}, {"http", "modern"}, {"sse", "legacy"}}

// goClients builds the programs of testdata/clients. They are a module of their own, so that their dependencies are
// not ours.
func goClients() (string, error) {
	return replaytest.Build("clients", func(dir string) error { return replaytest.GoBuild("../../testdata/clients", dir, "./...") })
}

// fixtureProgram builds cmd/conformance.
func fixtureProgram() (string, error) {
	dir, err := replaytest.Build("conformance", func(dir string) error {
		return replaytest.GoBuild("", dir, "-tags", "conformance", "codehand/cmd/conformance")
	})
	return filepath.Join(dir, "conformance"), err
}

// command makes the client's command line. Without what it needs the test is skipped, but never in CI.
func (f foreign) command(t *testing.T, k wireKind, part, url string, more ...string) *exec.Cmd {
	t.Helper()
	if f.script == "" {
		dir, err := goClients()
		if err != nil {
			if os.Getenv("CI") == "" {
				t.Skipf("the Go clients cannot be built here: %v", err)
			}
			t.Fatal(err)
		}
		args := append([]string{"--calls", foreignCalls(t), "--transport", k.transport, "--era", k.era, "--url", url}, more...)
		return exec.Command(filepath.Join(dir, f.name), append(args, part)...)
	}
	node, _ := inspector(t)
	script, err := filepath.Abs(filepath.Join("../../.ci/conformance/clients", f.script))
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(node, append([]string{script, part, "--calls", foreignCalls(t), "--transport", k.transport, "--era", k.era, "--url", url}, more...)...)
}

// A daemon is a running server.
type daemon struct {
	cmd  *exec.Cmd
	url  string // without a path
	read sync.WaitGroup
	log  replaytest.LockedBuffer
}

// announced finds the address that a server says it listens on.
var announced = regexp.MustCompile(`http://(127\.0\.0\.1|localhost):[0-9]+`)

// startDaemon starts a server and waits until it has said where it listens. It is killed at the end of the test, and
// its log is shown if that failed.
func startDaemon(t *testing.T, cmd *exec.Cmd) *daemon {
	t.Helper()
	d := &daemon{cmd: cmd}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := leaktest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	d.read.Go(func() {
		defer close(found)
		said := false
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadString('\n')
			_, _ = d.log.Write([]byte(line)) // a buffer in memory
			if url := announced.FindString(line); url != "" && !said {
				said = true
				found <- url
			}
			if err != nil {
				return
			}
		}
	})
	ended := make(chan struct{})
	d.read.Go(func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
		w.Close()
	})
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("the server's log:\n%s", d.log.String())
		}
	})
	select {
	case url, ok := <-found:
		if !ok {
			t.Fatalf("the server ended:\n%s", d.log.String())
		}
		d.url = url
	case <-time.After(hang):
		t.Fatalf("the server does not say where it listens:\n%s", d.log.String())
	}
	return d
}

// kill ends the server as a power failure would, and waits for that.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // or it has ended
	d.read.Wait()
}

// A deployment is a workspace with a server over it and a token for it.
type deployment struct {
	t       *testing.T
	program string
	home    string
	work    string // resolved
	token   string
	address string   // of all its starts
	set     []string // environment
}

// deploy makes a workspace and a token. set is environment of the server.
func deploy(t *testing.T, set ...string) *deployment {
	t.Helper()
	path := replaytest.Program(t)
	usual := []string{"CODEHAND_PLAN_APPROVAL_FALLBACK=auto", "CODEHAND_SANDBOX_POLICY=off", "CODEHAND_PERMISSIONS_ASK_FALLBACK=client"}
	d := &deployment{t: t, program: path, home: t.TempDir(), address: replaytest.Reserved(t), set: append(usual, set...)} // a test may say another
	d.work = leaktest.Dir(t)
	d.token = d.mint()
	return d
}

// mint makes a token.
func (d *deployment) mint(more ...string) string {
	d.t.Helper()
	cmd := d.codehand(append([]string{"token", "new", "tester", "--mode", "acceptEdits"}, more...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("token new: %v\n%s", err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

func (d *deployment) codehand(args ...string) *exec.Cmd {
	cmd := exec.Command(d.program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + d.home, "XDG_STATE_HOME=" + filepath.Join(d.home, "state")}, d.set...)
	cmd.Dir = d.home
	return cmd
}

// serve starts the server, each time at the same address.
func (d *deployment) serve() *daemon {
	d.t.Helper()
	s := startDaemon(d.t, d.codehand("serve", d.work, "--listen", d.address, "--auth-mode", "token"))
	d.address = strings.TrimPrefix(s.url, "http://")
	return s
}

// folder makes a directory of the workspace for one program, with the files that its checks want.
func (d *deployment) folder(name string) string {
	d.t.Helper()
	dir := filepath.Join(d.work, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	for file, text := range map[string]string{"kept.txt": "kept\n", "unread.txt": "x\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	return dir
}

// checked runs a client to its end. At the line RESTART it calls restart, and tells the client when that returns.
func checked(t *testing.T, cmd *exec.Cmd, restart func()) {
	t.Helper()
	conversed(t, cmd, func(line string) (string, bool) {
		if line != "RESTART" || restart == nil {
			return "", false
		}
		restart()
		return "go on", true
	})
}

// conversed runs a client to its end. It answers the lines that answer knows; all others must say that a check passed.
func conversed(t *testing.T, cmd *exec.Cmd, answer func(line string) (string, bool)) {
	t.Helper()
	var stderr replaytest.LockedBuffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leaktest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(3*hang, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	passed := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		stop.Reset(3 * hang) // of each check: some programs have many
		if strings.HasPrefix(line, "ok ") {
			passed++
			continue
		}
		reply, known := answer(line)
		if !known {
			t.Error(line)
			continue
		}
		if _, err := io.WriteString(in, reply+"\n"); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%.2000s", err, stderr.String())
	}
	if passed == 0 {
		t.Error("no check passed")
	}
}

// TestForeignClients: each client lists, calls every tool, sees progress, cancels, and edits after the server was
// killed what it read before.
func TestForeignClients(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the clients look processes up with signal 0")
	}
	for _, f := range foreigners {
		for _, k := range wireKinds {
			if k.era == "modern" && !f.modern {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", f.name, k.transport, k.era), func(t *testing.T) {
				t.Parallel()
				// The default grace is longer than the clients' patience, so only a cancel that arrives counts. mcp-go's
				// client v1.2.1 tells a legacy server nothing of it (client/client.go:304); there a call ends because
				// its connection did.
				var set []string
				if f.name == "mcpgo" {
					set = append(set, "CODEHAND_HTTP_ORPHAN_GRACE=1s")
				}
				d := deploy(t, set...)
				s := d.serve()
				path := map[string]string{"http": "/mcp", "sse": "/sse"}[k.transport]
				work := d.folder("work")
				checked(t, f.command(t, k, "work", s.url+path, "--token", d.token, "--work", work), nil)

				// The same connection, and the same conversation by an explicit handle.
				again := []struct{ path, handle string }{{path, ""}, {"/mcp/s/my-handle", ""}}
				if k.transport == "sse" {
					again = []struct{ path, handle string }{{path, "my-handle"}}
				}
				for i, a := range again {
					work := d.folder(fmt.Sprintf("again-%d", i))
					args := []string{"--token", d.token, "--work", work}
					if a.handle != "" {
						args = append(args, "--session", a.handle)
					}
					checked(t, f.command(t, k, "restart", s.url+a.path, args...), func() {
						s.kill()
						s = d.serve()
					})
				}
			})
		}
	}
}

// TestForeignQuestions: each client answers questions and sees all progress of the conformance fixture, which is the
// same transport with other tools.
func TestForeignQuestions(t *testing.T) {
	t.Parallel()
	path, err := fixtureProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // it is killed, and leaves its directory
	s := startDaemon(t, cmd)
	t.Run("clients", func(t *testing.T) { // so that the server outlives them
		for _, f := range foreigners {
			for _, k := range wireKinds {
				if k.transport == "http" && (k.era == "legacy" || f.modern) {
					t.Run(f.name+"/"+k.era, func(t *testing.T) {
						t.Parallel()
						checked(t, f.command(t, k, "ask", s.url+"/mcp"), nil)
					})
				}
			}
		}
	})
}

// TestInspectorOnURL drives the endpoint with the MCP Inspector.
func TestInspectorOnURL(t *testing.T) {
	t.Parallel()
	node, launcher := inspector(t)
	d := deploy(t)
	d.token = d.mint("--quota", "calls_per_minute=0") // three loads at once are faster than any pace
	s := d.serve()
	if err := os.WriteFile(filepath.Join(d.work, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("eras", func(t *testing.T) {
		for _, k := range wireKinds {
			t.Run(k.transport+"/"+k.era, func(t *testing.T) {
				t.Parallel()
				home := t.TempDir()
				run := func(args ...string) []byte {
					t.Helper()
					url := s.url + map[string]string{"http": "/mcp", "sse": "/sse"}[k.transport]
					all := append([]string{launcher, "--cli", "-q", "--protocol-era", k.era, "--server-url", url, "--transport", k.transport}, args...)
					cmd := exec.Command(node, append(all, "--header", "Authorization: Bearer "+d.token)...)
					cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home}
					cmd.Dir = home
					var stderr bytes.Buffer
					cmd.Stderr = &stderr
					out, err := cmd.Output()
					if err != nil {
						t.Fatalf("%v: %v\n%s%s", args, err, out, &stderr)
					}
					return out
				}
				run("--method", "tools/list", "--strict") // a schema error is exit code 6
				var r inspected
				out := run("--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "file_path="+filepath.Join(d.work, "a.txt"))
				if err := json.Unmarshal(out, &r); err != nil || len(r.Content) != 1 || !strings.HasPrefix(r.Content[0].Text,
					"1\tone") {
					t.Errorf("read_file: %v\n%s", err, out)
				}
				var summary struct{ Errors, ToolErrors int }
				out = run("--method", "tools/call", "--tool-name", "list_files", "--tool-arg", "pattern=*", "--load", "--load-concurrency", "8", "--load-requests", "500")
				if err := json.Unmarshal(out, &summary); err != nil || summary.Errors+summary.ToolErrors != 0 {
					t.Errorf("load: %v\n%s", err, out)
				}
			})
		}
	})
}
