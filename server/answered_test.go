package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/server/listen"
	"codehand/server/metrics"
	"codehand/server/replaytest"
)

// A latePort is an address of a server at which a client can have an answer when its handler has not gone on yet.
type latePort struct {
	net.Listener
	url  string // of the endpoint
	next atomic.Pointer[lateAnswer]
}

// A lateAnswer is the next thing that is sent.
type lateAnswer struct {
	sent chan struct{} // closed when the client has it
	goOn chan struct{} // closed when the handler may
}

// lateSite opens such an address of a site, with an endpoint of its own. It ends with the test.
func lateSite(t *testing.T, x *httpSite) *latePort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &latePort{Listener: l, url: "http://" + l.Addr().String()}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.server.HTTP(ctx, []listen.Listener{{Listener: p, URL: p.url, Loopback: true}}) }()
	t.Cleanup(func() {
		end()
		must(t, <-ended)
	})
	return p
}

// client is a client of the address.
func (p *latePort) client(x *httpSite, principal string) *replaytest.HTTPClient {
	c := x.client(principal)
	c.URL = p.url + "/mcp"
	return c
}

// hold holds back the handler that sends something next, when it has sent it.
func (p *latePort) hold() *lateAnswer {
	a := &lateAnswer{sent: make(chan struct{}), goOn: make(chan struct{})}
	p.next.Store(a)
	return a
}

func (p *latePort) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lateConn{c, p}, nil
}

type lateConn struct {
	net.Conn
	p *latePort
}

func (c *lateConn) Write(b []byte) (int, error) {
	a := c.p.next.Swap(nil) // before: the reader of what is written may hold the next write at once
	n, err := c.Conn.Write(b)
	if a != nil {
		close(a.sent)
		<-a.goOn
	}
	return n, err
}

// send posts a message, and returns when its client has the answer, before the handler goes on. The answer comes after
// that.
func (p *latePort) send(t *testing.T, c *replaytest.HTTPClient, body string) (late *lateAnswer, answer <-chan replaytest.HTTPReply) {
	t.Helper()
	late = p.hold()
	r := c.Request(t.Context(), http.MethodPost, c.URL, body)
	r.Close = true // or the next request could come on this connection, behind the one that is held back
	answer = replaytest.Async(r)
	select {
	case <-late.sent:
	case <-time.After(replaytest.HangAfter):
		t.Fatal("no answer")
	}
	return late, answer
}

// TestAnsweredName: a client had its answer and used the name of the call again, before the handler of the first had gone
// on. The second call could not be cancelled by it, and in the modern era a call with a name by nothing else.
func TestAnsweredName(t *testing.T) {
	t.Parallel()
	const name = `,"codehand/call":"call-1"`
	x := staged(t, nil)
	p := lateSite(t, x.httpSite)
	c := p.client(x.httpSite, "alice").Of2026()
	late, first := p.send(t, c, c.CallBody("1", "watch", `{"no":1}`, name))
	second := c.Launch(t.Context(), "1", "hold", "a", name)
	x.expect(t, x.began, "a")
	close(late.goOn)
	if text, failed := arrived(t, first).Text(); !failed || !strings.HasPrefix(text, "INPUT_INVALID") {
		t.Errorf("the first call: %s", text)
	}
	c.Cancel("1", name)
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, second))
}

// TestAnsweredFailedInitialize: an initialize failed when its principal had one session less than the limit. Its place was
// given back after the answer, so that the next attempt could be refused for it.
func TestAnsweredFailedInitialize(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	p := lateSite(t, x)
	c := p.client(x, "")
	late, answer := p.send(t, c, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`)
	left := x.server.team.Endpoint.Load().Count()["sessions"]
	close(late.goOn)
	if a := arrived(t, answer); left != 0 || !strings.Contains(a.Answer, `"error"`) {
		t.Errorf("after %s there are %d sessions", a.Answer, left)
	}
}

// TestAnsweredCounted: a scrape right after an answer finds the request counted.
func TestAnsweredCounted(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	p := lateSite(t, x)
	c := p.client(x, "").Hello()
	late, answer := p.send(t, c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	text := scraped(t, x.server.team.Metrics)
	close(late.goOn)
	if arrived(t, answer); !strings.Contains(text, `mcp_method_name="ping"`) {
		t.Error("the ping is not counted")
	}
}

// TestMisheadedCounted: a modern request whose headers do not agree with its body is counted, although nothing serves it.
// A call of a tool that does not exist says so first.
func TestMisheadedCounted(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	c := x.client("").Hello()
	c.Modern = true
	status := map[bool]int{false: http.StatusBadRequest, true: http.StatusOK} // a model reads the second
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:                                                                                               "missing or invalid _meta field",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_fil"}}`:                                                                  `Nearest: read_file.`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_fil","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`: `Nearest: read_file.`,
	} {
		if got := c.Do(c.Request(t.Context(), http.MethodPost, c.URL, body)); got.Status != status[strings.Contains(body, "tools/call")] || !strings.Contains(got.Answer, want) {
			t.Errorf("%s: %d %s", body, got.Status, got.Answer)
		}
	}
	const counted = `mcp_server_operation_duration_seconds_count{error_type="-32602",gen_ai_tool_name="",mcp_method_name="tools/list"`
	if text := scraped(t, x.server.team.Metrics); !strings.Contains(text, counted) {
		t.Error("a request with wrong headers is not counted")
	}
}

// scraped are the metrics as text.
func scraped(t testing.TB, m *metrics.Counts) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}
