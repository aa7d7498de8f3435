package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/audit"
)

// auditDir is a directory for a log.
func auditDir(t testing.TB) string { return filepath.Join(t.TempDir(), "audit") }

// recordFiles returns the paths of a record's files.
func recordFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("%s holds no record", dir)
	}
	return files
}

// allAudit returns all lines of a directory in the order of their numbers.
func allAudit(t testing.TB, dir string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, name := range recordFiles(t, dir) {
		b, err := os.ReadFile(name)
		must(t, err)
		for line := range bytes.Lines(b) {
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%s: %v: %q", name, err, line)
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return int(a["seq"].(float64) - b["seq"].(float64)) })
	return all
}

// events are the events of all lines.
func events(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	for _, m := range allAudit(t, dir) {
		all = append(all, m["ev"].(string))
	}
	return strings.Join(all, " ")
}

func mustCheck(t *testing.T, dir string, lines int) {
	t.Helper()
	if n, err := audit.Check(dir); err != nil || n != lines {
		t.Errorf("audit.Check: %d lines, %v; want %d", n, err, lines)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
