package config

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// A project file that asks for everything gets nothing, and one warning names what was ignored (SEC-45).
func TestProjectCannotWiden(t *testing.T) {
	w := newWorld(t)
	project := w.project(t, `
roots = ["/"]
state_dir = "/tmp/state"
client.profile = "builder"
protocol.versions = ["2024-11-05"]
[permissions]
mode = "acceptEdits"
ask_fallback = "client"
ask_timeout_ms = 600000
allow = ["Bash(*)"]
unprotect = [".npmrc"]
additional_dirs = ["/"]
classifier = ["/bin/true"]
[hooks]
tool_names = "codehand"
trust_project = true
fail_closed = true
[[hooks.PreToolUse]]
command = ["./guard"]
[plan]
approval_fallback = "auto"
[results]
keep_days = 365
[sandbox]
policy = "off"
[tools]
max_parallel = 10
profile = "default"
deferral = "off"
always = ["web_fetch"]
[skills]
dirs = ["/project/skills"]
allow_shell = true
[tasks]
directory = "/project/tasks"
[git]
co_author = "Jo Doe <jo@example.com>"
[read]
max_tokens = 900000
max_line = 0
[edit]
guard = "relaxed"
[write]
durability = "fast"
[list]
limit = 5000
timeout_ms = 600000
[grep]
timeout_ms = 600000
[shell]
enabled = true
default_timeout_ms = 500000
max_timeout_ms = 7000000
auto_background_ms = 0
init_file = "/project/rc"
env_allow = ["LD_LIBRARY_PATH"]
[stdio]
parent_watch = false
eof_grace = "10m"
[search]
workers = 64
[log]
level = "debug"
file = "/project/log"
`)
	w.Flags["shell-enabled"] = "false"
	w.Flags["permissions-ask-timeout-ms"] = "60000"
	c, warnings := w.load(t)
	bare := newWorld(t)
	bare.Sources = w.Sources
	if err := os.Remove(project); err != nil {
		t.Fatal(err)
	}
	want, _ := bare.load(t)
	for i, s := range table(&c) {
		if got, held := s.at.text(), table(&want)[i].at.text(); got != held {
			t.Errorf("%s: %s, without the project file %s", s.key, got, held)
		}
		if got, held := c.Origin(s.key), want.Origin(s.key); got != held {
			t.Errorf("origin of %s: %s, without the project file %s", s.key, got, held)
		}
	}
	if len(warnings) != 1 || warnings[0].Origin != project {
		t.Fatalf("warnings: %v, want one for %s", warnings, project)
	}
	for _, key := range []string{"roots", "state_dir", "permissions.mode", "permissions.allow", "permissions.unprotect", "permissions.additional_dirs", "permissions.ask_timeout_ms", "permissions.classifier", "hooks.trust_project", "hooks.PreToolUse (", "plan.approval_fallback", "results.keep_days", "shell.init_file", "shell.env_allow", "read.max_line", "log.file", "search.workers", "tools.deferral", "tools.always", "skills.dirs", "skills.allow_shell", "tasks.directory", "git.co_author"} {
		if !strings.Contains(warnings[0].Text, key) {
			t.Errorf("%s is not named: %s", key, warnings[0].Text)
		}
	}
	if strings.Contains(warnings[0].Text, "max_parallel") || strings.Contains(warnings[0].Text, "tools.profile") {
		t.Errorf("an equal value is no widening: %s", warnings[0].Text)
	}
}

// A project with dontAsk took a session out of plan mode, so that what rules allow was run; one with plan took it out of
// dontAsk, which a plan's approval leaves for more.
func TestProjectSwapsNoModes(t *testing.T) {
	for mode, by := range map[string]string{"plan": "dontAsk", "dontAsk": "plan"} {
		w := newWorld(t)
		w.project(t, "permissions.mode = \""+by+"\"\n")
		w.Flags["permissions-mode"] = mode
		c, warnings := w.load(t)
		if c.Permissions.Mode.String() != mode {
			t.Errorf("%s became %v", mode, c.Permissions.Mode)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "permissions.mode") {
			t.Errorf("not told: %v", warnings)
		}
	}
}

// A project takes tools away; of the two small profiles it puts none in the place of the other, which has tools that the
// first one lacks.
func TestProjectNarrowsTheProfile(t *testing.T) {
	for _, c := range []struct{ held, by, want string }{
		{"default", "readonly", "readonly"}, {"default", "simple", "simple"}, {"simple", "simple", "simple"},
		{"simple", "readonly", "simple"}, {"readonly", "simple", "readonly"}, {"readonly", "default", "readonly"},
	} {
		w := newWorld(t)
		project := w.project(t, "tools.profile = \""+c.by+"\"\n")
		w.Flags["tools-profile"] = c.held
		got, warnings := w.load(t)
		if got.Tools.Profile != c.want {
			t.Errorf("%s under %s: got %s", c.by, c.held, got.Tools.Profile)
		}
		if told := len(warnings) == 1 && warnings[0].Origin == project; told != (c.want != c.by) {
			t.Errorf("%s under %s: warnings %v", c.by, c.held, warnings)
		}
	}
}

// A project takes hosts of the network away from its commands, and adds none.
func TestProjectNarrowsTheNetwork(t *testing.T) {
	for _, c := range []struct{ user, project, network, domains, told string }{
		{``, `network = "off"`, "off", "", ""},
		{``, `{network = "list", domains = ["a.com"]}`, "list", "a.com", ""},
		{``, `network = "list"`, "off", "", "off, because no entry of sandbox.domains is left"},
		{``, `domains = ["a.com"]`, "on", "a.com", "counts only with sandbox.network"},
		{`network = "off"`, `{network = "list", domains = ["a.com"]}`, "off", "a.com", "ignored: sandbox.network"},
		{`{network = "list", domains = ["*.a.com", "b.com"]}`, `network = "on"`, "list", "*.a.com,b.com", "ignored: sandbox.network"},
		{`{network = "list", domains = ["*.a.com", "b.com"]}`, `domains = ["x.a.com"]`, "list", "x.a.com", ""},
		{`{network = "list", domains = ["*.a.com", "b.com"]}`, `domains = ["*.com.evil.net", "b.com", "evil.net"]`, "list", "b.com", "ignored: sandbox.domains"},
		{`{network = "list", domains = ["x.a.com"]}`, `domains = ["*.a.com"]`, "list", "x.a.com", ""},
		{`{network = "list", domains = ["a.com:443"]}`, `domains = ["a.com:22"]`, "off", "", "off, because no entry"},
		{`{network = "on", domains = ["a.com"]}`, `{network = "list", domains = ["b.com"]}`, "off", "", "ignored: sandbox.domains"},
	} {
		w := newWorld(t)
		said := func(s string) string {
			if s == "" || strings.HasPrefix(s, "{") {
				return "sandbox = " + cmp.Or(s, "{}") + "\n"
			}
			return "sandbox." + s + "\n"
		}
		w.user(t, said(c.user))
		w.project(t, said(c.project))
		got, warnings := w.load(t)
		var told []string
		for _, warning := range warnings {
			told = append(told, warning.Text)
		}
		text := strings.Join(told, "\n")
		if got.Sandbox.Network != c.network || (domains{&got.Sandbox.Domains}).text() != c.domains {
			t.Errorf("%s under %s: %s %v, want %s %s", c.project, c.user, got.Sandbox.Network, got.Sandbox.Domains, c.network, c.domains)
		}
		if !strings.Contains(text, c.told) || (text == "") != (c.told == "") {
			t.Errorf("%s under %s: told %q, want %q", c.project, c.user, text, c.told)
		}
	}
}

// A second project gives nothing back that the first one has taken away: with nothing left, the list stays empty.
func TestProjectsMeet(t *testing.T) {
	w := newWorld(t)
	w.user(t, `sandbox = {network = "list", domains = ["a.com", "b.com"]}`)
	for _, name := range []string{"one", "two"} {
		w.write(t, name+"/.codehand/config.toml", `sandbox.domains = ["`+map[string]string{"one": "evil.net", "two": "c.com"}[name]+`"]`)
		w.Roots = append(w.Roots, w.path(name))
	}
	if got, _ := w.load(t); got.Sandbox.Network != NetworkOff || len(got.Sandbox.Domains) != 0 {
		t.Errorf("%+v", got.Sandbox)
	}
}

// A rule is known to be a project's by the file that was read, not by how the operator's own file is called.
func TestOfProject(t *testing.T) {
	w := newWorld(t)
	w.UserFile = w.write(t, "srv/.codehand/config.toml", "permissions.deny = [\"Read(/a)\"]\n")
	w.project(t, "permissions.deny = [\"Read(/b)\"]\n")
	c, _ := w.load(t)
	if r := c.Permissions.Deny; len(r) != 2 || c.OfProject(r[0].Origin) || !c.OfProject(r[1].Origin) || c.OfProject("flag --permissions-deny") {
		t.Errorf("%+v of %v", r, c.Projects)
	}
}

// What is stricter counts, even against a flag.
func TestProjectNarrows(t *testing.T) {
	w := newWorld(t)
	w.project(t, `
[permissions]
mode = "plan"
ask_fallback = "deny"
[tools]
max_parallel = 2
[read]
max_tokens = 1000
max_line = 500
dedup = "off"
pdf = false
[shell]
enabled = false
max_timeout_ms = 5000
auto_background_ms = 1000
[search]
outside_ignores = "off"
`)
	w.Flags["permissions-mode"] = "acceptEdits"
	w.Flags["edit-guard"] = "relaxed"
	w.Flags["read-dedup"] = "once"
	w.Flags["shell-auto-background-ms"] = "0"
	c, warnings := w.load(t)
	if len(warnings) != 0 {
		t.Errorf("warnings: %v", warnings)
	}
	if c.Permissions.Mode != permission.Plan || c.Permissions.AskFallback != "deny" || c.Tools.MaxParallel != 2 ||
		c.Read.MaxTokens != 1000 || c.Read.MaxLine != 500 || c.Read.PDF || c.Shell.Enabled || c.Shell.AutoBackgroundMS != 1000 || c.Search.OutsideIgnores != "off" {
		t.Errorf("not narrowed: %+v", c)
	}
	if c.Shell.MaxTimeoutMS != 5000 || c.Shell.DefaultTimeoutMS != 5000 {
		t.Errorf("timeouts %d, %d: the usual one follows the longest", c.Shell.DefaultTimeoutMS, c.Shell.MaxTimeoutMS)
	}
	if c.Edit.Guard != "relaxed" || c.Read.Dedup != "once" {
		t.Errorf("a flag lost against the project file: %+v %+v", c.Edit, c.Read)
	}
}

// The order in which modes narrow.
func TestModesByStrictness(t *testing.T) {
	if m := permission.DontAsk; (mode{&m}).rank() != 0 {
		t.Error("dontAsk and plan do not narrow each other")
	}
	order := []permission.Mode{permission.Plan, permission.Default, permission.AcceptEdits, permission.Auto, permission.Bypass}
	for i, m := range order {
		if got := (mode{&m}).rank(); got != i {
			t.Errorf("%s has rank %d, want %d", m, got, i)
		}
	}
}

func TestProjectRulesThatDoNotParse(t *testing.T) {
	w := newWorld(t)
	project := w.project(t, "permissions.deny = [\"Read(\", \"Read(secret)\", \"\"]\n")
	c, warnings := w.load(t)
	if len(c.Permissions.Deny) != 1 || c.Permissions.Deny[0].Text != "Read(secret)" {
		t.Errorf("rules: %v", c.Permissions.Deny)
	}
	if len(warnings) != 2 || warnings[0].Origin != project+":1:21" {
		t.Errorf("warnings: %v", warnings)
	}
}

// A project file with an unknown key or a broken line stops the start: it might have held a rule.
func TestBadProjectFile(t *testing.T) {
	for text, want := range map[string]string{
		"sandbox.rules = \"x\"\n":       `unknown key "sandbox.rules"`,
		"http.lissten = \"x\"\n":        `unknown key "http.lissten"`,
		"permissions.mode = \"nope\"\n": "permissions.mode: ",
		"= 3\n":                         ":1:1: ",
	} {
		w := newWorld(t)
		project := w.project(t, text)
		if got := w.refused(t).Error(); !strings.Contains(got, project) || !strings.Contains(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// Each root's file narrows; where two may choose freely, the first root wins.
func TestProjectFilesOfAllRoots(t *testing.T) {
	w := newWorld(t)
	one := w.write(t, "one/.codehand/config.toml", "permissions.deny = [\"Read(a)\"]\nread.dedup = \"off\"\ntools.max_parallel = 5\n")
	two := w.write(t, "two/.codehand/config.toml", "permissions.deny = [\"Read(b)\"]\nread.dedup = \"once\"\ntools.max_parallel = 3\n")
	w.Roots = []string{"../one", w.path("two")}
	c, warnings := w.load(t)
	if c.Read.Dedup != "off" || c.Tools.MaxParallel != 3 || len(c.Permissions.Deny) != 2 {
		t.Errorf("%+v %+v %+v", c.Read, c.Tools, c.Permissions.Deny)
	}
	if len(warnings) != 1 || warnings[0].Origin != one {
		t.Errorf("warnings: %v, want one about the looser limit", warnings)
	}
	if !slices.Contains(c.Files, one) || !slices.Contains(c.Files, two) {
		t.Errorf("files: %v", c.Files)
	}
	w.ProjectDir = w.path("two")
	if c, _ = w.load(t); c.Read.Dedup != "once" || len(c.Permissions.Deny) != 1 {
		t.Errorf("with ProjectDir: %+v", c)
	}
}

// A configuration file that another user may have written is refused, also behind a link.
func TestFilesOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("mode bits mean nothing on Windows")
	}
	open := func(t *testing.T, path string) {
		t.Helper()
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	link := func(t *testing.T, target, path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		arrange func(t *testing.T, w *world)
		want    string // "": accepted
	}{
		"user file":    {func(t *testing.T, w *world) { open(t, w.user(t, "")) }, "can be written by others"},
		"project file": {func(t *testing.T, w *world) { open(t, w.project(t, "")) }, "can be written by others"},
		"link to one": {func(t *testing.T, w *world) {
			open(t, w.write(t, "x.toml", ""))
			link(t, w.path("x.toml"), w.path("config/codehand/config.toml"))
		}, "can be written by others"},
		"link to a good one": {func(t *testing.T, w *world) {
			w.write(t, "x.toml", "")
			link(t, w.path("x.toml"), w.path("config/codehand/config.toml"))
		}, ""},
		"link to nothing": {func(t *testing.T, w *world) { link(t, w.path("x.toml"), w.path("config/codehand/config.toml")) }, "does not exist"},
		"directory":       {func(t *testing.T, w *world) { w.write(t, "config/codehand/config.toml/x", "") }, "is not a regular file"},
		"too large":       {func(t *testing.T, w *world) { w.user(t, strings.Repeat("# x\n", maxFileBytes/4+1)) }, "is larger than"},
		"project link outwards": {func(t *testing.T, w *world) {
			w.write(t, "x.toml", "")
			link(t, w.path("x.toml"), w.path("project/.codehand/config.toml"))
		}, "config.toml"},
		"project link inside": {func(t *testing.T, w *world) {
			w.write(t, "project/x.toml", "")
			link(t, "../x.toml", w.path("project/.codehand/config.toml"))
		}, ""},
		"asked for, missing": {func(_ *testing.T, w *world) { w.UserFile = w.path("nowhere.toml") }, "there is no such file"},
		"other owner": {func(t *testing.T, w *world) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			if err := os.Chown(w.user(t, ""), 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}, "belongs to another user"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.arrange(t, w)
			if c.want == "" {
				w.load(t)
				return
			}
			if got := w.refused(t).Error(); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
