package server

import (
	"path/filepath"
	"testing"

	"codehand/server/audit"
)

// auditDir is a directory for a log.
func auditDir(t testing.TB) string { return filepath.Join(t.TempDir(), "audit") }

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
