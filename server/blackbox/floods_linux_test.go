package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A flood is a command of one client that takes all it can get, while another client of the same server works.
type flood struct {
	h      *household
	server *daemon
	one    *replaytest.HTTPClient // who floods
	other  *replaytest.HTTPClient
	peak   int           // memory of the server before, in KiB
	calls  int           // that other has made meanwhile
	worst  time.Duration // the slowest of them
}

// flooded starts a server whose two clients have made their first calls.
func flooded(t *testing.T, h *household) *flood {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(h.home, ".config/codehand"), 0o700))
	must(t, os.WriteFile(filepath.Join(h.home, ".config/codehand/config.toml"), []byte("[quota.default]\ncalls_per_minute = 0\nrequests_per_minute = 0\n"), 0o600))
	f := &flood{h: h, server: h.serve()}
	f.one = (&replaytest.HTTPClient{T: t, URL: f.server.url + "/mcp/s/flood-one"}).Hello()
	f.other = (&replaytest.HTTPClient{T: t, URL: f.server.url + "/mcp/s/flood-other"}).Hello()
	for _, c := range []*replaytest.HTTPClient{f.one, f.other} {
		if got := c.Does("run_shell", `{"command":"echo warm > warm && cat warm"}`); !strings.HasPrefix(got, "warm\n") && got != "warm" {
			t.Fatalf("a command: %s", got)
		}
	}
	f.peak = peak(t, f.server.cmd.Process.Pid)
	return f
}

// starts makes the call of a command whose answer comes later.
func (f *flood) starts(command string) <-chan replaytest.HTTPReply {
	args := fmt.Sprintf(`{"command":%q,"timeout":300000}`, command)
	return replaytest.Async(f.one.Request(f.h.t.Context(), http.MethodPost, f.one.URL, f.one.CallBody("7", "run_shell", args, "")))
}

// meanwhile makes calls of the other client, at least one of each kind, until there is a file of that name.
func (f *flood) meanwhile(name string) {
	f.h.t.Helper()
	path, late := filepath.Join(f.h.work, name), time.After(5*hang) // 10 GiB take half a minute
	for next := time.NewTicker(20 * time.Millisecond); ; <-next.C {
		for tool, args := range map[string]string{
			"read_file": `{"file_path":"` + f.h.work + `/a.txt"}`, "list_files": `{"pattern":"*"}`, "grep_search": `{"pattern":"one"}`,
		} {
			began := time.Now()
			if got := f.other.Does(tool, args); strings.HasPrefix(got, "!") {
				f.h.t.Fatalf("meanwhile, %s: %s", tool, got)
			}
			f.worst, f.calls = max(f.worst, time.Since(began)), f.calls+1
		}
		if _, err := os.Stat(path); err == nil {
			next.Stop()
			return
		}
		select {
		case <-late:
			f.h.t.Fatalf("the flood does not end: there is no %s", path)
		default:
		}
	}
}

// figures holds what may be held of times and memory on a machine that does nothing else.
func (f *flood) figures() {
	f.h.t.Helper()
	grown := peak(f.h.t, f.server.cmd.Process.Pid) - f.peak
	f.h.t.Logf("%d calls meanwhile, the slowest took %v; peak memory of the server grew by %d KiB", f.calls, f.worst, grown)
	if !leaktest.Long() {
		return
	}
	if grown > 64<<10 {
		f.h.t.Errorf("peak memory of the server grew by %d KiB, limit 64 MiB", grown)
	}
	if f.worst > 200*time.Millisecond {
		f.h.t.Errorf("a call of another client took %v, limit 200 ms", f.worst)
	}
}

// ended reads the answer of the flood.
func ended(t *testing.T, answer <-chan replaytest.HTTPReply) string {
	t.Helper()
	got := <-answer
	text, _ := got.Text()
	if got.Status != http.StatusOK || text == "" {
		t.Fatalf("%d %s", got.Status, got.Answer)
	}
	return text
}

// TestOutputFlood: a command that prints as fast as it can is shown from both ends and kept within the cap, and costs
// other clients nothing.
func TestOutputFlood(t *testing.T) {
	if !leaktest.Long() { // times and memory are those of a machine that does nothing else
		t.Parallel()
	}
	f := flooded(t, settle(t))
	size := 100_000_000
	if leaktest.Long() {
		size = 1_000_000_000
	}
	answer := f.starts(fmt.Sprintf("yes 'a line of the flood' | head -c %d; touch printed; until [ -e stop ]; do sleep 0.05; done", size))
	f.meanwhile("printed")
	must(t, os.WriteFile(filepath.Join(f.h.work, "stop"), nil, 0o600))
	text := ended(t, answer)
	m := regexp.MustCompile(`^Output too large \(.*\)\. Full output, but for .* MB of its middle: (.+?) Read it with`).
		FindStringSubmatch(text)
	if m == nil || len(text) > 100_000 || strings.Count(text, "a line of the flood\n") < 40 {
		t.Fatalf("the answer has %d bytes: %.300s", len(text), text)
	}
	if info, err := os.Stat(m[1]); err != nil || info.Size() < 64<<20 || info.Size() > 65<<20 {
		t.Errorf("the kept file: %v, %v", info, err)
	}
	f.figures()
}

// running counts the processes whose command line begins so.
func running(t *testing.T, cmdline string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(b), cmdline) {
			n++
		}
	}
	return n
}

// TestProcessFlood: a fork bomb of a command, here one that ends after some 250 processes, each of which ignores SIGTERM, ends
// with its command, and meanwhile others are answered.
func TestProcessFlood(t *testing.T) {
	t.Parallel()
	f := flooded(t, inFull(t))
	mark := newMark("67.")
	must(t, os.WriteFile(filepath.Join(f.h.work, "bomb"), []byte(`trap '' TERM
bomb() {
	if [ "$1" -gt 0 ]; then
		bomb $(($1 - 1)) &
		bomb $(($1 - 1)) &
	fi
	exec setsid --wait sleep "$MARK"
}
bomb 6
`), 0o600))
	answer := f.starts("MARK=" + mark + " bash bomb")
	bomb := "sleep\x00" + mark
	replaytest.Until(t, "the bomb has gone off", func() bool { return running(t, bomb) == 127 })
	must(t, os.WriteFile(filepath.Join(f.h.work, "off"), nil, 0o600))
	f.meanwhile("off")
	if status := f.one.Cancel("7", ""); status != http.StatusAccepted {
		t.Fatalf("cancelled: %d", status)
	}
	if got := <-answer; strings.Contains(got.Answer, "Completed") {
		t.Errorf("the command ended by itself: %s", got.Answer)
	}
	replaytest.Until(t, "nothing of the bomb is left", func() bool { return running(t, bomb) == 0 })
	f.figures()
}

// TestMemoryFlood: where the memory of a machine ends, the kernel takes a command before it takes anything else. With
// CODEHAND_LONG=1 a command takes 10 GiB.
func TestMemoryFlood(t *testing.T) {
	if !leaktest.Long() {
		t.Parallel()
	}
	h := settle(t)
	if leaktest.Long() {
		needs(t, "python3")
		if free := available(t); free < 12<<20 {
			t.Skipf("it takes 10 GiB of memory, and %d KiB are available", free)
		}
	}
	f := flooded(t, h)
	if got := f.one.Does("run_shell", `{"command":"cat /proc/self/oom_score_adj; touch x"}`); !strings.HasPrefix(got, "1000") {
		t.Errorf("a command has the score %q", got)
	}
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", f.server.cmd.Process.Pid))
	must(t, err)
	if strings.TrimSpace(string(own)) == "1000" {
		t.Error("the server would be ended as soon as its commands")
	}
	if !leaktest.Long() {
		return
	}
	answer := f.starts(`python3 -c 'print(len(b"x" * (10 << 30)))'; touch over`)
	f.meanwhile("over")
	t.Logf("the command: %s", ended(t, answer))
	f.figures()
}

// available is the memory in KiB that the kernel could give to a program now.
func available(t *testing.T) (free int) {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	must(t, err)
	_, rest, _ := strings.Cut(string(b), "MemAvailable:")
	_, err = fmt.Sscan(rest, &free)
	must(t, err)
	return free
}

// TestLimitGaps: what no limit holds is said in the _meta of each result and by doctor: memory, and processes where the
// kernel does not count them. With control groups nothing is missing.
func TestLimitGaps(t *testing.T) {
	t.Parallel()
	h := settle(t)
	level := confinedLevel(t, h)
	out, _ := h.command("doctor").CombinedOutput() // other findings make it fail
	line := regexp.MustCompile(`sandbox +level \d.*`).Find(out)
	if line == nil {
		t.Fatalf("doctor says nothing of the sandbox: %s", out)
	}
	var want []string
	if bytes.Contains(line, []byte("memory is not limited: ")) { // and why, where there are no control groups for us
		want = append(want, "memory")
		if level < 3 || os.Geteuid() == 0 {
			want = append(want, "process-count")
		}
	}
	c := (&replaytest.HTTPClient{T: t, URL: h.serve().url + "/mcp"}).Hello()
	for name, args := range map[string]string{
		"run_shell": `{"command":"touch x"}`, "run_readonly": `{"command":"cat a.txt"}`,
	} {
		got := sandboxMeta(t, c.Call("1", name, args, ""))
		for _, gap := range []string{"memory", "process-count"} {
			if slices.Contains(got.Gaps, gap) != slices.Contains(want, gap) {
				t.Errorf("%s: _meta says %+v, want the gaps %q", name, got, want)
			}
		}
		if got.Level != level {
			t.Errorf("%s: _meta says %+v, doctor level %d", name, got, level)
		}
	}
	_, kept, _ := strings.Cut(string(line), "not kept: ")
	kept, _, _ = strings.Cut(kept, ";")
	for _, gap := range []string{"memory", "process-count"} {
		if slices.Contains(strings.Split(kept, ", "), gap) != slices.Contains(want, gap) {
			t.Errorf("doctor says %s, want %q", line, want)
		}
	}
}

// confinement is what a result says of the sandbox.
type confinement struct {
	Level int
	Gaps  []string
}

// sandboxMeta returns what the _meta of a result says of the sandbox.
func sandboxMeta(t *testing.T, r replaytest.HTTPReply) confinement {
	t.Helper()
	var a struct {
		Result struct {
			Meta struct {
				Sandbox confinement `json:"codehand/sandbox"`
			} `json:"_meta"`
		}
	}
	must(t, json.Unmarshal([]byte(r.Answer), &a))
	return a.Result.Meta.Sandbox
}
