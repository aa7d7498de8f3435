package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolTable holds the part of the README that is made from the tools.
func TestToolTable(t *testing.T) {
	const begin, end = "<!-- tools:begin -->\n", "<!-- tools:end -->"
	file, err := filepath.Abs("../../README.md") // toolTable changes the directory
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s … %s", file, strings.TrimSpace(begin), end)
	}
	want := toolTable(t)
	if old == want {
		return
	}
	if !*update {
		t.Fatalf("the table of tools in %s has drifted: go test ./cmd/codehand -update", file)
	}
	if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
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
