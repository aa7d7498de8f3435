//go:build unix

package engines

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"codehand/tools/confine/caches"
)

// Each principal has the whole size, and the caches of one that runs a command are left as they are.
func TestTidyAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(owner, name string) string { return filepath.Join(dir, owner, "commands", "pip", name) }
	for _, owner := range []string{"small", "large", "busy"} {
		if err := os.MkdirAll(path(owner, ""), 0o700); err != nil {
			t.Fatal(err)
		}
		size := 2000
		if owner == "small" {
			size = 900
		}
		if err := os.WriteFile(path(owner, "wheel"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	release, err := caches.Hold(filepath.Join(dir, "busy"))
	if err != nil {
		t.Fatal(err)
	}
	tidyAll(t.Context(), dir, 1000, slog.New(slog.DiscardHandler))
	release()
	for owner, stays := range map[string]bool{"small": true, "large": false, "busy": true} {
		if _, err := os.Stat(path(owner, "wheel")); (err == nil) != stays {
			t.Errorf("%s: %v", owner, err)
		}
	}
}
