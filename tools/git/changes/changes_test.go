package changes

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/leaktest"
	"codehand/tools/git"
)

// everything permits every name, and knows no content.
var everything = Asker{
	Inside:  func(string) bool { return true },
	Hidden:  func(string) bool { return false },
	Content: func(string, disk.Digest) []byte { return nil },
	Keep:    func(string) string { return "" },
}

// A repo is a git work tree of a test.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it makes the work trees")
		}
		t.Skip("git is not installed: it makes the work trees")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t, filepath.Join(dir, "w")}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q")
	return r
}

// git runs git free of this machine's configuration.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	return r.run(append([]string{"git"}, args...)...)
}

// sh runs a command.
func (r *repo) sh(command string) string {
	r.t.Helper()
	return r.run("bash", "-c", command)
}

func (r *repo) run(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-qm", "x", "--allow-empty")
}

// told is what End says, in short: `M a old>new`, `A b >new`, `D c old>`; with a reason `M d (why)`.
func (r *repo) told(changes []Change) string {
	var out []string
	for _, c := range changes {
		name, err := filepath.Rel(r.dir, c.Path)
		if err != nil {
			r.t.Fatal(err)
		}
		line := string(c.Op) + " " + name + " " + strings.TrimSpace(string(c.Old)) + ">" + strings.TrimSpace(string(c.New))
		if c.Why != "" {
			line = string(c.Op) + " " + name + " (" + c.Why + ")"
		} else if c.OldMode != c.NewMode && c.Op == Changed {
			line += " mode"
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// moved is why a file that was moved is not removed again.
const moved = "(it was there before under a name that is not taken back)"

// stashed is why a file that may come from a dropped stash is not removed again.
const stashed = "(it may be the only copy of what a dropped stash had)"

// tick waits until what is made now has another time than what was made before.
func tick() {
	for now := time.Now().UnixNano(); clock() <= now; {
		runtime.Gosched()
	}
}

// What a command does to each kind of file, by the kernel's word and by going over all files.
func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range leaktest.Some(3, []struct{ name, before, command, want string }{
		{"nothing", "", "true", ""},
		{"read", "", "cat a >/dev/null; git status >/dev/null", ""},
		{"touched", "", "touch a; chmod 600 a; cp a a.x && mv a.x a", ""},
		{"in place", "", "echo x >a", "M a one>x"},
		{"same size", "", "echo eno >a", "M a one>eno"},
		{"replaced", "", "sed -i s/one/1/ a", "M a one>1"},
		{"deleted", "", "rm a", "D a one>"},
		{"created", "", "echo n >new", "A new >n"},
		{"created deep", "", "mkdir -p x/y && echo n >x/y/new", "A x/y/new >n"},
		{"empty", "", ": >a; : >new", "M a one>; A new >"},
		{"moved", "", "mv a b2", "D a one>; A b2 >one"},
		{"directory moved", "", "mv d e", "D d/f four>; D d/sub/g five>; A e/f >four; A e/sub/g >five"},
		{"directory removed", "", "rm -r d", "D d/f four>; D d/sub/g five>"},
		{"directory replaced by a file", "", "rm -r d && echo x >d", "A d >x; D d/f four>; D d/sub/g five>"},
		{"file replaced by a directory", "", "rm a && mkdir a && echo x >a/b", "D a one>; A a/b >x"},
		{"directory there and back", "", "mv d e; mv e d", ""},
		{"executable", "", "chmod +x a", "M a one>one mode"},
		{"link", "", "ln -sf b a", "M a (not a regular file)"},
		{"changed link", "", "ln -sfn b l", "M l (not a regular file)"},
		{"ignored", "", "echo x >t.log; mkdir -p out && echo x >out/f; echo x >>ign/t", "A out/f >x"},
		{"ignored and tracked", "", "echo x >ign/f", "M ign/f six>x"},
		{"no longer ignored", "", ": >.gitignore", "M .gitignore *.log\nign>"},
		{"binary", "", `printf 'a\0' >a; printf '\0' >n`, "M a one>a\x00; A n >\x00"},
		{"dirty", "echo dirty >a", "echo x >a; echo y >b", "M a (it was not clean in git); M b two>y"},
		{"dirty and touched", "echo dirty >a", "touch a", ""},
		{"untracked", "echo u >u", "echo x >u", "M u (git did not track it)"},
		{"untracked and removed", "echo u >u", "rm u", "D u (git did not track it)"},
		{"staged", "echo s >a; git add a", "echo x >a", "M a s>x"},
		{"checkout", "git checkout -qb o; echo o >a; git rm -qr d; git commit -qam o; git checkout -q master",
			"git checkout -q o", "M a one>o; D d/f four>; D d/sub/g five>"},
		{"stash", "echo dirty >a", "git stash -q", "M a (it was not clean in git)"},
		{"commit", "", "echo x >a; git add -A; git commit -qm y", "M a one>x"},
		{"packed", "git gc -q", "echo x >a", "M a one>x"},
		{"index of version 4", "git update-index --index-version 4", "echo x >a", "M a one>x"},
		{"split index", "git update-index --split-index", "echo x >a", ""},
		{"copied", "cp -r . ../c; rm -r d; mv ../c/d d", "echo x >d/f", "M d/f four>x"},
		{"hard link", "", "ln a z; echo x >z", "M a (it has other names (hard links)); A z (it has other names (hard links))"},
		{"hard link outside", "ln a ../z; touch a", "echo x >../z", "M a (it has other names (hard links))"},
		{"large", "", "head -c 5000000 /dev/zero >a", "M a (over 4 MiB)"},
		{"line ends", `printf 'x\r\n' >crlf; git -c core.autocrlf=true add crlf`, "echo y >crlf",
			"M crlf (git converts its line ends or keywords)"},
		{"filter", "echo '*.f filter=x' >.gitattributes; echo f >y.f; git add -A; git commit -qm f; touch -d '1 hour ago' y.f a; git status >/dev/null",
			"echo g >y.f; echo x >a", "M a one>x; M y.f (a filter or an encoding of .gitattributes applies)"},
		{"dotted directories", "mkdir .x; echo '*.o' >.x/.gitignore; echo o >.x/a.o; echo n >.x/n; git add .x",
			"echo p >>.x/a.o; echo p >.x/b.o; echo m >.x/n", "M .x/n n>m"},
		{"another repository", "git init -q sub; echo x >sub/f", "echo y >sub/f; echo y >sub/g; echo x >a", "M a one>x"},
		{"merge conflict", "git checkout -qb o; echo o >a; git commit -qam o; git checkout -q master; echo m >a; " +
			"git commit -qam m; git merge -q o || true", "echo x >a", "M a (it was not clean in git)"},
		// what was there under a name that nothing is known of would be gone
		{"ignored and moved", "echo k >t.log", "mv t.log t2; mv ign/t t3", "A t2 " + moved + "; A t3 " + moved},
		{"ignored directory moved", "mkdir -p ign/x; echo k >ign/x/k", "mv ign/x out; echo n >out/n",
			"A out/k " + moved + "; A out/n (it may be the only copy of ign/x)"},
		{"ignored and moved over a file", "echo k >t.log", "mv t.log a", "M a " + moved},
		{"untracked and moved", "echo u >u", "mv u v", "D u (git did not track it); A v " + moved},
		{"moved in from elsewhere", "echo o >../o", "mv ../o o", "A o " + moved},
		{"moved out and back in", "", "mv a ../a; mv ../a b2", "D a one>; A b2 >one"},
		{"moved in a chain", "echo u >u", "mv a b2; mv u a", "M a " + moved + "; A b2 " + moved +
			"; D u (git did not track it)"},
		{"exchanged", "", "mv a x; mv b a; mv x b", "M a one>two; M b two>one"},
		{"copied from ignored", "echo k >t.log", "cp t.log t2", "A t2 >k"},
		{"ignored directory no longer ignored", "mkdir ign/x; echo k >ign/x/k; echo k >t.log; git rm -q --cached ign/f",
			": >.gitignore", "M .gitignore *.log\nign>"},
		{"ignored from now on", "echo u >u; mkdir n; echo n >n/n; git add n; git rm -q --cached n/n",
			`printf 'u\nn\n' >.gitignore`, "M .gitignore *.log\nign>u\nn"},
		// what was copied before the original went is the only copy that is left
		{"untracked, copied and removed", "echo u >u", "cp u v && rm u; echo n >n",
			"A n >n; D u (git did not track it); A v (it may be the only copy of u)"},
		{"untracked, copied over a file and removed", "echo u >u", "cp u a && rm u",
			"M a (it may be the only copy of u); D u (git did not track it)"},
		{"untracked, copied and overwritten", "echo u >u", "cp u v && echo x >u",
			"M u (git did not track it); A v (it may be the only copy of u)"},
		{"dirty, copied and removed", "echo dirty >a", "cp a b2; cp a d/b3; git checkout -q a",
			"M a (it was not clean in git); A b2 (it may be the only copy of a); A d/b3 (it may be the only copy of a)"},
		{"ignored, copied and removed", "echo k >t.log", "cp t.log t2 && rm t.log; echo x >a",
			"M a one>x; A t2 (it may be the only copy of t.log)"},
		{"clean, copied and removed", "", "cp a v && rm a", "D a one>; A v >one"},
		{"empty, copied and removed", ": >u", "cp u v && rm u", "D u (git did not track it); A v >"},
		{"binary, renamed", `printf 'a\0' >z`, "cp z y && rm z; echo n >n", "A n >n; A y (it may be the only copy of z); D z (git did not track it)"},
		{"directory with ignored files moved", "echo k >d/k.log", "mv d e",
			"D d/f four>; D d/sub/g five>; A e/f >four; A e/sub/g >five"},
		{"a name that is not shown", "echo u >$'u\\nv'", "cp u* v && rm u*",
			"D u\nv (git did not track it); A v (it may be the only copy of another file)"},
		{"stash popped", "echo u >u; echo x >a; git stash -qu", "git stash pop -q; echo y >b; rm c",
			"M a " + stashed + "; M b " + stashed + "; D c three>; A u " + stashed},
		{"stash applied", "echo u >u; echo x >a; git stash -qu", "git stash apply -q", "M a one>x; A u >u"},
		{"another stash dropped", "echo u >u; git stash -qu; echo x >a; git stash -q", "git stash drop -q stash@{1}; echo n >n",
			"A n " + stashed},
		{"another repository no more", "git init -q sub; echo x >sub/f", "rm -rf sub/.git", ""},
	}) {
		for _, scans := range []bool{false, true} {
			name := c.name
			if scans {
				name += ", scanned"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRepo(t)
				r.git("symbolic-ref", "HEAD", "refs/heads/master")
				for name, text := range map[string]string{"a": "one\n", "b": "two\n", "c": "three\n", "d/f": "four\n",
					"d/sub/g": "five\n", ".gitignore": "*.log\nign\n", "ign/f": "six\n", "ign/t": "seven\n"} {
					r.write(name, text)
				}
				r.sh("ln -s a l; git add -f ign/f")
				r.commit()
				trees := New("", "")
				defer trees.Close()
				place, _ := git.Find(r.dir)
				trees.hold(place).scans = scans
				if s := trees.Begin(t.Context(), r.dir); s != nil {
					s.Drop()
				}
				if c.before != "" {
					r.sh(c.before)
				}
				tick()
				s := trees.Begin(t.Context(), r.dir)
				r.sh(c.command)
				if s.Blind() {
					if c.want != "" {
						t.Fatal("nothing is known")
					}
					return
				}
				found := s.End(200, everything)
				got := r.told(found.Changes)
				if c.name == "line ends" { // where the index proves nothing, it is hashed
					got = strings.ReplaceAll(got, "(it was not clean in git)", "(git converts its line ends or keywords)")
				}
				if got != c.want || found.All != len(found.Changes) || !found.Known {
					t.Errorf("%q gives %q (%d, known %v), want %q", c.command, got, found.All, found.Known, c.want)
				}
			})
		}
	}
}
