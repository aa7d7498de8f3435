package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Another process below an agent did not have the rules that flags and environment gave this one. It is started in
// another directory, and perhaps with another environment.
func TestHanded(t *testing.T) {
	t.Parallel()
	home, work, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	file := filepath.Join(home, "own.toml")
	if err := os.WriteFile(file, []byte("[permissions]\nask = [\"Bash(git push *)\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	src := Sources{
		Home: home, WorkDir: work, UserFile: file, Roots: []string{work},
		Env: []string{"HOME=" + home, "CODEHAND_PERMISSIONS_DENY=Edit(a,b)", "CODEHAND_GREP_DEFAULT_MODE=count", "CODEHAND_SESSION=my-session"},
		Flags: map[string]string{"--permissions-deny": "Bash(rm *),Read(c)", "--permissions-additional-dirs": "sub", "--grep-default-mode": "content",
			"--permissions-mode": "acceptEdits", "--log-file": "log", "--client-profile": "cline", "--http-drain": "1s"},
	}
	c, _, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{}
	for _, f := range c.Handed([]string{"write_file", "exit_plan_mode"}) {
		name, value, _ := strings.Cut(f, "=")
		if _, twice := flags[name]; twice {
			t.Errorf("%s is given twice", name)
		}
		flags[name] = value
	}
	want := map[string]string{
		"--state-dir": c.StateDir, "--config": file, "--permissions-additional-dirs": filepath.Join(work, "sub"), "--grep-default-mode": "content",
		"--permissions-deny": "Edit(a,b),Bash(rm *),Read(c),write_file,exit_plan_mode",
	}
	if !maps.Equal(flags, want) {
		t.Errorf("got  %v\nwant %v", flags, want)
	}
	delete(flags, "--config")
	again, _, err := Load(Sources{Home: home, WorkDir: elsewhere, UserFile: file, Roots: []string{work}, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Changed(c); !slices.Equal(got, []string{"permissions.mode", "permissions.deny", "client.profile", "log.file", "http.drain"}) {
		t.Errorf("these are other ones there: %q", got)
	}
	if len(again.Permissions.Deny) != 5 || len(again.Permissions.Ask) != len(c.Permissions.Ask) {
		t.Errorf("%d deny, %d ask", len(again.Permissions.Deny), len(again.Permissions.Ask))
	}
	if got := (Config{StateDir: "/s"}).Handed(nil); !slices.Equal(got, []string{"--state-dir=/s"}) {
		t.Errorf("of nothing: %q", got)
	}
}
