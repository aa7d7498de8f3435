package blackbox

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
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The benchmarks of this file run the built program beside a trivial server of the official Go SDK (testdata/bench/gosdk),
// in turns and in the same run, since absolute figures move with the machine. They report the ratio ours/peer; the goals
// are in .ci/bench. Ours has its whole tool list and the whole pipeline in the path; the call is that of the cheapest
// read-only tool, since the peer's does nothing at all. A listing of one file is measured beside it, for what a call
// costs that touches the disk.

// peer builds the Go SDK's server. It is a module of its own, so that its dependencies are not ours.
func peer() (string, error) {
	dir, err := replaytest.Build("gosdk", func(dir string) error { return replaytest.GoBuild("../../testdata/bench/gosdk", dir, ".") })
	return filepath.Join(dir, "gosdk"), err
}

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
	return launchIn(b, b.TempDir(), path, args...)
}

// launchIn is launch in a home directory that another server may have had.
func launchIn(b *testing.B, home, path string, args ...string) (*contender, time.Duration) {
	b.Helper()
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
	if err := leaktest.Start(cmd); err != nil {
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
	mine := replaytest.Program(b)
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

// A kind is one kind of call under measurement.
type kind struct {
	name string
	at   *contender
	line func(id int) string
}

// kinds are a call of each server, and the listing.
func kinds(b *testing.B) []kind {
	b.Helper()
	ours, sdk := both(b)
	started := ours.exchange(b, replaytest.CallLine(90, "run_shell", `{"command":"true","run_in_background":true}`, "")+"\n")
	job := string(replaytest.JobID.Find(started))
	read := fmt.Sprintf(`{"job_id":%q}`, job)
	for answer := []byte(nil); !bytes.Contains(answer, []byte("no new output")); {
		answer = ours.exchange(b, replaytest.CallLine(91, "job_output", fmt.Sprintf(`{"job_id":%q,"block":true}`, job), "")+"\n")
	}
	return []kind{
		{"ours", ours, func(id int) string { return replaytest.CallLine(id, "job_output", read, "") + "\n" }},
		{"list", ours, func(id int) string { return replaytest.CallLine(id, "list_files", `{"pattern":"*"}`, "") + "\n" }},
		{"sdk", sdk, func(id int) string { return replaytest.CallLine(id, "ping", `{}`, "") + "\n" }},
	}
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2]) / 1e3
}

// BenchmarkStdioRoundTrip: one call at a time; each iteration is 200 calls of each kind, in turns.
func BenchmarkStdioRoundTrip(b *testing.B) {
	const calls = 200
	all := kinds(b)
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, k := range all {
			for i := range calls {
				line := k.line(i + 100)
				start := time.Now()
				answer := k.at.exchange(b, line)
				took[k.name] = append(took[k.name], time.Since(start))
				if bytes.Contains(answer, []byte(`"error"`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
					b.Fatalf("%s", answer)
				}
			}
		}
	}
	p50 := map[string]float64{}
	for name, d := range took {
		p50[name] = median(d)
		b.ReportMetric(p50[name], name+"-p50-us")
	}
	b.ReportMetric(float64(took["ours"][len(took["ours"])*99/100])/1e3, "ours-p99-us")
	b.ReportMetric(p50["ours"]/p50["sdk"], "p50-ratio")
}

// BenchmarkStdioInFlight: 8 calls in flight; each iteration is 1,000 calls of each kind, in turns.
func BenchmarkStdioInFlight(b *testing.B) {
	const calls, open = 1000, 8
	all := kinds(b)
	took := map[string]time.Duration{}
	rounds := 0
	for b.Loop() {
		rounds++
		for _, k := range all {
			start := time.Now()
			for sent, got := 0, 0; got < calls; {
				if sent < calls && sent < got+open {
					if _, err := io.WriteString(k.at.in, k.line(sent+100)); err != nil {
						b.Fatal(err)
					}
					sent++
					continue
				}
				if _, err := k.at.out.ReadSlice('\n'); err != nil {
					b.Fatal(err)
				}
				got++
			}
			took[k.name] += time.Since(start)
		}
	}
	for name, d := range took {
		b.ReportMetric(float64(rounds*calls)/d.Seconds(), name+"-calls/s")
	}
	b.ReportMetric(float64(took["sdk"])/float64(took["ours"]), "calls-ratio")
}

// BenchmarkColdStart: from the start of the process to the answer of tools/list, and the memory then.
func BenchmarkColdStart(b *testing.B) {
	mine := replaytest.Program(b)
	theirs, err := peer()
	if err != nil {
		b.Skipf("the peer cannot be built (%v); its modules come from the module proxy", err)
	}
	work := b.TempDir()
	var a, z, nodes []time.Duration
	var memA, memZ float64
	node, errNode := exec.LookPath("node")
	script, errScript := mainOf(filepath.Join(replaytest.Root(b), "testdata/bench/peers/node_modules",
		"@modelcontextprotocol/server-filesystem"))
	for b.Loop() {
		if errNode == nil && errScript == nil {
			c, d := launch(b, node, script, work)
			nodes = append(nodes, d)
			_ = c.cmd.Process.Kill() // not all end with their input
			c.stop()
		}
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
	if len(nodes) > 0 { // server-filesystem, where .ci/bench has installed it
		b.ReportMetric(median(nodes)/1e3, "node-start-ms")
		b.ReportMetric(median(a)/median(nodes), "start-node-ratio")
	}
	b.ReportMetric(memA/n/1024, "ours-MiB")
	b.ReportMetric(memZ/n/1024, "sdk-MiB")
	b.ReportMetric(memA/memZ, "memory-ratio")
}

// BenchmarkFirstCommand: the first run_shell of a process, with and without what an earlier one proved of the sandbox,
// and the second one.
func BenchmarkFirstCommand(b *testing.B) {
	mine := replaytest.Program(b)
	work, home := b.TempDir(), b.TempDir()
	call := replaytest.CallLine(90, "run_shell", `{"command":"true"}`, "") + "\n"
	run := func(c *contender) time.Duration {
		start := time.Now()
		if answer := c.exchange(b, call); bytes.Contains(answer, []byte(`"isError":true`)) {
			b.Fatalf("%s", answer)
		}
		return time.Since(start)
	}
	took := map[string][]time.Duration{}
	first, _ := launchIn(b, home, mine, "stdio", work)
	run(first)
	first.stop()
	for b.Loop() {
		c, _ := launchIn(b, home, mine, "stdio", work)
		took["recalled"] = append(took["recalled"], run(c))
		c.stop()
		c, _ = launch(b, mine, "stdio", work)
		took["probed"] = append(took["probed"], run(c))
		took["second"] = append(took["second"], run(c))
		c.stop()
	}
	for name, d := range took {
		b.ReportMetric(median(d)/1e3, name+"-p50-ms")
	}
	b.ReportMetric(0, "ns/op")
}
