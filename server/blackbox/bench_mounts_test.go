package blackbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// proxyMark makes the test binary a server that passes the tools of the mounted one on and does nothing else, made of
// the library that codehand uses for both sides.
const proxyMark = "CODEHAND_TEST_PROXY"

// runProxy serves until its client ends.
func runProxy() int {
	program, err := os.Executable()
	if err != nil {
		return 1
	}
	ctx := context.Background()
	upstream, err := client.NewStdioMCPClient(program, append(os.Environ(), proxyMark+"=", mountMark+"=0"))
	if err != nil {
		return 1
	}
	defer func() { _ = upstream.Close() }()
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-06-18"
	if _, err := upstream.Initialize(ctx, hello); err != nil {
		return 1
	}
	tools, err := upstream.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return 1
	}
	proxy := server.NewMCPServer("proxy", "1")
	for _, t := range tools.Tools {
		proxy.AddTool(t, upstream.CallTool)
	}
	if server.ServeStdio(proxy) != nil {
		return 1
	}
	return 0
}

// BenchmarkMounted compares calls of a server by a client of its own with calls of the same tool through codehand, and
// through a server that only passes them on, one after the other, so that the machine's load is in all.
// mounted-p50-added-us is what codehand adds, and mounted-p50-proxy-x how often that is what the other server adds.
func BenchmarkMounted(b *testing.B) {
	program, err := os.Executable()
	must(b, err)
	base, work := leaktest.Dir(b), leaktest.Dir(b)
	table := fmt.Sprintf("[mcp.servers.demo]\ncommand = %q\nenv = {%s = \"0\", GOCOVERDIR = %q}\n", program, mountMark, os.TempDir())
	config := filepath.Join(base, "config.toml")
	must(b, os.WriteFile(config, []byte(table), 0o600))
	own := exec.Command(program)
	own.Env = append(os.Environ(), mountMark+"=0")
	proxy := exec.Command(program)
	proxy.Env = append(os.Environ(), proxyMark+"=1")
	through := exec.Command(replaytest.Program(b), "stdio", work, "--config", config, "--permissions-allow", "mcp__demo")
	through.Dir, through.Env = work, []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base}
	talks := []*talk{newTalk(b, own, "echo"), newTalk(b, proxy, "echo"), newTalk(b, through, "mcp__demo__echo")}
	for range 50 {
		for _, t := range talks {
			t.call(b)
		}
	}
	times := make([][]float64, len(talks))
	for b.Loop() {
		for i, t := range talks {
			began := time.Now()
			t.call(b)
			times[i] = append(times[i], float64(time.Since(began).Nanoseconds())/1e3)
		}
	}
	half := len(times[0]) / 2
	for i := range times {
		slices.Sort(times[i])
	}
	direct, bare, ours := times[0][half], times[1][half], times[2][half]
	b.ReportMetric(direct, "mounted-p50-direct-us")
	b.ReportMetric(bare-direct, "mounted-p50-proxy-us")
	b.ReportMetric(ours-direct, "mounted-p50-added-us")
	b.ReportMetric((ours-direct)/(bare-direct), "mounted-p50-proxy-x")
}

// A talk is a client that does no more than it must.
type talk struct {
	in   io.Writer
	out  *bufio.Reader
	name string
	n    int
}

func newTalk(b *testing.B, cmd *exec.Cmd, name string) *talk {
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, leaktest.Start(cmd))
	t := &talk{in: in, out: bufio.NewReader(out), name: name}
	b.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	t.ask(b, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	return t
}

func (t *talk) ask(b *testing.B, method, params string) []byte {
	t.n++
	_, err := fmt.Fprintf(t.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", t.n, method, params)
	must(b, err)
	for {
		line, err := t.out.ReadBytes('\n')
		must(b, err)
		var r struct{ ID int }
		if json.Unmarshal(line, &r) == nil && r.ID == t.n {
			return line
		}
	}
}

func (t *talk) call(b *testing.B) {
	if line := t.ask(b, "tools/call", `{"name":"`+t.name+`","arguments":{"text":"hello"}}`); !strings.Contains(string(line), "echo hello") {
		b.Fatal(string(line))
	}
}

// mountKind is the table of the test binary as a server of this name that behaves as mountMark says.
func mountKind(t *testing.T, name, kind, more string) string {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	return fmt.Sprintf("[mcp.servers.%s]\ncommand = %q\nenv = {%s = %q, GOCOVERDIR = %q}\n%s\n", name, program, mountMark, kind, os.TempDir(), more)
}
