package journal

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/disk"
)

// An old file that cannot be read is not said to hold something that is lost.
func TestLateUnread(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	j, err := Open(filepath.Join(t.TempDir(), "journal"), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil { // so that nothing more is known of it
		t.Fatal(err)
	}
	j.WatchLate(Late{File: f, Path: "/ws/a", Sum: disk.DigestOf(nil), By: By{Call: "c1"}})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	got := log.String()
	for _, want := range []string{"level=WARN", "is not known", "path=/ws/a", "call=c1"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %q: %s", want, got)
		}
	}
	if strings.Contains(got, "level=ERROR") {
		t.Errorf("the log has an error: %s", got)
	}
}
