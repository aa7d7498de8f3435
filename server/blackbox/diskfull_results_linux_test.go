package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestDiskFullWhileKeeping: when the disk that results are kept on is full, a call still answers with head and tail, says
// that the rest is lost and why, and leaves no half file. A command that cannot print any more says so, too.
func TestDiskFullWhileKeeping(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a small tmpfs can be mounted by root only; TestFileTooLarge shows the same to everybody")
	}
	home := filepath.Join(leaktest.Dir(t), "small")
	must(t, os.Mkdir(home, 0o700))
	if err := syscall.Mount("tmpfs", home, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(home, syscall.MNT_DETACH) })
	keepsNothing(t, home, "no space left on device", nil)
}

// TestFileTooLarge is TestDiskFullWhileKeeping with a limit that every user can set.
func TestFileTooLarge(t *testing.T) {
	t.Parallel()
	keepsNothing(t, leaktest.Dir(t), "file too large", []string{"-c", `trap '' XFSZ; ulimit -f 64; exec "$0" "$@"`})
}

// keepsNothing starts the program with its state below home, by a script if there is one, where 1 MB cannot be kept.
func keepsNothing(t *testing.T, home, cause string, script []string) {
	t.Helper()
	path := replaytest.Program(t)
	work := leaktest.Dir(t)
	whole := replaytest.LayBig(t, work)
	// What else the sandbox makes there, as its probes, would take room at any moment.
	args := []string{path, "stdio", work, "--sandbox-policy", "off"}
	if script != nil {
		args = append(append([]string{"bash"}, script...), args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home}
	p := replaytest.Speak(t, cmd, "claude-code", false)

	text := p.Must(t, "grep_search", `{"pattern":"line","output_mode":"content","head_limit":0}`)
	first, rest, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "Output too large (") || !strings.HasSuffix(first, "Full output was not kept: "+cause+".") {
		t.Fatalf("first line %q", first)
	}
	last := strings.TrimSuffix(whole, "\n")
	last = last[strings.LastIndexByte(last, '\n')+1:]
	if !strings.HasPrefix(rest, "big.txt:1:line 0 of a long file\n") || !strings.Contains(rest, "\n[... truncated ") || !strings.Contains(rest[len(rest)/2:], last) {
		t.Errorf("head or tail is missing: %.200q … %.200q", rest, rest[len(rest)-200:])
	}
	if n := utf8.RuneCountInString(text); n > 20_000 || n < 10_000 {
		t.Errorf("%d characters", n)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "codehand", "sessions", "*", "*", "tool-results", "*")); len(left) > 0 {
		t.Errorf("a part is left: %v", left)
	}
	r, err := p.Request("tools/call", map[string]any{"name": "grep_search", "arguments": json.RawMessage(`{"pattern":"line","output_mode":"content","head_limit":0}`)})
	must(t, err)
	if strings.Contains(string(r.Result), "codehand/result") {
		t.Errorf("_meta names what is not there: %.300s", r.Result)
	}
	// What a command prints is lost as far as its own writes fail, and what is shown of it is all that there is. It is not
	// ended for that, no matter when a call looks.
	text, err = p.Call("run_shell", json.RawMessage(`{"command":"head -c 40000 big.txt; cat big.txt 2>/dev/null; exit 0"}`))
	must(t, err)
	if strings.HasPrefix(text, "! ") || !strings.Contains(text, "line 0 of a long file\n") || script == nil && !strings.HasPrefix(text, "Output too large (") || script == nil && !strings.Contains(text, " lines). Full output was not kept: "+cause+".\n") {
		t.Errorf("a command: %.300q", text)
	}
	if text := p.Must(t, "read_file", `{"file_path":"big.txt","limit":1}`); !strings.HasPrefix(text, "1\tline 0") {
		t.Errorf("the next call: %q", text)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "codehand", "sessions", "*", "*", "tool-results", "*")); len(left) > 1 {
		t.Errorf("left: %v", left)
	}
	if script != nil {
		return // the limit is one of single files
	}
	text, err = p.Call("run_shell", json.RawMessage(`{"command":"echo begin; head -c 10000000 /dev/zero 2>/dev/null >'`+home+`/full'; seq 1 3000; true"}`))
	must(t, err)
	if !strings.HasPrefix(text, "begin\n1\n2\n") || strings.Contains(text, "3000") || !strings.HasSuffix(text, "\n[it may have printed more: "+cause+"]") {
		t.Errorf("a command that filled the disk and then printed: %q … %q", text[:min(len(text), 100)], text[max(0, len(text)-200):])
	}
	fillDisk(t, filepath.Join(home, "full"))
	text, err = p.Call("run_shell", json.RawMessage(`{"command":"echo hello"}`))
	must(t, err)
	if want := "! WRITE_FAILED: The command was not started: its output files cannot be created in the state directory: " + cause + ". Free space there, or ask the user to do so."; text != want {
		t.Errorf("a command without room for anything: %q, want %q", text, want)
	}
}

// fillDisk takes all room on the disk that a file is on.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	_ = f.Close() // full
}
