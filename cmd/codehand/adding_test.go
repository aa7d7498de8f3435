package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An addedTest is what runs in a copy of the module after a thing was added: tests of one package.
type addedTest struct{ dir, run string }

// An addition adds a thing in a copy of the module, by the steps of CONTRIBUTING.md. Each path that differs then is a
// place that the author of such a thing would have to know, or one that -update writes.
type addition struct {
	t      *testing.T
	from   string            // the directory of its templates
	module string            // the copy
	byHand map[string]bool   // paths in the module that the author writes
	laid   map[string]string // by the paths of files here, those of the copy with which tests are compiled
}

// newAddition begins with a copy of the module, and templates below testdata/from.
func newAddition(t *testing.T, from string) *addition {
	t.Helper()
	a := &addition{t: t, from: filepath.Join("testdata", from), module: filepath.Join(t.TempDir(), "codehand"),
		byHand: map[string]bool{}, laid: map[string]string{}}
	copyModule(t, a.module)
	return a
}

func (a *addition) template(name string) string {
	a.t.Helper()
	return readText(a.t, filepath.Join(a.from, name))
}

// write is a file that the author writes.
func (a *addition) write(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.module, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		a.t.Fatal(err)
	}
	a.byHand[name] = true
	a.lay(name)
}

// insert is a line that the author writes behind another.
func (a *addition) insert(name, after, line string) {
	a.t.Helper()
	text := readText(a.t, filepath.Join(a.module, filepath.FromSlash(name)))
	if !strings.Contains(text, after) {
		a.t.Fatalf("%s has no line %q", name, after)
	}
	a.write(name, strings.Replace(text, after, after+line, 1))
}

// lay has the copy's version of a file compiled into tests. Files that -update writes need it if they are embedded.
func (a *addition) lay(name string) {
	a.t.Helper()
	here, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		a.t.Fatal(err)
	}
	a.laid[here] = filepath.Join(a.module, filepath.FromSlash(name))
}

// test runs tests in the copy, each package once with -update and once without.
func (a *addition) test(tests []addedTest) {
	a.t.Helper()
	a.runAll(tests, []string{"-update"}, nil)
}

// check runs tests that write nothing.
func (a *addition) check(tests []addedTest) {
	a.t.Helper()
	a.runAll(tests, nil)
}

// runAll runs tests in the copy, once with each of the flags. They are compiled here, with the files of the copy laid
// over: nearly all of it is in the build cache then.
func (a *addition) runAll(tests []addedTest, flags ...[]string) {
	a.t.Helper()
	raw, err := json.Marshal(map[string]any{"Replace": a.laid})
	if err != nil {
		a.t.Fatal(err)
	}
	overlay := filepath.Join(a.t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o644); err != nil {
		a.t.Fatal(err)
	}
	for _, added := range tests {
		binary := filepath.Join(a.t.TempDir(), filepath.Base(added.dir)+".test")
		goIn(a.t, root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+added.dir)
		for _, args := range flags {
			args = append([]string{"-test.run", added.run, "-test.count", "1"}, args...)
			goIn(a.t, filepath.Join(a.module, filepath.FromSlash(added.dir)), binary, args...)
		}
	}
}

// hold fails unless exactly paths differ from this module. Those of the author are among them.
func (a *addition) hold(thing, table string, paths []string) {
	a.t.Helper()
	differ := differing(a.t, a.module)
	for _, path := range differ {
		if !slices.Contains(paths, path) {
			a.t.Errorf("adding a %s changes %s: derive it from %s, or let it not move", thing, path, table)
		}
	}
	for _, path := range paths {
		if !slices.Contains(differ, path) {
			a.t.Errorf("adding a %s leaves %s as it is", thing, path)
		}
	}
}

// holdHands fails if the author had to write more than most paths.
func (a *addition) holdHands(thing string, most int) {
	a.t.Helper()
	if len(a.byHand) > most {
		a.t.Errorf("adding a %s takes %d paths by hand, at most %d are right: %q", thing, len(a.byHand), most,
			slices.Sorted(maps.Keys(a.byHand)))
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// goIn runs a program in a directory, offline, as CI does with what was never written.
func goIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CI=1", "GOPROXY=off", "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// moduleFiles calls f for each file of a module, without what a developer or a build keeps there.
func moduleFiles(dir string, f func(name string) error) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		hidden := strings.HasPrefix(e.Name(), ".") && filepath.Dir(path) == dir
		if e.IsDir() {
			if hidden || e.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if hidden || !e.Type().IsRegular() || filepath.Dir(path) == dir && e.Name() == "codehand" {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return f(filepath.ToSlash(rel))
	})
}

func copyModule(t *testing.T, to string) {
	t.Helper()
	err := moduleFiles(root, func(name string) error {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, raw, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// differing are the files of a copy that are not as in this module, and those that this module alone has.
func differing(t *testing.T, module string) []string {
	t.Helper()
	var paths []string
	err := moduleFiles(module, func(name string) error {
		copied, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return err
		}
		own, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(own, copied) {
			paths = append(paths, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = moduleFiles(root, func(name string) error {
		_, err := os.Lstat(filepath.Join(module, name))
		if os.IsNotExist(err) {
			paths = append(paths, name)
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
