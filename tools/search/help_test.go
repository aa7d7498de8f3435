package search

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// A dir is a directory of a test, opened as a root.
type dir struct {
	path string
	root *os.Root
}

// newDir makes a directory with files by their slash path. A path that ends in "/" is a directory.
func newDir(t testing.TB, files map[string]string) dir {
	t.Helper()
	d := dir{path: leaktest.Dir(t)}
	for name, text := range files {
		d.write(t, name, text)
	}
	var err error
	if d.root, err = os.OpenRoot(d.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.root.Close() })
	return d
}

func (d dir) write(t testing.TB, name, text string) {
	t.Helper()
	full := filepath.Join(d.path, filepath.FromSlash(name))
	parent := filepath.Dir(full)
	if strings.HasSuffix(name, "/") {
		parent = full
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, "/") {
		return
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// at is the place of a slash path below d.
func (d dir) at(name string) Place {
	return Place{Dir: d.root, Name: name, Path: joinPath(d.path, name)}
}

// grep runs a query that must succeed. It begins at d unless it says otherwise.
func (d dir) grep(t testing.TB, q GrepQuery) GrepAnswer {
	t.Helper()
	return d.grepWith(t, Options{}, q)
}

func (d dir) grepWith(t testing.TB, o Options, q GrepQuery) GrepAnswer {
	t.Helper()
	e := New(o)
	defer closeEngine(t, e)
	if q.Place.Dir == nil {
		q.Place = d.at("")
	}
	a, err := e.Grep(t.Context(), q)
	if err != nil {
		t.Fatalf("Grep(%q): %v", q.Pattern, err)
	}
	return a
}

func (d dir) files(t testing.TB, q FileQuery) FileAnswer {
	t.Helper()
	e := New(Options{})
	defer closeEngine(t, e)
	if q.Place.Dir == nil {
		q.Place = d.at("")
	}
	a, err := e.Files(t.Context(), q)
	if err != nil {
		t.Fatalf("Files(%q): %v", q.Pattern, err)
	}
	return a
}

// closeEngine closes e again while a worker is still there: on a busy machine Close may give up too early.
func closeEngine(t testing.TB, e *Engine) {
	t.Helper()
	late := time.Now().Add(hang)
	for err := e.Close(); err != nil; err = e.Close() {
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// names gives the paths of an answer below d.
func (d dir) names(files []FileHits) []string {
	out := []string{}
	for _, f := range files {
		out = append(out, d.rel(f.Path))
	}
	return out
}

func (d dir) rel(path string) string { return strings.TrimPrefix(path, d.path+"/") }

// shorten keeps a message readable.
func shorten(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}
