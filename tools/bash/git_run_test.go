package bash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/bash/programs"
)

// gitOperandsOf are the words behind the options of a sub-command: without them, or with these only, it comes to its
// work.
var gitOperandsOf = map[string][]string{
	"log": {"", "v1..HEAD -- a.txt"}, "show": {"", "HEAD:a.txt"}, "diff": {"", "HEAD", "v1 HEAD", "v1...HEAD", "HEAD -- a.txt"},
	"shortlog": {"HEAD"}, "remote get-url": {"origin"}, "rev-parse": {"HEAD"}, "rev-list": {"HEAD", "--all"},
	"ls-tree": {"HEAD"}, "cat-file": {"HEAD", "blob HEAD:a.txt"}, "blame": {"a.txt", "HEAD -- a.txt"}, "describe": {"", "HEAD"},
	"merge-base": {"HEAD v1", "HEAD"}, "symbolic-ref": {"HEAD"}, "check-ignore": {"a.log"}, "check-attr": {"text a.txt", "a.txt"},
	"diff-tree": {"HEAD", "v1 HEAD"}, "cherry": {"v1"}, "stash show": {"", "stash@{0}"},
}

// gitValues are values of options that want a certain one; others take 1.
var gitValues = map[string]string{
	"--format": "%H", "--sort": "refname", "--points-at": "HEAD", "--contains": "HEAD", "--no-contains": "v1",
	"--merged": "HEAD", "--no-merged": "v1", "--path-format": "absolute", "--ignore-rev": "HEAD", "--diff-filter": "M",
	"--diff-algorithm": "patience", "--ignore-submodules": "none", "--untracked-files": "all", "--color": "always", "--column": "always",
	"--date": "short", "--porcelain": "v2", "--ignored": "matching", "-u": "all", "--word-diff": "plain", "-L": "1,1:a.txt",
	"--group": "author", "--stat": "80", "--dirstat": "files", "--notes": "x", "--decorate": "full", "--glob": "refs/*",
	"--no-walk": "sorted", "--pretty": "fuller", "--hash": "8", "--encoding": "UTF-8", "--color-moved": "zebra", "--source": "",
}

// gitForms are command lines with each proved option of git's rows, alone and before each operand.
func gitForms() []string {
	var forms []string
	for _, row := range programs.All() {
		name, isSub := strings.CutPrefix(row.Name, "git ")
		if !isSub || !row.Reads {
			continue
		}
		options := []string{""}
		if row.Has("number") {
			options = append(options, "-1")
		}
		for _, o := range row.Options() {
			if o.Safe {
				options = append(options, spelledOption(o)...)
			}
		}
		operands := gitOperandsOf[name]
		if operands == nil {
			operands = []string{""}
		}
		for _, o := range options {
			for _, operand := range operands {
				forms = append(forms, strings.Join(strings.Fields(row.Name+" "+o+" "+operand), " "))
			}
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// spelledOption is an option as it is written on a command line, with and without a value.
func spelledOption(o *programs.Option) []string {
	value, named := gitValues[o.Name]
	if !named {
		value = "1"
	}
	long := strings.HasPrefix(o.Name, "--")
	switch {
	case o.Takes == programs.Nothing:
		return []string{o.Name}
	case o.Takes == programs.Maybe && long:
		return []string{o.Name, o.Name + "=" + value}
	case o.Takes == programs.Maybe:
		return []string{o.Name, o.Name + value}
	case long:
		return []string{o.Name + "=" + value}
	}
	return []string{o.Name + " " + value}
}

// gitSetups make repositories whose index git would like to write: files have other times than it has noted. Where the
// index is split or sparse, git touches objects whenever it reads it (v2.39, read-cache.c: freshen_shared_index,
// sparse-index.c: expand_index); such an index is not understood by GitTracks, and no git there is read-only.
var gitSetups = map[string]string{
	"plain": `git config gc.auto 1; git config gc.autoDetach false`,
	"caches": `git config core.untrackedCache true; git update-index --untracked-cache; git config feature.manyFiles true;
git config index.threads true; git config core.commitGraph true; git config fetch.writeCommitGraph true; git status -s`,
	"conflict": `git config rerere.enabled true; git config rerere.autoUpdate true; git checkout -q -b other v1; echo other > a.txt;
git commit -qam other; git checkout -q main; git merge -q other; git worktree add -q ../gone; rm -rf ../gone`,
}

// TestGitListWritesNothing: git diff and git describe --dirty wrote the index of a repository though they were read-only.
// Every form on the list leaves each file of .git and of the home as it is, with its times, in repositories of several
// kinds. Without CODEHAND_TESTS=all it is each form without options and one in forty of the others.
func TestGitListWritesNothing(t *testing.T) {
	t.Parallel()
	bash := needBash(t)
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it shows what its commands write")
		}
		t.Skip("git is not installed: it shows what its commands write")
	}
	forms := gitForms()
	for kind, setup := range leaktest.SomeOf(2, gitSetups) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ws, ran, shown := newStaleRepository(t, bash, setup), 0, 0
			stale := func() map[string]string {
				shown++
				for _, name := range []string{"a.txt", "dir/b.txt"} {
					other := time.Unix(1_700_000_000+int64(shown), 0) // git compares seconds
					if err := os.Chtimes(filepath.Join(ws.dir, name), other, other); err != nil {
						t.Fatal(err)
					}
				}
				return stamps(t, ws.dir, ws.home)
			}
			before := stale()
			var some []string
			for i, form := range forms {
				long := !strings.Contains(form, " -") || leaktest.Picked(i, 40)
				if long && Analyze(form, inRoot).Class == ReadOnly {
					some = append(some, form)
				}
			}
			ran = len(some)
			for batch := range slices.Chunk(some, inBatch) {
				ws.run(t, inOne(batch))
				if stampDiff(before, stamps(t, ws.dir, ws.home)) == "" {
					continue
				}
				for _, form := range batch {
					before = stale()
					ws.run(t, form)
					t.Errorf("%s: %s", form, stampDiff(before, stamps(t, ws.dir, ws.home)))
				}
				before = stale()
			}
			t.Logf("%d of %d forms ran", ran, len(forms))
			for _, form := range []string{"git describe --dirty", "git update-index --refresh"} {
				if ws.run(t, form); stampDiff(before, stamps(t, ws.dir, ws.home)) == "" {
					t.Errorf("%s changed nothing that this test sees", form)
				}
				before = stale()
			}
		})
	}
}

// newStaleRepository makes a repository with a stash, a tag and an upstream, and then touches its files.
func newStaleRepository(t *testing.T, bash, setup string) *runWorkspace {
	t.Helper()
	ws := &runWorkspace{bash: bash, dir: filepath.Join(t.TempDir(), "repo"), home: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(ws.dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := `set -e; export GIT_CONFIG_COUNT=0 GIT_OPTIONAL_LOCKS=1
git init -q -b main . && git config user.name a && git config user.email a@b
mkdir -p dir out && echo 1 > a.txt && echo 1 > dir/b.txt && echo 1 > out/c.txt && echo '*.log' > .gitignore && touch a.log new.txt
git add -A . && git commit -q -m one && git tag -a -m v1 v1 && git branch feature && echo 2 >> a.txt && git stash -q -u
echo 2 > dir/b.txt && git commit -q -am two && git remote add origin https://example.com/x
git update-ref refs/remotes/origin/main HEAD~1 && git branch -q -u origin/main && git notes add -m x && echo new > new2.txt
set +e; ` + setup + `
git config gc.auto 1; true`
	cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-c", script)
	cmd.Dir = ws.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + ws.home, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return ws
}

// stamps are what lstat says of every file below dirs, but for when it was read.
func stamps(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				all[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func stampDiff(before, after map[string]string) string {
	var diff []string
	for path, stamp := range after {
		if was, ok := before[path]; !ok {
			diff = append(diff, "new "+path)
		} else if was != stamp {
			diff = append(diff, "changed "+path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			diff = append(diff, "gone "+path)
		}
	}
	slices.Sort(diff)
	return strings.Join(diff, ", ")
}
