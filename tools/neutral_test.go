package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A repository once ran its own programs when a command that was proved to change nothing looked at it: git writes the
// index back and starts a hook, goes into a submodule, shows a signature, or fetches what is missing.
func TestReadersRunNothing(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is missing")
		}
		t.Skip("git is not installed")
	}
	prepare := func(t *testing.T, setUp string) (r *rig, mark string) {
		t.Helper()
		r = newRig(t)
		mark = filepath.Join(t.TempDir(), "ran")
		script := fmt.Sprintf(`set -e
printf '#!/bin/sh\ntouch %[2]s\ncat\n' > evil.sh; chmod +x evil.sh
g() { %[1]q -c user.name=a -c user.email=a@b -c commit.gpgsign=false "$@"; }
g init -q -b main .; echo a > a; g add a; g commit -q -m one
g init -q -b main sub; echo x > sub/f; g -C sub add f; g -C sub commit -q -m sub
%[3]s
touch -d 2020-01-01 a; echo y > sub/f`, git, mark, setUp)
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir = r.dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return r, mark
	}
	commands := []string{
		"git status -s", "git diff", "git diff --stat HEAD", "git log -2 --oneline", "git log -p", "git show", "git describe --always", "git ls-files -m", "git blame a",
		"git status --ignore-submodules=none", "git diff --ignore-submodules=none", "git stash list", "git branch -a", "git cat-file -p " + strings.Repeat("1", 40),
	}
	// reads says whether run_shell takes a command for one that changes nothing.
	reads := func(r *rig, command string) bool {
		call, err := runShell(nil).Bind(r.State, []byte(fmt.Sprintf(`{"command":%q}`, command)))
		return err == nil && call.Traits.ReadOnly
	}
	for name, setUp := range map[string]string{
		"a hook of the index":          `cp evil.sh .git/hooks/post-index-change`,
		"a monitor":                    `g config core.fsmonitor "$PWD/evil.sh"`,
		"a pager and an editor":        `g config core.pager "$PWD/evil.sh"; g config core.editor "$PWD/evil.sh"; g config pager.log "$PWD/evil.sh"`,
		"a monitor of a submodule":     `g add sub 2>/dev/null; g commit -q -m two; g -C sub config core.fsmonitor "$PWD/evil.sh"`,
		"a filter of a submodule":      `g add sub 2>/dev/null; g commit -q -m two; g -C sub config filter.x.clean "$PWD/evil.sh"; echo '* filter=x' > sub/.gitattributes`,
		"signatures":                   `g config log.showSignature true; g config format.pretty %GG; g config gpg.program "$PWD/evil.sh"`,
		"a promise":                    `g config extensions.partialClone origin; g config remote.origin.promisor true; g config remote.origin.url ssh://x/y; g config core.sshCommand "$PWD/evil.sh"`,
		"a filter, and a diff program": `g config filter.x.clean "$PWD/evil.sh"; echo '* filter=x diff=x' > .gitattributes; g config diff.x.textconv "$PWD/evil.sh"; g config diff.external "$PWD/evil.sh"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mark := prepare(t, setUp)
			for _, command := range commands {
				for _, tool := range []string{"run_readonly", "run_shell"} {
					if tool == "run_shell" && !reads(r, command) {
						continue // then it is asked about, and may do all that git does
					}
					_, _ = r.do(tool, fmt.Sprintf(`{"command":%q}`, command))
					if _, err := os.Stat(mark); err == nil {
						t.Fatalf("%s %s started the repository's program", tool, command)
					}
				}
			}
		})
	}
	t.Run("and git still works", func(t *testing.T) {
		t.Parallel()
		r, _ := prepare(t, `g add sub 2>/dev/null; g commit -q -m two`)
		for _, command := range commands[:12] {
			if res, text := r.do("run_readonly", fmt.Sprintf(`{"command":%q}`, command)); res.Failed != "" {
				t.Errorf("%s: %s", command, text)
			}
		}
	})
}
