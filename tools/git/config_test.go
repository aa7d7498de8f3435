package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestGitRuns(t *testing.T) {
	t.Parallel()
	const unread = "a line that cannot be read"
	for _, c := range []struct{ config, want string }{
		{"", ""},
		{"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A \"B\" ; c\n", ""},
		{"[core]\n\tfsmonitor = ./x\n", "core.fsmonitor"},
		{"[core] fsmonitor = ./x", "core.fsmonitor"},
		{"[core]fsmonitor", "core.fsmonitor"},
		{"\ufeff[CORE]\r\nfsMonitor=./x\r\n", "CORE.fsMonitor"},
		{"[core] bare = a \\\n fsmonitor = x\n", ""}, // still the value of bare
		{"[core] bare = a \\\\\n fsmonitor = x\n", "core.fsmonitor"},
		{"[core] bare = \"a # \" ; c \\\n fsmonitor = x\n", "core.fsmonitor"}, // a comment does not go on
		{"# [core] fsmonitor = x\n; [core] fsmonitor = x\n[core] bare = 1 # fsmonitor = x\n", ""},
		{"[diff \"a.b\"]\n textconv = x", "diff.a.b.textconv"},
		{"[diff.a]\n command = x", "diff.a.command"},
		{"[diff \"]\"] command = x", "diff.].command"},
		{"[diff \"\\\"]\"] command = x", `diff.\"].command`},
		{"[diff] renames = true", ""},
		{"[filter \"lfs\"]\n required = true", "filter.lfs.required"},
		{"[alias]\n l = log", "alias.l"},
		{"[include]\n path = x", "include.path"},
		{"[includeIf \"gitdir:x\"]\n path = x", "includeIf.gitdir:x.path"},
		{"[gpg \"ssh\"] program = x", "gpg.ssh.program"},
		{"[submodule \"a\"]\n url = x\n active = true", ""},
		{"[submodule \"a\"]\n update = !x", "submodule.a.update"},
		{"[url \"x\"] insteadOf = y", "url.x.insteadOf"},
		{"core.fsmonitor = x", unread},
		{"[core\nfsmonitor = x", unread},
		{"[core \"x]\nfsmonitor = x", unread},
		{"[core]\nbare = \"x\n", unread},
		{"[core]\nbare = \\x\n", unread},
		{"[core]\nbare x\n", unread},
		{"[core]\n=x\n", unread},
		{"[]\nfsmonitor=x\n", unread},
		{"[core]\n\x00\n", unread},
	} {
		if got := configRuns([]byte(c.config), nil); got != c.want {
			t.Errorf("%q gives %q, want %q", c.config, got, c.want)
		}
	}
	if got := configRuns([]byte("[core]\nworktree=../x\n[core]pager=x"), func(key, value string) bool { return isWorktree(key) && value == "../x" }); got != "core.pager" {
		t.Errorf("with an exception: %q", got)
	}
}

// Whatever git itself finds in a configuration, we find as well.
func FuzzConfig(f *testing.F) {
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") != "" {
			f.Fatal("git is not installed: it says what a configuration holds")
		}
		f.Skip("git is not installed: it says what a configuration holds")
	}
	for _, s := range []string{
		"[core] fsmonitor = ./x", "[core]\r\nbare=a\\\n pager=x\n[diff \"a\\\"b\"]\ncommand=\"x;y\"#z", "[a.b] program", "[core \"x\"] y\n;\n[gpg]program=\\t",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, config string) {
		found := configRuns([]byte(config), nil)
		if strings.ContainsRune(config, 0) || len(config) > 1000 {
			return
		}
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "--file", file, "--no-includes", "--null", "--name-only", "--list").Output()
		if err != nil {
			return // git does not read it, so it runs nothing of it
		}
		for _, key := range strings.Split(string(out), "\x00") {
			if key != "" && KeyRuns(key) && found == "" {
				t.Fatalf("git finds %q", key)
			}
		}
	})
}
