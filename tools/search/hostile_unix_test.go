//go:build unix

package search

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// A sparse file of 50 GB is binary by its first block: a walk reads no more of it.
func TestHostileSparseFile(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": "needle\n"})
	f, err := os.Create(filepath.Join(d.path, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(50 << 30); err != nil {
		t.Skipf("no file system for it: %v", err)
	}
	for _, multiline := range []bool{false, true} {
		a := d.grep(t, GrepQuery{Pattern: "needle", Mode: Lines, Multiline: multiline})
		if a.NLines != 1 || !a.Coverage.Complete || a.Coverage.Bytes > 1<<20 {
			t.Errorf("multiline %v: %d lines, %d bytes read, complete %v", multiline, a.NLines, a.Coverage.Bytes, a.Coverage.Complete)
		}
	}
}

// Names with line ends, escapes and bytes that are not UTF-8 are found as they are.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	d := newDir(t, nil)
	names := []string{"a\nb", "\x1b[31mred", "bad\xff\xfe", strings.Repeat("n", 255), " ", "-e", "*", `back\slash`}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(d.path, "d"+name[:min(len(name), 200)]), 0o755); err != nil {
			t.Skipf("no file system for %q: %v", name, err)
		}
		for _, path := range []string{name, "d" + name[:min(len(name), 200)] + "/" + name} {
			if err := os.WriteFile(filepath.Join(d.path, path), []byte("needle\n"), 0o600); err != nil {
				t.Skipf("no file system for %q: %v", name, err)
			}
		}
	}
	a := d.grep(t, GrepQuery{Pattern: "needle", Mode: Count})
	if a.NFiles != 2*len(names) || !a.Coverage.Complete {
		t.Errorf("%q: %d files, want %d", d.names(a.Files), a.NFiles, 2*len(names))
	}
	for _, f := range a.Files {
		if _, err := os.Stat(f.Path); err != nil {
			t.Errorf("the answer names a file that is not there: %v", err)
		}
	}
}

// A tree 5,000 deep ends at the depth that any tool can reach, and the answer says that something was not read.
func TestHostileDepth(t *testing.T) {
	t.Parallel()
	leaktest.OutsideGate(t, "makes 5,000 directories, and takes them away")
	d := newDir(t, map[string]string{"a": "needle\n"})
	root, err := d.root.OpenRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if err := root.Mkdir("d", 0o755); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			if err := root.WriteFile("needle", []byte("needle\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		next, err := root.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		_ = root.Close()
		root = next
	}
	_ = root.Close()
	a := d.grep(t, GrepQuery{Pattern: "needle", Mode: Count})
	if a.NFiles < 2 || a.NFiles > maxDepth || a.Coverage.Unreadable.N != 1 {
		t.Errorf("%d files, %d unreadable, want some files and one directory that was not entered", a.NFiles, a.Coverage.Unreadable.N)
	}
}

// What stands in a tree all the time is found while other files come, go and change their kind.
func TestHostileChangingTree(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("d%d/stays%d", i%20, i)] = "needle\n"
	}
	d := newDir(t, files)
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for i := 0; !stop.Load(); i++ {
			path := filepath.Join(d.path, fmt.Sprintf("d%d/comes%d", i%20, i%7))
			_ = os.RemoveAll(path) // it may be of any kind
			switch i % 3 {
			case 0:
				_ = os.WriteFile(path, []byte("other\n"), 0o600)
			case 1:
				_ = os.MkdirAll(filepath.Join(path, "x"), 0o755)
			case 2:
				_ = os.Symlink("/etc", path)
			}
		}
		done <- nil
	}()
	for _, o := range []Options{{Workers: 3}, {Workers: 3, Memory: 1 << 20}} {
		e := New(o)
		for range leaktest.Rounds(20, 200) {
			a, err := e.Grep(t.Context(), GrepQuery{Scope: Scope{Place: d.at("")}, Pattern: "needle", Mode: Count})
			if err != nil || a.NFiles != 200 {
				t.Errorf("%d files, %v; want all that stand there", a.NFiles, err)
				break
			}
		}
		closeEngine(t, e)
	}
	stop.Store(true)
	<-done
}

// Patterns that explode elsewhere end here, with bounded memory, or are refused.
func TestHostilePatterns(t *testing.T) {
	leaktest.OutsideGate(t, "searches a megabyte by each of many bad patterns")
	words := make([]string, 1000)
	for i := range words {
		words[i] = fmt.Sprintf("w%d?x", i)
	}
	d := newDir(t, map[string]string{
		"a": strings.Repeat(strings.Repeat("a", 1000)+"\n", 500), "x": strings.Repeat("x", 1<<20) + "\n", "s": strings.Repeat("ab cd é ß 12 ", 80_000) + "\n",
	})
	var before, after runtime.MemStats
	for _, p := range []string{
		`(a+)+$`, `(x+x+)+y`, `(a|aa)+$`, `(a|a?)+$`, `(.*a){12}b`, `([a-z]+)*[0-9]{3}z`, `(a?){50}a{50}b`, `^(([a-z])+.)+[A-Z]([a-z])+$`, strings.Join(words, "|"),
		`[a-z]{900}Q`, `(\w{10}){60}\d`, `[ab][^q]{14}z`, `(\p{L}\p{M}*){20}\d{5}`, `.*.*.*=.*`, `(?i)(straße|größe|maſke)+x{20}`, strings.Repeat("(", 200) + "a" + strings.Repeat(")*", 200) + "z",
	} {
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		e := New(Options{Workers: 2})
		a, err := e.Grep(t.Context(), GrepQuery{Scope: Scope{Place: d.at("")}, Pattern: p, Mode: Count, Within: time.Minute})
		runtime.ReadMemStats(&after)
		closeEngine(t, e)
		name := shorten(p)
		t.Logf("%.60s: %d files, %v, %d MiB, %v", name, a.NFiles, err, (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(began).Round(time.Millisecond))
		switch {
		case err != nil && !is[*PatternError](err):
			t.Errorf("%s: %v", name, err)
		case err == nil && !a.Coverage.Complete:
			t.Errorf("%s: %+v", name, a.Coverage)
		}
		if held := int64(after.HeapInuse) - int64(before.HeapInuse); held > 128<<20 {
			t.Errorf("%s: %d MiB of heap", name, held>>20)
		}
	}
}

// A million empty files in one directory are listed and searched, with memory for some thousand names.
func TestHostileMillionFiles(t *testing.T) {
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("makes a million files; CODEHAND_LONG=1 runs it")
	}
	d := newDir(t, nil)
	const files = 1_000_000
	for i := range files {
		f, err := os.Create(fmt.Sprintf("%s/%07d", d.path, i))
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	a := d.files(t, FileQuery{Pattern: "**/*", Limit: 100, Within: time.Minute})
	runtime.ReadMemStats(&after)
	t.Logf("listed in %v, %d MiB of heap", time.Since(began), (int64(after.HeapInuse)-int64(before.HeapInuse))>>20)
	if a.N != files || len(a.Files) != 100 || !a.Coverage.Complete || after.HeapInuse > before.HeapInuse+128<<20 {
		t.Errorf("%d files, %d shown, complete %v, %d MiB", a.N, len(a.Files), a.Coverage.Complete, after.HeapInuse>>20)
	}
	if a := d.grep(t, GrepQuery{Pattern: "x", Mode: Count, Within: time.Minute}); a.Coverage.Searched != files || !a.Coverage.Complete {
		t.Errorf("%d files were searched, complete %v", a.Coverage.Searched, a.Coverage.Complete)
	}
}
