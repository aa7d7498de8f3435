package running

import (
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/tooltest"
)

// Nothing is proved where bash does not run, and git is not where its repository runs programs.
func TestWeigh(t *testing.T) {
	t.Parallel()
	r := tooltest.New(t, nil)
	read := permission.Analysis{Class: permission.ReadOnly, Parts: []permission.Part{{Text: "git log", Class: permission.ReadOnly}}, Git: []string{"."}}
	a := read
	if Weigh(r.State, &a); a.Class != permission.ReadOnly {
		t.Errorf("without a repository: %+v", a)
	}
	r.Write(".git/HEAD", "ref: refs/heads/main\n")
	r.Write(".git/objects/x", "")
	r.Write(".git/refs/x", "")
	r.Write(".git/config", "[diff \"x\"]\ntextconv = ./x\n")
	a = read
	if Weigh(r.State, &a); a.Class != permission.Writes || a.Why != "R6: git: the repository's configuration has diff.x.textconv" {
		t.Errorf("%+v", a)
	}
	a = read
	bare := *r.State
	bare.Shell = nil
	if Weigh(&bare, &a); a.Class != permission.Writes || !strings.Contains(a.Why, "bash is not installed") {
		t.Errorf("%+v", a)
	}
}
