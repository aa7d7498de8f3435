package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/guarded"
	"codehand/tools/sandbox"
)

// A command that only had to wait until it was a job left hooks and configuration in repositories, and git obeyed them
// when a person looked at the workspace. What a person may have made meanwhile is set aside with all that is in it.
func TestRepositoriesOfAJob(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it makes the repositories")
		}
		t.Skip("git is not installed: it makes the repositories")
	}
	for _, c := range []struct {
		name       string
		late, jobs bool // the command begins as a job; it is one in the end
	}{{"command", false, false}, {"became a job", false, true}, {"job", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(leaktest.Dir(t))
			if err != nil {
				t.Fatal(err)
			}
			root, temp := filepath.Join(base, "w"), filepath.Join(base, "temp")
			git := func(args ...string) {
				t.Helper()
				cmd := exec.Command("git", args...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base, "GIT_CONFIG_NOSYSTEM=1"}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v\n%s", args, err, out)
				}
			}
			git("init", "-q", "--template=", root)
			names, err := guarded.ProtectedNames(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := &Session{Temp: temp, Confiner: New(Options{
				Protected: names, Whose: Whose{Roots: []string{root}},
				Proven: func() sandbox.Report { return sandbox.Report{Level: sandbox.LevelFull} },
				Needed: func() sandbox.Level { return sandbox.LevelNone },
			}, func() []string { return nil })}
			command, err := s.Command(Use{Roots: []string{root}, Configs: true, Background: c.late})
			if err != nil {
				t.Fatal(err)
			}
			// As the command: hooks where there were none, and a repository of its own.
			git("init", "-q", "--template=", filepath.Join(root, "lib"))
			evil := "[core]\n\tfsmonitor = ./evil\n\tbare = false\n"
			for name, text := range map[string]string{
				".git/hooks/post-checkout": "evil", "lib/.git/hooks/post-checkout": "evil", "lib/.git/config": evil,
			} {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			said := strings.Join(command.Over(c.jobs), "\n")
			for _, hooks := range []string{".git/hooks", "lib/.git/hooks"} {
				if exists(filepath.Join(root, hooks)) || !strings.Contains(said, "["+hooks+": set aside as ") {
					t.Errorf("%s stays, or nothing is told: %s", hooks, said)
				}
				aside, _ := filepath.Glob(filepath.Join(root, hooks+sandbox.Aside+"*", "post-checkout"))
				if len(aside) != 1 {
					t.Errorf("%s is lost", hooks)
				}
			}
			config, _ := os.ReadFile(filepath.Join(root, "lib/.git/config"))
			if strings.Contains(string(config), "fsmonitor") || !strings.Contains(said, "took out core.fsmonitor") {
				t.Errorf("git runs what was written: %s\n%s", config, said)
			}
			kept, _ := filepath.Glob(filepath.Join(root, "lib/.git/config"+sandbox.Aside+"*"))
			if (len(kept) == 1) != c.jobs || strings.Contains(said, "renames it back") != c.jobs {
				t.Errorf("%q is kept of what a person may have written: %s", kept, said)
			}
		})
	}
}
