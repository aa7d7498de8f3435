package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/engines"
	"codehand/tools/tool"
)

// TestRetentionBesideCalls: a call sets a sweep off while the server runs, with the days that the operator gives, and it
// disturbs no call that keeps.
func TestRetentionBesideCalls(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	state := filepath.Join(t.TempDir(), "state")
	cfg := testSettings(t, t.TempDir(), state, map[string]string{"results.keep_days": "3"})
	kept := func() []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(state, "sessions", "*", "*", "tool-results", "*.txt"))
		must(t, err)
		return files
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: cfg, Version: "test", Tools: only(
			fixtureTool("long", reader, func(context.Context, tool.Env, word) (tool.Result, error) {
				return tool.Result{Text: strings.Repeat("a line of a long text\n", 10_000)}, nil
			}),
		)}})
		must(t, err)
		defer func() { must(t, s.Close()) }()
		call := func() {
			t.Helper()
			text, failed, err := s.Call(t.Context(), "long", []byte("{}"))
			if err != nil || failed {
				t.Fatalf("%v %.200s", err, text)
			}
		}
		age := func(files []string, by time.Duration) {
			t.Helper()
			at := time.Now().Add(-by)
			for _, f := range files {
				must(t, os.Chtimes(f, at, at))
			}
		}
		synctest.Wait() // the sweep of the start is over
		call()
		for range 5 {
			for _, c := range []struct {
				age  time.Duration
				left int
			}{{2 * day, 2}, {4 * day, 1}} {
				before := kept()
				age(before, c.age)
				time.Sleep(2 * time.Hour)
				call()
				synctest.Wait()
				if now := kept(); len(now) != c.left || slices.Equal(now, before) {
					t.Fatalf("after %s %d are left, want %d and not those of before", c.age, len(now), c.left)
				}
			}
		}
	})
}
