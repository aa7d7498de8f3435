package leaktest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestChances(t *testing.T) {
	const text = "# tools TestCommented: it is a comment\n\n" +
		"tools TestA: one more heartbeat came on a busy machine\ntools/bash TestB: seen once\ntools TestC\ntools TestD: twice\n"
	for room, want := range map[string][]string{
		"tools":      {"TestA", "TestD"},
		"tools/bash": {"TestB"},
		"server":     nil,
	} {
		if got := chances(text, room); !slices.Equal(got, want) {
			t.Errorf("of %s: got %q, want %q", room, got, want)
		}
	}
}

// Each line of the file of chances names a test that exists, and says what was seen. So does each of a file of the gate.
func TestGateFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	declares := func(dir, test string) bool {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(files, func(name string) bool {
			code, err := os.ReadFile(name)
			return err == nil && strings.Contains(string(code), "func "+test+"(")
		})
	}
	text, err := os.ReadFile(filepath.Join(root, chanceFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range gated(string(text)) {
		field := strings.Fields(line)
		if len(field) < 5 {
			t.Errorf("%s: %q wants a room, a test with a colon, and a sentence that says what was seen", chanceFile, line)
		} else if name := strings.TrimSuffix(field[1], ":"); !declares(filepath.Join(root, filepath.FromSlash(field[0])), name) {
			t.Errorf("%s: %s has no %s: delete the line", chanceFile, field[0], name)
		}
	}
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && (e.Name() == "node_modules" || e.Name() == ".git") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(filepath.ToSlash(path), "/"+gateFile) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range gated(string(text)) {
			if dir := filepath.Dir(filepath.Dir(path)); !declares(dir, name) {
				t.Errorf("%s: %s has no %s: delete the line", path, dir, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
