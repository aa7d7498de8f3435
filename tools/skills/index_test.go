package skills_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/tools/skills"
)

// age makes a file so old that its modification time can be trusted.
func age(t testing.TB, path string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// skillFile is where a skill of a directory has its file.
func skillFile(d *disk, dir, name string) string { return filepath.Join(d.dir, dir, name, "SKILL.md") }

func TestPrecedence(t *testing.T) {
	t.Parallel()
	d := newDisk(t, t.TempDir())
	for _, file := range []string{"operator/a", "user/a", "user/b", "project/a", "project/b", "project/c"} {
		dir, name := filepath.Split(file)
		write(t, skillFile(d, dir, name), "---\ndescription: of "+dir+"\n---\n")
	}
	write(t, filepath.Join(d.dir, "commands", "c.md"), "a command")
	write(t, filepath.Join(d.dir, "commands", "d.md"), "another")
	write(t, filepath.Join(d.dir, "commands", "e", "f.md"), "not looked at")
	write(t, filepath.Join(d.dir, "commands", "g.txt"), "not Markdown")
	dirs := []skills.Dir{
		{Path: filepath.Join(d.dir, "operator"), Trust: skills.Operator}, {Path: filepath.Join(d.dir, "user"), Trust: skills.User},
		{Path: filepath.Join(d.dir, "project")}, {Path: filepath.Join(d.dir, "commands"), Flat: true}, {Path: filepath.Join(d.dir, "none")},
		{Path: filepath.Join(d.dir, "user") + "/", Trust: skills.Project}, // named twice: no clash
	}
	set, err := skills.New().Scan(t.Context(), d, dirs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range set.Skills {
		got = append(got, fmt.Sprintf("%s %q %d", s.Name, s.Description, s.Trust))
	}
	want := `a "of operator/" 2|b "of user/" 1|c "of project/" 0|d "another" 0`
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	var reasons []string
	for _, r := range set.Dropped {
		rel, _ := filepath.Rel(d.dir, r.Path)
		reasons = append(reasons, filepath.ToSlash(rel)+": "+strings.ReplaceAll(filepath.ToSlash(r.Reason), filepath.ToSlash(d.dir)+"/", ""))
	}
	want = `commands/c.md: The skill is left out: project/c/SKILL.md has its name and goes first.
project/a/SKILL.md: The skill is left out: operator/a/SKILL.md has its name and goes first.
project/b/SKILL.md: The skill is left out: user/b/SKILL.md has its name and goes first.
user/a/SKILL.md: The skill is left out: operator/a/SKILL.md has its name and goes first.`
	if got := strings.Join(reasons, "\n"); got != want {
		t.Errorf("dropped\n%s\nwant\n%s", got, want)
	}
	if s, ok := set.Find("b"); !ok || s.Trust != skills.User {
		t.Errorf("found %+v, %v", s, ok)
	}
	if _, ok := set.Find("x"); ok {
		t.Error("found a skill that there is not")
	}
}

// A skill of the user that breaks is no chance for one of the project.
func TestBrokenKeepsItsName(t *testing.T) {
	t.Parallel()
	d := newDisk(t, t.TempDir())
	write(t, skillFile(d, "user", "deploy"), "---\nnever closed\n")
	write(t, skillFile(d, "project", "deploy"), "---\ndescription: evil\n---\n")
	if set := scan(t, skills.New(), d, "user", "project"); len(set.Skills) != 0 || len(set.Dropped) != 2 {
		t.Errorf("got %+v, want both dropped", set)
	}
}

func TestReadAgainWhenChanged(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	file := skillFile(d, "", "s")
	reads := func(want string) bool {
		t.Helper()
		before := d.reads.Load()
		set := scan(t, x, d, "")
		if len(set.Skills) != 1 || set.Skills[0].Description != want {
			t.Errorf("got %+v, want one that says %q", set, want)
		}
		return d.reads.Load() > before
	}
	says := func(want string, read bool) {
		t.Helper()
		if reads(want) != read {
			t.Errorf("it was read: %v, want %v", !read, read)
		}
	}
	write(t, file, "one")
	age(t, file, time.Hour)
	says("one", true)
	says("one", false)
	for { // the same size; the time is now
		written := time.Now()
		write(t, file, "two")
		says("two", true)
		again := reads("two") // young: unknown
		if time.Since(written) > time.Second {
			continue // the file is young no more, so slow is this machine
		}
		if !again {
			t.Error("it was not read again")
		}
		break
	}
	age(t, file, time.Hour)
	says("two", true)
	says("two", false)
	// The same size and time in another file.
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(d.dir, "other")
	write(t, other, "six")
	if err := os.Chtimes(other, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, file); err != nil {
		t.Fatal(err)
	}
	says("six", true)
	says("six", false)
	// A scan of another place removes nothing.
	if set := scan(t, x, d, "elsewhere"); len(set.Skills) != 0 {
		t.Errorf("got %+v", set)
	}
	says("six", false)
	// Another size with the old time.
	write(t, file, "seven")
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	says("seven", true)
	// A file from the future stays unknown.
	age(t, file, -time.Hour)
	says("seven", true)
	says("seven", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if set := scan(t, x, d, ""); len(set.Skills)+len(set.Dropped) != 0 {
		t.Errorf("got %+v after the file was removed", set)
	}
}

// Two sessions in two repositories read all their skills, and all digests of their files, anew at every call.
func TestScansElsewhere(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	for _, dir := range []string{"a", "b"} {
		for _, name := range []string{"s", "u"} {
			write(t, skillFile(d, dir, name), "of "+dir)
			age(t, skillFile(d, dir, name), time.Hour)
		}
	}
	look := func(dir string, want int) {
		t.Helper()
		before := d.reads.Load()
		set := scan(t, x, d, dir)
		if names(set) != "s u" || set.Skills[0].Description != "of "+dir {
			t.Fatalf("%s: got %+v", dir, set)
		}
		for _, k := range set.Skills {
			if _, complete, err := x.Manifest(t.Context(), d, k, 1<<40); err != nil || !complete {
				t.Fatalf("%s: %v, %v", dir, complete, err)
			}
		}
		if read := d.reads.Load() - before; read != int64(want) {
			t.Errorf("%s: %d bytes were read, want %d", dir, read, want)
		}
	}
	look("a", 16) // once for what they say, once for the digests
	look("b", 16)
	look("a", 0)
	look("b", 0)
	if got := x.Known(); got != 4 {
		t.Errorf("%d files are known, want 4", got)
	}
	// What is gone from a directory that was looked at is forgotten.
	if err := os.RemoveAll(filepath.Join(d.dir, "a", "u")); err != nil {
		t.Fatal(err)
	}
	scan(t, x, d, "a")
	if got := x.Known(); got != 3 {
		t.Errorf("%d files are known, want 3", got)
	}
}

// What is known stays bounded however many directories are looked at, and each Scan keeps what it needs itself.
func TestScansBounded(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	const dirs, each = 5, 450
	for i := range dirs {
		for j := range each {
			write(t, filepath.Join(d.dir, fmt.Sprint(i), fmt.Sprintf("s%d.md", j)), "text")
		}
		if _, err := x.Scan(t.Context(), d, []skills.Dir{{Path: filepath.Join(d.dir, fmt.Sprint(i)), Flat: true}}); err != nil {
			t.Fatal(err)
		}
		if got := x.Known(); got > 2000 || got < each {
			t.Errorf("after %d directories %d files are known", i+1, got)
		}
	}
	if got := x.Known(); got != each {
		t.Errorf("%d files are known, want those of the last directory alone", got)
	}
}

// The set of a Scan is the same whatever is remembered, and its place is that of this Scan.
func TestPlaceIsNotRemembered(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	write(t, skillFile(d, "a", "s"), "text")
	age(t, skillFile(d, "a", "s"), time.Hour)
	for _, trust := range []skills.Trust{skills.Operator, skills.Project} {
		set, err := x.Scan(t.Context(), d, []skills.Dir{{Path: filepath.Join(d.dir, "a"), Trust: trust}})
		if err != nil || len(set.Skills) != 1 || set.Skills[0].Trust != trust {
			t.Errorf("got %+v, %v; want trust %d", set, err, trust)
		}
	}
}

func TestScanStops(t *testing.T) {
	t.Parallel()
	d := newDisk(t, t.TempDir())
	write(t, skillFile(d, "", "s"), "text")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := skills.New()
	if _, err := x.Scan(ctx, d, []skills.Dir{{Path: d.dir}}); !errors.Is(err, context.Canceled) {
		t.Errorf("scan: %v", err)
	}
	s := scan(t, x, d, "").Skills[0]
	if _, err := x.Body(ctx, d, s); !errors.Is(err, context.Canceled) {
		t.Errorf("body: %v", err)
	}
	if _, _, err := x.Files(ctx, d, s, 50); !errors.Is(err, context.Canceled) {
		t.Errorf("files: %v", err)
	}
	if _, _, err := x.Manifest(ctx, d, s, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("manifest: %v", err)
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	for i := range 20 {
		write(t, skillFile(d, fmt.Sprint(i%2), fmt.Sprintf("s%d", i)), "---\ndescription: d\n---\ntext")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				set := scan(t, x, d, fmt.Sprint(i%2))
				if len(set.Skills) != 10 {
					t.Errorf("got %s", names(set))
					return
				}
				if _, complete, err := x.Manifest(t.Context(), d, set.Skills[i], 1<<40); err != nil || !complete {
					t.Errorf("manifest: %v, %v", complete, err)
				}
			}
		})
	}
	all.Wait()
}

// What a Files answers that has its errors, and infos of its own.
type odd struct {
	*disk
	list, open error
}

func (o odd) ReadDir(path string, limit int) ([]fs.FileInfo, error) {
	if o.list != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: o.list}
	}
	infos, err := o.disk.ReadDir(path, limit)
	for i := range infos {
		infos[i] = foreign{infos[i]}
	}
	return infos, err
}

func (o odd) Open(path string) (fs.File, error) {
	if o.open != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: o.open}
	}
	return o.disk.Open(path)
}

type foreign struct{ fs.FileInfo }

func TestErrorsOfFiles(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	write(t, skillFile(d, "", "s"), "text")
	for want, files := range map[string]odd{
		"its directory cannot be listed: permission denied.": {d, fs.ErrPermission, nil},
		"it cannot be read: permission denied.":              {d, nil, fs.ErrPermission},
	} {
		set, err := x.Scan(t.Context(), files, []skills.Dir{{Path: d.dir}})
		want = "The skill is left out: " + want
		if err != nil || len(set.Dropped) != 1 || set.Dropped[0].Reason != want {
			t.Errorf("got %+v, %v; want %q", set, err, want)
		}
	}
	set, err := x.Scan(t.Context(), odd{d, fs.ErrNotExist, nil}, []skills.Dir{{Path: d.dir}})
	if err != nil || len(set.Skills)+len(set.Dropped) != 0 {
		t.Errorf("got %+v, %v", set, err)
	}
	// Infos without an identity: links that lead back are bounded by levels.
	link(t, ".", filepath.Join(d.dir, "s", "loop"))
	set, err = x.Scan(t.Context(), odd{disk: d}, []skills.Dir{{Path: d.dir}})
	if err != nil || names(set) != "s" {
		t.Fatalf("got %+v, %v", set, err)
	}
	files, _, err := x.Files(t.Context(), odd{disk: d}, set.Skills[0], 50)
	if err != nil || len(files) < 2 || len(files) > 10 {
		t.Errorf("got %d files, %v", len(files), err)
	}
}

func BenchmarkScanUnchanged(b *testing.B) {
	d, x := newDisk(b, b.TempDir()), skills.New()
	for i := range 200 {
		file := skillFile(d, "", fmt.Sprintf("skill-%d", i))
		write(b, file, "---\nname: skill\ndescription: Does one thing.\nallowed-tools: Read, Grep\n---\n"+strings.Repeat("A line of the text.\n", 100))
		age(b, file, time.Hour)
	}
	scan(b, x, d, "")
	before := d.reads.Load()
	b.ReportAllocs()
	for b.Loop() {
		if set := scan(b, x, d, ""); len(set.Skills) != 200 {
			b.Fatal(len(set.Skills))
		}
	}
	if read := d.reads.Load() - before; read != 0 {
		b.Errorf("%d bytes were read again", read)
	}
}

func BenchmarkScanFresh(b *testing.B) {
	d := newDisk(b, b.TempDir())
	for i := range 200 {
		write(b, skillFile(d, "", fmt.Sprintf("skill-%d", i)), "---\nname: skill\ndescription: Does one thing.\nallowed-tools: Read, Grep\n---\n"+strings.Repeat("A line of the text.\n", 100))
	}
	b.ReportAllocs()
	for b.Loop() {
		if set := scan(b, skills.New(), d, ""); len(set.Skills) != 200 {
			b.Fatal(len(set.Skills))
		}
	}
}
