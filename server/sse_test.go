package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/replaytest"
	"codehand/tools/tool"
)

// tap opens a stream of legacy SSE for c and says nothing on it.
func (x *httpSite) tap(t *testing.T, c *replaytest.HTTPClient) *sseClient {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	own := *c
	r, err := http.DefaultClient.Do(own.Request(ctx, http.MethodGet, x.url+"/sse", ""))
	if err != nil {
		t.Fatal(err)
	}
	s := &sseClient{HTTPClient: &own, events: make(chan string, 2000), close: cancel}
	go func() {
		defer close(s.events)
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.events <- data
			}
		}
	}()
	s.URL = x.url + s.next(t)
	return s
}

// next is the data of the next event, which must come.
func (s *sseClient) next(t *testing.T) string {
	t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			t.Fatal("the stream ended")
		}
		return e
	case <-time.After(replaytest.HangAfter):
		t.Fatal("no event")
	}
	return ""
}

// rest are the events up to the end of the stream, which must come.
func (s *sseClient) rest(t *testing.T) []string {
	t.Helper()
	var all []string
	limit := time.After(replaytest.HangAfter)
	for {
		select {
		case e, ok := <-s.events:
			if !ok {
				return all
			}
			all = append(all, e)
		case <-limit:
			t.Fatalf("the stream does not end; it sent %q", all)
		}
	}
}

// send posts a message and returns the status.
func (s *sseClient) send(body string) int {
	s.T.Helper()
	return s.Do(s.Request(context.Background(), http.MethodPost, s.URL, body)).Status
}

// echoing is a tool that says back what it is told.
func echoing() tool.Tool {
	return fixtureTool("echo", reader, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		return tool.Result{Text: in.Text}, nil
	})
}

// changeList makes mcp-go broadcast that the list of tools changed, as a mounted server will.
func (x *httpSite) changeList() {
	x.server.calls.Gate.Server.AddTools(mcpserver.ServerTool{Tool: mcp.Tool{Name: "late"}, Handler: notCalled})
}

// notCalled is the handler of a tool that is only listed.
func notCalled(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, errors.New("it was called")
}

// TestSSEModern speaks protocol 2026-07-28 on a stream of 2024-11-05: requests without a handshake, and listens, each of
// which gets what it asked for and nothing else.
func TestSSEModern(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{echoing()}})
	s := x.tap(t, x.client(""))
	s.post(`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`)
	if got := s.next(t); !strings.Contains(got, `"id":9007199254740993,"result"`) || !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"name":"echo"`) {
		t.Errorf("tools/list: %s", got)
	}
	s.post(`{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{` + modernMeta + `}}}`)
	if got := s.next(t); !strings.Contains(got, `"id":"two","result"`) || !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"text":"hello"`) {
		t.Errorf("tools/call: %s", got)
	}
	s.post(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{` + modernMeta + `}}}`)
	if got := s.next(t); !strings.Contains(got, `"id":3,"error":{"code":-32601`) {
		t.Errorf("ping, which that protocol does not have: %s", got)
	}

	// acknowledged checks the first event of a listen.
	acknowledged := func(id string) {
		t.Helper()
		if got := s.next(t); !strings.Contains(got, "acknowledged") || !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":`+id) {
			t.Fatalf("the listen %s: %s", id, got)
		}
	}
	s.post(listenLine(`"a"`, `{"toolsListChanged":true}`))
	acknowledged(`"a"`)
	s.post(listenLine("9007199254740995", `{"resourcesListChanged":true,"toolsListChanged":true}`))
	acknowledged("9007199254740995")
	s.post(listenLine(`"deaf"`, `{"promptsListChanged":true}`))
	acknowledged(`"deaf"`)
	mute := x.tap(t, x.client("")) // asks for nothing
	x.changeList()
	tags := s.next(t) + s.next(t)
	for _, want := range []string{`"io.modelcontextprotocol/subscriptionId":"a"`, `"io.modelcontextprotocol/subscriptionId":9007199254740995`} {
		if !strings.Contains(tags, want) {
			t.Errorf("%s is not in %s", want, tags)
		}
	}
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	x.changeList()
	if got := s.next(t); !strings.Contains(got, "list_changed") || !strings.Contains(got, "9007199254740995") {
		t.Errorf("after one listen was cancelled: %s", got)
	}
	s.post(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"text":"last"},"_meta":{` + modernMeta + `}}}`)
	if got := s.next(t); !strings.Contains(got, `"text":"last"`) {
		t.Errorf("beside open listens: %s", got)
	}
	mute.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`)
	if got := mute.next(t); !strings.Contains(got, `"id":1,"result"`) {
		t.Errorf("a client that asked for nothing gets %s", got)
	}
}

// TestSSEStreamsApart has two streams of one principal with the same ids in use at the same time: each gets its own
// answers and notes, and the reads of one do not license the edits of the other.
func TestSSEStreamsApart(t *testing.T) {
	t.Parallel()
	const calls = 100
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, tools: []tool.Tool{
		fixtureTool("echo", reader, func(_ context.Context, env tool.Env, in word) (tool.Result, error) {
			env.Progress(1, 1, in.Text)
			return tool.Result{Text: in.Text}, nil
		}),
		fixtureTool("which", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
			return tool.Result{Text: env.Key.Session}, nil
		}),
	}, values: map[string]auth.Values{"alice": {Quota: map[string]string{"calls_per_minute": "0"}}}})
	streams := map[string]*sseClient{"one": x.tap(t, x.client("alice")), "two": x.tap(t, x.client("alice"))}
	var all sync.WaitGroup
	for name, s := range streams {
		all.Go(func() {
			for i := range calls {
				s.post(s.CallBody(fmt.Sprint(i), "echo", fmt.Sprintf(`{"text":"%s-%d"}`, name, i), `,"progressToken":"p"`))
			}
		})
	}
	all.Wait()
	for name, s := range streams {
		answers, notes := 0, 0
		for answers < calls {
			e := s.next(t)
			if !strings.Contains(e, name+"-") {
				t.Fatalf("on the stream %s: %s", name, e)
			}
			if strings.Contains(e, `"method":"notifications/progress"`) {
				notes++
			} else {
				answers++
			}
		}
		if notes == 0 {
			t.Errorf("no notes on the stream %s", name)
		}
	}
	keys := map[string]bool{}
	for _, s := range streams {
		s.post(s.CallBody("1", "which", "{}", ""))
		keys[s.next(t)] = true
	}
	if len(keys) != 2 {
		t.Errorf("two streams have one session: %v", keys)
	}
}

// TestSSEProgress: of 300 calls with three notes each no note comes after its answer, on another's token, or out of order.
func TestSSEProgress(t *testing.T) {
	t.Parallel()
	const calls = 300
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{fixtureTool("three_notes", reader, func(_ context.Context, env tool.Env, in word) (tool.Result, error) {
		for i := range 3 {
			env.Progress(float64(i+1), 3, in.Text)
		}
		return tool.Result{Text: in.Text}, nil
	})}, principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Quota: map[string]string{"calls_per_minute": "0"}}}})
	s := x.tap(t, x.client("alice"))
	go func() {
		for i := range calls {
			if got := s.send(s.CallBody(fmt.Sprint(i), "three_notes", fmt.Sprintf(`{"text":"call %d."}`, i), fmt.Sprintf(`,"progressToken":%d`, i))); got != http.StatusAccepted {
				t.Errorf("call %d: %d", i, got)
			}
		}
	}()
	last, total := make([]float64, calls), 0
	for answers := 0; answers < calls; {
		var e struct {
			ID     *int
			Params struct {
				ProgressToken int
				Progress      float64
				Message       string
			}
		}
		got := s.next(t)
		must(t, json.Unmarshal([]byte(got), &e))
		if e.ID != nil {
			if last[*e.ID] != 3 {
				t.Errorf("the last note of call %d before its answer says %v", *e.ID, last[*e.ID])
			}
			last[*e.ID] = 4 // what comes now is late
			answers++
			continue
		}
		total++
		if n := e.Params.ProgressToken; e.Params.Progress <= last[n] || e.Params.Message != fmt.Sprintf("call %d.", n) {
			t.Errorf("late, out of order or another's: %s", got)
		} else {
			last[n] = e.Params.Progress
		}
	}
	if total < 2*calls { // the first and the last are never merged
		t.Errorf("%d notes of %d calls", total, calls)
	}
}

// TestSSEOrphans: a call that may have changed something when its client went away is done to its end, and the record
// says so; one that only reads is cancelled.
func TestSSEOrphans(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	s := x.sse(t, "alice")
	s.begin("1", "watch", "read")
	x.expect(t, x.began, "read")
	s.begin("2", "tend", "change")
	x.expect(t, x.began, "change")
	s.close()
	x.expect(t, x.ended, "read cancelled")
	x.quiet(t)
	x.release("change")
	x.expect(t, x.ended, "change released")
	must(t, x.stop())
	if begun := recordsOf(t, x.httpSite, "call.start", "tend"); len(begun) != 1 || begun[0].P != "alice" || begun[0].Transport != "sse" {
		t.Errorf("the record of the beginning: %+v", begun)
	}
	for tool, ok := range map[string]bool{"watch": false, "tend": true} {
		if done := recordsOf(t, x.httpSite, "call.done", tool); len(done) != 1 || done[0].OK != ok || done[0].Cancelled == ok {
			t.Errorf("the record of the end of %s: %+v", tool, done)
		}
	}
}

// An auditFact is what tests look at in a line of the audit.
type auditFact struct {
	Ev        string `json:"ev"`
	P         string `json:"p"`
	Tool      string `json:"tool"`
	Auth      string `json:"auth"`
	Transport string `json:"tr"`
	Via       string `json:"via"`
	Code      string `json:"code"`
	OK        bool   `json:"ok"`
	Cancelled bool   `json:"cancelled"`
}

// recordsOf reads the records of an event, and of a tool if one is named. The site must be stopped.
func recordsOf(t *testing.T, x *httpSite, event, tool string) []auditFact {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.data, "audit", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no audit: %v", err)
	}
	var all []auditFact
	for _, name := range files {
		text, err := os.ReadFile(name)
		must(t, err)
		for l := range strings.Lines(string(text)) {
			var a auditFact
			if json.Unmarshal([]byte(l), &a) == nil && a.Ev == event && (tool == "" || a.Tool == tool) {
				all = append(all, a)
			}
		}
	}
	return all
}

// TestSSEDrainListens: a listen on a stream has nothing to wait for when the server ends. It held the drain up to its end.
func TestSSEDrainListens(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{settings: map[string]string{"http.drain": "1h", "http.orphan_grace": "1h"}})
	s := x.tap(t, x.client(""))
	s.post(listenLine("7", `{"toolsListChanged":true}`))
	if got := s.next(t); !strings.Contains(got, "acknowledged") {
		t.Fatalf("listen: %s", got)
	}
	must(t, x.stop()) // fails when it hangs
	if got := s.rest(t); len(got) != 1 || !strings.Contains(got[0], `"id":7,"result"`) || !strings.Contains(got[0], `"resultType":"complete"`) {
		t.Errorf("at the end the listen gets %q", got)
	}
}

// TestSSEDrainCalls: a call on a stream that runs when the server is told to end has its answer before it does.
func TestSSEDrainCalls(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.drain": "1h"})
	s := x.sse(t, "alice")
	s.begin("5", "hold", "a")
	x.expect(t, x.began, "a")
	stopped := make(chan error, 1)
	go func() { stopped <- x.stop() }()
	x.await(t, "it has been told", func() bool {
		r, err := http.Get(x.url + "/nothing")
		must(t, err)
		_ = r.Body.Close() // not looked at
		return r.StatusCode == http.StatusServiceUnavailable
	})
	select {
	case err := <-stopped:
		t.Fatalf("it did not wait for the call: %v", err)
	default:
	}
	x.release("a")
	if got := s.rest(t); len(got) != 1 || !strings.Contains(got[0], "done a") {
		t.Errorf("the last events are %q", got)
	}
	must(t, <-stopped)
}

// TestSSEOtherToken: a token has no part in the stream of another one, also if both are one principal's. What it posted was
// recorded under the other's name, and went on when it was revoked.
func TestSSEOtherToken(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, tools: []tool.Tool{echoing()}})
	file := auth.OpenTokenFile(x.server.cfg.TokenFile())
	made, text, err := file.New(auth.Token{Principal: "alice"})
	must(t, err)
	must(t, x.server.Reload(x.server.cfg.Principals))
	s := x.tap(t, x.client("alice"))
	call := s.CallBody("1", "echo", `{"text":"x"}`, "")
	other := *s
	other.HTTPClient = x.client("alice")
	other.Token, other.URL = text, s.URL
	if got := other.send(call); got != http.StatusNotFound {
		t.Errorf("another token of the same principal posts: %d", got)
	}
	s.post(call)
	if got := s.next(t); !strings.Contains(got, `"text":"x"`) {
		t.Errorf("the call: %s", got)
	}
	own := x.tap(t, other.HTTPClient)
	own.post(call)
	own.next(t)
	must(t, x.stop())
	lines := recordsOf(t, x, "call.done", "echo")
	if len(lines) != 2 || lines[0].Auth == lines[1].Auth || lines[1].Auth != "token:"+made.ID {
		t.Errorf("the record of two calls with two tokens: %+v; the second is token:%s", lines, made.ID)
	}
}

// TestSSEBytesOut: what leaves on a stream counts while it is open. It did not at all, and a client may keep one for days.
func TestSSEBytesOut(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Quota: map[string]string{"bytes_out_per_minute": "20KiB"}}}})
	s := x.tap(t, x.client("alice"))
	for sent := 0; sent < 60<<10; sent += len(s.next(t)) {
		status := s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if status == http.StatusTooManyRequests {
			if sent < 10<<10 {
				t.Errorf("refused after %d bytes", sent)
			}
			return
		}
		if status != http.StatusAccepted {
			t.Fatalf("after %d bytes: %d", sent, status)
		}
	}
	t.Error("three times the quota left on an open stream")
}

// await waits until something holds that only asking shows.
func (x *httpSite) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(replaytest.HangAfter); !holds(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("it does not come true that %s", what)
		}
	}
}

// TestSSEBrokenWorkspace: a client whose workspace cannot be served keeps its stream, and works on it when the operator
// has mended what was wrong.
func TestSSEBrokenWorkspace(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	now := time.Now()
	x.server.team.Tenants.Now = func() time.Time { return now }
	root := filepath.Join(x.data, "workspaces", "alice")
	must(t, os.MkdirAll(filepath.Dir(root), 0o700))
	must(t, os.WriteFile(root, []byte("in the way"), 0o600))
	s := x.tap(t, x.client("alice"))
	list := s.CallBody("1", "list_files", `{"pattern":"*"}`, "")
	for range 2 {
		s.post(list)
		if got := s.next(t); !strings.Contains(got, "WORKSPACE_UNAVAILABLE") {
			t.Errorf("in a workspace that is a file: %s", got)
		}
		now = now.Add(time.Minute)
	}
	must(t, os.Remove(root))
	s.post(list)
	if got := s.next(t); strings.Contains(got, "isError") {
		t.Errorf("after it was mended: %s", got)
	}
}

// TestSSEReset: a client that breaks its connection off gives back its stream's place.
func TestSSEReset(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Quota: map[string]string{"streams": "1", "requests_per_minute": "0"}}}})
	at := strings.TrimPrefix(x.url, "http://")
	for range 3 {
		x.await(t, "there is a place for a stream", func() bool {
			k, err := net.Dial("tcp", at)
			must(t, err)
			defer k.Close()
			_, err = fmt.Fprintf(k, "GET /sse HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", at, x.tokens["alice"])
			must(t, err)
			line, err := bufio.NewReader(k).ReadString('\n')
			must(t, err)
			must(t, k.(*net.TCPConn).SetLinger(0)) // Close sends a reset, not a FIN
			return strings.Contains(line, "200 OK")
		})
	}
}
