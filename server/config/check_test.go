package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user := filepath.Join(dir, "user.toml")
	if err := os.WriteFile(user, []byte("[read]\nmax_line = 100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(Sources{Home: dir, WorkDir: dir, UserFile: user, Roots: []string{dir}, Env: []string{"XDG_STATE_HOME=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(dir, "deep", ".codehand", "config.toml")
	for _, x := range []struct {
		name, path, data string
		own              bool
		want             string // in the error; "": none
	}{
		{"a good project file", project, "[permissions]\ndeny = [\"Read(x)\"]\n", true, ""},
		{"no TOML", project, "[permissions\n", true, project + ":1:13: "},
		{"an unknown key", project, "[read]\nmax_lines = 1\n", true, project + ":2:1: "},
		{"a value of another type", project, "[read]\nmax_line = \"x\"\n", true, project + ":2:1: read.max_line: "},
		{"a rule of a newer version, which is a warning", project, "[permissions]\ndeny = [\"Read(\"]\n", true, ""},
		{"what a project may not say, which is a warning", project, "[permissions]\nallow = [\"Read\"]\n", true, ""},
		{"an empty file", project, "", true, ""},
		{"the operator's file", user, "[permissions]\nallow = [\"Read\"]\n", true, ""},
		{"a rule that does not parse in it", user, "[permissions]\nallow = [\"Read(\"]\n", true, user + ":2:"},
		{"too large", user, strings.Repeat("#\n", 1<<19) + "#", true, "larger than 1 MiB"},
		{"another file", filepath.Join(dir, "config.toml"), "[", false, ""},
		{"another directory", filepath.Join(dir, "x.codehand", "config.toml"), "[", false, ""},
	} {
		own, err := c.Check(x.path, []byte(x.data))
		if own != x.own || (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, %v, want %q", x.name, own, err, x.want)
		}
	}
	if now := c.Read.MaxLine; now != 100 {
		t.Errorf("a check has changed the settings: %d", now)
	}
}
