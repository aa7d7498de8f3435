package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// `npm install` of a project with husky, lefthook or simple-git-hooks failed, since these write git hooks on the way.
// They write copies: what calls them goes on, git in the same command runs them in the sandbox, nothing of them is left
// for the person's git, and the answer says so.
func TestHooksOfPackages(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	p.lay("a/.husky/pre-commit", "echo mine\n")
	p.lay("a/.git/hooks/commit-msg", "#!/bin/sh\n# mine\n")
	must(t, os.Chmod(p.in("a/.git/hooks/commit-msg"), 0o700))
	p.outside("", "add", ".husky")
	p.outside("", "commit", "-q", "-m", "hooks")
	const (
		husky = `set -e; git config core.hooksPath .husky/_; rm -f .husky/_/h; mkdir -p .husky/_
			echo '*' >.husky/_/.gitignore
			printf '#!/bin/sh\necho in the copy\necho x 2>/dev/null >>RAN || :\n' >.husky/_/pre-commit
			chmod +x .husky/_/pre-commit
			git status --short; git commit -q --allow-empty -m x 2>&1; git config --unset core.hooksPath; `
		lefthook = `mkdir -p .git/hooks; for h in pre-commit commit-msg post-checkout; do
			printf '#!/bin/sh\necho x 2>/dev/null >>RAN || :\n' >.git/hooks/$h.new
			chmod +x .git/hooks/$h.new; mv .git/hooks/$h.new .git/hooks/$h; done; `
	)
	script := func(text string) string { return p.script(strings.ReplaceAll(text, "RAN", p.in("ran"))) }
	untouched := func(name string) {
		t.Helper()
		p.outside("", "commit", "-q", "--allow-empty", "-m", "y")
		p.outside("", "checkout", "-q", "-B", "other")
		entries, err := os.ReadDir(filepath.Join(p.root, ".husky", "_"))
		if must(t, err); len(entries) > 0 {
			t.Errorf("%s: husky's hooks are there: %v", name, entries)
		}
		if got, _ := os.ReadFile(filepath.Join(p.root, ".git/hooks/commit-msg")); string(got) != "#!/bin/sh\n# mine\n" {
			t.Errorf("%s: the hook of before is %q", name, got)
		}
		if _, err := os.Lstat(filepath.Join(p.root, ".git/hooks/pre-commit")); err == nil {
			t.Errorf("%s: there is a new hook", name)
		}
		if status := p.outside("", "status", "--short"); status != "?? script.sh\n" {
			t.Errorf("%s: git sees %q", name, status)
		}
		if _, err := os.Lstat(p.in("ran")); err == nil {
			t.Errorf("%s: git of the person ran what the command wrote", name)
		}
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"husky": {husky + "echo exit $?", []string{
			"in the copy", "exit 0", `[.husky/_: not kept: .gitignore, pre-commit. Git would run hooks outside of the sandbox; `,
			`permissions.unprotect = [".husky"]]`}},
		"lefthook": {lefthook + "echo exit $?", []string{
			"exit 0", "[.git/hooks: not kept: commit-msg, post-checkout, pre-commit. ", `permissions.unprotect = [".git/hooks"]]`}},
		"removed": {"rm .git/hooks/commit-msg; ls .git/hooks; echo exit $?", []string{"[.git/hooks: not kept: commit-msg. "}},
		"away": {"mv .git/hooks x || mv .husky/_ x || rmdir .husky/_ || mv .husky x || " +
			"echo x >.husky/pre-commit || echo kept; rm -rf x",
			[]string{"kept\n"}},
	} {
		said := script(c.text)
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q: %s", name, want, said)
			}
		}
		untouched(name)
	}
	if said := script("cp .git/hooks/commit-msg x; cp x .git/hooks/commit-msg; rm x"); strings.Contains(said, "not kept") {
		t.Errorf("what is as it was is told: %s", said)
	}
	// A job has its own copies.
	p.lay("a/job.sh", strings.ReplaceAll(husky+lefthook, "RAN", p.in("ran")))
	id := replaytest.JobID.FindString(p.Must(t, "run_shell",
		replaytest.AsJSON(t, "command", "bash ./job.sh; rm job.sh", "run_in_background", true)))
	said := p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", id, "block", true))
	if !strings.Contains(said, "[.git/hooks: not kept: ") || !strings.Contains(said, "[.husky/_: not kept: ") {
		t.Errorf("a job does not say what is not kept: %s", said)
	}
	untouched("a job")
}
