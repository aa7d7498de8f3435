package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mountsOf loads settings from the operator's file and one of a project.
func mountsOf(t *testing.T, own, project string, env ...string) (Config, []Warning, error) {
	t.Helper()
	root, home := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, ".codehand"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, ".codehand", "config.toml"), []byte(project), 0o600))
	file := filepath.Join(home, "config.toml")
	must(t, os.WriteFile(file, []byte(own), 0o600))
	return Load(Sources{Roots: []string{root}, Home: home, WorkDir: root, UserFile: file, Env: append(env, "HOME="+home)})
}

// Mounted servers are read from the operator's file, in all forms that TOML has.
func TestMounts(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	c, _, err := mountsOf(t, `
[mcp.servers.git_hub]
url = "https://api.example.com/mcp"
headers = { Authorization = "Bearer ${file:`+secret+`}", X = "plain" }
trusted = true
[mcp.servers.files]
args = ["-y", "x"]
command = "npx"
timeout_ms = 5000
scope = "session"
tools = ["a"]
[mcp.servers.files.env]
TOKEN = "${MY_TOKEN}"
PLACE = "${HOME}/x"
[mcp.servers]
inline = { command = "/bin/x", off = true }
`, "", "MY_TOKEN=abc")
	must(t, err)
	if len(c.Mounts) != 3 || c.Mounts[0].Name != "files" || c.Mounts[1].Name != "git_hub" || !c.Mounts[2].Off {
		t.Fatalf("%+v", c.Mounts)
	}
	files, hub := c.Mounts[0], c.Mounts[1]
	if strings.Join(files.Program.Argv, " ") != "npx -y x" || files.Timeout != 5*time.Second || files.Start != time.Minute || files.Scope != "session" || files.Trusted || !hub.Trusted {
		t.Errorf("%+v", files)
	}
	env, err := files.Expanded(files.Program.Env)
	must(t, err)
	headers, err := hub.Expanded(hub.At.Headers)
	must(t, err)
	if env["TOKEN"] != "abc" || env["PLACE"] != c.Home+"/x" || headers["Authorization"] != "Bearer s3cret" || headers["X"] != "plain" {
		t.Errorf("%v %v", env, headers)
	}
	if got := strings.Join(c.KeyEnvs(), " "); got != "MY_TOKEN" {
		t.Errorf("commands do not get %q", got)
	}
	if got := strings.Join(c.KeyFiles(), " "); got != secret {
		t.Errorf("commands do not read %q", got)
	}
	files.lookup = func(string) string { return "" }
	if _, err := files.Expanded(files.Program.Env); err == nil || !strings.Contains(err.Error(), "PLACE: the variable HOME is not set") {
		t.Error(err)
	}
}

// A file of a workspace mounts nothing and changes no mount, but it may leave one out.
func TestMountsOfProject(t *testing.T) {
	t.Parallel()
	c, warnings, err := mountsOf(t, "[mcp.servers.a]\ncommand = \"a\"\n[mcp.servers.b]\ncommand = \"b\"\n", `
[mcp.servers.evil]
command = "curl"
[mcp.servers.a]
command = "/tmp/evil"
args = ["x"]
trusted = true
env = { LD_PRELOAD = "x" }
[mcp.servers.b]
off = true
`)
	must(t, err)
	if len(c.Mounts) != 2 || c.Mounts[0].Program.Argv[0] != "a" || len(c.Mounts[0].Program.Argv) != 1 || c.Mounts[0].Trusted || c.Mounts[0].Program.Env != nil || c.Mounts[0].Off || !c.Mounts[1].Off {
		t.Errorf("%+v", c.Mounts)
	}
	if len(warnings) != 1 || strings.Count(warnings[0].Text, "mcp.servers.") != 5 {
		t.Errorf("%v", warnings)
	}
}

// What cannot be meant is told with its place.
func TestMountsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[mcp.servers.Up]\ncommand = \"x\"":                              "a server's name has",
		"[mcp.servers.a__b]\ncommand = \"x\"":                            "a server's name has",
		"[mcp.servers.codehand]\ncommand = \"x\"":                        "a server's name has",
		"[mcp.servers.a]\nargs = [\"x\"]":                                "needs command or url",
		"[mcp.servers.a]\ncommand = \"x\"\nurl = \"https://x\"":          "not both",
		"[mcp.servers.a]\ncommand = \"x\"\nheaders = {A = \"b\"}":        "count only with url",
		"[mcp.servers.a]\nurl = \"https://x\"\nenv = {A = \"b\"}":        "count only with command",
		"[mcp.servers.a]\nurl = \"ftp://x\"":                             "must be an http or https URL",
		"[mcp.servers.a]\nurl = \"https://u:p@x\"":                       "must be an http or https URL",
		"[mcp.servers.a]\ncomand = \"x\"":                                `unknown key "mcp.servers.a.comand"`,
		"[mcp.servers.a]\ncommand = \"x\"\nenv = \"A=b\"":                "must be a table",
		"[mcp.servers.a]\ncommand = \"x\"\nenv = {A = \"${\"}":           "a reference is written",
		"[mcp.servers.a]\ncommand = \"x\"\nenv = {A = \"${file:k}\"}":    "a reference is written",
		"[mcp.servers.a]\nurl = \"https://x\"\nheaders = {\"a b\"=\"\"}": "is no name",
		"mcp.servers = 1":                 "unknown key",
		"[mcp.others.a]\ncommand = \"x\"": "unknown key",
	} {
		if _, _, err := mountsOf(t, text, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A table that was begun and has neither a command nor a URL was left out without a word.
func TestEmptyMount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[mcp.servers.a]\n": "1:2", "[mcp.servers]\na = {}\n": "", "[mcp.servers.a.env]\n": "1:2",
		"[mcp.servers.b]\ncommand = \"x\"\n[mcp.servers.a]\n# later\n": "3:2",
	} {
		entries, err := parse("f", []byte(text))
		must(t, err)
		l := loader{env: map[string]string{}}
		for _, e := range entries {
			l.mount(e, input{raw: e.raw, lines: e.lines, file: true})
		}
		checkMounts(&l)
		if len(l.problems) != 1 || !strings.HasPrefix(l.problems[0].Text, "mcp.servers.a: needs command or url") ||
			!strings.HasSuffix(l.problems[0].Origin, want) {
			t.Errorf("%q: %v", text, l.problems)
		}
	}
}
