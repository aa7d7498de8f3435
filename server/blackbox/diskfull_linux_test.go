package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// TestDiskFull: a write to a full disk is refused with the cause, and the old file is whole.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a small tmpfs can be mounted by root only")
	}
	path := replaytest.Program(t)
	work := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", work, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(work, syscall.MNT_DETACH) })
	p := replaytest.Spawn(t, path, work, "mcp-inspector", false, nil)
	if text := p.Must(t, "write_file", `{"file_path":"a.txt","content":"old\n"}`); strings.HasPrefix(text, "!") {
		t.Fatal(text)
	}
	big := strings.Repeat("x", 1<<20)
	text := p.Must(t, "write_file", fmt.Sprintf(`{"file_path":"a.txt","content":%q}`, big))
	if !strings.HasPrefix(text, "! WRITE_FAILED: Writing ") || !strings.Contains(text, "no space left on device") || !strings.Contains(text, "The file is unchanged.") {
		t.Errorf("got %.300q", text)
	}
	b, err := os.ReadFile(filepath.Join(work, "a.txt"))
	if err != nil || string(b) != "old\n" {
		t.Errorf("the file holds %.40q (%v)", b, err)
	}
	entries, err := os.ReadDir(work)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}
