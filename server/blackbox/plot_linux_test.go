package blackbox

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// This file is what the tests of the write path share (SEC-11 to SEC-17): the built program over one workspace, started
// again and again, killed, traced, and looked at from outside.

// A plot is a workspace and a state directory over which the program is started again and again, one at a time.
type plot struct {
	*testing.T
	program, work, home string
	flags, env          []string
	now                 *replaytest.Spawned // nil: none was started yet
}

func newPlot(t *testing.T, flags ...string) *plot {
	t.Helper()
	path := replaytest.Program(t)
	p := &plot{T: t, program: path, work: leaktest.Dir(t), home: leaktest.Dir(t), flags: flags}
	t.Cleanup(func() {
		if p.now != nil {
			p.kill(p.now)
		}
	})
	return p
}

func (p *plot) path(name string) string { return filepath.Join(p.work, name) }

// lay writes a file as another program would.
func (p *plot) lay(name, content string) {
	p.Helper()
	must(p, os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
	must(p, os.WriteFile(p.path(name), []byte(content), 0o644))
}

// held is what a file holds; "": there is none.
func (p *plot) held(name string) string {
	p.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
	return string(b)
}

// start starts the program and says hello. Unlike spawn it expects no good end.
func (p *plot) start() *replaytest.Spawned {
	p.Helper()
	cmd := exec.Command(p.program, append([]string{"stdio", p.work}, p.flags...)...)
	cmd.Dir = p.work
	cmd.Env = append([]string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + p.home, "CODEHAND_SESSION=" + replaytest.Handle}, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // see tracer.run
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a tracer waits for a group
	in, err := cmd.StdinPipe()
	must(p, err)
	out, err := cmd.StdoutPipe()
	must(p, err)
	s := &replaytest.Spawned{Cmd: cmd, State: filepath.Join(p.home, "codehand"), Stderr: &strings.Builder{}}
	cmd.Stderr = s.Stderr
	must(p, leaktest.Start(cmd))
	s.Wire = replaytest.NewWire(in, out, "mcp-inspector", false)
	p.now = s
	if err := s.Hello(); err != nil {
		p.kill(s)
		p.Fatalf("hello: %v; stderr:\n%s", err, s.Stderr)
	}
	return s
}

// kill ends the program as SIGKILL does, if it has not ended, and returns what it had still said.
func (p *plot) kill(s *replaytest.Spawned) (rest [][]byte) {
	p.Helper()
	_ = s.Cmd.Process.Kill() // or it has ended
	for l := range s.Lines {
		rest = append(rest, l)
	}
	_ = s.Cmd.Wait() // it was killed, and says so
	_ = s.In.Close()
	return rest
}

// must calls a tool that must do what it is asked.
func (p *plot) must(s *replaytest.Spawned, name string, args ...any) string {
	p.Helper()
	text, err := s.Call(name, json.RawMessage(replaytest.AsJSON(p.T, args...)))
	if err != nil || strings.HasPrefix(text, "!") {
		p.Fatalf("%s %v: %v, %s; stderr:\n%s", name, args, err, text, s.Stderr)
	}
	return text
}

// post sends a call and does not wait for its answer.
func (p *plot) post(s *replaytest.Spawned, id int, name string, args ...any) error {
	return s.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, replaytest.AsJSON(p.T, args...)))
}

// reading takes an answer apart that came to post. ok: the tool did what it was asked.
func reading(l []byte) (id int, text string, ok bool) {
	var r struct {
		ID     int
		Result *struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if json.Unmarshal(l, &r) != nil || r.Result == nil || len(r.Result.Content) == 0 {
		return 0, string(l), false
	}
	return r.ID, r.Result.Content[0].Text, !r.Result.IsError
}

// temps are the temporary files in the workspace and in all that the program keeps.
func (p *plot) temps() (all []string) {
	p.Helper()
	for _, root := range []string{p.work, p.home} {
		must(p, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.HasSuffix(path, ".tmp") {
				all = append(all, path)
			}
			if os.IsNotExist(err) {
				err = nil // it was renamed meanwhile
			}
			return err
		}))
	}
	return all
}

// left are the temporary files that stay: a running program has one for a moment whenever it keeps its session. Those of
// which alone says so are none of ours.
func (p *plot) left(alone ...func(path string) bool) (all []string) {
	p.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(replaytest.HangAfter); ; <-look.C {
		all = p.temps()
		for _, a := range alone {
			all = slices.DeleteFunc(all, a)
		}
		if len(all) == 0 || time.Now().After(end) {
			return all
		}
	}
}

// journal opens the one journal that the program keeps.
func (p *plot) journal() *journal.Journal {
	p.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.home, "codehand", "journal", "*"))
	if err != nil || len(dirs) != 1 {
		p.Fatalf("journals are %v, %v", dirs, err)
	}
	j, err := journal.Open(dirs[0], journal.Options{})
	must(p, err)
	return j
}

// entries are all changes in the journal, the newest first. One that is not settled is a failure.
func (p *plot) entries() []journal.Entry {
	p.Helper()
	j := p.journal()
	defer func() { must(p, j.Close()) }()
	all, err := j.History(p.Context(), journal.Query{})
	must(p, err)
	for _, e := range all {
		if e.Open || e.Unsure {
			p.Fatalf("the journal has %+v", e)
		}
	}
	return all
}

// agrees fails unless the newest change of a file ends with what the file holds.
func (p *plot) agrees(name string) {
	p.Helper()
	j := p.journal()
	defer func() { must(p, j.Close()) }()
	entries, err := j.History(p.Context(), journal.Query{Path: p.path(name), Limit: 1})
	if err != nil || len(entries) != 1 {
		p.Fatalf("the newest change of %s: %v, %v", name, entries, err)
	}
	_, after, err := j.Contents(p.Context(), entries[0].ID, p.path(name))
	if err != nil || string(after) != p.held(name) {
		p.Fatalf("%s holds %.60q, its newest change left %.60q, %v", name, p.held(name), after, err)
	}
}

// letPass waits for a time that a test has drawn.
func letPass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}
