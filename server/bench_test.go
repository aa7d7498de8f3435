package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The benchmarks of this file run the built program beside a trivial server of the official Go SDK (testdata/bench/gosdk),
// in turns and in the same run, since absolute figures move with the machine. They report the ratio ours/peer; the goals
// are in .ci/bench. Ours has its whole tool list and the whole corridor in the path.

// peer builds the Go SDK's server. It is a module of its own, so that its dependencies are not ours.
var peer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "codehand-bench-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gosdk")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = "../testdata/bench/gosdk"
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &buildError{string(out), err}
	}
	return path, nil
})

// A contender is one server under measurement.
type contender struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

const (
	helloLines = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"
	readyLine  = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	listLine   = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
)

// launch starts a server and returns it when it has answered tools/list, with the time that took.
func launch(b *testing.B, path string, args ...string) (*contender, time.Duration) {
	b.Helper()
	home := b.TempDir()
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	c := &contender{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	c.exchange(b, helloLines)
	if _, err := io.WriteString(in, readyLine); err != nil {
		b.Fatal(err)
	}
	c.exchange(b, listLine)
	return c, time.Since(start)
}

// exchange writes one line and reads one answer.
func (c *contender) exchange(b *testing.B, line string) []byte {
	if _, err := io.WriteString(c.in, line); err != nil {
		b.Fatal(err)
	}
	l, err := c.out.ReadSlice('\n')
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func (c *contender) stop() {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait()
}

// rss is the resident memory of a process, in KiB.
func (c *contender) rss(b *testing.B) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		b.Skip("memory is read from /proc: ", err)
	}
	for l := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// both starts the two servers.
func both(b *testing.B) (ours, sdk *contender) {
	b.Helper()
	mine, err := program()
	if err != nil {
		b.Fatal(err)
	}
	theirs, err := peer()
	if err != nil {
		b.Skipf("the peer cannot be built (%v); its modules come from the module proxy", err)
	}
	work := b.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("one\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	ours, _ = launch(b, mine, "stdio", work)
	sdk, _ = launch(b, theirs)
	b.Cleanup(ours.stop)
	b.Cleanup(sdk.stop)
	return ours, sdk
}

func oursCall(id int) string { return callLine(id, "list_files", `{"pattern":"*"}`, "") + "\n" }
func sdkCall(id int) string  { return callLine(id, "ping", `{}`, "") + "\n" }

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2]) / 1e3
}

// BenchmarkStdioRoundTrip: one call at a time; each iteration is 200 calls on each server, in turns.
func BenchmarkStdioRoundTrip(b *testing.B) {
	ours, sdk := both(b)
	const calls = 200
	measure := func(c *contender, line func(int) string, into *[]time.Duration) {
		for i := range calls {
			l := line(i + 100)
			start := time.Now()
			answer := c.exchange(b, l)
			*into = append(*into, time.Since(start))
			if bytes.Contains(answer, []byte(`"error"`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
				b.Fatalf("%s", answer)
			}
		}
	}
	var a, z []time.Duration
	for b.Loop() {
		measure(ours, oursCall, &a)
		measure(sdk, sdkCall, &z)
	}
	slices.Sort(a)
	b.ReportMetric(float64(a[len(a)*99/100])/1e3, "ours-p99-us")
	b.ReportMetric(median(a), "ours-p50-us")
	b.ReportMetric(median(z), "sdk-p50-us")
	b.ReportMetric(median(a)/median(z), "p50-ratio")
}

// BenchmarkStdioInFlight: 8 calls in flight; each iteration is 1,000 calls on each server, in turns.
func BenchmarkStdioInFlight(b *testing.B) {
	ours, sdk := both(b)
	const calls, open = 1000, 8
	measure := func(c *contender, line func(int) string) time.Duration {
		start := time.Now()
		sent := 0
		for ; sent < open; sent++ {
			if _, err := io.WriteString(c.in, line(sent+100)); err != nil {
				b.Fatal(err)
			}
		}
		for range calls {
			if _, err := c.out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
			if sent < calls {
				if _, err := io.WriteString(c.in, line(sent+100)); err != nil {
					b.Fatal(err)
				}
				sent++
			}
		}
		return time.Since(start)
	}
	var a, z time.Duration
	n := 0
	for b.Loop() {
		a += measure(ours, oursCall)
		z += measure(sdk, sdkCall)
		n += calls
	}
	b.ReportMetric(float64(n)/a.Seconds(), "ours-calls/s")
	b.ReportMetric(float64(n)/z.Seconds(), "sdk-calls/s")
	b.ReportMetric(float64(z)/float64(a), "calls-ratio")
}

// BenchmarkColdStart: from the start of the process to the answer of tools/list, and the memory then.
func BenchmarkColdStart(b *testing.B) {
	mine, err := program()
	if err != nil {
		b.Fatal(err)
	}
	theirs, err := peer()
	if err != nil {
		b.Skipf("the peer cannot be built (%v); its modules come from the module proxy", err)
	}
	work := b.TempDir()
	var a, z []time.Duration
	var memA, memZ float64
	for b.Loop() {
		c, d := launch(b, mine, "stdio", work)
		a, memA = append(a, d), memA+c.rss(b)
		c.stop()
		c, d = launch(b, theirs)
		z, memZ = append(z, d), memZ+c.rss(b)
		c.stop()
	}
	n := float64(len(a))
	b.ReportMetric(median(a)/1e3, "ours-start-ms")
	b.ReportMetric(median(z)/1e3, "sdk-start-ms")
	b.ReportMetric(median(a)/median(z), "start-ratio")
	b.ReportMetric(memA/n/1024, "ours-MiB")
	b.ReportMetric(memZ/n/1024, "sdk-MiB")
	b.ReportMetric(memA/memZ, "memory-ratio")
}
