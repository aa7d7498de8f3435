package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/state"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/worktrees"
)

// A treeRig is a rig whose directory is a git repository with one commit.
type treeRig struct{ *rig }

func newTreeRig(t *testing.T) treeRig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := treeRig{newRig(t)}
	r.git("init", "-q", "-b", "main")
	r.write("a.txt", "one\n")
	r.write("sub/b.txt", "bee\n")
	r.write(".gitignore", "*.out\n")
	r.commit("first")
	return r
}

// git runs git in the directory, as a person would, and returns what it printed.
func (r treeRig) git(args ...string) string { r.t.Helper(); return r.gitIn(".", args...) }

func (r treeRig) gitIn(dir string, args ...string) string {
	r.t.Helper()
	c := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "core.fsmonitor=false", "-C", filepath.Join(r.dir, dir)}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@x",
		"GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@x")
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r treeRig) commit(subject string) { r.t.Helper(); r.commitIn(".", subject) }

func (r treeRig) commitIn(dir, subject string) {
	r.t.Helper()
	r.gitIn(dir, "add", "-A")
	r.gitIn(dir, "commit", "-q", "-m", subject)
}

// main is all that the main work tree holds, but for what enter_worktree made, and where its branches are.
func (r treeRig) main() string {
	r.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" || d.Name() == ".codehand" {
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %q\n", path, d.Type(), text)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b.String() + r.git("status", "--porcelain", "--branch") + r.git("rev-parse", "HEAD") + r.git("stash", "list")
}

const treeX = ".codehand/worktrees/x"

func (r treeRig) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return err == nil
}

// trees are the work trees that git knows besides the main one.
func (r treeRig) trees() (all []string) {
	r.t.Helper()
	for line := range strings.SplitSeq(r.git("worktree", "list", "--porcelain"), "\n") {
		if dir, ok := strings.CutPrefix(line, "worktree "); ok && dir != r.dir {
			rel, _ := filepath.Rel(r.dir, dir)
			all = append(all, rel)
		}
	}
	return all
}

func (r treeRig) cwd() string {
	r.t.Helper()
	cwd, err := r.Cwd.Load(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimPrefix(cwd, r.dir), "/")
}

// Whatever state the repository is in, a new work tree begins with its last commit, on a branch of its own, and the main
// one stays as it is to the byte.
func TestEnterWorktree(t *testing.T) {
	t.Parallel()
	nothing := func(treeRig) {}
	for name, prepare := range leaktest.SomeOf(3, map[string]func(r treeRig){
		"clean":             nothing,
		"modified":          func(r treeRig) { r.write("a.txt", "changed\n") },
		"staged":            func(r treeRig) { r.write("a.txt", "changed\n"); r.git("add", "a.txt") },
		"untracked":         func(r treeRig) { r.write("new.txt", "new\n") },
		"deleted":           func(r treeRig) { r.git("rm", "-q", "sub/b.txt") },
		"ignored":           func(r treeRig) { r.write("x.out", "out\n") },
		"stashed":           func(r treeRig) { r.write("a.txt", "x\n"); r.git("stash", "-q") },
		"detached":          func(r treeRig) { r.git("checkout", "-q", "--detach") },
		"on a branch":       func(r treeRig) { r.git("checkout", "-q", "-b", "feature/x") },
		"in a conflict":     conflicted,
		"sparse":            func(r treeRig) { r.git("sparse-checkout", "set", "--cone", "sub") },
		"a submodule":       withSubmodule,
		"another work tree": func(r treeRig) { r.git("worktree", "add", "-q", "linked") },
		"packed":            func(r treeRig) { r.git("gc", "-q"); r.git("pack-refs", "--all") },
		"a .gitignore":      func(r treeRig) { r.write(".codehand/worktrees/.gitignore", "# mine\n*\n") },
		"a gone work tree": func(r treeRig) {
			r.git("worktree", "add", "-q", "gone")
			_ = os.RemoveAll(filepath.Join(r.dir, "gone"))
		},
		"a hook": func(r treeRig) {
			r.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch '"+r.dir+"/HOOK'\n")
			_ = os.Chmod(filepath.Join(r.dir, ".git/hooks/post-checkout"), 0o755)
		},
		"refs packed alone": func(r treeRig) { r.git("branch", "side"); r.git("pack-refs", "--all", "--prune") },
		// the person's own configuration names it, so it runs, and what it made is no change
		"a filter": func(r treeRig) {
			r.git("config", "filter.f.smudge", "sed s/one/ONE/")
			r.git("config", "filter.f.clean", "sed s/ONE/one/")
			r.git("config", "filter.f.required", "true")
			r.write(".git/info/attributes", "*.txt filter=f\n")
		},
		"a monitor": func(r treeRig) {
			r.write(".git/monitor", "#!/bin/sh\ntouch '"+r.dir+"/HOOK'\n")
			_ = os.Chmod(filepath.Join(r.dir, ".git/monitor"), 0o755)
			r.git("config", "core.fsmonitor", r.dir+"/.git/monitor")
		},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTreeRig(t)
			prepare(r)
			before, head := r.main(), r.git("rev-parse", "HEAD")
			_ = os.Remove(filepath.Join(r.dir, "HOOK")) // of git status
			text := r.ok("enter_worktree", `{"name":"x"}`)
			if !strings.Contains(text, "$WORK/"+treeX+" on branch codehand/x") || r.cwd() != treeX {
				t.Errorf("in %q:\n%s", r.cwd(), text)
			}
			if r.exists("HOOK") {
				t.Error("a program of the repository ran")
			}
			if got := r.gitIn(treeX, "rev-parse", "HEAD"); got != head {
				t.Errorf("at %s, not %s", got, head)
			}
			if got := r.gitIn(treeX, "symbolic-ref", "HEAD"); got != "refs/heads/codehand/x" {
				t.Errorf("on %s", got)
			}
			if got := r.gitIn(treeX, "status", "--porcelain"); got != "" {
				t.Errorf("it is not clean: %s", got)
			}
			if name == "a filter" {
				r.holds(treeX+"/a.txt", "ONE\n")
			}
			r.fails(tool.InWorktree, "enter_worktree", `{"name":"y"}`)
			r.ok("exit_worktree", `{"action":"remove"}`)
			if r.cwd() != "" || r.exists(treeX) || r.git("branch", "--list", "codehand/*") != "" {
				t.Errorf("in %q, branches %q", r.cwd(), r.git("branch", "--list", "codehand/*"))
			}
			if after := r.main(); after != before {
				_ = os.Remove(filepath.Join(r.dir, "HOOK"))
				if after = r.main(); after != before {
					t.Errorf("the main work tree changed:\n%s\nwas\n%s", after, before)
				}
			}
		})
	}
}

func conflicted(r treeRig) {
	r.git("checkout", "-q", "-b", "other")
	r.write("a.txt", "theirs\n")
	r.commit("theirs")
	r.git("checkout", "-q", "main")
	r.write("a.txt", "ours\n")
	r.commit("ours")
	c := exec.Command("git", "-C", r.dir, "merge", "-q", "other")
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	_ = c.Run() // it fails, and leaves the conflict
}

func withSubmodule(r treeRig) {
	other := newTreeRig(r.t)
	r.git("submodule", "--quiet", "add", other.dir, "module")
	r.commit("a submodule")
}

func TestEnterWorktreeNames(t *testing.T) {
	t.Parallel()
	r := newTreeRig(t)
	for _, name := range []string{"../x", "-a", "a..b", "a/../b", "a/.b", ".a", "a.", "a/", "/a", "a//b", "a b", "é", "a/-b", "a.lock", `a'b`,
		"a;b", "$(b)", `a\nb`} {
		if text := r.fails(tool.InputInvalid, "enter_worktree", `{"name":"`+name+`"}`); !strings.Contains(text, `"name" takes`) {
			t.Errorf("%q: %s", name, text)
		}
	}
	r.fails(tool.InputInvalid, "enter_worktree", `{"name":"`+strings.Repeat("a", 65)+`"}`)
	r.fails(tool.InputInvalid, "enter_worktree", `{"name":"a","path":"b"}`)
	if r.exists(".codehand") || len(r.trees()) > 0 {
		t.Errorf("something was made: %v", r.trees())
	}
	for _, name := range []string{"a", "b/c", "A_1.2-x", strings.Repeat("a", 64)} {
		r.ok("enter_worktree", `{"name":"`+name+`"}`)
		if got := r.trees(); !slices.Equal(got, []string{".codehand/worktrees/" + name}) {
			t.Errorf("%s: %v", name, got)
		}
		r.ok("exit_worktree", `{"action":"remove"}`)
	}
	r.ok("enter_worktree", `{}`)
	if got := r.trees(); len(got) != 1 || !strings.HasPrefix(got[0], ".codehand/worktrees/w-") {
		t.Errorf("a random name: %v", got)
	}
	if got := r.git("status", "--porcelain"); got != "" {
		t.Errorf("git sees it in the main work tree: %s", got)
	}
}

func TestEnterWorktreeRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code    tool.Code
		prepare func(r treeRig)
		says    string
	}{
		"no repository": {tool.NotARepository, func(r treeRig) { _ = os.RemoveAll(filepath.Join(r.dir, ".git")) }, "is in no git work tree"},
		"bare":          {tool.NotARepository, func(r treeRig) { r.git("config", "core.bare", "true") }, "is in no git work tree"},
		"in .git": {tool.NotARepository, func(r treeRig) {
			_, _ = r.Cwd.Change(r.t.Context(), func(string) (string, error) { return r.dir + "/.git", nil })
		}, "is in no git work tree"},
		"no commit": {tool.GitFailed, func(r treeRig) {
			_ = os.RemoveAll(filepath.Join(r.dir, ".git"))
			r.git("init", "-q")
		}, "has no commit yet"},
		"a branch": {tool.WorktreeExists, func(r treeRig) { r.git("branch", "codehand/x") }, "There is a branch codehand/x"},
		"a file":   {tool.WorktreeExists, func(r treeRig) { r.write(treeX, "mine") }, "exists already"},
		"a directory": {tool.WorktreeExists, func(r treeRig) { r.write(treeX+"/f", "mine") },
			"exists already"},
		"a branch in the way": {tool.GitFailed, func(r treeRig) { r.git("branch", "codehand") }, "git worktree add failed"},
		"a link": {tool.OutsideRoots, func(r treeRig) {
			_ = os.Symlink(r.t.TempDir(), filepath.Join(r.dir, ".codehand"))
		}, "leads out of the roots"},
		"a link inside": {tool.GitFailed, func(r treeRig) {
			_ = os.Symlink("sub", filepath.Join(r.dir, ".codehand"))
		}, "is a link"},
		"broken": {tool.GitFailed, func(r treeRig) { r.write(".git/refs/heads/main", strings.Repeat("1", 40)+"\n") }, "git worktree add failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTreeRig(t)
			c.prepare(r)
			if text := r.fails(c.code, "enter_worktree", `{"name":"x"}`); !strings.Contains(text, c.says) {
				t.Errorf("it does not say %q:\n%s", c.says, text)
			}
			if trees, err := r.Isolated.Load(t.Context()); err != nil || trees.In != "" || len(trees.Made) > 0 {
				t.Errorf("%+v, %v", trees, err)
			}
		})
	}
}

// What would be lost is listed, and stays; without it the work tree goes.
func TestExitWorktree(t *testing.T) {
	t.Parallel()
	at := func(name string) string { return treeX + "/" + name }
	for name, c := range leaktest.SomeOf(3, map[string]struct {
		work func(r treeRig)
		lost []string // nil: nothing is
	}{
		"nothing":   {func(treeRig) {}, nil},
		"modified":  {func(r treeRig) { r.write(at("a.txt"), "two\n") }, []string{"1 uncommitted file:", "M a.txt"}},
		"untracked": {func(r treeRig) { r.write(at("d/new.txt"), "two\n") }, []string{"?? d/new.txt"}},
		"odd names": {func(r treeRig) { r.write(at("a\nb"), "two\n") }, []string{`?? "a\nb"`}},
		"staged":    {func(r treeRig) { r.write(at("a.txt"), "two\n"); r.gitIn(treeX, "add", "-A") }, []string{"M  a.txt"}},
		"deleted":   {func(r treeRig) { _ = os.Remove(filepath.Join(r.dir, at("a.txt"))) }, []string{"D a.txt"}},
		"ignored":   {func(r treeRig) { r.write(at("x.out"), "out\n") }, nil},
		"unmerged":  {func(r treeRig) { r.write(at("a.txt"), "two\n"); r.commitIn(treeX, "second") }, []string{"1 commit that no other branch has:", "second"}},
		"on a tag": {func(r treeRig) {
			r.write(at("a.txt"), "two\n")
			r.commitIn(treeX, "second")
			r.git("tag", "t", "codehand/x")
		}, nil},
		"merged": {func(r treeRig) {
			r.write(at("a.txt"), "two\n")
			r.commitIn(treeX, "second")
			r.git("merge", "-q", "codehand/x")
		}, nil},
		"main went on": {func(r treeRig) { r.write("a.txt", "main\n"); r.commit("main") }, nil},
		"detached": {func(r treeRig) {
			r.gitIn(treeX, "checkout", "-q", "--detach")
			r.write(at("a.txt"), "two\n")
			r.commitIn(treeX, "detached")
		}, []string{"detached"}},
		"its branch left behind": {func(r treeRig) {
			r.write(at("a.txt"), "two\n")
			r.commitIn(treeX, "second")
			r.gitIn(treeX, "checkout", "-q", "--detach", "main")
		}, []string{"second"}},
		"another branch": {func(r treeRig) {
			r.gitIn(treeX, "checkout", "-q", "-b", "topic")
			r.write(at("a.txt"), "two\n")
			r.commitIn(treeX, "second")
		}, nil},
		"its branch gone": {func(r treeRig) { r.gitIn(treeX, "checkout", "-q", "--detach"); r.git("branch", "-D", "codehand/x") }, nil},
		"locked":          {func(r treeRig) { r.git("worktree", "lock", treeX) }, nil},
		"many": {func(r treeRig) {
			for i := range 25 {
				r.write(at(fmt.Sprintf("f%02d", i)), "x")
			}
		}, []string{"25 uncommitted files:", "?? f19", "and 5 more"}},
		"a submodule": {func(r treeRig) {
			withSubmodule(r)
			r.gitIn(treeX, "merge", "-q", "main")
			r.gitIn(treeX, "submodule", "--quiet", "update", "--init")
		}, nil},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTreeRig(t)
			r.ok("enter_worktree", `{"name":"x"}`)
			c.work(r)
			before := r.main()
			if c.lost != nil {
				text := r.fails(tool.WorktreeDirty, "exit_worktree", `{"action":"remove"}`)
				for _, want := range c.lost {
					if !strings.Contains(text, want) {
						t.Errorf("it does not say %q:\n%s", want, text)
					}
				}
				if r.cwd() != treeX || len(r.trees()) != 1 {
					t.Errorf("in %q with %v", r.cwd(), r.trees())
				}
				r.ok("exit_worktree", `{"action":"remove","discard_changes":true}`)
			} else {
				r.ok("exit_worktree", `{"action":"remove"}`)
			}
			if r.exists(treeX) || len(r.trees()) > 0 || r.git("branch", "--list", "codehand/*") != "" || r.cwd() != "" {
				t.Errorf("left: %v, in %q", r.trees(), r.cwd())
			}
			if after := r.main(); after != before {
				t.Errorf("the main work tree changed:\n%s\nwas\n%s", after, before)
			}
			r.fails(tool.NotInWorktree, "exit_worktree", `{"action":"remove"}`)
		})
	}
}

// Edits, searches, commands and undo work there as anywhere, and what was committed can be merged.
func TestWorkInWorktree(t *testing.T) {
	t.Parallel()
	r := newTreeRig(t)
	r.ok("run_shell", `{"command":"cd sub"}`)
	r.ok("enter_worktree", `{"name":"x"}`)
	r.ok("read_file", `{"file_path":"$WORK/`+treeX+`/a.txt"}`)
	r.ok("edit_file", `{"file_path":"$WORK/`+treeX+`/a.txt","old_string":"one","new_string":"two"}`)
	text := r.ok("grep_search", `{"pattern":"two|bee","output_mode":"content","path":"$WORK/`+treeX+`"}`)
	if text != "a.txt:1:two\nsub/b.txt:1:bee" {
		t.Errorf("grep_search: %s", text)
	}
	r.ok("write_file", `{"file_path":"$WORK/`+treeX+`/c.txt","content":"sea\n"}`)
	r.ok("undo_change", `{"file_path":"$WORK/`+treeX+`/c.txt"}`)
	if text := r.ok("run_shell", `{"command":"git status --short"}`); text != " M a.txt" {
		t.Errorf("git status: %s", text)
	}
	r.holds("a.txt", "one\n")
	r.ok("run_shell", `{"command":"git -c user.name=n -c user.email=e@x commit -qam second"}`)
	r.ok("exit_worktree", `{"action":"keep"}`)
	if r.cwd() != "sub" {
		t.Errorf("back in %q", r.cwd())
	}
	r.git("merge", "-q", "codehand/x")
	r.holds("a.txt", "two\n")

	// It can be entered again, and is still the session's own.
	r.fails(tool.NotARepository, "enter_worktree", `{"path":"$WORK/sub"}`)
	r.fails(tool.OutsideRoots, "enter_worktree", `{"path":"/"}`)
	r.ok("enter_worktree", `{"path":"$WORK/`+treeX+`"}`)
	r.ok("exit_worktree", `{"action":"remove"}`)
	if len(r.trees()) > 0 {
		t.Errorf("left: %v", r.trees())
	}

	// One that the session did not make is never removed.
	r.git("worktree", "add", "-q", "linked")
	r.ok("enter_worktree", `{"path":"$WORK/linked"}`)
	r.fails(tool.NotInWorktree, "exit_worktree", `{"action":"remove","discard_changes":true}`)
	r.ok("exit_worktree", `{"action":"keep"}`)
	if got := r.trees(); !slices.Equal(got, []string{"linked"}) {
		t.Errorf("left: %v", got)
	}
}

func TestExitWorktreeWithJobs(t *testing.T) {
	t.Parallel()
	r := newTreeRig(t)
	r.ok("run_shell", `{"command":"sleep 600","run_in_background":true}`) // elsewhere
	r.ok("enter_worktree", `{"name":"x"}`)
	r.ok("run_shell", `{"command":"sleep 601","run_in_background":true}`)
	if text := r.fails(tool.WorktreeDirty, "exit_worktree", `{"action":"remove"}`); !strings.Contains(text, "running jobs: ") {
		t.Error(text)
	}
	r.ok("exit_worktree", `{"action":"remove","discard_changes":true}`)
	if list := r.ok("job_list", `{}`); !strings.Contains(list, "running") || !strings.Contains(list, "finished: killed") {
		t.Errorf("the other job runs on, and this one does not:\n%s", list)
	}
}

// Of two sessions that want the same name one gets it; each removes its own only.
func TestWorktreesOfTwoSessions(t *testing.T) {
	t.Parallel()
	r := newTreeRig(t)
	memory := state.Scoped(r.Store, "sess.local.other")
	second, other := *r.State, *r.Session
	second.Cwd = session.NewCell[string](memory, "cell.cwd")
	second.Isolated = session.NewCell[session.Worktrees](memory, "cell.worktrees")
	other.State = &second
	two := treeRig{&rig{t: t, dir: r.dir, Session: &other, engines: r.engines}}
	var both sync.WaitGroup
	codes := make([]tool.Code, 2)
	for i, one := range []treeRig{r, two} {
		both.Go(func() {
			res, _ := one.do("enter_worktree", `{"name":"x"}`)
			codes[i] = res.Failed
		})
	}
	both.Wait()
	slices.Sort(codes)
	if codes[0] != "" || codes[1] != tool.WorktreeExists && codes[1] != tool.GitFailed || len(r.trees()) != 1 {
		t.Errorf("%q, %v", codes, r.trees())
	}
	for _, one := range []treeRig{r, two} {
		if one.cwd() == "" {
			one.ok("enter_worktree", `{"name":"y"}`)
		}
	}
	if got := r.trees(); len(got) != 2 {
		t.Errorf("%v", got)
	}
	// each may enter the tree of the other, which these tools made, without a question
	for at, want := range map[string]permission.Verdict{
		worktrees.Below + "/x": permission.Allow, "elsewhere": permission.Ask, "../x": permission.Ask,
	} {
		for _, one := range []treeRig{r, two} {
			in := json.RawMessage(`{"path":"` + filepath.Join(r.dir, at) + `"}`)
			call, err := one.tool("enter_worktree").BindWithin(t.Context(), one.State, in)
			if err != nil || call.Verdict != want {
				t.Errorf("%s: %v, %v", at, call.Verdict, err)
			}
		}
	}
	for _, one := range []treeRig{r, two} {
		one.ok("exit_worktree", `{"action":"remove"}`)
	}
	if got := r.trees(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}
