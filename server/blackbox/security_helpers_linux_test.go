package blackbox

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestSEC29OwnHelpers: what a call or a file is named like an option, or like code, stays a name, and programs of the
// workspace take the place of none that the server starts itself, even if PATH begins there.
func TestSEC29OwnHelpers(t *testing.T) {
	t.Parallel()
	base := leaktest.Dir(t)
	work, pwn := filepath.Join(base, "work"), filepath.Join(base, "pwn")
	must(t, os.Mkdir(work, 0o700))
	var pdf bytes.Buffer
	must(t, pdfBomb(1, "/Kids[3 0 R]/Count 1")(&pdf))
	names := []string{
		"--pre=x", "--pre=touch " + pwn, "-rf", "-f", "-exec", "--", "-", "new\nline.txt", "tab\t.txt", `quo"te's.txt`,
		"$(touch pwn)", "`touch pwn`", "; touch pwn", "| touch pwn", "--output=pwn", "-c core.pager=touch pwn",
		"--opw=x.pdf", "-listenc.pdf", "$(touch pwn).pdf", "new\nline.pdf",
	}
	for _, name := range names {
		text := []byte("needle in " + name + "\n")
		if strings.HasSuffix(name, ".pdf") {
			text = pdf.Bytes()
		}
		path := filepath.Join(work, strings.ReplaceAll(name, "/", "_"))
		must(t, os.WriteFile(path, text, 0o600))
	}
	programs := []string{
		"rg", "grep", "git", "bash", "sh", "env", "pdftotext", "pdfinfo", "pdftoppm", "pdftocairo", "file", "codehand",
	}
	for _, name := range programs {
		must(t, os.WriteFile(filepath.Join(work, name), []byte("#!/bin/sh\necho "+name+" >>'"+pwn+"'\nexit 1\n"), 0o700))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		git := exec.Command("git", args...)
		git.Dir = work
		if out, err := git.CombinedOutput(); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("git %q: %v, %s", args, err, out)
			}
			t.Skip("needs git")
		}
	}
	cmd := exec.Command(replaytest.Program(t), "stdio", work)
	cmd.Dir = work
	cmd.Env = []string{
		"HOME=" + filepath.Join(base, "home"), "XDG_STATE_HOME=" + filepath.Join(base, "state"),
		"PATH=.:" + work + "::" + os.Getenv("PATH"),
	}
	p := replaytest.Speak(t, cmd, "mcp-inspector", false)
	calls, shown := 0, 0
	call := func(tool string, pairs ...any) string {
		t.Helper()
		calls++
		text := p.Must(t, tool, replaytest.AsJSON(t, pairs...))
		if strings.Contains(text, "root:x:0") {
			t.Errorf("%s %q shows /etc/passwd", tool, pairs)
		}
		return text
	}
	for _, pattern := range append(names, "--pre=touch pwn", "-f/etc/passwd", "--file=/etc/passwd", "-e", "--help") {
		quoted := strings.NewReplacer(`$`, `\$`, `(`, `\(`, `)`, `\)`, `|`, `\|`).Replace(pattern)
		call("grep_search", "pattern", quoted, "output_mode", "content")
		call("grep_search", "pattern", "needle", "glob", pattern)
		call("list_files", "pattern", pattern)
	}
	for _, name := range names {
		file := strings.ReplaceAll(name, "/", "_")
		call("grep_search", "pattern", "needle", "path", file, "output_mode", "content")
		if strings.Contains(call("read_file", "file_path", file), "needle in") {
			shown++
		}
		if !strings.HasSuffix(name, ".pdf") {
			call("edit_file", "file_path", file, "old_string", "needle", "new_string", "thread")
			call("file_history", "file_path", file)
			call("undo_change", "file_path", file)
		}
	}
	for _, command := range []string{"git status --short", "git diff --stat", "git log", "ls", "grep -rn needle ."} {
		call("run_readonly", "command", command)
	}
	call("run_shell", "command", "git status --short; ls")
	if texts := len(names) - 4; shown != texts {
		t.Errorf("%d of %d files of text were shown", shown, texts)
	}
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == "pwn" || path == pwn) {
			text, _ := os.ReadFile(path)
			t.Errorf("%s is there: %s", path, text)
		}
		return nil
	})
	t.Logf("%d calls", calls)
}
