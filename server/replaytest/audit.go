package replaytest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// AuditFiles returns the files of the record in a directory. There must be one.
func AuditFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s holds no record", dir)
	}
	return files
}

// AuditLines returns all lines of the record in a directory, in the order of their numbers.
func AuditLines(t testing.TB, dir string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, name := range AuditFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
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

// AuditEvents returns the events of AuditLines, with a space between them.
func AuditEvents(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	for _, m := range AuditLines(t, dir) {
		all = append(all, m["ev"].(string))
	}
	return strings.Join(all, " ")
}
