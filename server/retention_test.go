package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSweepSessions: a session that nobody has written to for 30 days is removed, whole; one with anything younger stays.
func TestSweepSessions(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	age := func(path string, days int) {
		t.Helper()
		at := now.Add(-time.Duration(days) * 24 * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, days := range map[string]int{"old": 31, "young": 29, "mixed": 31} {
		kept := filepath.Join(dir, "somebody", name, "tool-results")
		if err := os.MkdirAll(kept, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(kept, "a.txt")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		fileDays := days
		if name == "mixed" {
			fileDays = 1
		}
		age(file, fileDays)
		age(kept, days)
		age(filepath.Join(dir, "somebody", name), days)
	}
	sweepSessions(dir, now, slog.New(slog.DiscardHandler))
	entries, err := os.ReadDir(filepath.Join(dir, "somebody"))
	if err != nil || len(entries) != 2 || entries[0].Name() != "mixed" || entries[1].Name() != "young" {
		t.Errorf("left are %v (%v)", entries, err)
	}
	sweepSessions(filepath.Join(dir, "none"), now, slog.New(slog.DiscardHandler))
}
