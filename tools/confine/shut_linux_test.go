package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/tools/guarded"
)

// A command shut the repository, or what leads to one, so that nothing in it was found. The next one opened it again, and
// wrote hooks and the configuration itself.
func TestShutRepository(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root looks into every directory")
	}
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for shut, want := range map[string]string{
		".git": ".git", "lib/.git": "lib/.git", ".git/info": ".git/info", ".git/objects": ".git/objects", ".git/objects/info": ".git/objects/info",
		".git/worktrees": ".git/worktrees", ".git/worktrees/w": ".git/worktrees/w", ".git/modules": ".git/modules",
		".git/index": "a/b/c/d/e/.git/config", "a/b/c/d/e": "a/b/c/d/e", "a/b/c/d": "a/b/c/d", "tree/.git": "far/b/c/d/e/f/config",
	} {
		for _, mode := range []os.FileMode{0, 0o100, 0o400} {
			root := tree(t, ".git/info/attributes", ".git/objects/info/alternates", ".git/worktrees/w/gitdir", ".git/modules/m/config", "lib/.git/HEAD", "lib/.git/config",
				"far/b/c/d/e/f/config", "far/b/c/d/e/f/objects/", "far/b/c/d/e/f/refs/", "far/b/c/d/e/f/HEAD", "tree/")
			for _, args := range [][]string{
				{"init", "-q", "."}, {"init", "-q", "a/b/c/d/e"},
				{"-C", "a/b/c/d/e", "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "x"}, {"add", "a/b/c/d/e"},
			} {
				cmd := exec.Command("git", args...)
				cmd.Dir, cmd.Env = root, append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v: %s", args, err, out)
				}
			}
			if err := os.WriteFile(filepath.Join(root, "tree/.git"), []byte("gitdir: ../far/b/c/d/e/f\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(root, shut)
			info, err := os.Lstat(at)
			if err == nil && (info.IsDir() || mode != 0o400) { // a file with that mode is open
				err = os.Chmod(at, mode)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := New(Options{Protected: names, Whose: Whose{Roots: []string{root}}}, func() []string { return nil })
			all, _ := c.finder(nil).protectedIn(root)
			got := below(t, root, slices.Concat(all.found, all.configs))
			// a directory that can be entered shows what the index names
			if !slices.Contains(got, want) && (mode != 0o100 || !slices.Contains(got, "a/b/c/d/e/.git/config") || strings.HasPrefix(want, ".git")) {
				t.Errorf("%s with mode %o: %s is free, %q are kept", shut, mode, want, got)
			}
			now, err := os.Lstat(at)
			if err != nil || info.IsDir() && now.Mode().Perm() != mode {
				t.Errorf("%s with mode %o: the look left %v, %v", shut, mode, now.Mode(), err)
			}
			if err := os.Chmod(at, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}
