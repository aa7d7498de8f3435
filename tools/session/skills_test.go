package session_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/leaktest"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/skills"
	"codehand/tools/workspace"
)

// A bench is a session over a root, with directories beside it.
type bench struct {
	*testing.T
	base string // holds work, home and out
	*session.State
}

func newBench(t *testing.T, o permission.Options) *bench {
	t.Helper()
	base := leaktest.Dir(t)
	b := &bench{T: t, base: base}
	for _, dir := range []string{"work", "home", "out"} {
		if err := os.Mkdir(b.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	space, err := workspace.Open([]string{b.path("work")}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = space.Close() })
	policy, err := permission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.State = &session.State{
		Space: space, Rules: policy.At(space.Roots(), space.Cwd()), Skills: skills.New(),
		Files: filestate.New(filestate.Options{Dir: t.TempDir(), Fast: true}),
	}
	return b
}

func (b *bench) path(rel string) string { return filepath.Join(b.base, filepath.FromSlash(rel)) }

func (b *bench) write(rel, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(rel)), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(b.path(rel), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) link(rel, target string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(rel)), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.Symlink(target, b.path(rel)); err != nil {
		noLinks(b.T, err)
	}
}

// trust hands the session a directory of skills, as server does.
func (b *bench) trust(rel string, t skills.Trust) {
	b.SkillDirs = append(b.SkillDirs, skills.Dir{Path: b.path(rel), Trust: t})
	if !b.Space.Inside(b.path(rel)) {
		b.Space = b.Space.Readable(b.path(rel))
	}
}

// read reads a file as read_file does.
func (b *bench) read(rel string) {
	b.Helper()
	f, err := b.Open(b.path(rel), workspace.Read)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	r, err := b.Files.Open(b.Context(), f)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Saw(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// found are the skills, each as `name=file`, relative to the base.
func (b *bench) found() []string {
	b.Helper()
	set, err := b.FindSkills(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var all []string
	for _, k := range set.Skills {
		rel, err := filepath.Rel(b.base, k.File)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, k.Name+"="+filepath.ToSlash(rel))
	}
	return all
}

func (b *bench) want(what string, want ...string) {
	b.Helper()
	if got := b.found(); !slices.Equal(got, want) {
		b.Errorf("%s: got %q\nwant %q", what, got, want)
	}
}

func TestFindSkillsWhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	b.want("nothing")
	b.write("out/.claude/skills/x/SKILL.md", "outside")
	b.write(".claude/commands/above.md", "above the root")
	b.write("work/.claude/commands/a.md", "top")
	b.write("work/repo/.git", "gitdir: elsewhere")
	b.write("work/repo/.codehand/skills/b/SKILL.md", "repo")
	b.write("work/repo/sub/.claude/skills/b/SKILL.md", "sub")
	b.want("at the root", "a=work/.claude/commands/a.md")
	b.Space = b.Space.At(b.path("work/repo/sub"))
	b.want("below a repository", "b=work/repo/sub/.claude/skills/b/SKILL.md")
	b.Space = b.Space.At(b.path("work/repo"))
	b.want("at the top of one", "b=work/repo/.codehand/skills/b/SKILL.md")
	if got := b.ProjectDir(); got != b.path("work/repo") {
		t.Errorf("the project is %s", got)
	}
	b.Space = b.Space.At(b.path("out"))
	b.want("outside")

	b.Space = b.Space.At(b.path("work"))
	b.write("work/x/y/z/f.go", "package z")
	b.write("work/x/.claude/skills/b/SKILL.md", "x")
	b.write("work/x/y/.claude/skills/b/SKILL.md", "y")
	b.write("work/x/y/.claude/skills/a/SKILL.md", "y")
	b.write("work/other/.claude/skills/c/SKILL.md", "never touched")
	b.read("work/x/y/z/f.go")
	b.want("after a file was read", "a=work/.claude/commands/a.md", "b=work/x/y/.claude/skills/b/SKILL.md")
	b.read("work/repo/sub/.claude/skills/b/SKILL.md")
	b.want("the last file goes first", "a=work/.claude/commands/a.md", "b=work/repo/sub/.claude/skills/b/SKILL.md")

	b.write("work/.claude/skills/d/SKILL.md", "---\npaths: y/**/*.go\n---\ntext")
	b.write("work/x/.claude/skills/e/SKILL.md", "---\npaths: y/**/*.go\n---\ntext")
	b.want("patterns are of the project and of the skill's own place",
		"a=work/.claude/commands/a.md", "b=work/repo/sub/.claude/skills/b/SKILL.md", "e=work/x/.claude/skills/e/SKILL.md")
}

// TestFindSkillsTrust: the operator's go before the user's, those before the project's, and what calls could change is of
// the project, wherever it is reached from.
func TestFindSkillsTrust(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	for _, dir := range []string{"out/team", "home/.claude/skills", "work/.claude/skills"} {
		for _, name := range []string{"a", "b", "c"}[:map[string]int{"out/team": 1, "home/.claude/skills": 2, "work/.claude/skills": 3}[dir]] {
			b.write(dir+"/"+name+"/SKILL.md", "of "+dir)
		}
	}
	b.trust("out/team", skills.Operator)
	b.trust("home/.claude/skills", skills.User)
	b.write("work/mine/d/SKILL.md", "a file of the workspace")
	b.link("home/.claude/skills/d", b.path("work/mine/d"))
	b.link("home/.claude/skills/e", b.path("out/team/a"))
	b.link("home/.claude/skills/f", b.path("out/private"))
	b.write("out/private/SKILL.md", "of no area")
	set, err := b.FindSkills(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	trusts := map[string]skills.Trust{}
	for _, k := range set.Skills {
		trusts[k.Name] = k.Trust
	}
	want := map[string]skills.Trust{"a": skills.Operator, "b": skills.User, "c": skills.Project, "d": skills.Project, "e": skills.User}
	for name, trust := range want {
		if got, ok := trusts[name]; !ok || got != trust {
			t.Errorf("%s: trust %v, found %v", name, got, ok)
		}
	}
	if len(trusts) != len(want) {
		t.Errorf("found are %v", trusts)
	}
}

// A skill of the user that had a name in the workspace, too, was the user's, though any call could change it there.
func TestFindSkillsHardLinked(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	b.write("home/.claude/skills/a/SKILL.md", "text")
	b.write("home/.claude/skills/b/SKILL.md", "text")
	b.trust("home/.claude/skills", skills.User)
	if err := os.Link(b.path("home/.claude/skills/a/SKILL.md"), b.path("work/notes.md")); err != nil {
		noLinks(t, err)
	}
	b.write("work/.claude/x", "")
	if err := os.Link(b.path("home/.claude/skills/b/SKILL.md"), b.path("work/.claude/b.md")); err != nil {
		t.Fatal(err)
	}
	set, err := b.FindSkills(t.Context())
	if err != nil || len(set.Skills) != 2 || set.Skills[0].Trust != skills.Project || set.Skills[1].Trust != skills.User {
		t.Errorf("%+v, %v", set.Skills, err)
	}
}

// A skill of the user lent its rules though it had a name in the workspace that was too deep, or behind too many files, to be
// found: any call could change it there.
func TestFindSkillsHardLinkedUnseen(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	b.write("home/.claude/skills/a/SKILL.md", "text")
	b.write("home/.claude/skills/b/SKILL.md", "text")
	b.trust("home/.claude/skills", skills.User)
	deep := "work" + strings.Repeat("/d", 210)
	b.write(deep+"/x", "")
	if err := os.Link(b.path("home/.claude/skills/a/SKILL.md"), b.path(deep+"/notes.md")); err != nil {
		noLinks(t, err)
	}
	set, err := b.FindSkills(t.Context())
	if err != nil || len(set.Skills) != 2 || set.Skills[0].Trust != skills.Project || set.Skills[1].Trust != skills.User {
		t.Errorf("%+v, %v", set.Skills, err)
	}
}

// TestFindSkillsInRoot: a trusted directory in a root is one of the project, unless a person must allow every change in it.
func TestFindSkillsInRoot(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]skills.Trust{"work/team": skills.Project, "work/.claude/skills": skills.User} {
		b := newBench(t, permission.Options{})
		b.write(dir+"/a/SKILL.md", "text")
		b.trust(dir, skills.User)
		set, err := b.FindSkills(t.Context())
		if err != nil || len(set.Skills) != 1 || set.Skills[0].Trust != want {
			t.Errorf("%s: %+v, %v", dir, set.Skills, err)
		}
	}
	b := newBench(t, permission.Options{})
	own := newBench(t, permission.Options{Own: []string{b.path("work/team")}})
	b.Rules = own.Rules.At(b.Space.Roots(), b.Space.Cwd())
	b.write("work/team/a/SKILL.md", "text")
	b.trust("work/team", skills.Operator)
	set, err := b.FindSkills(t.Context())
	if err != nil || len(set.Skills) != 1 || set.Skills[0].Trust != skills.Operator {
		t.Errorf("codehand's own: %+v, %v", set.Skills, err)
	}
}

func TestFindSkillsErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	b.write("work/.claude/commands/a.md", "text")
	b.Files = filestate.New(filestate.Options{Memory: lostMemory{}, Dir: t.TempDir()})
	if _, err := b.FindSkills(t.Context()); !errors.Is(err, filestate.ErrMemory) {
		t.Errorf("without the Store: %v", err)
	}
	b.Files = nil
	b.want("of no session", "a=work/.claude/commands/a.md")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.FindSkills(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if set, err := (&session.State{}).FindSkills(t.Context()); err != nil || set.Skills != nil {
		t.Errorf("of nothing: %v, %v", set, err)
	}
}

// A lostMemory fails.
type lostMemory struct{ filestate.Memory }

func (lostMemory) Keys(context.Context, string) ([]string, error) { return nil, errors.New("away") }

// TestVisible: what lies outside, what rules are about, under any of its names, and what is no regular file is not there.
func TestVisible(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{
		Deny: []permission.Rule{{Text: "Read(denied/**)"}}, Ask: []permission.Rule{{Text: "Read(asked/**)"}},
	})
	b.write("work/a.txt", "a")
	b.write("work/denied/a.txt", "secret")
	b.write("work/asked/a.txt", "secret")
	b.write("out/a.txt", "secret")
	b.write("work/dir/b.txt", "b")
	b.link("work/in", b.path("work/dir"))
	b.link("work/to", b.path("out"))
	b.link("work/to.txt", "../out/a.txt")
	b.link("work/hidden", "denied")
	b.link("work/nowhere", "none")
	hard := os.Link(b.path("work/denied/a.txt"), b.path("work/hard.txt")) == nil
	v := b.Visible()
	infos, err := v.ReadDir(b.path("work"), 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, info := range infos {
		kind := "file"
		if info.IsDir() {
			kind = "dir"
		}
		got = append(got, kind+" "+info.Name())
	}
	// `denied/**` hides what is below the directory, and not its name.
	if want := "file a.txt, dir asked, dir denied, dir dir, dir hidden, dir in"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if some, err := v.ReadDir(b.path("work"), 2); err != nil || len(some) != 2 || some[0].Name() != "a.txt" {
		t.Errorf("two of them: %v, %v", some, err)
	}
	paths := []string{"work/denied/a.txt", "work/asked/a.txt", "work/hidden/a.txt", "work/to.txt", "work/to/a.txt", "out/a.txt", "work/nowhere", "work/none"}
	if hard {
		paths = append(paths, "work/hard.txt")
	}
	for _, path := range paths {
		if f, err := v.Open(b.path(path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	for _, path := range []string{"work/denied", "work/hidden"} {
		if infos, err := v.ReadDir(b.path(path), 10); err == nil && len(infos) > 0 {
			t.Errorf("in %s there are %v", path, infos)
		}
	}
	for _, path := range []string{"work/to", "out", "work/a.txt"} {
		if infos, err := v.ReadDir(b.path(path), 10); err == nil {
			t.Errorf("%s is listed: %v", path, infos)
		}
	}
	if _, err := v.Open(b.path("work/dir")); err == nil {
		t.Error("a directory is opened")
	}
	for _, path := range []string{"work/a.txt", "work/in/b.txt"} {
		f, err := v.Open(b.path(path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if info, err := f.Stat(); err != nil || info.Size() != 1 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
		_ = f.Close()
	}
}

// A skill of a repository read the .env of its workspace to the model, by a link or a hard link, and no person was
// asked.
func TestVisibleNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	b.write("work/.env", "secret")
	b.write("work/.ssh/config", "secret")
	b.write("work/.env.example", "for all")
	b.write("work/.claude/skills/good/SKILL.md", "text")
	b.link("work/.claude/skills/link/SKILL.md", "../../../.env")
	b.link("work/.claude/skills/keys", "../../.ssh")
	b.link("work/.claude/skills/good/e.txt", "../../../.env")
	b.link("work/.claude/skills/sample/SKILL.md", "../../../.env.example")
	b.write("work/.claude/skills/hard/a.txt", "a")
	if err := os.Link(b.path("work/.env"), b.path("work/.claude/skills/hard/SKILL.md")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Log("hard links cannot be made here: ", err)
	}
	b.want("none is a secret", "good=work/.claude/skills/good/SKILL.md", "sample=work/.claude/skills/sample/SKILL.md")
	for _, path := range []string{"work/.env", "work/.ssh/config", "work/.claude/skills/link/SKILL.md", "work/.claude/skills/good/e.txt", "work/.claude/skills/hard/SKILL.md"} {
		if f, err := b.Visible().Open(b.path(path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
}

// TestVisibleNeverBlocks: the test hangs if a FIFO is opened for reading.
func TestVisibleNeverBlocks(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{})
	b.write("work/.claude/skills/x/a", "")
	fifo(t, b.path("work/.claude/skills/x/SKILL.md"))
	fifo(t, b.path("work/.claude/commands"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.want("only pipes")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}

// BenchmarkFindSkills is 500 skills of a project with patterns, seen from deep in it, after 50 files were read.
func BenchmarkFindSkills(b *testing.B) {
	base := b.TempDir()
	write := func(rel, text string) {
		path := filepath.Join(base, filepath.FromSlash(rel))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 500 {
		write(fmt.Sprintf(".claude/skills/s%d/SKILL.md", i), "---\npaths: src/none/*.go\n---\ntext")
		write(fmt.Sprintf(".git/f%d", i), "")
	}
	const deep = "a/b/c/d/e/f/g/h"
	for i := range 50 {
		write(fmt.Sprintf("%s/%d.go", deep, i), "package h")
	}
	space, err := workspace.Open([]string{base}, workspace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer space.Close()
	policy, err := permission.New(permission.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := &session.State{
		Space: space.At(filepath.Join(base, deep)), Rules: policy.At(space.Roots(), base), Skills: skills.New(),
		Files: filestate.New(filestate.Options{Dir: b.TempDir(), Fast: true}),
	}
	for i := range 50 {
		f, err := s.Open(filepath.Join(base, deep, fmt.Sprint(i)+".go"), workspace.Read)
		if err != nil {
			b.Fatal(err)
		}
		r, err := s.Files.Open(b.Context(), f)
		if err == nil {
			_, err = r.Saw(b.Context())
			_ = r.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
	for b.Loop() {
		if _, err := s.FindSkills(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// noLinks skips what needs links where the file system has none. In CI it has.
func noLinks(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip("links cannot be made here: ", err)
}

// A directory that was resolved is listed, and a link stands in its place by then, for a moment: the names that it leads
// to are not taken for those of the directory.
func TestVisibleOfASwappedDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t, permission.Options{Deny: []permission.Rule{{Text: "Read(denied/**)", Origin: "test"}}})
	b.write("work/d/plain", "")
	b.write("work/d/both", "")
	b.write("work/denied/both", "")
	b.link("work/next", "denied")
	swap := func() error {
		return errors.Join(os.Rename(b.path("work/d"), b.path("work/away")), os.Rename(b.path("work/next"), b.path("work/d")))
	}
	back := func() error {
		return errors.Join(os.Rename(b.path("work/d"), b.path("work/next")), os.Rename(b.path("work/away"), b.path("work/d")))
	}
	opens := 0
	b.Space = b.Space.Guarded(func(workspace.Opened) error {
		switch opens++; opens {
		case 1:
			return swap()
		case 2:
			return back()
		}
		return nil
	})
	names, err := b.Visible().ReadDir(b.path("work/d"), 10)
	if !errors.Is(err, fs.ErrNotExist) || len(names) > 0 {
		t.Errorf("listed %d names, %v", len(names), err)
	}
}
