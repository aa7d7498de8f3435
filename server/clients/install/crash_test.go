package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/filestate/lock"
)

// killedMark is the first argument of a process that changes a file and kills itself on the way.
const killedMark = "install-and-die"

// TestMain also is the entrance of the processes that TestKilled starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == killedMark {
		os.Exit(changeAndDie(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	}
	leaktest.Main(m)
}

// changeAndDie installs into cursor, or takes it out, and kills itself at a step. 0: there was no such step.
func changeAndDie(what, root, state, step string) int {
	runtime.LockOSThread() // strace counts the calls of each thread
	p := Places{GOOS: "linux", Home: "/home/you", Env: func(string) string { return "" }, Root: root, State: state}
	c, err := planOf(p, what)
	if err == nil {
		c.killed = func(at string) {
			if at != step {
				return
			}
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
			select {} // the signal is on its way
		}
		err = c.Apply(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

func planOf(p Places, what string) (*Change, error) {
	if what == "uninstall" {
		return PlanRemoval(p, "cursor", Want{})
	}
	return Plan(p, "cursor", wanted)
}

// TestKilled: a process that is killed while it changes a file leaves the old or the new one, at any step. An install
// then works as if nothing had happened, and an uninstall restores the first state.
func TestKilled(t *testing.T) {
	t.Parallel()
	const other = "{\n  // mine\n  \"mcpServers\": {\"files\": {\"command\": \"npx\"}}\n}\n"
	for _, c := range []struct{ name, first, what string }{
		{"new file", "", "install"},
		{"old file", other, "install"},
		{"file made by us", "", "uninstall"},
		{"file of others", other, "uninstall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			steps := stepsOf(t, c.first, c.what)
			if len(steps) < 5 {
				t.Fatalf("steps: %q", steps)
			}
			for _, step := range steps {
				t.Run(step, func(t *testing.T) { killAt(t, c.first, c.what, step) })
			}
		})
	}
}

// laid is a home with cursor's file, and codehand in it if it is to be taken out.
func laid(t *testing.T, first, what string) (p Places, file string) {
	t.Helper()
	p = here(t, "linux")
	file = p.real("/home/you/.cursor/mcp.json")
	if first != "" {
		goldenCase{before: first}.lay(t, file)
	}
	if what == "uninstall" {
		apply(t, p, "install")
	}
	return p, file
}

func apply(t *testing.T, p Places, what string) {
	t.Helper()
	c, err := planOf(p, what)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stepsOf are the steps of a change, in their order.
func stepsOf(t *testing.T, first, what string) []string {
	t.Helper()
	p, _ := laid(t, first, what)
	c, err := planOf(p, what)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	c.killed = func(at string) { steps = append(steps, at) }
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return steps
}

func killAt(t *testing.T, first, what, step string) {
	p, file := laid(t, first, what)
	c, err := planOf(p, what)
	if err != nil {
		t.Fatal(err)
	}
	was, is := c.Files[0].Old, c.Files[0].New
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, killedMark, what, p.Root, p.State, step)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() > 0 {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	now, _, err := readFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(was) && string(now) != string(is) {
		t.Errorf("killed, it leaves\n%s", now)
	}
	apply(t, p, "install")
	if got := entryOf(t, p, "cursor"); got == nil {
		t.Error("then it cannot be installed")
	}
	apply(t, p, "uninstall")
	now, _, err = readFile(file)
	if err != nil || string(now) != first {
		t.Errorf("uninstalled, the file is, %v\n%s\nand was\n%s", err, now, first)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	left = slices.DeleteFunc(left, func(name string) bool {
		return strings.HasSuffix(name, ".bak") || strings.HasSuffix(name, ".codehand-removed") || name == file
	})
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %q, %v", left, err)
	}
}

// TestTwoAtOnce: installs at the same time lose nothing of each other, and nothing of what was there, be they of
// different clients or into one file. Each Apply has a lock of its own, as in a process of its own.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	before := map[string]string{}
	for _, client := range Clients() {
		file := p.real(fileOf(t, p, client))
		before[client] = shapeOf(t, client).comments
		goldenCase{before: before[client]}.lay(t, file)
	}
	atOnce := func(plan func(client string, turn int) (*Change, error)) {
		t.Helper()
		var wg sync.WaitGroup
		for _, client := range Clients() {
			for turn := range 2 {
				wg.Go(func() {
					for {
						c, err := plan(client, turn)
						if err == nil {
							err = c.Apply(t.Context())
						}
						if err == nil {
							return
						}
						// On a slow machine so many cannot all have their turn in the 10 s that one waits.
						if !errors.Is(err, ErrChanged) && !errors.Is(err, lock.ErrLocked) {
							t.Errorf("%s: %v", client, err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
	}
	atOnce(func(client string, turn int) (*Change, error) {
		w := wantOf(client)
		w.Roots = []string{fmt.Sprintf("/home/you/%d", turn)}
		return Plan(p, client, w)
	})
	for _, client := range Clients() {
		if e := entryOf(t, p, client); e == nil || len(e.Args) != 2 {
			t.Errorf("%s: %+v", client, e)
		}
	}
	atOnce(func(client string, _ int) (*Change, error) { return PlanRemoval(p, client, Want{}) })
	for _, client := range Clients() {
		if got := read(t, p.real(fileOf(t, p, client))); got != before[client] {
			t.Errorf("%s: the file is\n%s\nand was\n%s", client, got, before[client])
		}
	}
}

// TestChangedMeanwhile: a file that changes between the plan and its making is not written, and neither is one that is
// made or removed meanwhile.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, meanwhile string }{{"{}", "{ }"}, {"", "{}"}, {"{}", ""}} {
		p, file := laid(t, c.first, "install")
		change, err := planOf(p, "install")
		if err != nil {
			t.Fatal(err)
		}
		if c.meanwhile == "" {
			err = os.Remove(file)
		} else {
			goldenCase{before: c.meanwhile}.lay(t, file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := change.Apply(t.Context()); !errors.Is(err, ErrChanged) {
			t.Errorf("%q, then %q: %v", c.first, c.meanwhile, err)
		}
		if now, _, err := readFile(file); err != nil || string(now) != c.meanwhile {
			t.Errorf("%q, then %q: now %q, %v", c.first, c.meanwhile, now, err)
		}
	}
}
