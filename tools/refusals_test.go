package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// A file in a directory that may be entered but not listed can be read by other programs: a refusal that names only the file seems untrue.
func TestUnlistedRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("d/f", "x\n")
	dir := filepath.Join(r.dir, "d")
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		got := wording.PathRefusal(tool.Env{}, "d/f", fmt.Errorf("open: %w", &workspace.UnlistedError{Dir: "/w/d", Err: syscall.EACCES}))
		same(t, got.Error(), "PERMISSION_DENIED: Permission denied: the permissions of the file system, not a rule, keep the server from d/f. The directory /w/d must be readable; permission to enter it is not enough. Ask the user.")
		return // such a directory keeps no user out here
	}
	if err := os.Chmod(dir, 0o111); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	for name, args := range map[string]string{"read_file": `{"file_path":"d/f"}`, "write_file": `{"file_path":"d/f","content":"y"}`} {
		same(t, r.fails(tool.PermissionDenied, name, args), "PERMISSION_DENIED: Permission denied: the permissions of the file system, not a rule, keep the server from $WORK/d/f. The directory $WORK/d must be readable; permission to enter it is not enough. Ask the user.")
	}
}

// That the directory of everything is gone was told as one file that does not exist.
func TestRootGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.Rename(r.dir, r.dir+".away"); err != nil {
		t.Skipf("a directory that is open cannot be moved here: %v", err)
	}
	for name, args := range map[string]string{
		"read_file": `{"file_path":"f"}`, "write_file": `{"file_path":"f","content":"x"}`, "edit_file": `{"file_path":"f","old_string":"x","new_string":"y"}`,
	} {
		same(t, r.fails(tool.FileNotFound, name, args), "FILE_NOT_FOUND: File does not exist: $WORK/f. The allowed directory $WORK no longer exists. Ask the user.")
	}
	same(t, r.fails(tool.FileNotFound, "list_files", `{"pattern":"*"}`), "FILE_NOT_FOUND: Directory does not exist: $WORK. The allowed directory $WORK no longer exists. Ask the user.")
}
