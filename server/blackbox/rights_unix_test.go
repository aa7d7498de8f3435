//go:build unix

package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// It is the user that the program runs as when root runs the tests, since root reads and writes everything.
const nobody = 65534

// TestRights: a file that may not be read and a directory that may not be written to are refused with the reason, and
// nothing changes.
func TestRights(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	base := leaktest.Public(t)
	work := filepath.Join(base, "work")
	locked := filepath.Join(work, "locked")
	if err := os.MkdirAll(locked, 0o755); err != nil {
		t.Fatal(err)
	}
	secret, kept, exe := filepath.Join(work, "secret.txt"), filepath.Join(locked, "kept.txt"), filepath.Join(base, "program")
	book := filepath.Join(work, "secret.ipynb")
	for _, f := range []string{secret, kept, book} {
		if err := os.WriteFile(f, []byte("old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A copy, because the directory of the built program cannot be entered by others either.
	// Another process makes it: a child that a test forks meanwhile would have it open for writing, and keep it from being run.
	if out, err := exec.Command("cp", path, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.Chmod(exe, 0o755))
	cmd := exec.Command(exe, "stdio", work)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		err := filepath.WalkDir(base, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(p, nobody, nobody)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for p, mode := range map[string]os.FileMode{base: 0o755, secret: 0, book: 0, locked: 0o555} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	p := replaytest.Speak(t, cmd, "mcp-inspector", false)
	closed := "! PERMISSION_DENIED: Permission denied: the permissions of the file system, not a rule, keep the server from " + secret + "."
	const ask, one, two = " Ask the user.", " The file is unchanged. Ask the user.", " All 2 files are as before. Ask the user."
	for _, c := range []struct{ tool, args, want string }{
		{"read_file", `{"file_path":"secret.txt"}`, closed + ask},
		{"edit_file", `{"file_path":"secret.txt","old_string":"old","new_string":"new"}`, closed + one},
		{"multi_edit", `{"file_path":"secret.txt","edits":[{"old_string":"old","new_string":"new"}]}`, closed + one},
		{"multi_edit", `{"edits":[{"file_path":"new.txt","old_string":"","new_string":"new"},{"file_path":"secret.txt","old_string":"old","new_string":"new"}]}`, closed + two},
		{"write_file", `{"file_path":"secret.txt","content":"new\n"}`, closed + one},
		{"notebook_edit", `{"notebook_path":"secret.ipynb","cell_id":"cell-0","new_source":"new"}`, "! PERMISSION_DENIED: Permission denied: the permissions of the file system, not a rule, "},
		{"grep_search", `{"pattern":"old","path":"secret.txt"}`, closed + ask},
		{"write_file", `{"file_path":"locked/new.txt","content":"new\n"}`, "! WRITE_FAILED: Writing "},
		{"read_file", `{"file_path":"locked/kept.txt"}`, "1\told"},
		{"edit_file", `{"file_path":"locked/kept.txt","old_string":"old","new_string":"new"}`, "! WRITE_FAILED: Writing "},
	} {
		text := p.Must(t, c.tool, c.args)
		if !strings.HasPrefix(text, c.want) || strings.Contains(text, "No matches") || strings.Contains(text, "INTERNAL") {
			t.Errorf("%s %s: %s", c.tool, c.args, text)
		}
	}
	entries, err := os.ReadDir(locked)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v)", entries, err)
	}
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{secret, kept} {
		if b, err := os.ReadFile(f); err != nil || string(b) != "old\n" {
			t.Errorf("%s holds %q (%v)", f, b, err)
		}
	}
}
