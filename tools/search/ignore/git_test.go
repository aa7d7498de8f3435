package ignore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// needGit returns a function that runs git in dir with what it gets on its input.
func needGit(t *testing.T) func(dir string, in []byte, args ...string) []byte {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is missing, and it is the oracle of this test; install it")
		}
		t.Skip("git is missing, and it is the oracle of this test; install it")
	}
	home := t.TempDir()
	return func(dir string, in []byte, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
		cmd.Env = []string{"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "PATH=" + os.Getenv("PATH")}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		// check-ignore ends with 1 when nothing is ignored.
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("git %v: %v\n%s", args, err, &stderr)
		}
		return out
	}
}

// A tree is what one comparison is about: rules by directory ("" is the top), and names. Each name is a file
// unless it is the beginning of another.
type tree struct {
	rules   map[string]string // .gitignore by directory
	exclude string
	files   []string
}

// ignored gives what a walk with our rules leaves out: a directory that is left out is not entered.
func (r tree) ignored() map[string]bool {
	out := map[string]bool{}
	var top *Stack
	top = top.Push(Exclude, "/", Parse([]byte(r.exclude)))
	for _, f := range r.files {
		s := top
		dir := ""
		parts := strings.Split(f, "/")
		for i := range parts {
			if rules, ok := r.rules[dir]; ok {
				s = s.Push(GitIgnore, "/"+dir, Parse([]byte(rules)))
			}
			path := strings.Join(parts[:i+1], "/")
			if s.Ignored("/"+path, i < len(parts)-1) {
				out[f] = true
				break
			}
			dir = path
		}
	}
	return out
}

// compare asks git, and reports what differs. Files are not made: git takes a name that is not there for a file's.
func (r tree) compare(t *testing.T, git func(string, []byte, ...string) []byte) {
	t.Helper()
	dir := t.TempDir()
	git(dir, nil, "init", "-q")
	write := func(name, text string) {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for d, text := range r.rules {
		write(filepath.Join(d, ".gitignore"), text)
	}
	write(".git/info/exclude", r.exclude)
	in := []byte(strings.Join(r.files, "\x00") + "\x00")
	want := map[string]bool{}
	for name := range bytes.SplitSeq(git(dir, in, "check-ignore", "--no-index", "-z", "--stdin"), []byte{0}) {
		if len(name) > 0 {
			want[string(name)] = true
		}
	}
	got := r.ignored()
	for _, f := range r.files {
		if got[f] != want[f] {
			t.Errorf("%q: ignored = %v, git says %v\nrules %q, exclude %q", f, got[f], want[f], r.rules, r.exclude)
		}
	}
}

// clean drops names that cannot stand beside the others: a file that is also a directory, or a repeat.
func clean(files []string) []string {
	slices.Sort(files)
	files = slices.Compact(files)
	dirs := map[string]bool{}
	for _, f := range files {
		for d := filepath.Dir(f); d != "."; d = filepath.Dir(d) {
			dirs[d] = true
		}
	}
	return slices.DeleteFunc(files, func(f string) bool { return dirs[f] })
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

var (
	plainNames = []string{"a", "b", "ab", "abc", "x", "x.o", "a.o", "b.c", "lib", "build", "a.tar.gz", "y~"}
	wildNames  = []string{"a", "b", "ab", "[a]", "!a", "#b", `a\b`, "x y", "é", "-", "^", "]", "a-b", ".a", "a ", "x", "\v", "$", "a[", "**", "A", "0"}
	wildAtoms  = []string{"*", "**", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[[:alpha:]]", "[[:space:]]", "[[:punct:]]", "[", "]", `\`, "/", "/", "#", "!", "-", ".",
		"a", "b", "x", "A", "0", "é", " ", "\r", "**/", "/**", "/**/", `[\]`, "[]-]", "[a-", "[[:x:]]", "[:", "$"}
)

func plainRule(r *rand.Rand) string {
	n, x := pick(r, plainNames), pick(r, plainNames)
	rule := pick(r, []string{n, "*.o", n + "*", "?", "[ab]*", "/" + x, n + "/" + x, "**/" + x, n + "/**", n + "/**/" + x, x + "/"})
	if r.IntN(4) == 0 {
		rule = "!" + rule
	}
	return rule
}

func wildRule(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(pick(r, wildAtoms))
	}
	return b.String()
}

func randomTree(r *rand.Rand, names []string, rule func(*rand.Rand) string) tree {
	file := func() string {
		var lines []string
		for range 1 + r.IntN(4) {
			lines = append(lines, rule(r))
		}
		return strings.Join(lines, "\n") + pick(r, []string{"", "\n"})
	}
	tr := tree{rules: map[string]string{"": file()}}
	for range 150 {
		var parts []string
		for range 1 + r.IntN(4) {
			parts = append(parts, pick(r, names))
		}
		tr.files = append(tr.files, strings.Join(parts, "/"))
	}
	tr.files = clean(tr.files)
	for range 2 {
		if d := filepath.Dir(pick(r, tr.files)); d != "." {
			tr.rules[d] = file()
		}
	}
	if r.IntN(3) == 0 {
		tr.exclude = file()
	}
	return tr
}

// rounds is how many trees are made: few in the gate, more if tests run whole, and many with CODEHAND_LONG=1.
func rounds(gate, whole, long int) int {
	if os.Getenv("CODEHAND_LONG") != "" {
		return long
	}
	return leaktest.Rounds(gate, whole)
}

func TestEqualsGit(t *testing.T) {
	t.Parallel()
	git := needGit(t)
	for _, c := range []struct {
		name  string
		names []string
		rule  func(*rand.Rand) string
		trees int
	}{
		{"plain", plainNames, plainRule, rounds(10, 25, 750)},
		{"wild", wildNames, wildRule, rounds(20, 50, 750)},
	} {
		for seed := range c.trees {
			t.Run(fmt.Sprintf("%s-%d", c.name, seed), func(t *testing.T) {
				t.Parallel()
				randomTree(rand.New(rand.NewPCG(uint64(seed), 1)), c.names, c.rule).compare(t, git)
			})
		}
	}
}

// The rules here are written by hand: each line is one that some matcher has got wrong.
func TestEqualsGitByHand(t *testing.T) {
	t.Parallel()
	git := needGit(t)
	files := clean(strings.Fields(`a b foo foox foo/x foobar/x foo/bar/x dir/keep dir/other dir/sub/keep x/foo x/foobar/y
		x/y/foo .hidden .git2/x build/out src/build/out src/build.go a.b.c a/b/c a/c a/x/c a/x/y/c [x] [x]/y {a,b} a~ node_modules/x/y
		docs/a.md docs/sub/a.md doc/frotz/file a/doc/frotz/file Foo FOO/x`))
	for i, rules := range []string{
		"dir/\n!dir/keep", "dir/*\n!dir/keep", "foo**/x", "x/foo**", "foo/**", "**/foo", "**foo", "foo**", "a/**/c", "a/**c", "a**/c",
		"*\n!*/\n!*.go", "/*\n!/src", "/*\n!/src\n/src/*\n!/src/build", "doc/frotz/", "docs/*.md", "**/*.md", "/**/x", "**/", "*/", "/*/",
		`\[x]`, "[[]x]", "{a,b}", "{a}", "build", "build/", "/build", "src/build/", "!src\nsrc", ".*", ".*/", "*.*", "*.b.*", "foo/", "**/x/**",
		"x/**/", "**/**", "***", "a/***/c", "[F]oo", "[!f]oo", "[a-z]oo", `\f\o\o`, `**\/x`, `foo\/x`, "foo/*", "foo/**/*", " foo", "foo ", "foo\\ ",
		"*\n!foo", "*\n!foo/\n!foo/x", "foo\n!foo/x", "?oo", "???", "a?c", "./a", "a/./b", "/", "//a", "a//b",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			tree{rules: map[string]string{"": rules}, files: files}.compare(t, git)
		})
	}
}
