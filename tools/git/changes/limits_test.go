package changes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/disk"
)

// A tree in which a command runs was forgotten for others, and the journal then had nothing of the command. A Span of a
// tree that is forgotten at the end says that it knows nothing.
func TestTreesInUse(t *testing.T) {
	t.Parallel()
	trees := New("", "")
	repos := make([]*repo, maxTrees+2)
	spans := make([]*Span, len(repos))
	for i := range repos {
		repos[i] = newRepo(t)
		repos[i].write("a", "one")
		repos[i].commit()
		if spans[i] = trees.Begin(t.Context(), repos[i].dir); spans[i].Blind() {
			t.Fatal("nothing is known")
		}
	}
	for i, s := range spans[:len(spans)-1] {
		repos[i].write("a", fmt.Sprint(i))
		if found := s.End(10, everything); repos[i].told(found.Changes) != fmt.Sprintf("M a one>%d", i) {
			t.Errorf("repository %d: %q, known %v", i, repos[i].told(found.Changes), found.Known)
		}
		s.Drop() // counts once
	}
	trees.Begin(t.Context(), repos[0].dir).Drop()
	if len(trees.trees) != maxTrees {
		t.Errorf("%d trees are remembered, want %d", len(trees.trees), maxTrees)
	}
	for _, at := range trees.trees {
		at.use.last = at.use.last.Add(-2 * idle)
	}
	trees.Begin(t.Context(), repos[0].dir).Drop()
	if len(trees.trees) != 2 { // this one, and the last, which has a Span
		t.Errorf("%d trees are remembered, want 2", len(trees.trees))
	}
	last := spans[len(spans)-1]
	at := last.tree
	trees.Close()
	if found := last.End(10, everything); found.Known || len(found.Changes) > 0 {
		t.Errorf("a Span of a tree that was forgotten finds %+v", found)
	}
	if !at.begin(t.Context()).Blind() || !trees.Begin(t.Context(), repos[0].dir).Blind() {
		t.Error("a tree that was forgotten begins a Span")
	}
}

// A look at one slow work tree blocked all others while that tree was being forgotten.
func TestForgetHoldsUpNobody(t *testing.T) {
	t.Parallel()
	trees, slow := New("", ""), newRepo(t)
	defer trees.Close()
	s := trees.Begin(t.Context(), slow.dir)
	s.Drop()
	busy := s.tree
	busy.use.last = busy.use.last.Add(-2 * idle)
	other, third := newRepo(t), newRepo(t)
	busy.mu.Lock()
	forgot := make(chan *Span)
	go func() { forgot <- trees.Begin(t.Context(), other.dir) }() // forgets the slow one, for which it waits
	for kept := true; kept; runtime.Gosched() {
		trees.mu.Lock()
		_, kept = trees.trees[busy.place]
		trees.mu.Unlock()
	}
	s = trees.Begin(t.Context(), third.dir)
	busy.mu.Unlock()
	for _, s := range []*Span{s, <-forgot} {
		if s.Blind() {
			t.Fatal("nothing is known")
		}
		s.Drop()
	}
}

// What one command left was not known when the next one began, so only the first of two could be taken back.
func TestSpansInARow(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "one")
	r.commit()
	trees := New("", "")
	defer trees.Close()
	texts := []string{"one", "two", "three", "four"}
	ask := everything
	ask.Content = func(_ string, sum disk.Digest) []byte {
		for _, text := range texts {
			if disk.DigestOf([]byte(text)) == sum {
				return []byte(text)
			}
		}
		return nil
	}
	for i, text := range texts[1:] {
		s := trees.Begin(t.Context(), r.dir)
		r.write("a", text)
		if got, want := r.told(s.End(10, ask).Changes), "M a "+texts[i]+">"+text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Two contents of one file can have the same stat data within a tick of the clock. Where each look goes over all files,
// such a change was not seen, and the hash of the older content stayed.
func TestRacyStamp(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "one")
	r.write("u", "one")
	r.git("add", "a")
	r.git("commit", "-qm", "x")
	trees := New("", "")
	defer trees.Close()
	s := trees.Begin(t.Context(), r.dir)
	at := s.tree
	s.Drop()
	at.scans, at.known = true, false
	s = trees.Begin(t.Context(), r.dir)
	for _, name := range []string{"a", "u"} {
		r.write(name, "two")
		info, err := os.Lstat(filepath.Join(r.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		at.files[name].stamp = disk.StampOf(info) // as if no tick were between
		at.files[name].stamp.Racy = true
		at.files[name].hashed, at.files[name].blob = true, at.index.entries["a"].OID
		at.files[name].sum = disk.DigestOf([]byte("one"))
	}
	found := s.End(10, everything)
	if got, want := r.told(found.Changes), "M a one>two; M u (git did not track it)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if at.files["a"].hashed {
		t.Error("the hash of the older content is kept")
	}
}

// One directory that cannot be read switched everything off.
func TestUnreadableDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can read every directory: run the tests as an ordinary user, too")
	}
	for _, scans := range []bool{false, true} {
		r := newRepo(t)
		r.write("a", "one")
		r.write("shut/f", "f")
		r.write("opened/f", "f")
		r.write("closed/f", "f")
		r.commit()
		trees := New("", "")
		defer trees.Close()
		defer r.sh("chmod 700 shut opened closed")
		r.sh("chmod 0 shut opened")
		first := trees.Begin(t.Context(), r.dir)
		if first.Blind() {
			t.Fatal("nothing is known")
		}
		first.Drop()
		first.tree.scans, first.tree.known = scans, false
		s := trees.Begin(t.Context(), r.dir)
		r.sh("echo two >a; chmod 700 opened; echo g >opened/g; chmod 0 closed")
		found := s.End(10, everything)
		if got := r.told(found.Changes); got != "M a one>two" || !found.Known {
			t.Errorf("scans %v: %q, known %v", scans, got, found.Known)
		}
	}
}

// What an included configuration names was not read, so a filter was taken for none, and a file would have been
// "restored" to git's own form of it.
func TestConfigured(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"user's":        {".gitconfig": "[core]\n\tattributesFile = ~/attrs\n", "attrs": "*.f filter=x\n"},
		"included":      {".gitconfig": "[include]\n\tpath = more\n", "more": "[core]\n\tattributesfile = ~/attrs\n", "attrs": "*.f filter=x\n"},
		"not known":     {".gitconfig": "[include]\n\tpath = ~other/more\n"},
		"repository's":  {"w/.git/config": "[core]\n\tattributesfile = ~/attrs\n", "attrs": "*.f filter=x\n"},
		"relative":      {"w/.git/config": "[core]\n\tattributesfile = attrs\n", "w/attrs": "*.f filter=x\n"},
		"this worktree": {"w/.git/config.worktree": "[core]\n\tattributesfile = ~/attrs\n", "attrs": "*.f filter=x\n"},
		"default":       {".config/git/attributes": "*.f filter=x\n"},
	} {
		r := newRepo(t)
		r.write("a.f", "one")
		r.commit()
		tick()
		r.sh("touch -d '1 hour ago' a.f; git status")
		home := filepath.Dir(r.dir)
		for file, text := range files {
			(&repo{t, home}).write(file, text)
		}
		trees := New(home, filepath.Join(home, ".config"))
		defer trees.Close()
		s := trees.Begin(t.Context(), r.dir)
		r.write("a.f", "two")
		if got, want := r.told(s.End(10, everything).Changes), "M a.f (a filter or an encoding of .gitattributes applies)"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// What a repository's configuration excludes is not listed.
func TestExcludes(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	home := filepath.Dir(r.dir)
	(&repo{t, home}).write(".gitconfig", "[include]\n\tpath = more\n")
	(&repo{t, home}).write("more", "[core]\n\texcludesFile = ~/out\n")
	(&repo{t, home}).write("out", "*.out\n")
	r.write(".git/info/exclude", "*.local\n")
	trees := New(home, filepath.Join(home, ".config"))
	defer trees.Close()
	s := trees.Begin(t.Context(), r.dir)
	r.sh("echo x >a; echo x >a.out; echo x >a.local")
	if got := r.told(s.End(10, everything).Changes); got != "A a >x" {
		t.Errorf("%q", got)
	}
}

// git records more than files: the index, and which commit is checked out. That is told, because it is not undone.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"echo x >a": false, "git add u": true, "git commit -qam y --allow-empty": true, "git reset -q --soft HEAD~": true,
		"git checkout -qb other": true, "git log": false,
	} {
		r := newRepo(t)
		r.write("a", "one")
		r.commit()
		r.git("commit", "-qm", "two", "--allow-empty")
		r.write("u", "two")
		trees := New("", "")
		defer trees.Close()
		s := trees.Begin(t.Context(), r.dir)
		r.sh(command)
		if found := s.End(10, everything); found.Recorded != want {
			t.Errorf("%q: %v, want %v", command, found.Recorded, want)
		}
	}
}

// A file whose loss is not among the changes may have a copy that is: there are too many, or it may not be shown.
func TestOnlyCopyOfWhatIsNotListed(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("x", "one")
	r.write("z", "two")
	trees := New("", "")
	defer trees.Close()
	s := trees.Begin(t.Context(), r.dir)
	r.sh("mkdir d; cp x d/x; cp z d/z; rm x z; echo n >d/n")
	ask := everything
	ask.Hidden = func(path string) bool { return path == filepath.Join(r.dir, "x") }
	found := s.End(3, ask)
	want := "A d/n >n; A d/x (it may be the only copy of another file); A d/z (it may be the only copy of z)"
	if got := r.told(found.Changes); got != want || found.All != 4 {
		t.Errorf("%q (%d), want %q", got, found.All, want)
	}
}

// Which entries the stash has is not read from a reftable, so any change there may have dropped one.
func TestStashInReftable(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write(".git/reftable/tables.list", "one\n")
	trees := New("", "")
	defer trees.Close()
	for _, c := range []struct{ table, want string }{
		{"one\n", "A 0 >x"}, {"one\ntwo\n", "A 1 " + stashed}, {"three\n", "A 2 " + stashed},
	} {
		s := trees.Begin(t.Context(), r.dir)
		r.write(".git/reftable/tables.list", c.table)
		r.sh("echo x >" + c.want[2:3])
		if got := r.told(s.End(10, everything).Changes); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Whether a name lies inside is asked once for each directory and for each link, as it may read the directory: in one
// of 5,000 names without letters, to ask for each of them took 2.4 ms a file.
func TestInsideIsAskedOncePerDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a right there")
	}
	r := newRepo(t)
	r.write("a", "1")
	trees := New("", "")
	defer trees.Close()
	s := trees.Begin(t.Context(), r.dir)
	r.sh("mkdir d e; touch d/$(seq -s ' d/' 100) e/x; ln -s /etc/passwd d/out; ln -s x e/in")
	var asked []string
	ask := everything
	ask.Inside = func(path string) bool {
		asked = append(asked, strings.TrimPrefix(path, r.dir))
		return !strings.HasSuffix(path, "out")
	}
	found := s.End(10, ask)
	if want := []string{"/d", "/d/out", "/e", "/e/in"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if found.All != 102 { // not d/out
		t.Errorf("%d changes, want 102", found.All)
	}
}

// A command that makes many files is told of by the directories that it made: the largest ones become one change each,
// until there are few enough. What was there before, and what is small, stays a file of its own.
func TestTreesAreOneChange(t *testing.T) {
	t.Parallel()
	for name, scans := range map[string]bool{"watched": false, "scanned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			r.write("old/a", "1")
			r.write("gone/deep/x", "1")
			r.sh("mkdir there again; touch gone/$(seq -s ' gone/' 20) again/$(seq -s ' again/' 20)")
			trees := New("", "")
			defer trees.Close()
			trees.Begin(t.Context(), r.dir).Drop()
			for _, at := range trees.trees {
				at.scans, at.known = scans, false
			}
			s := trees.Begin(t.Context(), r.dir)
			r.sh(`mkdir -p .venv/lib/x src; touch .venv/cfg .venv/lib/x/$(seq -s ' .venv/lib/x/' 40) src/$(seq -s ' src/' 12)
				touch old/b there/$(seq -s ' there/' 15); rm -r gone again; mkdir again; touch again/new`)
			found := s.End(71, everything)
			var got []string
			for _, c := range found.Trees {
				got = append(got, fmt.Sprint(c.Op, " ", strings.TrimPrefix(c.Path, r.dir), " ", c.Files))
			}
			if want := []string{"A /.venv 41", "D /gone 21", "A /src 12"}; !slices.Equal(got, want) {
				t.Errorf("trees are %q, want %q", got, want)
			}
			folded := 0
			for _, c := range found.Changes {
				switch name := strings.TrimPrefix(c.Path, r.dir); {
				case name == "/.venv":
					if folded++; c.Files != 41 || c.Op != Created || c.Why == "" || c.New != nil {
						t.Errorf("%+v", c)
					}
				case strings.HasPrefix(name, "/.venv"), c.Files != 0:
					t.Errorf("%s is told of besides its directory", name)
				}
			}
			// .venv, old/b, 12 in src, 15 in there, 21 gone, and in again 20 gone and one made
			if folded != 1 || len(found.Changes) != 71 || found.All != 41+1+12+15+21+21 {
				t.Errorf("%d changes of %d, .venv %d times", len(found.Changes), found.All, folded)
			}
		})
	}
}

// compared changes a file beside another one, while a Span goes on that then ends: what changed is being compared until
// goOn is told, and found gets it.
func compared(t *testing.T, r *repo, trees *Trees) (found chan Finding, goOn chan bool) {
	r.write("a", "1")
	r.write("b", "1")
	r.commit()
	s := trees.Begin(t.Context(), r.dir)
	r.write("a", "2")
	ask, looks := everything, make(chan bool)
	found, goOn = make(chan Finding, 1), make(chan bool)
	ask.Hidden = func(string) bool {
		looks <- true
		<-goOn
		return false
	}
	if !trees.Go(func() { found <- s.End(10, ask) }) {
		t.Fatal("nothing runs")
	}
	<-looks
	return found, goOn
}

// Where a command no longer waits for the look at what another one changed, nothing is known of it, and as the changes
// of the two cannot be told apart, nothing is taken back.
func TestLateEnd(t *testing.T) {
	t.Parallel()
	r, trees := newRepo(t), New("", "")
	defer trees.Close()
	found, goOn := compared(t, r, trees)
	ended, end := context.WithCancel(t.Context())
	end()
	if next := trees.Begin(ended, r.dir); !next.Blind() || !next.Missed() {
		t.Error("the next command waited on")
	}
	goOn <- true
	if got, want := r.told((<-found).Changes), "M a ("+whyMissed+")"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	trees.Close()
	if trees.Go(func() {}) {
		t.Error("something runs after Close")
	}
}

// TestNextWaits: a command that comes while what the one before it changed is being compared waits for that, and both
// are known. A model gives the next command at once.
func TestNextWaits(t *testing.T) {
	t.Parallel()
	r, trees := newRepo(t), New("", "")
	defer trees.Close()
	found, goOn := compared(t, r, trees)
	next := make(chan *Span, 1)
	go func() { next <- trees.Begin(t.Context(), r.dir) }()
	goOn <- true
	if got := r.told((<-found).Changes); got != "M a 1>2" {
		t.Errorf("the first: %q", got)
	}
	second := <-next
	r.write("b", "2")
	if got := r.told(second.End(10, everything).Changes); got != "M b 1>2" {
		t.Errorf("the second: %q", got)
	}
}
