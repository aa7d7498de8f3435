package mounts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/mounts/upstream"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

// kill -9 of a server again and again during 1,000 calls: each is answered once, and the server is there again within 2 s.
func TestKilledOften(t *testing.T) {
	if !leaktest.Long() {
		t.Skip("it waits for restarts; CODEHAND_LONG=1 runs it")
	}
	m := mounted(t, child(t))
	x, pids, r := find(t, m, "mcp__child__echo"), find(t, m, "mcp__child__pid"), tooltest.New(t, nil)
	right, lost, slowest := 0, 0, time.Duration(0)
	for i := range 1_000 {
		if i%200 == 100 {
			got, err := use(t.Context(), t, r, pids, `{"n":1}`)
			must(t, err)
			pid, err := strconv.Atoi(inside(t, got.Text))
			must(t, err)
			process, err := os.FindProcess(pid)
			must(t, err)
			must(t, process.Kill())
		}
		input, began := fmt.Sprintf(`{"n":%d}`, i+1), time.Now()
		got, err := use(t.Context(), t, r, x, input)
		slowest = max(slowest, time.Since(began))
		switch {
		case err == nil && strings.Contains(got.Text, "\necho "+input+"\n"):
			right++
		case codeOf(err) == tool.UpstreamDown:
			lost++
		default:
			t.Errorf("%v %s", err, got.Text)
		}
	}
	t.Logf("%d right, %d lost, the slowest took %s", right, lost, slowest)
	if right+lost != 1_000 || lost > 5 || slowest > 2*time.Second {
		t.Error("too many were lost, or a restart took too long")
	}
}

// BenchmarkCall compares a call of a mounted tool with the same request written to the pipes of a server by hand, one
// after the other, so that the machine's load is in both. p50-added-us is what codehand adds, without the pipeline.
func BenchmarkCall(b *testing.B) {
	m := mounted(b, child(b))
	x := find(b, m, "mcp__child__echo")
	o, err := child(b).Reach()
	must(b, err)
	direct := newDirect(b, o.Command)
	input := json.RawMessage(`{"n":1}`)
	env := tool.Env{State: &session.State{Key: testKey}, Progress: func(float64, float64, string) {}}
	var directly, mountedly []float64
	for b.Loop() {
		began := time.Now()
		direct.call(b, `{"n":1}`)
		between := time.Now()
		c, err := x.Bind(env.State, input)
		must(b, err)
		_, err = c.Run(b.Context(), env)
		must(b, err)
		directly = append(directly, float64(between.Sub(began).Microseconds()))
		mountedly = append(mountedly, float64(time.Since(between).Microseconds()))
	}
	slices.Sort(directly)
	slices.Sort(mountedly)
	half := len(directly) / 2
	b.ReportMetric(directly[half], "p50-direct-us")
	b.ReportMetric(mountedly[half], "p50-mounted-us")
	b.ReportMetric(mountedly[half]-directly[half], "p50-added-us")
}

// A direct is a client of a server that does no more than it must.
type direct struct {
	in  io.Writer
	out *bufio.Reader
	n   int
}

func newDirect(b *testing.B, c upstream.Command) *direct {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	return &direct{in: in, out: bufio.NewReader(out)}
}

func (d *direct) call(b *testing.B, arguments string) {
	d.n++
	_, err := fmt.Fprintf(d.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":%s}}`+"\n", d.n, arguments)
	must(b, err)
	line, err := d.out.ReadBytes('\n')
	must(b, err)
	var r struct {
		Result struct{ Content []struct{ Text string } }
	}
	must(b, json.Unmarshal(line, &r))
	if len(r.Result.Content) != 1 {
		b.Fatal(string(line))
	}
}
