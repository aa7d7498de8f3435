package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// readme is the README, seen from this package.
const readme = "../../README.md"

// TestToolTable holds the part of the README that is made from the tools.
func TestToolTable(t *testing.T) {
	var want string
	t.Run("make", func(t *testing.T) { want = toolTable(t) }) // it changes the directory
	holdPart(t, "tools", want)
}

// holdPart fails if a generated part of the README is not want, or writes it with -update.
func holdPart(t *testing.T, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s … %s", readme, strings.TrimSpace(begin), end)
	}
	if old == want {
		return
	}
	if !*update {
		t.Fatalf("the part %s of %s has drifted: go test ./cmd/codehand -update", name, readme)
	}
	if err := os.WriteFile(readme, []byte(head+begin+want+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// toolTable is what `codehand tools --markdown` prints.
func toolTable(t *testing.T) string {
	for _, kv := range os.Environ() { // what this developer has set does not belong into the README
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "CODEHAND_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	if code := run([]string{"tools", "--markdown"}, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	return out.String()
}
