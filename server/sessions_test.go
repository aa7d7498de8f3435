package server

import (
	"cmp"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/config"
	"codehand/tools"
	"codehand/tools/session"
	"codehand/tools/tool"
)

var update = flag.Bool("update", false, "rewrite session answers and wire transcripts")

// testSettings makes the configuration of a test: everything below a temporary directory, settings as an operator
// would give them.
func testSettings(t testing.TB, work, state string, settings map[string]string) config.Config {
	t.Helper()
	flags := map[string]string{"state-dir": state}
	for k, v := range settings {
		flags[flagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{
		Roots: []string{work}, WorkDir: work, Home: t.TempDir(), Flags: flags,
		Env: []string{"CODEHAND_SESSION=" + handleOf},
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// flagOf is the flag of a setting, without its dashes.
func flagOf(key string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}

// A fixture is a server in process with one client on it.
type fixture struct {
	*wire
	server *Server
	work   string
	ended  chan error // what Stdio returned
}

// A setup says what a fixture is made of. Zero fields: defaults.
type setup struct {
	tools    []tool.Tool
	settings map[string]string
	client   string
	modern   bool
	silent   bool          // do not say hello
	roots    time.Duration // that a client has to name its roots; 0: as long as it likes

	change func(*config.Config) // what settings cannot say; nil: nothing
}

// start makes a server over a new workspace and connects a client. Its end is checked when the test ends.
func start(t testing.TB, o setup) *fixture {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if o.tools == nil {
		o.tools = tools.All()
	}
	if o.client == "" {
		o.client = "session-test"
	}
	cfg := testSettings(t, work, filepath.Join(t.TempDir(), "state"), placed(o.settings, work))
	if o.change != nil {
		o.change(&cfg)
	}
	s, err := New(Options{Config: cfg, Tools: o.tools, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.patience = hangAfter // however slow this machine is, a test loses no note
	patient(s, o.roots)
	f := &fixture{server: s, work: work, ended: make(chan error, 1)}
	f.wire = connect(s, f.ended, o.client, o.modern)
	t.Cleanup(func() {
		_ = f.in.Close()
		go func() { // what the test did not read
			for range f.lines {
			}
		}()
		select {
		case err := <-f.ended:
			if err != nil {
				t.Errorf("Stdio: %v", err)
			}
		case <-time.After(hangAfter):
			t.Fatal("Stdio does not return")
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if !o.silent {
		if err := f.hello(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// patient makes the limits of a server such that only a hang reaches them: however slow this machine is, a test lists no
// changes in doubt, a client that answers has named its roots (unless it has a time for that), all skills are found, hooks
// hear of the end, and calls of a session that come one after the other are of one turn.
func patient(s *Server, roots time.Duration) {
	s.glance, s.finding, s.roots = hangAfter, hangAfter, cmp.Or(roots, hangAfter)
	s.engines.hooks.Grace = hangAfter
	build := s.sessions.build
	s.sessions.build = func(key session.Key, at *place) (*session.State, func(), error) {
		st, end, err := build(key, at)
		if err == nil {
			st.Results.Pause = hangAfter
		}
		return st, end, err
	}
}

// placed fills in the workspace, which session files call $WORK.
func placed(settings map[string]string, work string) map[string]string {
	all := map[string]string{}
	for k, v := range settings {
		all[k] = strings.ReplaceAll(v, "$WORK", work)
	}
	return all
}

// connect runs Stdio on two pipes.
func connect(s *Server, ended chan<- error, client string, modern bool) *wire {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		err := s.Stdio(context.Background(), inR, outW)
		_ = outW.Close()
		ended <- err
	}()
	return newWire(inW, outR, client, modern)
}

// scripts returns every session file.
func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../testdata/sessions/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no session files: %v", err)
	}
	return files
}

func scriptName(path string) string {
	return filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".txtar")
}

// handleOf names the session of a replay, so that its directory has the same name in every run.
const handleOf = "session-file"

// TestSessions replays every session file against the server in process.
func TestSessions(t *testing.T) {
	for _, path := range scripts(t) {
		t.Run(scriptName(path), func(t *testing.T) {
			t.Parallel()
			file, err := readScript(path)
			if err != nil {
				t.Fatal(err)
			}
			o := setup{settings: file.config, client: file.client, modern: file.modern}
			if file.fixed {
				o.tools = fixedTools()
			}
			f := start(t, o)
			play(t, file, f.wire, f.work, f.server.engines.dir, f.server.cfg.Home, *update)
		})
	}
}

// play lays the files, runs the session and compares.
func play(t *testing.T, file *scriptFile, w *wire, work, state, home string, update bool) {
	t.Helper()
	if err := file.lay(work); err != nil {
		t.Fatal(err)
	}
	names := newPlaceholders(map[string]string{work: "$WORK", state: "$STATE", home: "$HOME"})
	r := &replay{file: file, work: work, state: state, wire: w, names: names}
	got, err := r.run()
	if err != nil {
		t.Fatal(err)
	}
	r.compare(t, got, update)
}

// program builds the program once for all tests of the package.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "codehand-test-")
	if err != nil {
		return "", err
	}
	built = append(built, dir)
	path := filepath.Join(dir, "codehand")
	return path, build("", path, "codehand/cmd/codehand")
})

// build builds a package as it is released: without cgo, so that nothing is linked at the start.
func build(dir, to, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", to, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return &buildError{string(out), err}
	}
	return nil
}

type buildError struct {
	out string
	err error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.out }

// TestSessionsBinary replays every session file against the built program, over its standard input and output.
func TestSessionsBinary(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts(t) {
		t.Run(scriptName(script), func(t *testing.T) {
			t.Parallel()
			file, err := readScript(script)
			if err != nil {
				t.Fatal(err)
			}
			if !file.written {
				t.Skip("the file has no answers yet: TestSessions writes them")
			}
			if file.fixed {
				return // the program has all tools
			}
			work, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			p := spawn(t, path, work, file.client, file.modern, file.config)
			play(t, file, p.wire, work, p.state, filepath.Dir(p.state), false)
		})
	}
}

// A spawned is the built program with one client on it.
type spawned struct {
	*wire
	cmd    *exec.Cmd
	state  string
	stderr *strings.Builder
}

// spawn starts the program in work and says hello. When the test ends, the program must end by itself with code 0.
func spawn(t testing.TB, path, work, client string, modern bool, settings map[string]string) *spawned {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"stdio", work}
	for k, v := range placed(settings, work) {
		args = append(args, "--"+flagOf(k)+"="+v)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base, "CODEHAND_SESSION=" + handleOf}
	p := speak(t, cmd, client, modern)
	p.state = filepath.Join(base, "codehand")
	return p
}

// speak starts a command that is the program and says hello. When the test ends, it must end by itself with code 0.
func speak(t testing.TB, cmd *exec.Cmd, client string, modern bool) *spawned {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &spawned{cmd: cmd, stderr: &strings.Builder{}}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.wire = newWire(in, out, client, modern)
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return // the test waited itself
		}
		_ = in.Close()
		for range p.lines { // to the end of its output, as Wait demands
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v; stderr:\n%s", err, p.stderr)
		}
	})
	if err := p.hello(); err != nil {
		t.Fatalf("hello: %v; stderr:\n%s", err, p.stderr)
	}
	return p
}
