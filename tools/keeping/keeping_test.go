//go:build unix

package keeping

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/bash"
	"codehand/tools/git/changes"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/workspace"
)

// A desk is a session whose commands the kernel would hold; they run without it here.
type desk struct {
	*tooltest.Session
	t     *testing.T
	trees *changes.Trees
	lost  []string // what Lost said, below the root
}

// newDesk makes a session with commands run before it: git makes the work trees.
func newDesk(t *testing.T, setup string) *desk {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it makes the work trees")
		}
		t.Skip("git is not installed: it makes the work trees")
	}
	d := &desk{Session: tooltest.New(t, nil), t: t, trees: changes.New("", "")}
	t.Cleanup(d.trees.Close)
	d.run(setup)
	return d
}

func (d *desk) run(command string) {
	d.t.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = d.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// weigh is what is decided about a command.
func (d *desk) weigh(command string) *bash.Analysis {
	a := bash.Analyze(command, func(path string) bool { return strings.HasPrefix(path, d.Dir) })
	a.Hold()
	Weigh(d.State, d.trees, &a)
	return &a
}

// discard runs a command as run_shell does, and returns the parts of the changes that the journal has then.
func (d *desk) discard(command string) (ids []string, parts []journal.Part) {
	d.t.Helper()
	env := tool.Env{State: d.State, Analysis: d.weigh(command)}
	by := journal.By{Tool: "run_shell", Command: command, Principal: "local", Session: "test"}
	held, err := Hold(d.t.Context(), env, d.trees, by, false)
	if err != nil {
		d.t.Fatal(err)
	}
	d.run(command)
	for _, path := range held.Lost() {
		d.lost = append(d.lost, strings.TrimPrefix(path, d.Dir+"/"))
	}
	held.Compare(d.t.Context(), func(string) bool { return false })
	err = held.Take(d.t.Context(), d.Files, func(p []journal.Part) bool {
		id, err := filestate.Record(d.t.Context(), d.Files, by, p)
		if err != nil {
			d.t.Error(err)
		}
		ids, parts = append(ids, id), append(parts, p...)
		return true
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return ids, parts
}

func (d *desk) undo(ids []string, parts []journal.Part) {
	d.t.Helper()
	var steps []filestate.Step
	for _, p := range parts {
		f, err := d.State.Open(p.Path, workspace.Write)
		if err != nil {
			d.t.Fatal(err)
		}
		defer f.Close()
		steps = append(steps, filestate.Step{ID: ids[0], File: f})
	}
	if _, err := d.Files.Undo(d.t.Context(), journal.By{}, steps...); err != nil {
		d.t.Fatal(err)
	}
}

// kept are the notes that Hold left in the journal.
func (d *desk) kept() (n int) {
	all, err := d.Files.History(d.t.Context(), journal.Query{Kept: true})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range all {
		if e.Kept == journal.KindHeld {
			n++
		}
	}
	return n
}

// A saved is a file with its mode.
type saved struct {
	content string
	mode    fs.FileMode
}

func (d *desk) snapshot() map[string]saved {
	d.t.Helper()
	all := make(map[string]saved)
	err := filepath.WalkDir(d.Dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git":
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		all[strings.TrimPrefix(path, d.Dir+"/")] = saved{string(content), info.Mode()}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// committed makes a work tree with one commit. Times are set back, so that the index proves what git has.
const committed = `git init -q . && mkdir src build node_modules && echo one >a && echo two >src/b && ` +
	`printf 'build/\nnode_modules/\n.env\n*.local\n' >.gitignore && touch -d '1 hour ago' a src/b .gitignore && git add -A && ` +
	`git commit -qm x && echo made >build/out && `

// What a command discards comes back with bytes, mode and name. What git has is not in the journal twice, and what it
// ignores does not come back, but for secrets.
func TestDiscardedComesBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup, command string
		back           []string // besides what git gives back
		lost           []string // for good
	}{
		"reset":     {committed + "echo more >>a && chmod 755 a", "git reset --hard", []string{"a"}, nil},
		"checkout":  {committed + "echo more >>a && echo more >>src/b", "git checkout -- .", []string{"a", "src/b"}, nil},
		"one file":  {committed + "echo more >>a && echo more >>src/b", "git checkout -- a", []string{"a"}, nil},
		"restore":   {committed + "echo more >>a", "git restore a", []string{"a"}, nil},
		"clean":     {committed + "mkdir d && printf 'n\\0' >d/notes && chmod 600 d/notes && echo s >.env", "git clean -fdx", []string{".env", "d/notes"}, []string{"build/out"}},
		"directory": {committed + "echo u >src/u && echo more >>src/b && : >src/empty", "rm -rf src", []string{"src/b", "src/empty", "src/u"}, nil},
		"pattern":   {committed + "echo 1 >1.log && echo 2 >src/2.log", "rm -f *.log", []string{"1.log"}, nil},
		"found":     {committed + "echo 1 >1.o && echo 2 >src/2.o && echo 3 >src/3", "find . -name '*.o' -delete", []string{"1.o", "src/2.o"}, nil},
		"a loop":    {committed + "echo 1 >1.log && echo 2 >2.log", `for f in *.log; do rm -f "$f"; done`, []string{"1.log", "2.log"}, nil},
		"truncated": {committed + "echo 1 >1.log", "truncate -s 0 1.log", []string{"1.log"}, nil},
		"ignored":   {committed + "echo x >node_modules/x", "rm -rf node_modules build", nil, []string{"build/out", "node_modules/x"}},
		"small":     {committed + "echo x >a.local && truncate -s 2M b.local", "rm -f a.local b.local", []string{"a.local"}, []string{"b.local"}},
		"a secret":  {committed + "echo s >build/.env", "rm -rf build", []string{"build/.env"}, []string{"build/out"}},
		"no git":    {"mkdir d && echo 1 >d/1 && echo 2 >2 && chmod 711 2", "rm -rf d 2", []string{"2", "d/1"}, nil},
		"in a directory": {"mkdir w && cd w && " + committed + "echo more >>a", "rm -rf w/a; git -C w reset -q --hard",
			[]string{"w/a"}, nil},
		"another repository": {committed + "git init -q in && echo 1 >in/1 && echo more >>a", "git reset -q --hard", []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.setup)
			if a := d.weigh(c.command); a.Class != bash.Writes || !a.Kept {
				t.Fatalf("%s: %s", a.Class, a.Why)
			}
			before := d.snapshot()
			ids, parts := d.discard(c.command)
			var back []string
			for _, p := range parts {
				back = append(back, strings.TrimPrefix(p.Path, d.Dir+"/"))
			}
			if slices.Sort(back); !slices.Equal(back, c.back) {
				t.Errorf("kept %q, want %q", back, c.back)
			}
			if len(parts) > 0 {
				d.undo(ids, parts)
			}
			if strings.HasPrefix(c.setup, committed) {
				d.run("git checkout-index -a -q 2>/dev/null || true") // what git has
			}
			now := d.snapshot()
			for path, want := range before {
				if got, is := now[path]; got != want && !slices.Contains(c.lost, path) || is && slices.Contains(c.lost, path) {
					t.Errorf("%s: %+v, want %+v", path, got, want)
				}
			}
			if n := d.kept(); n > 0 {
				t.Errorf("%d copies are left", n)
			}
		})
	}
}

// What git ignores, and a command took away without naming it, is told.
func TestLost(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"git clean -fdx":                 {"b.local", "build"},
		"git clean -fd":                  nil,
		"rm -rf build b.local":           nil,
		"rm -rf src":                     {"src/c.local"},
		"git clean -fdx -e build -e '*'": nil,
	} {
		d := newDesk(t, committed+"rmdir node_modules && echo x >a.local && truncate -s 2M b.local && truncate -s 2M src/c.local")
		d.discard(command)
		if slices.Sort(d.lost); command == "git clean -fdx" {
			want = append(want, "src/c.local")
		}
		if !slices.Equal(d.lost, want) {
			t.Errorf("%s: lost %q, want %q", command, d.lost, want)
		}
	}
}

// What cannot be kept stays a question, which says why.
func TestNotKept(t *testing.T) {
	t.Parallel()
	const big = "truncate -s 33M big"
	for name, c := range map[string]struct{ setup, command, why string }{
		"large":               {committed + big, "rm -f big", "big has 33 MiB: files over 32 MiB are not kept"},
		"large in the tree":   {committed + big, "git clean -fd", "big has 33 MiB"},
		"large without git":   {big, "rm -rf *", "big has 33 MiB"},
		"a repository":        {committed + "mkdir v && git init -q v/x", "rm -rf v", "v/x is a git repository of its own"},
		"clean -ff":           {committed + "mkdir v && git init -q v/x && touch v/x/y", "git clean -ffdx", "is a git repository"},
		"git's files":         {committed + "true", "rm -f .git/HEAD", "is part of a git repository"},
		"all with git's":      {committed + "true", "find . -type f -delete", "is a git repository"},
		"not in the text":     {"true", `rm -rf "$X"`, "is not in the text"},
		"outside":             {"true", "rm -f /etc/passwd", "lies outside of the roots"},
		"a link to outside":   {"ln -s /etc l", "rm -rf l/passwd", "lies outside of the roots"},
		"a broken repository": {"mkdir r && echo 'gitdir: /x' >r/.git && echo 1 >r/1", "rm -f r/1", "cannot be compared with git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.setup)
			if a := d.weigh(c.command); a.Class != bash.Dangerous || a.Kept || !strings.Contains(a.Reason(), c.why) {
				t.Errorf("%s: %s, want %q", a.Class, a.Why, c.why)
			}
		})
	}
	d := newDesk(t, committed+big+" && echo 1 >one.log")
	if a := d.weigh("rm -f one.log"); !a.Kept {
		t.Errorf("a large file elsewhere: %s", a.Why)
	}
}

// Many files are kept in several notes, and what is not discarded leaves none. A command that ends without being
// compared leaves what was kept, and undo writes it.
func TestManyHeld(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "mkdir many && cd many && seq 1 1100 | xargs touch && echo x >7 && chmod 640 7")
	command := "rm -rf many"
	env := tool.Env{State: d.State, Analysis: d.weigh(command)}
	held, err := Hold(t.Context(), env, d.trees, journal.By{Command: command}, false)
	if err != nil || len(held.IDs()) != 2 || d.kept() != 2 {
		t.Fatalf("%v, %q", err, held.IDs())
	}
	d.run("rm many/7")
	all, err := d.Files.History(t.Context(), journal.Query{Kept: true, Path: filepath.Join(d.Dir, "many", "7")})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	before, _, err := d.Files.Contents(t.Context(), all[0].ID, filepath.Join(d.Dir, "many", "7"))
	if err != nil || string(before) != "x\n" {
		t.Errorf("%q, %v", before, err)
	}
	if gone := held.Compare(t.Context(), func(string) bool { return false }); len(gone) != 1 || !gone[filepath.Join(d.Dir, "many", "7")] {
		t.Errorf("%v", gone)
	}
	noted := 0
	err = held.Take(t.Context(), d.Files, func(p []journal.Part) bool { noted += len(p); return false })
	if err != nil || noted != 1 || d.kept() != 1 {
		t.Errorf("%v: %d noted, %d stay although the journal has no change", err, noted, d.kept())
	}
}

// What changed between the decision and the start is not discarded: the command is refused.
func TestGrownSince(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "echo 1 >a")
	env := tool.Env{State: d.State, Analysis: d.weigh("rm -f a")}
	d.run("truncate -s 33M a")
	_, err := Hold(t.Context(), env, d.trees, journal.By{}, false)
	refused, ok := err.(*tool.Refusal)
	if !ok || refused.Code != tool.Busy || !strings.Contains(refused.Text, "a has 33 MiB") || d.kept() > 0 {
		t.Errorf("%v", err)
	}
	env.Analysis.Kept = false // a person has allowed it
	if _, err := Hold(t.Context(), env, d.trees, journal.By{}, false); err != nil {
		t.Error(err)
	}
}

// What a dropped stash had is git's for some time, if it is new and nothing says otherwise.
func TestDroppedStash(t *testing.T) {
	t.Parallel()
	const stashed = committed + "echo more >>a && git stash -q && echo other >>a && git stash -q"
	d := newDesk(t, stashed)
	env := tool.Env{State: d.State, Analysis: d.weigh("git stash drop")}
	if !env.Analysis.Kept {
		t.Fatal(env.Analysis.Why)
	}
	held, err := Hold(t.Context(), env, d.trees, journal.By{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if held.Dropped() != nil {
		t.Error("dropped before the command ran")
	}
	d.run("git stash drop")
	dropped := held.Dropped()
	if len(dropped) != 1 {
		t.Fatalf("%q", dropped)
	}
	d.run("git stash apply -q " + dropped[0] + " && grep -q other a")
	for _, old := range []string{
		"find .git/objects -type f -exec touch -d '8 days ago' {} +", "git config gc.pruneExpire now", "git gc -q",
		"mkdir .git/reftable && touch .git/reftable/tables.list", "echo '[include] path = ~x/y' >>.git/config",
	} {
		d := newDesk(t, stashed+" && "+old)
		if a := d.weigh("git stash clear"); a.Kept || !strings.Contains(a.Why, "at once") {
			t.Errorf("%s: %v, %s", old, a.Kept, a.Why)
		}
	}
}

// What a command removed or overwrote by its name was gone for good if nothing else about it was dangerous: `rm notes`,
// `> notes`, `mv a notes`. It is kept without a word to anybody, and undo takes it back.
func TestNamedFilesAreKept(t *testing.T) {
	t.Parallel()
	const setup = `git init -q; printf 'out/\n' > .gitignore; echo one > dirty; echo clean > clean; git add .; git commit -qm 1
echo two > dirty; echo mine > new; mkdir out sub; echo built > out/bin; echo below > sub/f`
	for command, want := range map[string]string{
		"rm dirty": "dirty", "rm new": "new", "echo z > new": "new", "cp clean new": "new", "mv clean new": "new", "sed -i s/two/x/ dirty": "dirty",
		"tee dirty < clean > /dev/null": "dirty", "mv sub/f new": "new sub/f", "git rm -fq dirty": "dirty", "mkdir x && mv new x/": "new", "cd sub && rm f": "sub/f",
		"echo z > clean": "", "echo z > out/bin": "", "echo z > made": "", "mkdir -p sub/a": "", "echo more >> new": "new",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, setup)
			if a := d.weigh(command); a.Class == bash.Dangerous {
				t.Errorf("it is a question: %s", a.Why)
			}
			before := d.snapshot()
			ids, parts := d.discard(command)
			var got []string
			for _, p := range parts {
				rel, _ := filepath.Rel(d.Dir, p.Path)
				got = append(got, rel)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != want {
				t.Fatalf("kept %q, want %q", got, want)
			}
			if d.kept() != 0 {
				t.Error("a note stayed in the journal")
			}
			if want == "" {
				return
			}
			d.undo(ids, parts)
			for _, name := range strings.Fields(want) {
				if now := d.snapshot()[name]; now != before[name] {
					t.Errorf("%s is %v, was %v", name, now, before[name])
				}
			}
		})
	}
}

// What git changed without its name in the text was gone for good where git had never had it: `git checkout t` of a
// dirty file, `git checkout FILE`, an abort. Likewise what a formatter rewrote, or a command that find starts.
func TestPerhapsChangedIsKept(t *testing.T) {
	t.Parallel()
	const setup = `git init -q; printf 'out/\n' > .gitignore; mkdir sub out; echo one > a; echo sub > sub/f; git add .; git commit -qm 1
git branch t; echo two > a; git commit -qam 2; echo dirty > a; echo dirty >> sub/f; echo mine > new; echo built > out/new; tar cf out/t.tar new; echo more >> new`
	const merge = setup + `; git commit -qam z; git checkout -qf t; echo other > a; git commit -qam w; git merge -q master || echo worked >> a`
	const clean = setup + `; echo .env >> .gitignore; echo K=1 > .env; printf 'clean:\n\trm .env\n' > Makefile`
	const script = setup + `; printf 'rm new\necho z >a\n' > x.sh; chmod +x x.sh; printf 'x:\n\trm new\n' > Makefile
printf 'import os\nos.remove("new")\n' > x.py`
	for command, c := range map[string]struct{ setup, want string }{
		"sh x.sh":                              {script, "a new"},
		"./x.sh":                               {script, "a new"},
		"source ./x.sh":                        {script, "a new"},
		"make x":                               {script, "new"},
		"python3 x.py":                         {script, "new"},
		"rm *w":                                {setup + "; echo '*.w' >> .gitignore; echo own > k.w", "k.w new"},
		"make clean":                           {clean, ".env"},
		"git checkout a":                       {setup, "a"},
		"git checkout HEAD a":                  {setup, "a"},
		"git checkout t sub":                   {setup, "sub/f"},
		"git -C sub checkout f":                {setup, "sub/f"},
		"cd sub && git checkout f":             {setup, "sub/f"},
		"git read-tree -u --reset t":           {setup, "a sub/f"},
		"git checkout-index -afq":              {setup, "a sub/f"},
		"git diff a | git apply -R":            {setup, "a"},
		"git merge --abort":                    {merge, "a"},
		"git checkout -q --ours a":             {merge, "a"},
		"find . -name new -exec rm {} +; true": {setup, "new"},
		"echo new | xargs rm":                  {setup, "new"},
		"tar xf out/t.tar":                     {setup, "new"},
		"ln -sf a new":                         {setup, "new"},
		"python3 rewrite.py new":               {setup + "; echo 'import sys; open(sys.argv[1], \"w\")' > rewrite.py", "new"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.setup)
			if a := d.weigh(command); a.Class == bash.Dangerous {
				t.Errorf("it is a question: %s", a.Why)
			}
			before := d.snapshot()
			ids, parts := d.discard(command)
			var got []string
			for _, p := range parts {
				rel, _ := filepath.Rel(d.Dir, p.Path)
				got = append(got, rel)
			}
			if slices.Sort(got); strings.Join(got, " ") != c.want {
				t.Fatalf("kept %q, want %q", got, c.want)
			}
			if d.kept() != 0 {
				t.Error("a note stayed in the journal")
			}
			d.run("find . -type l -delete")
			d.undo(ids, parts)
			for _, name := range strings.Fields(c.want) {
				if now := d.snapshot()[name]; now != before[name] {
					t.Errorf("%s is %v, was %v", name, now, before[name])
				}
			}
		})
	}
}

// A script that became a job keeps nothing of what its command does not name: a person may go on in these files.
func TestJobsKeepWhatTheyName(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "git init -q; echo x > new; echo y > named; echo true > x.sh")
	by := journal.By{Tool: "run_shell", Principal: "local", Session: "test"}
	for _, job := range []bool{false, true} {
		env := tool.Env{State: d.State, Analysis: d.weigh("rm named; sh x.sh")}
		held, err := Hold(t.Context(), env, d.trees, by, job)
		if err != nil || len(held.IDs()) != 1 && job || len(held.IDs()) != 2 && !job {
			t.Fatalf("a job: %v; kept %v, %v", job, held.IDs(), err)
		}
		held.Leave()
		if d.kept() != 1 || len(held.IDs()) != 1 || len(held.notes[0].files) != 2 { // what it names: named, x.sh
			t.Errorf("a job: %v; %d notes stay, %+v", job, d.kept(), held.notes)
		}
		held.Drop()
	}
}

// What a command perhaps changes is kept only if it is little, and only in a git work tree, since it is read before
// each such command.
func TestPerhapsChangedIsLittle(t *testing.T) {
	t.Parallel()
	for setup, want := range map[string]int{
		"git init -q; truncate -s 2M large; echo x > small":                 1,
		"git init -q; echo x > small; seq 1 600 | xargs touch":              maxPerhapsFiles,
		"git init -q; seq 1 30 | while read n; do truncate -s 1M f$n; done": maxPerhapsBytes >> 20,
		"seq 1 30 | xargs touch":                                            0,
	} {
		d := newDesk(t, setup)
		env := tool.Env{State: d.State, Analysis: d.weigh("git checkout t; gofmt -w .")}
		held, err := Hold(t.Context(), env, d.trees, journal.By{Tool: "run_shell", Principal: "local", Session: "test"},
			false)
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, n := range held.notes {
			kept += len(n.files)
		}
		if held.Drop(); kept != want {
			t.Errorf("%s: kept %d, want %d", setup, kept, want)
		}
	}
}

// A file that cannot be kept is no reason to refuse a command which may simply overwrite it.
func TestNamedFilesNeverRefuse(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "git init -q; truncate -s 33M large; ln -s nowhere link; mkfifo pipe")
	for _, command := range []string{"rm large", "rm link", "rm pipe", "rm nothing || true", "echo x > /tmp/elsewhere-is-not-kept"} {
		env := tool.Env{State: d.State, Analysis: d.weigh(command)}
		held, err := Hold(t.Context(), env, d.trees, journal.By{Tool: "run_shell", Principal: "local", Session: "test"},
			false)
		if err != nil || len(held.IDs()) > 0 {
			t.Errorf("%s: kept %v, %v", command, held.IDs(), err)
		}
		held.Drop()
	}
}
