package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A person's git obeys what its configuration includes, and the hooks where it says that they are, also if a team keeps
// both in the repository under names of its own. A command wrote them, and the next git status ran what it wrote.
func TestWhatGitIsLedTo(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	for file, text := range map[string]string{
		"team/gitconfig": "[user]\n\tname = Team\n", "team/hooks/pre-commit": "#!/bin/sh\nexit 0\n", "team/other": "free\n",
	} {
		p.lay("a/"+file, text)
	}
	p.outside(".", "config", "include.path", "../team/gitconfig")
	p.outside(".", "config", "--add", "include.path", "../team/missing")
	p.outside(".", "config", "core.hooksPath", "team/hooks")
	p.outside(".", "config", "--file", p.in("home/.gitconfig"), "include.path", p.in("a/team/own"))
	p.lay("a/team/own", "[user]\n\temail = t@example.com\n")

	const evil = `printf '[core]\n\tfsmonitor = echo\n' `
	for command, stays := range map[string]string{
		evil + `>>team/gitconfig`:                                 "team/gitconfig",
		`echo evil >>team/own`:                                    "team/own",
		`echo evil >>team/hooks/pre-commit`:                       "team/hooks/pre-commit",
		`echo evil >team/hooks/post-commit`:                       "team/hooks",
		`mv team t2; mkdir team; ` + evil + `>team/gitconfig`:     "team/gitconfig",
		`rm -f team/gitconfig; echo evil >team/gitconfig`:         "team/gitconfig",
		`printf 'echo evil >team/own\n' >s.sh; bash s.sh; exit 1`: "team/own",
	} {
		said := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command))
		if !strings.Contains(said, "permissions.unprotect has") && !strings.Contains(said, "mv: cannot move") {
			t.Errorf("%s: it says no setting that allows to change %s: %s", command, stays, said)
		}
	}
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", `echo x >team/missing; echo x >>team/other; git add -A; git commit -qm x`))
	for file, want := range map[string]string{
		"team/gitconfig": "[user]\n\tname = Team\n", "team/hooks/pre-commit": "#!/bin/sh\nexit 0\n", "team/other": "free\nx\n",
		"team/own": "[user]\n\temail = t@example.com\n",
	} {
		if text, err := os.ReadFile(filepath.Join(p.root, file)); err != nil || string(text) != want {
			t.Errorf("%s has %q, want %q, %v", file, text, want, err)
		}
	}
	for _, file := range []string{"team/missing", "team/hooks/post-commit"} {
		if _, err := os.Lstat(filepath.Join(p.root, file)); err == nil {
			t.Errorf("%s was made", file)
		}
	}
	if log := p.outside(".", "log", "--oneline"); strings.Count(log, "\n") != 2 {
		t.Errorf("git does not commit: %s", log)
	}
}
