package running

import (
	"strings"
	"testing"

	"codehand/tools/bash"
	"codehand/tools/tooltest"
)

// Nothing is proved where bash does not run, and git is not where its repository runs programs.
func TestWeigh(t *testing.T) {
	t.Parallel()
	r := tooltest.New(t, nil)
	read := bash.Analysis{Class: bash.ReadOnly, Parts: []bash.Part{{Text: "git log", Class: bash.ReadOnly}}, OfGit: bash.OfGit{Git: []string{"."}}}
	a := read
	if Weigh(r.State, &a); a.Class != bash.ReadOnly {
		t.Errorf("without a repository: %+v", a)
	}
	r.Write(".git/HEAD", "ref: refs/heads/main\n")
	r.Write(".git/objects/x", "")
	r.Write(".git/refs/x", "")
	r.Write(".git/config", "[diff \"x\"]\ntextconv = ./x\n")
	a = read
	if Weigh(r.State, &a); a.Class != bash.Writes || a.Why != "R6: git: the repository's configuration has diff.x.textconv" {
		t.Errorf("%+v", a)
	}
	a = read
	bare := *r.State
	bare.Shell = nil
	if Weigh(&bare, &a); a.Class != bash.Writes || !strings.Contains(a.Why, "bash is not installed") {
		t.Errorf("%+v", a)
	}
}
