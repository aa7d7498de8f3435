package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/config"
	"codehand/server/pauses"
	"codehand/server/state"
	"codehand/tools/sandbox"
)

// A rig is a machine in a directory of its own, on which all is well.
type rig struct {
	*testing.T
	dir     string // canonical
	machine Machine
	system  *system
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("modes and links of files are those of Unix; run on Linux or macOS to have these cases")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := theSystem()
	s.network = func(string) string { return "" }
	s.free = func(string) (int64, bool) { return 8 * leastFree, true }
	s.openFiles = func() (uint64, bool) { return 8 * leastFiles, true }
	s.readFile = func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	s.probe = func(context.Context, string) sandbox.Report { return sandbox.Report{Level: sandbox.LevelFull} }
	s.programs = []string{filepath.Join(dir, "sys")}
	s.poppler = s.programs
	s.patience = patience{answer: time.Minute, exit: time.Minute, slow: time.Hour, all: time.Hour}
	r := &rig{T: t, dir: dir, system: &s}
	for _, name := range []string{"home", "ws", "state", "sys", "bin"} {
		r.mkdir(name)
	}
	for _, name := range []string{"sys/bash", "sys/git"} {
		r.program(name)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, r.at("bin/codehand")); err != nil {
		t.Fatal(err)
	}
	r.machine = Machine{
		Config: config.Config{Roots: []string{r.at("ws")}, StateDir: r.at("state"), Home: r.at("home"),
			WorkDir: r.at("ws"), Store: config.Store{URL: "embedded:"}, HTTP: config.HTTP{DataDir: r.at("state")},
			Permissions: config.Permissions{Classifier: []string{r.at("sys/git")}}},
		Program: r.at("bin/codehand"), Version: testVersion, Revision: "0123456789abcdef",
		Env:  []string{"HOME=" + r.at("home"), "PATH=" + r.at("bin") + ":/usr/bin:/bin", childMode + "=good"},
		Args: []string{"stdio"},
		sys:  &s,
	}
	return r
}

func (r *rig) at(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) mkdir(name string) { r.must(os.MkdirAll(r.at(name), 0o700)) }

func (r *rig) write(name, text string) {
	r.Helper()
	r.mkdir(filepath.Dir(name))
	r.must(os.WriteFile(r.at(name), []byte(text), 0o600))
}

func (r *rig) remove(name string) { r.must(os.RemoveAll(r.at(name))) }

// program makes a program that does nothing.
func (r *rig) program(name string) { r.executable(name, "#!/bin/sh\n") }

func (r *rig) executable(name, text string) {
	r.Helper()
	r.mkdir(filepath.Dir(name))
	r.must(leaktest.WriteProgram(r.at(name), []byte(text)))
}

// readonly takes the right to write; root has it all the same.
func (r *rig) readonly(name string, mode fs.FileMode) {
	r.Helper()
	if os.Geteuid() == 0 {
		r.Skip("root may write everywhere; run as another user to have this case")
	}
	r.must(os.Chmod(r.at(name), mode))
	r.Cleanup(func() { _ = os.Chmod(r.at(name), 0o700) }) // or the test cannot remove it; it may be gone
}

// env sets a variable of the process.
func (r *rig) env(name, value string) {
	r.machine.Env = append(slices.DeleteFunc(slices.Clone(r.machine.Env), func(v string) bool {
		return strings.HasPrefix(v, name+"=")
	}), name+"="+value)
}

// entry writes what a client's file says of us.
func (r *rig) entry(client, command string, args []string, env map[string]string) {
	r.Helper()
	file := map[string]string{"gemini": "home/.gemini/settings.json", "cursor": "home/.cursor/mcp.json",
		"project": "ws/.cursor/mcp.json"}[client]
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"codehand": map[string]any{"command": command, "args": args, "env": env}}})
	r.must(err)
	r.write(file, string(text))
}

// child is an entry that starts this test binary as a server with a fault.
func (r *rig) child(mode string) {
	r.entry("gemini", r.machine.Program, []string{"stdio"}, map[string]string{childMode: mode})
}

// find runs the checks of an id.
func (r *rig) find(id string) []Finding {
	var checks []Check
	for _, c := range r.machine.Checks() {
		if c.Limit = time.Minute; c.ID == id { // on a machine that has no time for it
			checks = append(checks, c)
		}
	}
	return Run(r.Context(), checks)
}

// A remedy is a failure that doctor knows. It is provoked, and the fix that doctor names is followed.
type remedy struct {
	id     string
	name   string
	broken func(*rig)
	level  Level
	says   string // part of the text
	fix    string // part of what is to be done
	follow func(*rig)
}

// TestRemedies: each failure of a machine is found, and gone when what doctor says is done.
func TestRemedies(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(machineRemedies, placeRemedies, clientRemedies, handshakeRemedies) {
		t.Run(c.id+"/"+strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if found := r.find(c.id); !green(found) {
				t.Fatalf("before anything is broken: %+v", found)
			}
			c.broken(r)
			found := r.find(c.id)
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.ID == c.id && f.Level == c.level && strings.Contains(f.Text, c.says) && c.fix != "" &&
					strings.Contains(f.Fix, c.fix)
			}) {
				t.Fatalf("broken: no %s %q with fix %q in %+v", c.level, c.says, c.fix, found)
			}
			if c.follow == nil { // a note that nothing needs to be done
				return
			}
			c.follow(r)
			found = r.find(c.id)
			if !green(found) || slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.Text, c.says) }) {
				t.Errorf("after %q: %+v", c.fix, found)
			}
		})
	}
}

func green(found []Finding) bool {
	return !slices.ContainsFunc(found, func(f Finding) bool { return f.Level == Warn || f.Level == Fail })
}

var machineRemedies = []remedy{
	{"binary", "another version comes first", func(r *rig) {
		r.elsewhere("old/codehand")
		r.env("PATH", r.at("old")+":"+r.at("bin")+":/usr/bin:/bin")
	}, Warn, "version good", "in PATH", func(r *rig) {
		r.env("PATH", r.at("bin")+":"+r.at("old")+":/usr/bin:/bin")
	}},
	{"binary", "what comes first does not run", func(r *rig) {
		r.executable("old/codehand", "\x7fELF and nothing behind it")
		r.env("PATH", r.at("old")+":/usr/bin:/bin")
	}, Warn, "version unknown", "remove ", func(r *rig) { r.remove("old") }},
	{"binary", "no path", func(r *rig) { r.machine.Program = "" }, Warn, "not known", "absolute path",
		func(r *rig) { r.machine.Program = r.at("bin/codehand") }},
	{"config", "a project file tried to widen", func(r *rig) {
		r.machine.Config.Projects = []string{r.at("ws/.codehand/config.toml")}
		r.machine.Warnings = []config.Warning{{Origin: r.at("ws/.codehand/config.toml") + ":1:1", Text: "ignored"}}
	}, Warn, "ignored", "a project file may only narrow", func(r *rig) { r.machine.Warnings = nil }},
	{"config", "another warning", func(r *rig) { r.machine.Warnings = []config.Warning{{Origin: "X", Text: "odd"}} },
		Warn, "odd", "help settings", func(r *rig) { r.machine.Warnings = nil }},
	{"programs", "no bash", func(r *rig) { r.remove("sys/bash") }, Warn, "bash not found", "install bash",
		func(r *rig) { r.program("sys/bash") }},
	{"programs", "no git", func(r *rig) { r.remove("sys/git") }, Note, "git not found", "install git",
		func(r *rig) { r.program("sys/git") }},
	{"programs", "no poppler", func(r *rig) { r.machine.Config.Read.PDF = true }, Note, "pdfinfo, pdftotext, pdftoppm not found",
		"install poppler", func(r *rig) {
			for _, name := range []string{"sys/pdfinfo", "sys/pdftotext", "sys/pdftoppm"} {
				r.program(name)
			}
		}},
	{"hooks", "a program is gone", func(r *rig) {
		r.machine.Config.Hooks.Entries = []config.Hook{{Event: "PreToolUse", Command: []string{r.at("sys/hook")},
			Origin: "config.toml:3"}}
	}, Fail, "the program of the hook PreToolUse cannot be run", "make it executable",
		func(r *rig) { r.program("sys/hook") }},
	{"backends", "no classifier", func(r *rig) { r.machine.Config.Permissions.Classifier = nil }, Note,
		"not configured", "permissions.classifier", func(r *rig) {
			r.machine.Config.Permissions.Classifier = []string{r.at("sys/git")}
		}},
	{"backends", "the classifier is gone", func(r *rig) {
		r.machine.Config.Permissions.Classifier = []string{"no-such-program"}
	}, Fail, "cannot be run: no-such-program", "absolute path", func(r *rig) {
		r.machine.Config.Permissions.Classifier = []string{r.at("sys/git")}
	}},
	{"backends", "the key of the search endpoint is not there", func(r *rig) {
		r.machine.Config.Web.Search = config.WebSearch{Kind: "brave", KeyFile: r.at("home/key")}
	}, Fail, "web_search cannot ask Brave Search (api.search.brave.com): the file ", "chmod 600", func(r *rig) {
		r.write("home/key", "plantedkey")
	}},
	{"backends", "others can read the key", func(r *rig) {
		r.machine.Config.Web.Search = config.WebSearch{Kind: "tavily", KeyFile: r.at("home/key")}
		r.write("home/key", "plantedkey")
		r.must(os.Chmod(r.at("home/key"), 0o644))
	}, Fail, "can be read by others", "chmod 600", func(r *rig) { r.must(os.Chmod(r.at("home/key"), 0o600)) }},
	{"backends", "no such endpoint", func(r *rig) {
		r.machine.Config.Web.Search = config.WebSearch{Kind: "searxng"}
	}, Fail, "must begin with http", "help settings", func(r *rig) {
		r.machine.Config.Web.Search.URL = "https://searx.example"
	}},
	{"sandbox", "switched off", func(r *rig) { r.machine.Config.Sandbox.Policy = config.SandboxOff }, Warn, "level 0",
		`remove sandbox.policy = "off"`, func(r *rig) { r.machine.Config.Sandbox.Policy = "" }},
	{"sandbox", "less than required", func(r *rig) {
		r.machine.Config.Sandbox.Policy, r.machine.Config.Sandbox.MinLevel = config.SandboxRequired, 3
		r.system.probe = weak
	}, Fail, "level 3 failed: namespaces", "allow them", func(r *rig) { r.system.probe = strong }},
	{"sandbox", "no kernel", func(r *rig) {
		r.system.probe = func(context.Context, string) sandbox.Report {
			return sandbox.Report{Level: sandbox.LevelLimits, Failed: &sandbox.Failure{Level: 2, Probe: "landlock",
				Remedy: "use a newer kernel"}}
		}
	}, Warn, "no kernel sandbox", "newer kernel", func(r *rig) { r.system.probe = strong }},
	{"sandbox", "a level below", func(r *rig) { r.system.probe = weak }, Note, "level 3 failed", "allow them",
		func(r *rig) { r.system.probe = strong }},
	{"sandbox", "no state", func(r *rig) { r.must(os.Chmod(r.at("state"), 0o777)) }, Warn, "not probed", "state",
		func(r *rig) { r.must(os.Chmod(r.at("state"), 0o700)) }},
	{"limits", "few open files", func(r *rig) { r.system.openFiles = func() (uint64, bool) { return 256, true } }, Warn,
		"256 open files", "ulimit -n", func(r *rig) {
			r.system.openFiles = func() (uint64, bool) { return 4096, true }
		}},
}

func weak(context.Context, string) sandbox.Report {
	return sandbox.Report{Level: sandbox.LevelKernel, Gaps: []string{"memory"},
		Failed: &sandbox.Failure{Level: sandbox.LevelFull, Probe: "namespaces", Remedy: "allow them"}}
}

func strong(context.Context, string) sandbox.Report { return sandbox.Report{Level: sandbox.LevelFull} }

var placeRemedies = []remedy{
	{"roots", "none", func(r *rig) { r.machine.Config.Roots = nil }, Warn, "there is no root", "give a directory",
		func(r *rig) { r.machine.Config.Roots = []string{r.at("ws")} }},
	{"roots", "missing", func(r *rig) { r.remove("ws") }, Fail, "does not exist", "create the directory",
		func(r *rig) { r.mkdir("ws") }},
	{"roots", "below a file", func(r *rig) {
		r.write("file", "")
		r.machine.Config.Roots = []string{r.at("file/ws")}
	}, Fail, "not a directory", "right to enter", func(r *rig) { r.machine.Config.Roots = []string{r.at("ws")} }},
	{"roots", "a file", func(r *rig) {
		r.remove("ws")
		r.write("ws", "")
	}, Fail, "is not a directory", "give a directory", func(r *rig) {
		r.remove("ws")
		r.mkdir("ws")
	}},
	{"roots", "not readable", func(r *rig) { r.readonly("ws", 0o300) }, Fail, "permission denied", "right to read",
		func(r *rig) { r.must(os.Chmod(r.at("ws"), 0o700)) }},
	{"roots", "not writable", func(r *rig) { r.readonly("ws", 0o500) }, Warn, "no file can be made", "right to write",
		func(r *rig) { r.must(os.Chmod(r.at("ws"), 0o700)) }},
	{"roots", "home", func(r *rig) { r.machine.Config.Roots = []string{r.at("home")} }, Warn, "home directory",
		"a project's directory", func(r *rig) { r.machine.Config.Roots = []string{r.at("ws")} }},
	{"roots", "everything", func(r *rig) { r.machine.Config.Roots = []string{"/"} }, Warn, "whole file system",
		"a project's directory", func(r *rig) { r.machine.Config.Roots = []string{r.at("ws")} }},
	{"roots", "network", func(r *rig) { r.system.network = func(string) string { return "nfs4" } }, Warn,
		"network file system (nfs4)", "a disk of this machine",
		func(r *rig) { r.system.network = func(string) string { return "" } }},
	{"roots", "no exchange", func(r *rig) { r.system.swap = func(*os.Root, string, string) error { return errors.ErrUnsupported } },
		Note, "cannot exchange", "nothing needs to be done", nil},
	{"state", "rights of others", func(r *rig) { r.must(os.Chmod(r.at("state"), 0o755)) }, Fail, "mode 0755",
		"mode 0700", func(r *rig) { r.must(os.Chmod(r.at("state"), 0o700)) }},
	{"state", "not writable", func(r *rig) { r.readonly("state", 0o500) }, Fail, "no file can be made", "yours",
		func(r *rig) { r.must(os.Chmod(r.at("state"), 0o700)) }},
	{"state", "not readable", func(r *rig) { r.readonly("state", 0o300) }, Fail, "permission denied", "0700",
		func(r *rig) { r.must(os.Chmod(r.at("state"), 0o700)) }},
	{"state", "a part is not writable", func(r *rig) {
		r.mkdir("state/journal")
		r.readonly("state/journal", 0o500)
	}, Fail, "journal", "make the directory yours", func(r *rig) { r.must(os.Chmod(r.at("state/journal"), 0o700)) }},
	{"state", "little space", func(r *rig) { r.system.free = func(string) (int64, bool) { return 1 << 20, true } }, Warn,
		"left", "free some space", func(r *rig) {
			r.system.free = func(string) (int64, bool) { return 2 * leastFree, true }
		}},
	{"pause", "on", func(r *rig) { r.must(pauses.Dir(r.at("state")).Pause(r.Context(), "local", false)) }, Warn,
		"UTC, by local: no call of a session on stdio runs", "codehand page",
		func(r *rig) { r.must(pauses.Dir(r.at("state")).Resume(r.Context(), "local", "local", false)) }},
	{"pause", "unreadable", func(r *rig) { r.write("state/paused.json", "{") }, Warn,
		"Pause everything is on: no call of a session on stdio runs", "codehand page",
		func(r *rig) { r.must(pauses.Dir(r.at("state")).Resume(r.Context(), "local", "local", false)) }},
	{"store", "everybody paused", func(r *rig) {
		inRealStore(r, func(t *pauses.Table) error { return t.Pause(r.Context(), "root", true) })
	}, Warn, "UTC, by root: no call runs in codehand serve", "the page of codehand serve", func(r *rig) {
		inRealStore(r, func(t *pauses.Table) error { return t.Resume(r.Context(), "", "root", true) })
	}},
	{"store", "ann paused", func(r *rig) {
		inRealStore(r, func(t *pauses.Table) error { return t.Pause(r.Context(), "ann", false) })
	}, Warn, "UTC, by ann: no call of ann runs in codehand serve", "the page of codehand serve", func(r *rig) {
		inRealStore(r, func(t *pauses.Table) error { return t.Resume(r.Context(), "ann", "ann", false) })
	}},
	{"journal", "unreadable", func(r *rig) { r.write("state/journal", "") }, Warn, "the journal cannot be read",
		"directory journal", func(r *rig) { r.remove("state/journal") }},
	{"store", "damaged", func(r *rig) {
		useRealStore(r)
		logs, err := filepath.Glob(r.at("state/store/log.*"))
		r.must(err)
		r.must(os.WriteFile(logs[0], []byte("this is no log"), 0o600))
	}, Fail, "state/store/log.", "move it away", func(r *rig) { r.remove("state/store") }},
	{"store", "not writable", func(r *rig) { r.readonly("state", 0o500) }, Fail, "no file can be made", "yours",
		func(r *rig) { r.must(os.Chmod(r.at("state"), 0o700)) }},
	{"store", "not readable", func(r *rig) {
		useRealStore(r)
		r.readonly("state/store", 0o300)
	}, Fail, "permission denied", "yours", func(r *rig) { r.must(os.Chmod(r.at("state/store"), 0o700)) }},
}

// useRealStore leaves a Store with something in it.
func useRealStore(r *rig) {
	r.Helper()
	s, err := state.Open(r.Context(), "embedded:", state.Options{Dir: r.at("state")})
	r.must(err)
	r.must(s.Set(r.Context(), state.Key(state.Replica, "x"), []byte("x")))
	r.must(s.Close())
}

// inRealStore pauses or resumes calls in the Store of serve.
func inRealStore(r *rig, do func(*pauses.Table) error) {
	r.Helper()
	s, err := state.Open(r.Context(), "embedded:", state.Options{Dir: r.at("state")})
	r.must(err)
	t, err := pauses.NewTable(r.Context(), s, func(string, map[string]any) {}, slog.New(slog.DiscardHandler))
	r.must(err)
	r.must(do(t))
	t.Close()
	r.must(s.Close())
}

// TestNoFile: where there is no configuration file, its place is named.
func TestNoFile(t *testing.T) {
	t.Parallel()
	m := Machine{Config: config.Config{Permissions: config.Permissions{UserFile: "/home/ann/config.toml"}}}
	if found := m.config(); len(found) != 1 || found[0].Level != OK || !strings.HasSuffix(found[0].Text, " file /home/ann/config.toml") {
		t.Errorf("%+v", found)
	}
}

// TestStoreInUse: a Store that a server has is left alone, and named.
func TestStoreInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s, err := state.Open(t.Context(), "embedded:", state.Options{Dir: r.at("state")})
	r.must(err)
	defer func() { r.must(s.Close()) }()
	found := r.find("store")
	if len(found) != 1 || found[0].Level != OK || !strings.Contains(found[0].Text, "a server uses it (process ") {
		t.Errorf("%+v", found)
	}
	for _, f := range storeFailedCases() {
		if f.Fix == "" || f.Level != Fail {
			t.Errorf("%+v", f)
		}
	}
}

func storeFailedCases() []Finding {
	return []Finding{storeFailed("/d", state.ErrNewer), storeFailed("/d", &state.DamagedError{File: "f"})}
}

// TestNothingIsLeft: what checks write to try a directory is gone, and the real Store is as it was.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	useRealStore(r)
	tree := func() (out []string) {
		for _, dir := range []string{"ws", "state"} {
			r.must(filepath.WalkDir(r.at(dir), func(path string, _ fs.DirEntry, err error) error {
				data, _ := os.ReadFile(path) // a directory has none
				out = append(out, path+" "+string(data))
				return err
			}))
		}
		return out
	}
	before := tree()
	Run(t.Context(), r.machine.Checks())
	if after := tree(); !slices.Equal(before, after) {
		t.Errorf("before:\n%q\nafter:\n%q", before, after)
	}
}

// TestMountOf: the file system of a path is that of the mount nearest above it, and of the last one there.
func TestMountOf(t *testing.T) {
	t.Parallel()
	const mounts = `22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/with\040space rw,relatime shared:7 - nfs4 host:/x rw
31 22 0:41 / /mnt rw - tmpfs tmpfs rw
32 22 0:42 / /over rw - tmpfs tmpfs rw
33 22 0:43 / /over rw - fuse.sshfs a:/b rw
broken
`
	for path, want := range map[string]string{
		"/": "ext4", "/home": "ext4", "/mnt/with space/x": "nfs4", "/mnt/withspace": "tmpfs", "/mntx": "ext4",
		"/over": "fuse.sshfs", "/over/x": "fuse.sshfs",
	} {
		if got := mountOf(mounts, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestTheSystem: the real functions answer where the system has an answer.
func TestTheSystem(t *testing.T) {
	t.Parallel()
	s := theSystem()
	dir := t.TempDir()
	_ = s.network(dir)
	if free, ok := s.free(dir); ok && free < 0 {
		t.Errorf("free space: %d", free)
	}
	if files, ok := s.openFiles(); ok && files == 0 {
		t.Error("no file may be open, and this one is")
	}
}

// TestRunLimit: a check that does not end is a finding, and the other checks still run.
func TestRunLimit(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	gone := make(chan struct{})
	found := Run(t.Context(), []Check{
		{ID: "hangs", Limit: time.Nanosecond, Run: func(context.Context) []Finding {
			defer close(gone)
			<-release
			return nil
		}},
		{ID: "works", Run: func(context.Context) []Finding { return []Finding{{"works", OK, "", ""}} }},
	})
	close(release)
	<-gone
	if len(found) != 2 || found[0].ID != "hangs" || found[0].Level != Fail || found[0].Fix == "" || found[1].Level != OK {
		t.Errorf("%+v", found)
	}
}
