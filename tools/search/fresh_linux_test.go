//go:build linux

package search

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// freshSeed makes the same changes each time.
const freshSeed = 33

// Whatever another process does to a tree, a search of it that begins when that is done gives what a search without a
// memory gives: all answers, all counts. With CODEHAND_LONG=1 it is 10,000 changes.
func TestFresh(t *testing.T) {
	t.Parallel()
	rounds := leaktest.Rounds(25, 1800)
	f := &fresh{T: t, r: rand.New(rand.NewPCG(freshSeed, 1)), dir: newDir(t, nil)}
	change := f.otherProcess(newDir(t, nil).path)
	e := remembering(t)
	change(60)
	for round := range rounds {
		change(10)
		f.hold(e, round)
		if f.r.IntN(2) == 0 {
			e.Settle()
		}
	}
	s, done := e.Stats(), map[string]int{}
	for _, one := range f.trace {
		what, _, _ := strings.Cut(one, ": ")
		done[what]++
	}
	t.Logf("%+v, %d changes: %v", s, len(f.trace), done)
	if s.RuledOut < rounds || s.Listings < rounds || s.Calm < rounds && s.Watches > 0 || len(f.trace) < 5*rounds {
		t.Errorf("%+v: what was remembered was hardly used, so this test shows nothing", s)
	}
}

// A fresh compares answers after each of the changes of another process.
type fresh struct {
	*testing.T
	r     *rand.Rand
	dir   dir
	trace []string // the changes
}

// otherProcess starts one that changes the tree at random. change returns when it has tried so many changes.
func (f *fresh) otherProcess(outside string) (change func(n int)) {
	f.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFreshChanger$", "-test.count=1") //nolint:noctx // it ends with its input
	cmd.Env = append(os.Environ(), "CODEHAND_FRESH="+f.dir.path, "CODEHAND_FRESH_OUTSIDE="+outside)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		f.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	return func(n int) {
		f.Helper()
		_, err := fmt.Fprintln(in, n)
		line, readErr := answers.ReadBytes('\n')
		var done []string
		if err := errors.Join(err, readErr, json.Unmarshal(line, &done)); err != nil {
			f.Fatalf("the other process: %v: %s", err, line)
		}
		f.trace = append(f.trace, done...)
	}
}

// TestFreshChanger is that other process: of each line that it reads it makes so many changes, and answers with those
// that were possible.
func TestFreshChanger(t *testing.T) {
	dir := os.Getenv("CODEHAND_FRESH")
	if dir == "" {
		t.Skip("it is started by TestFresh")
	}
	c := &changer{r: rand.New(rand.NewPCG(freshSeed, 0)), dir: dir, outside: os.Getenv("CODEHAND_FRESH_OUTSIDE")}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		n, err := strconv.Atoi(in.Text())
		if err != nil {
			t.Fatal(err)
		}
		c.trace = []string{}
		for range n {
			c.change()
		}
		line, err := json.Marshal(c.trace)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line))
	}
}

// A changer changes a tree at random.
type changer struct {
	r            *rand.Rand
	dir, outside string
	trace        []string // the last changes
}

var (
	freshWords = []string{"alphabet", "Bordeaux", "carousel", "daffodil", "eggplant", "fountain", "gondolas", "hospital", "Iceland!", "jasmines"}
	freshNames = []string{"a", "b", "c.go", "d.go", "e.o", "f", ".env", "g"}
	freshDirs  = []string{"", "p", "q", "p/r", "p/r/s", "q/t", "build"}
)

// hold compares the answers of queries of many kinds.
func (f *fresh) hold(e *Engine, round int) {
	f.Helper()
	forgets := New(Options{})
	defer closeEngine(f, forgets)
	word := func() string { return freshWords[f.r.IntN(len(freshWords))] }
	scope := Scope{Place: f.dir.at(""), Ignored: f.r.IntN(4) == 0}
	if place := freshDirs[f.r.IntN(len(freshDirs))]; f.r.IntN(4) == 0 {
		if info, err := os.Lstat(filepath.Join(f.dir.path, place)); err == nil && info.IsDir() {
			scope.Place = f.dir.at(place)
		}
	}
	switch f.r.IntN(4) {
	case 0:
		scope.Globs = []string{"*.go"}
	case 1:
		scope.Skip = func(path string) bool { return strings.HasSuffix(path, "/b") || strings.HasSuffix(path, "/r") }
	}
	for _, q := range []GrepQuery{
		{Pattern: word(), Mode: Lines}, {Pattern: word(), Newest: true}, {Pattern: word() + "|" + word(), Mode: Count},
		{Pattern: strings.ToUpper(word()), Fold: true, Mode: Lines, After: 1}, {Pattern: word() + `\n\w+`, Multiline: true, Mode: Lines},
		{Pattern: `[a-h]{8}`, Mode: Lines}, {Pattern: `\w+` + word()[3:], Mode: Lines, Limit: 3},
	} {
		q.Scope = scope
		got, err1 := e.Grep(f.Context(), q)
		want, err2 := forgets.Grep(f.Context(), q)
		if q.Limit > 0 { // totals behind the limit may be lower bounds
			got.NFiles, got.NLines, got.Rest, got.Coverage = want.NFiles, want.NLines, want.Rest, want.Coverage
			got.Exact = want.Exact // one may have been at its end when the limit was reached
		}
		if !reflect.DeepEqual(got, want) || (err1 == nil) != (err2 == nil) {
			f.Fatalf("round %d, %q in %s: got %+v, %v\nwant %+v, %v\nlast changes: %s", round, q.Pattern, scope.Place.Path, got, err1, want, err2,
				strings.Join(f.trace[max(0, len(f.trace)-30):], "; "))
		}
	}
	got, err1 := e.Files(f.Context(), FileQuery{Scope: scope, Pattern: "**/*"})
	want, err2 := forgets.Files(f.Context(), FileQuery{Scope: scope, Pattern: "**/*"})
	if !reflect.DeepEqual(got, want) || (err1 == nil) != (err2 == nil) {
		f.Fatalf("round %d, files in %s: got %+v, %v\nwant %+v, %v\nlast changes: %s", round, scope.Place.Path, got, err1, want, err2,
			strings.Join(f.trace[max(0, len(f.trace)-30):], "; "))
	}
}

// text has words of one length, so that many texts have one size.
func (c *changer) text() []byte {
	var out []byte
	for range 1 + c.r.IntN(3) {
		out = append(out, freshWords[c.r.IntN(len(freshWords))]...)
		out = append(out, '\n')
	}
	switch c.r.IntN(12) {
	case 0:
		out = append(out, 0, '\n')
	case 1:
		out = append([]byte("\xff\xfe"), out...)
	case 2:
		out = slices.Concat(slices.Repeat([]byte("filler\n"), 50_000), out)
	}
	return out
}

// path is that of a file in one of the directories, which is made.
func (c *changer) path() string {
	d := filepath.Join(c.dir, freshDirs[c.r.IntN(len(freshDirs))])
	_ = os.MkdirAll(d, 0o755)
	return filepath.Join(d, freshNames[c.r.IntN(len(freshNames))])
}

func (c *changer) directory() string {
	return filepath.Join(c.dir, freshDirs[1+c.r.IntN(len(freshDirs)-1)])
}

// change makes one change. One that is not possible now is none: a name may be a directory, or gone.
func (c *changer) change() {
	p, other := c.path(), c.path()
	away := filepath.Join(c.outside, fmt.Sprint(c.r.IntN(4)))
	old := time.Unix(1_600_000_000+int64(c.r.IntN(5)), 0)
	changes := []struct {
		what string
		f    func() error
	}{
		{"write", func() error { return c.into(p, os.O_CREATE|os.O_TRUNC, c.text()) }},
		{"write in place", func() error { return c.inPlace(p) }},
		{"append", func() error { return c.into(p, os.O_APPEND, c.text()) }},
		{"truncate", func() error { return os.Truncate(p, 9) }},
		{"replace", func() error {
			if err := c.into(p+".tmp", os.O_CREATE|os.O_TRUNC, c.text()); err != nil {
				return err
			}
			return os.Rename(p+".tmp", p)
		}},
		{"delete", func() error { return os.Remove(p) }},
		{"rename", func() error { return os.Rename(p, other) }},
		{"exchange", func() error { return c.exchange(p, other) }},
		{"cp -p", func() error {
			info, err := os.Stat(other)
			if err != nil || !info.Mode().IsRegular() {
				return fs.ErrInvalid
			}
			data, err := os.ReadFile(other)
			if err != nil {
				return err
			}
			if err := c.into(p, os.O_CREATE|os.O_TRUNC, data); err != nil {
				return err
			}
			return os.Chtimes(p, info.ModTime(), info.ModTime())
		}},
		{"write and touch -d", func() error {
			if err := c.inPlace(p); err != nil {
				return err
			}
			return os.Chtimes(p, old, old)
		}},
		{"write and keep mtime", func() error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			if err := c.inPlace(p); err != nil {
				return err
			}
			return os.Chtimes(p, info.ModTime(), info.ModTime())
		}},
		{"move out", func() error { _ = os.RemoveAll(away); return os.Rename(c.directory(), away) }},
		{"move in", func() error { return os.Rename(away, c.directory()) }},
		{"move a directory", func() error { return os.Rename(c.directory(), c.directory()) }},
		{"remove a directory", func() error { return os.RemoveAll(c.directory()) }},
		{"recreate a directory", func() error {
			d := c.directory()
			if err := os.RemoveAll(d); err != nil {
				return err
			}
			if err := os.Mkdir(d, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(d, "a"), c.text(), 0o644)
		}},
		{"ignore", func() error {
			rules := []string{"*.o\n", "/a\n", "build/\n", "", "!c.go\n*.go\n", "r\n"}
			name := []string{".gitignore", ".ignore", ".rgignore"}[c.r.IntN(3)]
			return os.WriteFile(filepath.Join(filepath.Dir(p), name), []byte(rules[c.r.IntN(len(rules))]), 0o644)
		}},
		{"exclude", func() error {
			if err := os.MkdirAll(filepath.Join(c.dir, ".git/info"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(c.dir, ".git/info/exclude"), []byte("f\n"), 0o644)
		}},
		{"link", func() error {
			if strings.Contains(p, "/build/") || strings.Contains(p, "/r/") {
				return fs.ErrInvalid // ignored at times, so that a new name there stays unseen, as docs/search.md says
			}
			_ = os.Remove(p)
			return os.Link(other, p)
		}},
		{"symlink", func() error { _ = os.Remove(p); return os.Symlink(other, p) }},
		{"symlink to a directory", func() error { d := c.directory(); _ = os.RemoveAll(d); return os.Symlink(c.outside, d) }},
		{"FIFO", func() error { _ = os.Remove(p); return syscall.Mkfifo(p, 0o644) }},
		{"chmod", func() error { return os.Chmod(p, []fs.FileMode{0, 0o644}[c.r.IntN(2)]) }},
		{"map", func() error { return c.mapped(p) }},
	}
	n := c.r.IntN(2 * len(changes))
	if n >= len(changes) {
		n = []int{0, 0, 1, 9, 10}[c.r.IntN(5)] // or the tree is empty before long
	}
	if err := changes[n].f(); err == nil {
		rel := func(path string) string { return strings.TrimPrefix(path, c.dir+"/") }
		c.trace = append(c.trace, changes[n].what+": "+rel(p)+" "+rel(other))
	}
}

// into writes to a file, and does not wait for the reader of a FIFO.
func (c *changer) into(p string, flag int, data []byte) error {
	f, err := os.OpenFile(p, os.O_WRONLY|syscall.O_NONBLOCK|flag, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// inPlace changes a word of a file and leaves its size.
func (c *changer) inPlace(p string) error {
	return c.into(p, 0, []byte(freshWords[c.r.IntN(len(freshWords))]))
}

func (c *changer) mapped(p string) error {
	f, err := os.OpenFile(p, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < 8 {
		return fs.ErrInvalid
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m, freshWords[c.r.IntN(len(freshWords))])
	return syscall.Munmap(m)
}

func (c *changer) exchange(a, b string) error {
	tmp := filepath.Join(c.outside, "exchanged")
	for _, step := range [][2]string{{a, tmp}, {b, a}, {tmp, b}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			return err
		}
	}
	return nil
}
