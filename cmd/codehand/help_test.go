package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestHelp compares the help of every command with its golden file: what people read is changed on purpose only.
func TestHelp(t *testing.T) {
	var commands func(prefix []string, c *cobra.Command) [][]string
	commands = func(prefix []string, c *cobra.Command) [][]string {
		all := [][]string{prefix}
		for _, sub := range c.Commands() {
			if sub.Name() != "help" {
				all = append(all, commands(append(prefix[:len(prefix):len(prefix)], sub.Name()), sub)...)
			}
		}
		return all
	}
	seen := map[string]bool{}
	for _, words := range commands(nil, newRoot(&terminal{})) {
		name := strings.Join(append([]string{"codehand"}, words...), "_") + ".txt"
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(append(words, "--help"), strings.NewReader(""), &out, &errs); code != exitDone {
				t.Fatalf("exit code %d: %s", code, &errs)
			}
			golden(t, filepath.Join("testdata", "help", name), out.Bytes())
		})
	}
	files, err := filepath.Glob("testdata/help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[filepath.Base(f)] {
			t.Errorf("%s belongs to no command: remove it", f)
		}
	}
}

// golden compares got with a file, or rewrites the file with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	if *update || os.IsNotExist(err) && os.Getenv("CI") == "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs. got:\n%s\nwant:\n%s\nIf it is better now: go test ./cmd/codehand -update, and read the diff.", path, got, want)
	}
}
