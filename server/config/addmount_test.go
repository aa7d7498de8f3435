package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mount that is added is read back as it was meant, and all else in the file stays byte for byte. One that is there
// already, or cannot be meant, changes nothing.
func TestAddMount(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "codehand", "config.toml")
	before := "# mine\n[log]\nlevel = \"warn\" # keep\n\n\n"
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte(before), 0o600))
	odd := Mount{Name: "odd", Program: MountProgram{Argv: []string{"prog", `a "b" 'c' \d`, "-x=\ty", "ü"}, Env: map[string]string{"A": `${V} "q"`}, Cwd: "/tmp"}}
	must(t, AddMount(file, odd))
	must(t, AddMount(file, Mount{Name: "web", At: MountAddress{URL: "https://x.example/mcp", Transport: "sse", Headers: map[string]string{"X-Key": "${file:/k}"}}}))
	data, err := os.ReadFile(file)
	must(t, err)
	if !strings.HasPrefix(string(data), strings.TrimRight(before, "\n")+"\n\n[mcp.servers.odd]\n") {
		t.Errorf("%s", data)
	}
	c, _, err := Load(Sources{Roots: []string{t.TempDir()}, Home: t.TempDir(), WorkDir: t.TempDir(), UserFile: file})
	must(t, err)
	if len(c.Mounts) != 2 || strings.Join(c.Mounts[0].Program.Argv, "|") != strings.Join(odd.Program.Argv, "|") || c.Mounts[0].Program.Env["A"] != `${V} "q"` ||
		c.Mounts[1].At.Transport != "sse" || c.Mounts[1].At.Headers["X-Key"] != "${file:/k}" {
		t.Errorf("%+v", c.Mounts)
	}
	for want, m := range map[string]Mount{
		"is there already": odd, "a server's name has": {Name: "A"}, "needs command or url": {Name: "b"},
		"not both":               {Name: "b", Program: MountProgram{Argv: []string{"x"}}, At: MountAddress{URL: "https://x"}},
		"a reference is written": {Name: "b", Program: MountProgram{Argv: []string{"x"}, Env: map[string]string{"A": "${"}}},
	} {
		if err := AddMount(file, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if now, _ := os.ReadFile(file); string(now) != string(data) {
		t.Errorf("%s", now)
	}
}

func TestRemoveMount(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.toml")
	for name, c := range map[string]struct{ before, after, fails string }{
		"with its own tables": {"# a\n[mcp.servers.x]\ncommand = \"x\"\n[mcp.servers.x.env]\nA = \"1\"\n\n# b\n[log]\n", "# a\n\n# b\n[log]\n", ""},
		"one of two":          {"[mcp.servers.x]\ncommand = \"x\"\n\n[mcp.servers.xy]\ncommand = \"y\"\n", "\n[mcp.servers.xy]\ncommand = \"y\"\n", ""},
		"none":                {"[log]\n", "[log]\n", "mcp.servers.x is not there"},
		"in braces":           {"mcp = {servers = {x = {command = \"x\"}}}\n", "mcp = {servers = {x = {command = \"x\"}}}\n", "remove it by hand"},
		"no TOML":             {"[mcp.servers.x\n", "[mcp.servers.x\n", "toml:"},
	} {
		must(t, os.WriteFile(file, []byte(c.before), 0o600))
		err := RemoveMount(file, "x")
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := os.ReadFile(file); string(now) != c.after {
			t.Errorf("%s: %q, want %q", name, now, c.after)
		}
	}
}
