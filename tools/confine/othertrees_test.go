package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/filestate/leaktest"
)

// Of a repository, a session that is narrowed to one work tree changes neither what is staged in another, nor which
// branch is checked out there.
func TestOtherTrees(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	repository := filepath.Join(dir, ".git")
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/main\n", "index": "i", "refs/heads/main": "1", "refs/heads/other": "2", "refs/heads/mine": "3",
		"worktrees/other/HEAD": "ref: refs/heads/other\n", "worktrees/other/index": "i", "worktrees/other/gitdir": "/elsewhere/.git\n",
		"worktrees/mine/HEAD": "ref: refs/heads/mine\n", "worktrees/mine/index": "i", "worktrees/mine/gitdir": dir + "/mine/.git\n",
		"worktrees/odd/HEAD": "ref: ../../../x\n",
	} {
		path := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, path := range otherTrees(repository, []string{filepath.Join(dir, "mine")}) {
		rel, _ := filepath.Rel(repository, path)
		got = append(got, rel)
	}
	want := []string{"HEAD", "index", "refs/heads/main", "worktrees/odd/HEAD", "worktrees/other/HEAD", "worktrees/other/index", "refs/heads/other"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
