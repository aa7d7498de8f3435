package running

import (
	"os/exec"
	"strings"
	"testing"

	"codehand/filestate/journal"
	"codehand/tools/bash"
	"codehand/tools/git/changes"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

// An answer does not wait for the look at what a command changed: it says so, and the journal has it later.
func TestFindSoon(t *testing.T) {
	t.Parallel()
	r := tooltest.New(t, nil)
	if out, err := exec.Command("git", "init", "-q", r.Dir).CombinedOutput(); err != nil {
		t.Skipf("git makes the work tree: %v %s", err, out)
	}
	env := tool.Env{State: r.State, Analysis: &bash.Analysis{Class: bash.Writes}}
	trees := changes.New("", "")
	defer trees.Close()
	w := newFileWatch(t.Context(), env, trees, nil)
	r.Write("made", "1\n")
	if f := w.findSoon(t.Context(), env, "make it", 0); !f.late || f.Known || len(f.Changes) > 0 {
		t.Errorf("%+v", f)
	}
	w.Drop() // does not wait, either
	trees.Close()
	all, err := r.Files.History(t.Context(), journal.Query{})
	if err != nil || len(all) != 1 || !strings.HasSuffix(all[0].Files[0].Path, "made") || all[0].By.Command != "make it" {
		t.Errorf("%+v, %v", all, err)
	}
	w = &FileWatch{span: w.span, trees: trees}
	if f := w.findSoon(t.Context(), env, "after Close", 0); f.late || f.Known {
		t.Errorf("%+v", f)
	}
}
