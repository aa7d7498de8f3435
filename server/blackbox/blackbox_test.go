package blackbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// blackbox starts the built program over a new workspace.
func blackbox(t *testing.T) (p *replaytest.Spawned, work string) {
	t.Helper()
	path := replaytest.Program(t)
	work = leaktest.Dir(t)
	return replaytest.Spawn(t, path, work, "mcp-inspector", false, nil), work
}

// marked says whether a process whose command line holds mark is alive.
func marked(t *testing.T, mark string) bool {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked up in /proc")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			return true
		}
	}
	return false
}

// newMark is a number of seconds that no other test on this machine sleeps for.
func newMark(prefix string) string {
	return prefix + strconv.Itoa(os.Getpid()) + strconv.FormatInt(marks.Add(1), 10)
}

var marks atomic.Int64

// TestShellPipeHolder: a child that holds the output open does not hold the call, and does not outlive it.
func TestShellPipeHolder(t *testing.T) {
	t.Parallel()
	p, work := blackbox(t)
	fifo := filepath.Join(work, "never"+filepath.Base(filepath.Dir(work)))
	if err := replaytest.Mkfifo(fifo); err != nil {
		t.Skip("the child waits on a FIFO: ", err)
	}
	// The FIFO has no writer, so a call that waited for its reader would hang.
	text := p.Must(t, "run_shell", fmt.Sprintf(`{"command":"cat '%s' & echo hi"}`, fifo))
	if !strings.HasPrefix(text, "hi\n") || !strings.Contains(text, "[1 background process") {
		t.Errorf("got %q", text)
	}
	replaytest.Until(t, "the child ends", func() bool { return !marked(t, fifo) })
}

// TestShellDeadline: at its limit a command is answered for with what it printed, and nothing of it is left, also when
// a child left the process group and ignores SIGTERM.
func TestShellDeadline(t *testing.T) {
	t.Parallel()
	p, _ := blackbox(t)
	mark := newMark("62.")
	text := p.Must(t, "run_shell", fmt.Sprintf(`{"command":"echo begun; (trap '' TERM; setsid sleep %s) & sleep %s","timeout":5000}`, mark, mark))
	if !strings.HasPrefix(text, "! TIMEOUT: Command timed out after 5s.") || !strings.Contains(text, "begun") {
		t.Errorf("got %q", text)
	}
	replaytest.Until(t, "nothing is left", func() bool { return !marked(t, mark) })
}

// TestShellLargeOutput: 100 MB of output cost the server less than 32 MiB, show head and tail, and can be read back from
// the file that the first line names.
func TestShellLargeOutput(t *testing.T) {
	t.Parallel()
	p, _ := blackbox(t)
	p.Must(t, "run_shell", `{"command":"echo warm"}`)
	before := peak(t, p.Cmd.Process.Pid)
	text := p.Must(t, "run_shell", `{"command":"seq 1 13000000 | head -c 100000000"}`)
	grown := peak(t, p.Cmd.Process.Pid) - before
	t.Logf("peak memory grew by %d KiB", grown)
	if grown > 32<<10 {
		t.Errorf("peak memory grew by %d KiB, limit 32 MiB", grown)
	}
	first, rest, _ := strings.Cut(text, "\n")
	m := regexp.MustCompile(`^Output too large \(.*\)\. Full output, but for .* MB of its middle: (.+?) Read it with`).
		FindStringSubmatch(first)
	if m == nil {
		t.Fatalf("first line %q", first)
	}
	if !strings.HasPrefix(rest, "1\n2\n3\n") || !strings.Contains(rest, "\n20\n[lines 21-") {
		t.Errorf("no head or no marker: %.100q", rest)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := lines[len(lines)-2] // the very last number is cut
	if n, err := strconv.Atoi(last); err != nil || n < 1_000_000 {
		t.Errorf("the tail ends with %q", last)
	}
	page := p.Must(t, "read_file", fmt.Sprintf(`{"file_path":%q,"offset":1000,"limit":2}`, m[1]))
	if !strings.Contains(page, "1000\n1001") {
		t.Errorf("read back: %q", page)
	}
}

// TestSEC35SecretsMasked: what a program prints and looks like a secret reaches neither the model nor the kept output,
// also of a job that runs on; read_file shows a file as it is, because an edit must fit it. TestMask has all kinds.
func TestSEC35SecretsMasked(t *testing.T) {
	t.Parallel()
	p, root := blackbox(t)
	secrets := []string{
		"gh" + "p_" + strings.Repeat("a1B2c3", 6), "AK" + "IAIOSFODNN7EXAMPLE", "sk" + "-ant-api03-" + strings.Repeat("aB1_-", 19),
		"npm" + "_" + strings.Repeat("a1B2c3", 6), "https://deploy:" + "hunter22" + "@example.com/x.git",
		"-----BEG" + "IN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
	}
	replaytest.WriteFile(t, filepath.Join(root, "keys.txt"), []byte(strings.Join(secrets, "\n")+"\nthe end\n"))
	check := func(what, text string) {
		t.Helper()
		for _, s := range []string{"a1B2c3a1B2", "IOSFODNN7", "aB1_-aB1", "hunter22", "MIIEpAIB"} {
			if strings.Contains(text, s) {
				t.Errorf("%s shows %s: %q", what, s, text)
			}
		}
		if !strings.Contains(text, "[masked github-token ") || !strings.Contains(text, "the end") {
			t.Errorf("%s: %q", what, text)
		}
	}
	check("run_shell", p.Must(t, "run_shell", `{"command":"cat keys.txt"}`))
	check("a failure", p.Must(t, "run_shell", `{"command":"cat keys.txt; cat keys.txt >&2; exit 3"}`))
	check("run_readonly", p.Must(t, "run_readonly", `{"command":"cat keys.txt"}`))
	job := p.Must(t, "run_shell", `{"command":"cat keys.txt; sleep 3600","run_in_background":true}`)
	m := regexp.MustCompile(`job_[0-9a-z]+`).FindString(job)
	text := ""
	replaytest.Until(t, "the job has printed", func() bool {
		text += p.Must(t, "job_output", fmt.Sprintf(`{"job_id":%q}`, m))
		return strings.Contains(text, "the end")
	})
	check("job_output", text)
	p.Must(t, "job_stop", fmt.Sprintf(`{"job_id":%q}`, m))
	if text := p.Must(t, "read_file", `{"file_path":"keys.txt"}`); !strings.Contains(text, secrets[0]) {
		t.Errorf("read_file: %q", text)
	}
}

// peak is the most memory that a process ever had, in KiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("memory is read from /proc: ", err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatal("no VmHWM")
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSecondSignal: a client that escalates its signals leaves no process behind, and the code says which signal it was.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p, _ := blackbox(t)
	mark := newMark("64.")
	p.Must(t, "run_shell", fmt.Sprintf(`{"command":"trap '' TERM; setsid sleep %s & sleep %s","run_in_background":true}`, mark, mark))
	replaytest.Until(t, "the job ignores SIGTERM", func() bool { return marked(t, "sleep\x00"+mark) }) // what comes after the trap
	_ = p.Cmd.Process.Signal(syscall.SIGINT)
	_ = p.Cmd.Process.Signal(syscall.SIGTERM)
	for range p.Lines { // to its end
	}
	err := p.Cmd.Wait()
	if code := p.Cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) && code != 128+int(syscall.SIGINT) { // either may come first
		t.Errorf("exit code %d (%v); stderr:\n%s", code, err, p.Stderr)
	}
	replaytest.Until(t, "nothing of the job is left", func() bool { return !marked(t, mark) })
}

// TestEnds: the program ends by itself with its input, on a signal, and with everything that it started.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *replaytest.Spawned){
		"end of input": func(p *replaytest.Spawned) { _ = p.In.Close() },
		"SIGTERM":      func(p *replaytest.Spawned) { _ = p.Cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := blackbox(t)
			mark := newMark("63.")
			text := p.Must(t, "run_shell", fmt.Sprintf(`{"command":"setsid sleep %s & sleep %s","run_in_background":true}`, mark, mark))
			if !strings.HasPrefix(text, "Started job job_") {
				t.Fatalf("got %q", text)
			}
			end(p)
			for range p.Lines { // to its end
			}
			if err := p.Cmd.Wait(); err != nil {
				t.Errorf("it ended with %v; stderr:\n%s", err, p.Stderr)
			}
			replaytest.Until(t, "nothing of the job is left", func() bool { return !marked(t, mark) })
		})
	}
}
