package config

import (
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate/leaktest"
)

// TestAddAllow: one rule more, and nothing else is touched, however the file is written; or an error, and the file is as
// it was.
func TestAddAllow(t *testing.T) {
	t.Parallel()
	const rule = `Bash(go test *)`
	cases := []struct{ name, before, after string }{
		{"nothing", "", "[permissions]\nallow = [\"Bash(go test *)\"]\n"},
		{"another table", "# mine\n[shell]\nmax_ms = 5000 # five\n", "# mine\n[shell]\nmax_ms = 5000 # five\n\n[permissions]\nallow = [\"Bash(go test *)\"]\n"},
		{"no list", "[permissions] # who\nmode = \"default\"\n", "[permissions] # who\nallow = [\"Bash(go test *)\"]\nmode = \"default\"\n"},
		{"header at the end", "[permissions]", "[permissions]\nallow = [\"Bash(go test *)\"]\n"},
		{"empty list", "[permissions]\nallow = [ ]\n", "[permissions]\nallow = [\"Bash(go test *)\" ]\n"},
		{"one line", "[permissions]\nallow = ['Bash(a)'] # x\n", "[permissions]\nallow = ['Bash(a)', \"Bash(go test *)\"] # x\n"},
		{"lines", "[permissions]\nallow = [\n  \"Bash(a)\", # a\n  \"Bash(b)\", # b\n]\n", "[permissions]\nallow = [\n  \"Bash(a)\", # a\n  \"Bash(b)\", # b\n  \"Bash(go test *)\",\n]\n"},
		{"lines without a last comma", "[permissions]\nallow = [\n  \"Bash(b)\" # b\n]\n", "[permissions]\nallow = [\n  \"Bash(b)\", # b\n  \"Bash(go test *)\",\n]\n"},
		{"lines closed at once", "[permissions]\nallow = [\n  \"Bash(b)\"]\n", "[permissions]\nallow = [\n  \"Bash(b)\",\n  \"Bash(go test *)\"]\n"},
		{"dotted", "permissions.allow = [\"Bash(a)\"]\n", "permissions.allow = [\"Bash(a)\", \"Bash(go test *)\"]\n"},
		{"dotted without a list", "# mine\npermissions.mode = \"default\"\n[shell]\n", "permissions.allow = [\"Bash(go test *)\"]\n# mine\npermissions.mode = \"default\"\n[shell]\n"},
		{"inline table", "permissions = { allow = [\"Bash(a)\"] }\n", ""},
		{"there already", "[permissions]\nallow = ['Bash(go test *)']\n", "[permissions]\nallow = ['Bash(go test *)']\n"},
		{"no list at all", "[permissions]\nallow = 5\n", ""},
		{"broken", "[permissions\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(leaktest.Dir(t), "codehand", "config.toml")
			if c.before != "" {
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must(t, os.WriteFile(path, []byte(c.before), 0o600))
			}
			err := AddAllow(path, rule)
			got, _ := os.ReadFile(path)
			want := c.after
			if c.after == "" {
				want = c.before
			}
			if (err == nil) != (c.after != "") || string(got) != want {
				t.Errorf("%v\n%s", err, got)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".codehand-*"))
			if len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A link to the file stays one, and so does the file's mode.
func TestAddAllowThroughLink(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	real, path := filepath.Join(dir, "dotfiles.toml"), filepath.Join(dir, "config.toml")
	must(t, os.WriteFile(real, []byte("[permissions]\n"), 0o640))
	must(t, os.Chmod(real, 0o640))
	if err := os.Symlink("dotfiles.toml", path); err != nil {
		t.Skip(err)
	}
	must(t, AddAllow(path, `Edit(//a "b"\c)`))
	info, err := os.Stat(real)
	got, _ := os.ReadFile(path)
	if link, _ := os.Readlink(path); link == "" || err != nil || info.Mode().Perm() != 0o640 ||
		string(got) != "[permissions]\nallow = ['Edit(//a \"b\"\\c)']\n" {
		t.Errorf("%v, %v\n%s", info.Mode(), err, got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
