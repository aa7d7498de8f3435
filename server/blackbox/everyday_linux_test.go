package blackbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// An everyday is a row of testdata/everyday/commands.tsv.
type everyday struct {
	stack   string
	asked   bool // a person must be asked, since it reaches beyond what undo takes back
	reads   bool // it only looks at what is there
	command string
}

// everydays are the rows of the table, in its order: those of a stack build upon each other.
func everydays(t *testing.T) []everyday {
	t.Helper()
	data, err := os.ReadFile("../../testdata/everyday/commands.tsv")
	must(t, err)
	var rows []everyday
	for line := range strings.Lines(string(data)) {
		c := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if c[0] == "stack" {
			continue
		}
		row := everyday{stack: c[0], asked: c[1] == "asked", reads: c[1] == "reads"}
		must(t, json.Unmarshal([]byte(c[2]), &row.command))
		rows = append(rows, row)
	}
	return rows
}

// A monday is a project of one stack with a home of its own, made by testdata/everyday/prepare.sh.
type monday struct {
	t    *testing.T
	home string
	work string
	env  []string
}

func newMonday(t *testing.T, stack string) *monday {
	t.Helper()
	dir := leaktest.Dir(t)
	d := &monday{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work", "project")}
	temp := filepath.Join(dir, "tmp") // where yarn leaves what it does not remove
	for _, dir := range []string{d.home, d.work, temp} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	must(t, os.WriteFile(d.home+"/.gitconfig", []byte("[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n"), 0o600))
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		own := name == "HOME" || name == "TMPDIR"
		if !own && !strings.HasPrefix(name, "CODEHAND_") && !strings.HasPrefix(name, "XDG_") {
			d.env = append(d.env, v)
		}
	}
	d.env = append(d.env, "HOME="+d.home, "TMPDIR="+temp, "XDG_STATE_HOME="+d.home+"/.local/state")
	if real, err := os.UserHomeDir(); err == nil && os.Getenv("RUSTUP_HOME") == "" {
		d.env = append(d.env, "RUSTUP_HOME="+real+"/.rustup")
	}
	script, err := filepath.Abs("../../testdata/everyday/prepare.sh")
	must(t, err)
	if out, err := d.run("bash", script, stack).CombinedOutput(); err != nil {
		t.Fatalf("prepare.sh %s: %v\n%s", stack, err, out)
	}
	if stack == "git" {
		d.publish()
	}
	return d
}

// publish makes the project's origin one that answers over the network.
func (d *monday) publish() {
	d.t.Helper()
	address := replaytest.Reserved(d.t)
	_, port, _ := strings.Cut(address, ":")
	at, err := d.run("git", "--exec-path").Output()
	must(d.t, err)
	// not by git, which would start it as a child that outlives it
	daemon := d.run(strings.TrimSpace(string(at))+"/git-daemon", "--listen=127.0.0.1", "--port="+port, "--base-path="+filepath.Dir(d.work), "--export-all",
		"--enable=receive-pack", "--reuseaddr")
	must(d.t, leaktest.Start(daemon))
	d.t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	if out, err := d.run("git", "remote", "set-url", "origin", "git://"+address+"/origin.git").CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	for d.run("git", "ls-remote", "origin").Run() != nil { // until it listens
		if err := d.t.Context().Err(); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *monday) run(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = d.work, slices.Clip(d.env)
	return cmd
}

// terminal runs a command as a terminal does, and says whether it worked. What it starts and leaves holds no pipe.
func (d *monday) terminal(command string) (string, bool) {
	out, err := os.CreateTemp(d.home, "out")
	must(d.t, err)
	defer out.Close()
	cmd := d.run("bash", "-c", command)
	cmd.Stdout, cmd.Stderr = out, out
	global := filepath.Join(d.home, "global") // what npm installs for all is not this machine's, which others use now
	cmd.Env = append(cmd.Env, "npm_config_prefix="+global, "PATH="+global+"/bin:"+os.Getenv("PATH"))
	err = cmd.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		d.t.Fatal(err)
	}
	text, readErr := os.ReadFile(out.Name())
	must(d.t, readErr)
	return string(text), err == nil
}

// settingNamed is what a failure says that our confinement caused.
var settingNamed = regexp.MustCompile(`\b(sandbox|permissions|shell)\.[a-z_]+|\[commands see only their own processes`)

// withoutPerson answers otherwise below level 3: a command that only reads sees nothing of a person's configuration of git
// there, since that may name programs.
const withoutPerson = "git config user.name"

// TestEverydayCommands: what works in a terminal works here, in clients that can ask and cannot, over HTTP, with and
// without user namespaces; or its failure names the setting that opens it. Nothing asks a person but what must.
func TestEverydayCommands(t *testing.T) {
	long(t)
	rows := everydays(t)
	var stacks []string
	for _, r := range rows {
		if !slices.Contains(stacks, r.stack) {
			stacks = append(stacks, r.stack)
		}
	}
	way := os.Getenv("CODEHAND_EVERYDAY") // one way only, when it is tried by hand
	for _, stack := range stacks {
		t.Run(stack, func(t *testing.T) {
			t.Parallel() // each has a home and ports of its own
			var ours []everyday
			for _, r := range rows {
				if r.stack == stack && !r.asked {
					ours = append(ours, r)
				}
			}
			bare := newMonday(t, stack)
			worked := make([]bool, len(ours))
			said := make([]string, len(ours))
			for i, r := range ours {
				said[i], worked[i] = bare.terminal(r.command)
			}
			for _, w := range []string{"declines", "serve", "level 2"} { // the last two cannot ask
				if way != "" && way != w {
					continue
				}
				t.Run(w, func(t *testing.T) {
					d := newMonday(t, stack)
					c := d.connect(w)
					for i, r := range ours {
						a := c.Call("run_shell", replaytest.AsJSON(t, "command", r.command, "timeout", 600_000), func(string) string { return replaytest.SayDecline })
						switch {
						case a.Asked > 0:
							t.Errorf("ASKED %q: %s", r.command, a.Text)
						case worked[i] && a.Failed && w == "level 2" && r.command == withoutPerson:
							t.Logf("KNOWN %q", r.command)
						case worked[i] && a.Failed && !settingNamed.MatchString(a.Text):
							t.Errorf("FAILS %q: %.1500s", r.command, a.Text)
						case worked[i] && a.Failed:
							t.Logf("NAMED %q: %s", r.command, settingNamed.FindString(a.Text))
						case !worked[i] && !a.Failed:
							t.Logf("BETTER %q: %.200s, in a terminal %.200s", r.command, a.Text, said[i])
						}
					}
				})
			}
		})
	}
}

// connect starts the program over the monday's project, for a client that works one way.
func (d *monday) connect(way string, more ...string) *replaytest.ElicitClient {
	t := d.t
	t.Helper()
	program := replaytest.Program(t)
	c := &replaytest.ElicitClient{T: t, Caps: `{}`}
	if way == "declines" {
		c.Caps = `{"elicitation":{}}`
	}
	if way == "serve" {
		address := replaytest.Reserved(t)
		s := startDaemon(t, d.run(program, "serve", d.work, "--listen", address))
		return replaytest.OverHTTPAs(t, &replaytest.HTTPClient{T: t, URL: s.url + "/mcp"}, c)
	}
	args := append([]string{program, "stdio", d.work, "--shell-auto-background-ms=600000"}, more...)
	if way == "level 2" {
		// The kernel gives no user namespaces below this one.
		args = append([]string{"unshare", "--user", "--map-root-user", "sh", "-c",
			`echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh"}, args...)
	}
	cmd := d.run(args...)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var diagnosis strings.Builder
	cmd.Stderr = &diagnosis
	must(t, leaktest.Start(cmd))
	w := replaytest.NewWire(in, out, "everyday", false)
	t.Cleanup(func() {
		_ = in.Close()
		for range w.Lines { // to the end of its output, as Wait demands
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v: %s", err, fmt.Sprintf("%.2000s", diagnosis.String()))
		}
	})
	return replaytest.OnPipeAs(t, w, c)
}

// TestEverydayReadOnly: run_readonly in plan mode runs what only looks, whatever program does, and nothing else changes a
// file or is asked about. Between the calls a terminal does each command, so that the next one finds what it needs.
func TestEverydayReadOnly(t *testing.T) {
	long(t)
	var stacks []string
	for _, r := range everydays(t) {
		if !slices.Contains(stacks, r.stack) {
			stacks = append(stacks, r.stack)
		}
	}
	for _, stack := range stacks {
		t.Run(stack, func(t *testing.T) {
			t.Parallel()
			d := newMonday(t, stack)
			c := d.connect("declines", "--permissions-mode=plan")
			for _, r := range everydays(t) {
				if r.stack != stack || r.asked {
					continue
				}
				before := d.files()
				a := c.Call("run_readonly", replaytest.AsJSON(t, "command", r.command, "timeout", 600_000), replaytest.Never(t))
				for range 5 { // on a busy machine a build takes several calls
					if !a.Failed || !strings.Contains(a.Text, ", so call again]") {
						break
					}
					a = c.Call("run_readonly", replaytest.AsJSON(t, "command", r.command), replaytest.Never(t))
				}
				if after := d.files(); !maps.Equal(before, after) {
					t.Errorf("CHANGED by %q: %s", r.command, a.Text)
				}
				if said, works := d.terminal(r.command); r.reads && works && a.Failed {
					t.Errorf("FAILS %q: %.1500s, in a terminal %.300s", r.command, a.Text, said)
				}
			}
		})
	}
}

// files are the files of the project and its home, but for what the program keeps, each with its size, mode and time.
func (d *monday) files() map[string]string {
	all := map[string]string{}
	must(d.t, filepath.WalkDir(filepath.Dir(filepath.Dir(d.work)), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // what a job of a terminal removes meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		if path == d.home+"/.local" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			all[path] = fmt.Sprint(info.Size(), info.Mode(), info.ModTime())
		}
		return nil
	}))
	return all
}
