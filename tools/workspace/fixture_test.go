package workspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// secret is what lies outside; no test may ever see it through a Space.
const secret = "OUTSIDE"

// A fixture is a parent directory with roots, neighbours and links:
//
//	ws/         root       a.txt  dir/b.txt  dir/deep/c.txt
//	other/      root       o.txt
//	kept/       readable   k.txt
//	ws-evil/, outside/     x.txt, with secret in it
type fixture struct {
	*Space
	top string // canonical
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{top: leaktest.Dir(t)}
	f.write(t, "ws/a.txt", "a")
	f.write(t, "ws/dir/b.txt", "b")
	f.write(t, "ws/dir/deep/c.txt", "c")
	f.write(t, "other/o.txt", "o")
	f.write(t, "kept/k.txt", "k")
	f.write(t, "ws-evil/x.txt", secret)
	f.write(t, "outside/x.txt", secret)
	f.write(t, "outside/sub/y.txt", secret)
	var err error
	f.Space, err = Open([]string{f.path("ws"), f.path("other")}, Options{Home: f.path("ws"), Readable: []string{f.path("kept")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func (f fixture) path(rel string) string { return filepath.Join(f.top, filepath.FromSlash(rel)) }

func (f fixture) write(t testing.TB, rel, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(rel)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path(rel), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes rel a link to target; TOP in target stands for the parent directory.
func (f fixture) link(t testing.TB, rel, target string) {
	t.Helper()
	target = filepath.FromSlash(strings.ReplaceAll(target, "TOP", f.top))
	if err := os.MkdirAll(filepath.Dir(f.path(rel)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, f.path(rel)); err != nil {
		t.Skipf("this system lets no test make links: %v", err)
	}
}

// read opens path and returns what is in it.
func (f fixture) read(path string) (string, error) {
	p, err := f.Open(path, Read)
	if err != nil {
		return "", err
	}
	defer p.Dir.Close()
	file, err := p.Dir.Open(p.Name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	return string(data), err
}

// kind names an error as the tables do.
func kind(err error) string {
	if err == nil {
		return "ok"
	}
	if _, ok := errors.AsType[*OutsideError](err); ok {
		return "outside"
	}
	if _, ok := errors.AsType[*MissingError](err); ok {
		return "missing"
	}
	if _, ok := errors.AsType[*InvalidError](err); ok {
		return "invalid"
	}
	switch {
	case errors.Is(err, ErrSpelling):
		return "spelling"
	case errors.Is(err, ErrTooManyLinks):
		return "links"
	}
	return "system"
}
