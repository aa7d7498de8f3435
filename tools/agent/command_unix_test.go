//go:build unix

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/filestate/owner"
	"codehand/tools/agent/loop"
	"codehand/tools/permission"
	"codehand/tools/skills"
)

// command runs a task with a shell script as the program; change may be nil.
func command(ctx context.Context, t *testing.T, script string, said func(string), change func(*Options, *Order)) (Outcome, *Runner) {
	t.Helper()
	o, job := order(nil, &noHands{}, "a")
	o.Model = nil
	job.Backend = Program
	job.Parent.Cwd = leaktest.Dir(t)
	o.Command = Command{
		Argv: []string{"sh", "-c", script, "sh", "{mcp_config}", "{mcp_toml}"}, Dir: filepath.Join(leaktest.Dir(t), "agents"),
		Env: func() []string { return []string{"PATH=/usr/local/bin:/usr/bin:/bin"} },
		Server: func(p Parent, without []string) []string {
			return []string{"/opt/code hand", "stdio", "--mode=" + p.Mode.String(), `"` + strings.Join(without, ",")}
		},
	}
	if change != nil {
		change(&o, &job)
	}
	r := New(o)
	x, err := r.Start(job)
	if err != nil {
		t.Fatal(err)
	}
	out := x.Do(ctx, said)
	if left, err := os.ReadDir(o.Command.Dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	return out, r
}

// What a program printed went to files without a limit, and filled the disk. Now its end is kept, in memory.
func TestProgramFloods(t *testing.T) {
	t.Parallel()
	const flood = `head -c 50000000 /dev/zero | tr '\0' x; head -c 50000000 /dev/zero | tr '\0' y >&2; `
	out, _ := command(t.Context(), t, flood+`echo; echo "key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"; ls -l "$(dirname "$1")"; echo "The end."`, nil, nil)
	if out.Stopped != loop.Done || !strings.HasSuffix(out.Text, "\nThe end.\n") || len(out.Text) > keptOutput {
		t.Errorf("%s: %d characters, at the end %q", out.Stopped, len(out.Text), out.Text[max(0, len(out.Text)-100):])
	}
	if strings.Contains(out.Text, "AAAAAAAAAAAAAAAA") {
		t.Error("a key is in the report")
	}
	if total := out.Unkept + int64(len(out.Text)); total < 50_000_000 || out.Unkept < 50_000_000-2*keptOutput {
		t.Errorf("%d bytes are not kept, %d in all", out.Unkept, total)
	}
	for line := range strings.Lines(out.Text) {
		if f := strings.Fields(line); len(f) > 8 && len(f[4]) > 5 {
			t.Errorf("a file of the program: %s", line)
		}
	}
	if out, _ = command(t.Context(), t, flood+`echo >&2; echo "it is broken" >&2; exit 3`, nil, nil); out.Stopped != loop.Failed || out.Detail != "sh ended with exit 3: it is broken" {
		t.Errorf("%.300s", out.Detail)
	}
	if out, _ = command(t.Context(), t, `echo so far; kill -SEGV $$`, nil, nil); out.Detail != "sh ended with exit 139 (SIGSEGV)" || out.Text != "so far\n" {
		t.Errorf("%q, %q", out.Detail, out.Text)
	}
}

// A program that prints without end, in two processes, and does not listen to SIGTERM, ends with the call.
func TestProgramFloodsUntilCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out, _ := command(ctx, t, `trap '' TERM; yes "on and on" >&2 & yes "on and on"`, func(line string) {
		if line != "started sh" {
			t.Error(line)
		}
		cancel()
	}, nil)
	if out.Stopped != loop.Cancelled || len(out.Text) > keptOutput {
		t.Errorf("%s, %d bytes", out.Stopped, len(out.Text))
	}
}

// The end of what was printed is exact, wherever the pieces end.
func TestPrintedKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&all, "line %d äöü\n", i)
	}
	text := all.String()
	for _, keep := range []int{10, 1000, len(text) - 1, len(text), 2 * len(text)} {
		for _, piece := range []int{7, 999, 4096, len(text)} {
			p, err := newPrinted(keep)
			if err != nil {
				t.Fatal(err)
			}
			w := p.w
			p.w = nil // the program's, whose end this test plays
			p.follow()
			for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
				if _, err := w.WriteString(rest[:min(piece, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			_ = w.Close()
			got, unkept, err := p.end()
			p.close()
			if err != nil || got != text[unkept:] || len(got) > keep || keep >= len(text) && unkept > 0 || len(got) < keep-30 && len(got) < len(text) {
				t.Errorf("keep %d, pieces of %d: %d bytes, %d not kept, %v", keep, piece, len(got), unkept, err)
			}
		}
	}
}

// A type that only reads got a server in the mode of its parent, with all tools.
func TestProgramServer(t *testing.T) {
	t.Parallel()
	all := []Offered{
		{Tool: loop.Tool{Name: "read_file", ReadOnly: true}, For: AllAgents}, {Tool: loop.Tool{Name: "write_file"}, For: ChangingAgents},
		{Tool: loop.Tool{Name: "exit_plan_mode"}}, {Tool: loop.Tool{Name: "tool_search"}, For: ProgramAgents},
		{Tool: loop.Tool{Name: "agent"}, For: StartingAgents},
	}
	for kind, want := range map[string][]string{
		"explore": {"stdio", "--mode=plan", `"write_file,exit_plan_mode`},
		General:   {"stdio", "--mode=acceptEdits", `"exit_plan_mode`},
	} {
		out, _ := command(t.Context(), t, `cat "$1"; printf '\n%s' "$2"`, nil, func(o *Options, job *Order) {
			o.Tools = func() []Offered { return all }
			job.Type, _ = ReadTypes(skills.Set{}).Find(kind)
			job.Tools, _ = job.Type.Pick(all, false)
			job.Parent.Mode = permission.AcceptEdits
		})
		config, toml, _ := strings.Cut(out.Text, "\n\n")
		var shape struct{ MCPServers map[string]injected }
		if err := json.Unmarshal([]byte(config), &shape); err != nil {
			t.Fatalf("%v: %s", err, out.Text)
		}
		got := shape.MCPServers["codehand"]
		if got.Command != "/opt/code hand" || !slices.Equal(got.Args, want) || got.Env[DepthVariable] != "1" {
			t.Errorf("%s: %+v", kind, got)
		}
		quoted, _ := json.Marshal(want)
		if wanted := `{command="/opt/code hand",args=` + string(quoted) + `,env={CODEHAND_AGENT_DEPTH="1"}}`; toml != wanted {
			t.Errorf("got  %s\nwant %s", toml, wanted)
		}
	}
}

// A program by its name alone could not be started. A task that is too long for an argument says what to do.
func TestProgramNotStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv   []string
		prompt string
		want   string
	}{
		{[]string{"no-such-agent"}, "x", "agent.command: there is no program no-such-agent in PATH. Give its absolute path"},
		{[]string{"sh", "-c", "{prompt}"}, strings.Repeat("x", 1<<17), "agent.command: the task has 131,"},
		{[]string{"/no/such/agent"}, "x", "agent.command: /no/such/agent cannot be started: "},
	} {
		out, _ := command(t.Context(), t, "", nil, func(o *Options, job *Order) { o.Command.Argv, job.Prompt = c.argv, c.prompt })
		if out.Stopped != loop.Failed || !strings.HasPrefix(out.Detail, c.want) {
			t.Errorf("%q: %s: %s", c.argv[0], out.Stopped, out.Detail)
		}
	}
	long, _ := command(t.Context(), t, "wc -c", nil, func(_ *Options, job *Order) { job.Prompt = strings.Repeat("x", 1<<20) })
	if n := strings.TrimSpace(long.Text); len(n) != 7 || long.Stopped != loop.Done {
		t.Errorf("a long task as input: %q %s", n, long.Detail)
	}
}

// What a killed server left of its programs, with the task in it, stayed for good.
func TestSweepPrograms(t *testing.T) {
	t.Parallel()
	dead := exec.Command("sleep", "600")
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	gone := owner.ProcessOf(dead.Process.Pid)
	_ = dead.Process.Kill()
	_ = dead.Wait()
	dir := leaktest.Dir(t)
	name := func(p owner.Process) string {
		return filepath.Join(dir, owner.Hand{Process: p, Host: owner.ThisHost()}.TempName())
	}
	left, own, other, foreign := name(gone), name(owner.ProcessOf(os.Getpid())), name(owner.ProcessOf(os.Getppid())), filepath.Join(dir, "notes")
	for _, d := range []string{left, own, other, foreign} {
		if err := os.MkdirAll(filepath.Join(d, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	New(Options{Command: Command{Argv: []string{"/x"}, Dir: dir}})
	for d, want := range map[string]bool{left: false, own: true, other: true, foreign: true} {
		if _, err := os.Stat(d); (err == nil) != want {
			t.Errorf("%s: there: %t", d, err == nil)
		}
	}
}
