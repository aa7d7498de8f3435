package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/filestate/leaktest"
	"codehand/server/bridge"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/replaytest"
	"codehand/server/replies"
	"codehand/tools/tool"
)

// The tests of this file put a bridge before real endpoints: ours, and that of mcp-go, which nobody here wrote.

// An endpointHere is our server on HTTP in this process.
type endpointHere struct {
	server *Server
	work   string
	data   string
	addr   string
	cancel context.CancelFunc
	ended  chan error
}

// openEndpoint serves work on addr without authentication, with its state in data. all nil: every tool.
func openEndpoint(t *testing.T, work, data, addr string, all []tool.Tool, settings map[string]string) *endpointHere {
	t.Helper()
	flags := map[string]string{"state-dir": data, "auth-local-peer": "any"}
	for k, v := range settings {
		flags[replaytest.FlagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{WorkDir: work, Home: t.TempDir(), Flags: flags, Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.OpenState(data); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: cfg, Tools: making(all, nil), Version: "test", Serve: true, StoreTime: replaytest.HangAfter}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	for end := time.Now().Add(replaytest.HangAfter); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); l, err = net.Listen("tcp", addr) {
		runtime.Gosched() // a child that another test forks has the one before until it runs its program
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &endpointHere{server: s, work: work, data: data, addr: l.Addr().String(), cancel: cancel, ended: make(chan error, 1)}
	go func() {
		err := s.HTTP(ctx, []listen.Listener{{Listener: l, URL: "http://" + e.addr, Loopback: true}})
		if closing := s.Close(); err == nil {
			err = closing
		}
		e.ended <- err
	}()
	return e
}

// close ends the endpoint as a signal does.
func (e *endpointHere) close(t *testing.T) {
	t.Helper()
	e.cancel()
	select {
	case err := <-e.ended:
		if err != nil {
			t.Errorf("HTTP: %v", err)
		}
	case <-time.After(replaytest.HangAfter):
		t.Fatal("HTTP does not return")
	}
}

// serveForBridge opens an endpoint over a new workspace, which ends with the test.
func serveForBridge(t *testing.T, all []tool.Tool, settings map[string]string) *endpointHere {
	t.Helper()
	work := leaktest.Dir(t)
	e := openEndpoint(t, work, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", all, replaytest.Placed(settings, work))
	t.Cleanup(func() { e.close(t) })
	return e
}

// bridgeTo connects a client through a bridge. It ends, and is checked, with the test.
func bridgeTo(t *testing.T, url, client string, modern bool) *fixture {
	t.Helper()
	return bridgeOver(t, nil, url, client, modern)
}

// bridgeOver is bridgeTo over connections of the test's own.
func bridgeOver(t *testing.T, base http.RoundTripper, url, client string, modern bool) *fixture {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	f := &fixture{ended: make(chan error, 1)}
	go func() {
		err := bridge.Run(context.Background(), bridge.Options{URL: url, Session: replaytest.Handle, EOFGrace: replaytest.HangAfter, Base: base, Refuse: replies.Refusals("test")}, inR, outW)
		_ = outW.Close()
		f.ended <- err
	}()
	f.Wire = replaytest.NewWire(inW, outR, client, modern)
	t.Cleanup(func() {
		_ = f.In.Close()
		for range f.Lines { // to the end of its output
		}
		select {
		case err := <-f.ended:
			if err != nil {
				t.Errorf("Bridge: %v", err)
			}
		case <-time.After(replaytest.HangAfter):
			t.Fatal("Bridge does not return")
		}
	})
	if err := f.Hello(); err != nil {
		t.Fatal(err)
	}
	return f
}

func inBothEras(t *testing.T, test func(t *testing.T, modern bool, meta string)) {
	t.Helper()
	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		test(t, false, "")
	})
	t.Run("modern", func(t *testing.T) {
		t.Parallel()
		test(t, true, modernMeta)
	})
}

// TestBridgeSessions replays session files of stdio through a bridge: the model reads the same, byte for byte.
func TestBridgeSessions(t *testing.T) {
	for _, path := range replaytest.Again(t) {
		file, err := replaytest.ReadScript(path)
		if err != nil {
			t.Fatal(err)
		}
		if !file.Written || file.Fixed { // a site has all tools
			continue // TestSessions writes it
		}
		if file.Settings(t)["permissions.mode"] == "bypassPermissions" {
			continue // serve does not start with it
		}
		t.Run(replaytest.ScriptName(path), func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"sandbox.policy": "off", "permissions.ask_fallback": "client", "plan.approval_fallback": "client", "permissions.mode": "default", "console.approvals": "off"} // as on stdio
			for k, v := range file.Settings(t) {
				settings[k] = v
			}
			e := serveForBridge(t, nil, settings)
			f := bridgeTo(t, "http://"+e.addr+"/mcp", file.Client, file.Modern)
			replaytest.Play(t, file, f.Wire, e.work, e.server.engines.Dir, e.server.cfg.Home, false)
		})
	}
}

// TestBridgeProgress: all notes of many calls at once arrive, in order and before their answers.
func TestBridgeProgress(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, modern bool, meta string) {
		const calls = 60
		e := serveForBridge(t, []tool.Tool{fixtureTool("two_notes", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
			env.Progress(1, 2, "first")
			env.Progress(2, 2, "second")
			return tool.Result{Text: "done"}, nil
		})}, nil)
		f := bridgeTo(t, "http://"+e.addr+"/mcp", "test", modern)
		go func() {
			for i := range calls {
				token := `"progressToken":` + strconv.Itoa(i+10)
				if meta != "" {
					token += "," + meta
				}
				_ = f.Send(replaytest.CallLine(i+10, "two_notes", "{}", token))
			}
		}()
		answers, all := f.collect(t, calls)
		for id, r := range answers {
			if r.Error != nil || strings.Contains(string(r.Result), `"isError":true`) {
				t.Fatalf("id %s: %s %+v", id, r.Result, r.Error)
			}
		}
		notes, answered := map[string]int{}, map[string]bool{}
		for _, r := range all {
			if r.Method != "notifications/progress" {
				answered[string(r.ID)] = true
				continue
			}
			var p struct {
				ProgressToken json.RawMessage `json:"progressToken"`
				Progress      float64         `json:"progress"`
			}
			if err := json.Unmarshal(r.Params, &p); err != nil {
				t.Fatal(err)
			}
			token := string(p.ProgressToken)
			if notes[token]++; answered[token] || p.Progress != float64(notes[token]) {
				t.Errorf("note %v of call %s, answered %t", p.Progress, token, answered[token])
			}
		}
		for i := range calls {
			if n := notes[strconv.Itoa(i+10)]; n != 2 {
				t.Errorf("call %d has %d notes", i+10, n)
			}
		}
	})
}

// TestBridgeCancelsTools: a cancel on stdio ends the context of the tool behind the endpoint, and nothing answers.
func TestBridgeCancelsTools(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, modern bool, meta string) {
		started, ended := make(chan struct{}), make(chan struct{})
		e := serveForBridge(t, []tool.Tool{
			fixtureTool("hold", tool.Traits{Private: true, Local: true}, func(ctx context.Context, _ tool.Env, _ word) (tool.Result, error) {
				close(started)
				<-ctx.Done()
				close(ended)
				return tool.Result{}, ctx.Err()
			}),
			fixtureTool("echo", tool.Traits{ReadOnly: true, Ungated: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
				return tool.Result{Text: in.Text}, nil
			}),
		}, nil)
		f := bridgeTo(t, "http://"+e.addr+"/mcp", "test", modern)
		send := func(l string) {
			t.Helper()
			if err := f.Send(l); err != nil {
				t.Fatal(err)
			}
		}
		send(replaytest.CallLine(10, "hold", "{}", meta))
		wait(t, started, "the call does not begin")
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10}}`)
		wait(t, ended, "the cancel does not reach the tool")
		send(replaytest.CallLine(10, "echo", `{"text":"again"}`, meta))
		if l, err := f.Receive(); err != nil || !strings.Contains(string(l), "again") {
			t.Errorf("got %s (%v)", l, err)
		}
		_ = f.In.Close()
		if l, err := f.Receive(); err != io.EOF {
			t.Errorf("a late line: %s", l)
		}
	})
}

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(replaytest.HangAfter):
		t.Fatal(what)
	}
}

// A dialer makes the connections of a client, and knows when the client has closed them.
type dialer struct {
	mu    sync.Mutex
	conns []*dialedConn
}

type dialedConn struct {
	net.Conn
	closed chan struct{}
	close  func() error
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &dialedConn{Conn: conn, closed: make(chan struct{})}
	c.close = sync.OnceValue(func() error {
		defer close(c.closed)
		return conn.Close()
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, c)
	return c, nil
}

func (c *dialedConn) Close() error { return c.close() }

// drained waits until the client has closed what it has dialed. A call that nobody may repeat fails if it is sent on a
// connection whose end the client has not seen yet.
func (d *dialer) drained(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	conns := slices.Clone(d.conns)
	d.mu.Unlock()
	for _, c := range conns {
		wait(t, c.closed, "the client keeps a connection that the endpoint has ended")
	}
}

// TestBridgeRestart: the endpoint is restarted between two calls, on the same address and state; what was read can be
// edited.
func TestBridgeRestart(t *testing.T) {
	t.Parallel()
	inBothEras(t, func(t *testing.T, modern bool, _ string) {
		work := leaktest.Dir(t)
		data, settings := filepath.Join(t.TempDir(), "data"), map[string]string{"permissions.mode": "acceptEdits"}
		path := filepath.Join(work, "a.txt")
		if err := os.WriteFile(path, []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		e := openEndpoint(t, work, data, replaytest.Reserved(t), nil, settings)
		d := &dialer{}
		base := &http.Transport{DialContext: d.dial}
		f := bridgeOver(t, base, "http://"+e.addr+"/mcp", "test", modern)
		if got, err := f.Call("read_file", json.RawMessage(fmt.Sprintf(`{"file_path":%q}`, path))); err != nil || !strings.Contains(got, "one") {
			t.Fatalf("read: %s (%v)", got, err)
		}
		e.close(t)
		d.drained(t)
		e = openEndpoint(t, work, data, e.addr, nil, settings)
		t.Cleanup(func() { e.close(t) })
		got, err := f.Call("edit_file", json.RawMessage(fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"two"}`, path)))
		if b, _ := os.ReadFile(path); err != nil || string(b) != "two\n" {
			t.Errorf("edit: %s (%v), the file: %s", got, err, b)
		}
	})
}

// TestBridgeForeign: the endpoint of mcp-go, with a progress note on the stream of each call.
func TestBridgeForeign(t *testing.T) {
	t.Parallel()
	m := mcpserver.NewMCPServer("foreign", "1", mcpserver.WithToolCapabilities(true))
	m.AddTool(mcp.NewTool("echo", mcp.WithString("text")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
			_ = mcpserver.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 1})
		}
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	s := httptest.NewServer(mcpserver.NewStreamableHTTPServer(m))
	t.Cleanup(s.Close)
	inBothEras(t, func(t *testing.T, modern bool, meta string) {
		f := bridgeTo(t, s.URL+"/path", "test", modern)
		if r, err := f.Request("tools/list", nil); err != nil || !strings.Contains(string(r.Result), `"echo"`) {
			t.Fatalf("list: %s (%v)", r.Result, err)
		}
		for i := range 20 {
			id := `"id-` + strconv.Itoa(i) + `"`
			if err := f.Send(replaytest.CallLine(id, "echo", `{"text":"größe"}`, strings.TrimSuffix(`"progressToken":`+id+","+meta, ","))); err != nil {
				t.Fatal(err)
			}
		}
		answers, _ := f.collect(t, 20)
		for i := range 20 {
			if r := answers[`"id-`+strconv.Itoa(i)+`"`]; !strings.Contains(string(r.Result), "größe") {
				t.Errorf("call %d: %s %+v", i, r.Result, r.Error)
			}
		}
		if r, err := f.Request("tools/nothing", nil); err != nil || r.Error == nil || r.Error.Code != -32601 {
			t.Errorf("an unknown method: %+v (%v)", r.Error, err)
		}
	})
}

// TestBridgeRefusals: what stdio refuses the bridge refuses in the same words, and the endpoint never sees it.
func TestBridgeRefusals(t *testing.T) {
	t.Parallel()
	bad := []string{
		"garbage", `{"jsonrpc":"2.0","id":1}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":2,"method":"ping","Method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"1.0","id":3,"method":"ping"}`, `{"jsonrpc":"2.0","id":4,"id":4,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read_file","arguments":{"a":1,"a":2}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"read_file","arguments":{"a":"\ud800"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}`, `{"jsonrpc":"2.0","method":"x","Method":"y"}`, "", "  ",
		`{"jsonrpc":"2.0","id":8,"method":"` + strings.Repeat("x", jsonrpc.MaxMessage) + `"}`,
	}
	f := start(t, setup{silent: true})
	var want []string
	for _, l := range bad {
		if err := f.Send(l); err != nil {
			t.Fatal(err)
		}
	}
	_ = f.In.Close()
	for {
		l, err := f.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, strings.TrimSpace(wireMillis.ReplaceAllString(string(l), `"codehand/ms":0`)))
	}
	slices.Sort(want)
	seen := make(chan string, len(bad))
	stub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { seen <- q.Method }))
	defer stub.Close()
	var out bytes.Buffer
	o := bridge.Options{URL: stub.URL + "/mcp", EOFGrace: replaytest.HangAfter, Refuse: replies.Refusals("test")}
	must(t, bridge.Run(t.Context(), o, strings.NewReader(strings.Join(bad, "\n")+"\n"), &out))
	var got []string
	for l := range strings.Lines(out.String()) {
		got = append(got, strings.TrimSpace(wireMillis.ReplaceAllString(l, `"codehand/ms":0`)))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(seen) > 0 {
		t.Errorf("the endpoint saw %s", <-seen)
	}
}
