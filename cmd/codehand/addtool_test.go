package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// addedPaths is all that may differ after a tool was added: what its author writes, and what -update writes for it.
var addedPaths = []string{
	"CHANGELOG.md",
	"README.md",     // written: its row or name
	"docs/tools.md", // written: its row of the table
	"testdata/sessions/word_count/counts.txtar", // the calls; the answers are written
	"testdata/specs/word_count.json",            // written
	"tools/all.go",
	"tools/word_count.go",
	"tools/word_count.md",
}

// addedTests are the tests that a new tool must pass, by package, in the order of the command of CONTRIBUTING.md: each
// writes golden files with -update that the next ones look at. A second part chooses among the cases of those that have
// cases.
var addedTests = []struct{ dir, run string }{
	{"tools", "^(TestNames|TestDescriptions|TestTraits|TestSchemas|TestBytes|TestSpecs|TestCodes|TestToolSearch.*|TestContract.*)$/^word_count$"},
	{"server", "^(TestSessions|TestWire|TestDigest|TestSelfCheck)$/" +
		"^(word_count|tool_search|call_tool|calls|envelope|eras|list_changed|listen)$"},
	{"cmd/codehand", "^(TestToolTable|TestToolFiles|TestToolsShareNothing|TestRuleWeight" +
		"|TestRuleKnots|TestRuleToolNames|TestRooms|TestImports)$"},
}

// TestAddTool adds a tool in a copy of the module, from testdata/addtool and by the steps of CONTRIBUTING.md, and counts what
// differs then. Each further path is a place that the author of a tool would have to know.
func TestAddTool(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "compiles and tests a copy of the module")
	module := filepath.Join(t.TempDir(), "codehand")
	copyModule(t, module)
	template := func(name string) string { return readText(t, filepath.Join("testdata", "addtool", name)) }
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(module, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	insert := func(name, after, line string) {
		t.Helper()
		text := readText(t, filepath.Join(root, filepath.FromSlash(name)))
		if !strings.Contains(text, after) {
			t.Fatalf("%s has no line %q", name, after)
		}
		write(name, strings.Replace(text, after, after+line, 1))
	}
	write("tools/word_count.go", template("word_count.go"))
	write("tools/word_count.md", template("word_count.md"))
	write("testdata/sessions/word_count/counts.txtar", template("counts.txtar"))
	insert("tools/all.go", "\t\treadFile,\n", "\t\twordCount,\n")
	insert("CHANGELOG.md", "\n### tools\n", "- Count the words of a file (`word_count`).\n")

	// The tests are compiled here, with the new files laid over: nearly all of it is in the build cache then. They run there.
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, name := range []string{"tools/all.go", "tools/word_count.go", "tools/word_count.md"} {
		replace[filepath.Join(here, filepath.FromSlash(name))] = filepath.Join(module, filepath.FromSlash(name))
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, added := range addedTests {
		dir, run := added.dir, added.run
		binary := filepath.Join(t.TempDir(), filepath.Base(dir)+".test")
		goIn(t, root, "go", "test", "-c", "-overlay", overlay, "-o", binary, "./"+dir)
		for _, args := range [][]string{{"-update"}, nil} {
			args = append([]string{"-test.run", run, "-test.count", "1"}, args...)
			goIn(t, filepath.Join(module, filepath.FromSlash(dir)), binary, args...)
		}
	}
	differ := differing(t, module)
	for _, path := range differ {
		if !slices.Contains(addedPaths, path) {
			t.Errorf("adding a tool changes %s: derive it from the table of tools, or let it not move", path)
		}
	}
	for _, path := range addedPaths {
		if !slices.Contains(differ, path) {
			t.Errorf("adding a tool leaves %s as it is", path)
		}
	}
	session := readText(t, filepath.Join(module, "testdata", "sessions", "word_count", "counts.txtar"))
	if want := "\n3 words in $WORK/a.txt\n"; !strings.Contains(session, want) {
		t.Errorf("the session was written without its answers:\n%s", session)
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
