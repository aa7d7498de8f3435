package skills_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/skills"
)

// One hostile directory beside a good skill: it is contained, and the good one is found.
func TestHostileTree(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "SKILL.md"), "---\ndescription: from outside\n---\n")
	write(t, filepath.Join(outside, "secret.txt"), "secret")
	d, x := newDisk(t, t.TempDir()), skills.New()
	at := func(path string) string { return filepath.Join(d.dir, filepath.FromSlash(path)) }
	write(t, at("good/SKILL.md"), "---\nname: good\ndescription: d\n---\ntext\n")
	write(t, at("shell/SKILL.md"), "---\ndescription: d\n---\n!`touch /tmp/x`\n\n```!\ntouch /tmp/y\n```\n")
	write(t, at("huge/SKILL.md"), "---\ndescription: d\n---\n"+strings.Repeat("x", 2<<20))
	write(t, at("bomb/SKILL.md"), "---\na: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n---\n")
	write(t, at("dir/SKILL.md/SKILL.md"), "text")
	write(t, at("none/README.md"), "no skill")
	write(t, at(".hidden/SKILL.md"), "not looked at")
	write(t, at("SKILL.md"), "a file, no directory")
	write(t, at("bad name/SKILL.md"), "text")
	link(t, outside, at("out"))
	link(t, strings.Repeat("../", strings.Count(d.dir, string(filepath.Separator)))+"etc", at("up"))
	link(t, "self", at("self"))
	if err := os.Mkdir(at("linked"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(outside, "SKILL.md"), at("linked/SKILL.md"))
	link(t, "good", at("twin"))
	set := scan(t, x, d, "")
	if got := names(set); got != "good shell twin" {
		t.Errorf("got %s", got)
	}
	var reasons []string
	for _, r := range set.Dropped {
		rel, _ := filepath.Rel(d.dir, r.Path)
		reasons = append(reasons, filepath.ToSlash(rel)+": "+r.Reason)
	}
	want := `bad name/SKILL.md: The skill is left out: a skill cannot be named "bad name".
bomb/SKILL.md: The skill is left out: its front matter is nested too deeply or has too many values.
dir/SKILL.md: The skill is left out: it cannot be read: not a regular file.
huge/SKILL.md: The skill is left out: it has more than 1 MiB.`
	if got := strings.Join(reasons, "\n"); got != want {
		t.Errorf("dropped\n%s\nwant\n%s", got, want)
	}
	shell, _ := set.Find("shell")
	body, err := x.Body(t.Context(), d, shell)
	if err != nil {
		t.Fatal(err)
	}
	r, err := skills.Render(shell, body, skills.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.Text(nil); err != nil || text != skills.Disabled+"\n\n"+skills.Disabled+"\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestHostileFiles(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret.txt"), "secret")
	d, x := newDisk(t, t.TempDir()), skills.New()
	at := func(path string) string { return filepath.Join(d.dir, "s", filepath.FromSlash(path)) }
	write(t, at("SKILL.md"), "text")
	write(t, at("a/b/c.md"), "c")
	write(t, at("a-b.md"), "ab")
	write(t, at(".git/config"), "not a file of the skill")
	link(t, ".", at("loop"))
	link(t, "..", at("a/up"))
	link(t, "../..", at("a/b/top"))
	link(t, "../../../..", at("a/b/out"))
	link(t, outside, at("abroad"))
	link(t, filepath.Join(outside, "secret.txt"), at("secret.txt"))
	link(t, "nowhere", at("dead"))
	link(t, "SKILL.md", at("alias.md"))
	write(t, filepath.Join(d.dir, "shared", "x.md"), "x")
	link(t, "../shared", at("shared"))
	s, _ := scan(t, x, d, "").Find("s")
	want := "SKILL.md a-b.md a/b/c.md alias.md shared/x.md"
	files, more, err := x.Files(t.Context(), d, s, 50)
	if err != nil || more || strings.Join(files, " ") != want {
		t.Errorf("got %q, %v, %v; want %s", files, more, err, want)
	}
	if files, more, err = x.Files(t.Context(), d, s, 2); err != nil || !more || strings.Join(files, " ") != "SKILL.md a-b.md" {
		t.Errorf("got %q, %v, %v", files, more, err)
	}
	entries, complete, err := x.Manifest(t.Context(), d, s, 1<<40)
	if err != nil || !complete || len(entries) != 5 {
		t.Fatalf("got %v, %v, %v", entries, complete, err)
	}
	sum := sha256.Sum256([]byte("ab"))
	if e := entries[1]; e != (skills.ManifestEntry{Path: "a-b.md", Size: 2, SHA256: hex.EncodeToString(sum[:])}) {
		t.Errorf("got %+v", e)
	}
}

// renamed is Files that knows links by another info than the system's.
type renamed struct{ *disk }

func (r renamed) ReadDir(path string, limit int) ([]fs.FileInfo, error) {
	infos, err := r.disk.ReadDir(path, limit)
	for i := range infos {
		infos[i] = wrapped{infos[i]}
	}
	return infos, err
}

type wrapped struct{ fs.FileInfo }

func (w wrapped) Target() fs.FileInfo { return w.FileInfo }

func TestCirclesBehindOtherInfos(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	write(t, skillFile(d, "", "s"), "text")
	link(t, ".", filepath.Join(d.dir, "s", "loop"))
	set, err := x.Scan(t.Context(), renamed{d}, []skills.Dir{{Path: d.dir}})
	if err != nil || names(set) != "s" {
		t.Fatalf("got %+v, %v", set, err)
	}
	if files, more, err := x.Files(t.Context(), renamed{d}, set.Skills[0], 50); err != nil || more || len(files) != 1 {
		t.Errorf("got %q, more %v, %v", files, more, err)
	}
}

// Links in a circle of several directories have more ways than there are entries allowed.
func TestLinksThatMultiply(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	write(t, skillFile(d, "", "s"), "text")
	for i := range 8 {
		write(t, filepath.Join(d.dir, "s", fmt.Sprint(i), "f.md"), "text")
		for k := range 8 {
			link(t, "../"+fmt.Sprint(k), filepath.Join(d.dir, "s", fmt.Sprint(i), fmt.Sprintf("to%d", k)))
		}
	}
	s := scan(t, x, d, "").Skills[0]
	if files, more, err := x.Files(t.Context(), d, s, 50); err != nil || !more || len(files) != 50 {
		t.Errorf("got %d files, more %v, %v", len(files), more, err)
	}
}

func TestManifestBounds(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	write(t, skillFile(d, "", "many"), "text")
	for i := range 512 {
		write(t, filepath.Join(d.dir, "many", "f", fmt.Sprint(i)), "")
	}
	write(t, skillFile(d, "", "big"), "text")
	for i := range 3 {
		write(t, filepath.Join(d.dir, "big", fmt.Sprintf("x%d", i)), strings.Repeat("x", 8<<20))
		age(t, filepath.Join(d.dir, "big", fmt.Sprintf("x%d", i)), time.Hour)
	}
	set := scan(t, x, d, "")
	many, _ := set.Find("many")
	if entries, complete, err := x.Manifest(t.Context(), d, many, 1<<40); err != nil || complete || len(entries) != 512 {
		t.Errorf("got %d entries, complete %v, %v", len(entries), complete, err)
	}
	if err := os.Remove(filepath.Join(d.dir, "many", "f", "0")); err != nil {
		t.Fatal(err)
	}
	if entries, complete, err := x.Manifest(t.Context(), d, many, 1<<40); err != nil || !complete || len(entries) != 512 {
		t.Errorf("got %d entries, complete %v, %v", len(entries), complete, err)
	}
	big, _ := set.Find("big")
	for range 2 { // the second time from memory
		if entries, complete, err := x.Manifest(t.Context(), d, big, 1<<40); err != nil || complete || len(entries) != 2 {
			t.Errorf("got %d entries, complete %v, %v", len(entries), complete, err)
		}
	}
	before := d.reads.Load()
	if _, _, err := x.Manifest(t.Context(), d, big, 1<<40); err != nil || d.reads.Load()-before > 1<<10 {
		t.Errorf("%d bytes were read again, %v", d.reads.Load()-before, err)
	}
	if err := os.Remove(skillFile(d, "", "big")); err != nil {
		t.Fatal(err)
	}
	scan(t, x, d, "")
	if _, _, err := x.Manifest(t.Context(), d, big, 1<<40); err != nil || d.reads.Load()-before < 8<<20 {
		t.Errorf("digests of a skill that is not there were remembered, %v", err)
	}
}

func TestManyOfEverything(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	for i := range 720 {
		write(t, skillFile(d, "many", fmt.Sprintf("s%03d", i)), "text")
	}
	set := scan(t, x, d, "many")
	if len(set.Skills) != 500 || set.Skills[499].Name != "s499" || len(set.Dropped) != 200 {
		t.Errorf("got %d skills, %d dropped", len(set.Skills), len(set.Dropped))
	}
	if got := set.Dropped[0].Reason; got != "The skill is left out: there are 500 skills already." {
		t.Error(got)
	}
}

// A directory of 100,000 files, of which none is made: what counts is how many are looked at.
func TestDirectoryOfManyFiles(t *testing.T) {
	t.Parallel()
	many := &crowd{}
	set, err := skills.New().Scan(t.Context(), many, []skills.Dir{{Path: "/crowd"}, {Path: "/crowd", Flat: true}})
	if err != nil || len(set.Skills) != 0 {
		t.Fatalf("got %+v, %v", set, err)
	}
	if many.asked > 2001 || many.opened > 2000 {
		t.Errorf("%d entries were asked for, %d files opened", many.asked, many.opened)
	}
	if len(set.Dropped) != 2 || !strings.Contains(set.Dropped[0].Reason, "more than 2000 entries") {
		t.Errorf("got %+v", set.Dropped)
	}
	files, more, err := skills.New().Files(t.Context(), many, skills.Skill{Dir: "/crowd"}, 50)
	if err != nil || !more || len(files) != 0 {
		t.Errorf("got %d files, more %v, %v", len(files), more, err)
	}
}

// Directories of skills in each of many directories made every call that looks for skills take 0.1 ms for each entry.
func TestManyDirectories(t *testing.T) {
	t.Parallel()
	many := &crowd{}
	var dirs []skills.Dir
	for i := range 20 {
		dirs = append(dirs, skills.Dir{Path: fmt.Sprintf("/%02d/crowd", i)})
	}
	set, err := skills.New().Scan(t.Context(), many, dirs)
	if err != nil || many.all > 5003 || many.opened > 5000 {
		t.Errorf("%d entries were asked for, %d files opened, %v", many.all, many.opened, err)
	}
	if n := len(set.Dropped); n != 4 || !strings.Contains(set.Dropped[2].Reason, "more than 1000 entries") || !strings.Contains(set.Dropped[3].Reason, "5000 entries of other directories") {
		t.Errorf("got %+v", set.Dropped)
	}
}

// A crowd is a directory with as many empty directories as the reader asks for, up to 100,000.
type crowd struct{ asked, all, opened int } // asked is the most at once

func (c *crowd) ReadDir(path string, limit int) ([]fs.FileInfo, error) {
	c.asked, c.all = max(c.asked, limit), c.all+limit
	if filepath.Base(path) != "crowd" {
		return nil, nil
	}
	var out []fs.FileInfo
	for i := range min(limit, 100_000) {
		out = append(out, member(fmt.Sprintf("d%06d", i)))
	}
	return out, nil
}

func (c *crowd) Open(string) (fs.File, error) {
	c.opened++
	return nil, fs.ErrNotExist
}

// A member is a directory that has only a name.
type member string

func (m member) Name() string     { return string(m) }
func (member) Size() int64        { return 0 }
func (member) Mode() fs.FileMode  { return fs.ModeDir | 0o755 }
func (member) ModTime() time.Time { return time.Time{} }
func (member) IsDir() bool        { return true }
func (member) Sys() any           { return nil }

// The file is another one when its text is asked for.
func TestReplacedBetweenScanAndBody(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	file := skillFile(d, "", "s")
	write(t, file, "---\ndescription: d\n---\nold\n")
	s := scan(t, x, d, "").Skills[0]
	write(t, file, "---\ndescription: e\n---\nnew\n")
	if body, err := x.Body(t.Context(), d, s); err != nil || body != "new\n" {
		t.Errorf("got %q, %v", body, err)
	}
	for name, c := range map[string]struct {
		make func() error
		want error
	}{
		"too large":    {func() error { return os.WriteFile(file, make([]byte, 2<<20), 0o644) }, skills.ErrTooLarge},
		"binary":       {func() error { return os.WriteFile(file, []byte{0, 1}, 0o644) }, skills.ErrNotText},
		"a directory":  {func() error { return os.Mkdir(file, 0o755) }, errKind},
		"gone":         {func() error { return nil }, fs.ErrNotExist},
		"link outside": {func() error { return os.Symlink("/etc/passwd", file) }, fs.ErrNotExist},
	} {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Body(t.Context(), d, s); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	list := []skills.Skill{
		{Name: "a", Description: "Does\n  a.", WhenToUse: "Then."}, {Name: "b"}, {Name: "c", WhenToUse: "Now."}, {Name: "d", Description: "D."},
	}
	if got, want := skills.List(list), "a: Does a. - Then.\nb\nc: Now.\nd: D.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := skills.List(nil); got != "" {
		t.Errorf("got %q of nothing", got)
	}
	long := skills.Skill{Name: "long", Description: strings.Repeat("é", 5000)}
	if got := []rune(skills.List([]skills.Skill{long})); len(got) != 1537 || got[1535] != '…' {
		t.Errorf("got %d characters", len(got))
	}
	list = []skills.Skill{{Name: "short", Description: "Short."}}
	for i := range 20 {
		list = append(list, skills.Skill{Name: fmt.Sprintf("long-%02d", i), Description: strings.Repeat("word ", 200)})
	}
	got := skills.List(list)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if n := len([]rune(got)); n > 8000 || n < 7900 || lines[0] != "short: Short." {
		t.Errorf("got %d characters that begin %.40q", n, got)
	}
	for _, line := range lines[1:] {
		if n, first := len([]rune(line)), len([]rune(lines[1])); n != first || !strings.HasSuffix(line, "…") {
			t.Errorf("lines of %d and %d characters", n, first)
		}
	}
	list = nil
	for i := range 500 {
		list = append(list, skills.Skill{Name: fmt.Sprintf("%s-%03d", strings.Repeat("n", 60), i), Description: "d"})
	}
	if lines := strings.Fields(skills.List(list)); len(lines) != 500 || lines[499] != list[499].Name {
		t.Errorf("%d names are left", len(lines))
	}
}

// A skill with 60,000 braces made every call that looks for skills take a second longer, and so did 16,000 alternatives.
func TestMatchesIsBounded(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{
		"closed": strings.Repeat("}", 500_000), "opened once": "{" + strings.Repeat("}", 500_000), "pairs": strings.Repeat("{}", 250_000),
	} {
		start := time.Now()
		skills.Skill{Paths: []string{pattern}}.Matches("a")
		if d := time.Since(start); leaktest.Long() && d > 30*time.Second { // what looks at every brace for each brace takes a minute or more, and this milliseconds
			t.Errorf("%s: %v", name, d)
		}
	}
	if many := append(slices.Repeat([]string{"b{c,d}"}, 50), "a"); (skills.Skill{Paths: many}).Matches("a") || !(skills.Skill{Paths: many[1:]}).Matches("a") {
		t.Error("not the first 100 patterns count")
	}
}

// An index kept the whole text of each skill whose description was its first line: 500 MiB for each session.
func TestIndexKeepsNoBodies(t *testing.T) { // alone, as it measures
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	d, x := newDisk(t, t.TempDir()), skills.New()
	for i := range 20 {
		head := []string{"First line.\n", "---\ndescription: a: b [c\n---\n"}[i%2]
		write(t, filepath.Join(d.dir, fmt.Sprintf("s%d/SKILL.md", i)), head+strings.Repeat("x", 1<<20-100))
	}
	before := heap()
	if set := scan(t, x, d, ""); len(set.Skills) != 20 {
		t.Fatalf("found are %d", len(set.Skills))
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("20 skills of 1 MiB keep %d KiB", (after-before)>>10)
	}
	runtime.KeepAlive(x)
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns, touched string
		want              bool
	}{
		{"", "", true},
		{"", "a.go", true},
		{"**/*.go", "", false},
		{"**/*.go", "a.go", true},
		{"**/*.go", "x.md a/b/c.go", true},
		{"*.go", "a/b.go", true},
		{"src/**", "src/a/b", true},
		{"src/**", "lib/src/a", false},
		{"src", "src/a/b", true},
		{"src/", "src", false},
		{"/a.md", "b/a.md", false},
		{"./src/*.ts", "src/a.ts", true},
		{"src/**/*.{ts,tsx}", "src/a/b.tsx", true},
		{"src/**/*.{ts,tsx}", "src/a/b.js", false},
		{"{a,b{c,d}}/x", "bd/x", true},
		{"{a}", "{a}", true},
		{"*.go !vendor/ !*_test.go", "a_test.go", false},
		{"*.go !*_test.go", "a.go", true},
		{"*", "../x /y . ..", false},
		{"*.go", "./a/../b.go", true},
		{"# #", "#", false},
		{"{a},b}", "b", true},
		{strings.Repeat("{a,b}", 20), strings.Repeat("a", 20), false}, // a million: stays as it is
	} {
		s := skills.Skill{Paths: strings.Fields(c.patterns)}
		if got := s.Matches(strings.Fields(c.touched)...); got != c.want {
			t.Errorf("%q for %q: got %v", c.patterns, c.touched, got)
		}
	}
	s := one(t, "---\ndescription: d\npaths:\n  - src/my file.md\n  - 'a,b'\n---\n")
	if !slices.Equal(s.Paths, []string{"src/my file.md", "a,b"}) || !s.Matches("src/my file.md") {
		t.Errorf("got %q", s.Paths)
	}
}
