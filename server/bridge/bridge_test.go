package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/jsonrpc"
	"codehand/server/replies"
)

// A remoteStub is an endpoint that does what a test says, on pipes in memory: its time is that of a synctest bubble.
type remoteStub struct {
	serve func(w http.ResponseWriter, m posted)

	mu      sync.Mutex
	down    int // so many connections are refused; negative: all
	dials   []time.Time
	seen    []posted
	conns   chan net.Conn
	closing chan struct{}
}

// A posted is one HTTP request as the stub saw it.
type posted struct {
	verb   string // HTTP method
	path   string
	header http.Header
	body   string
	at     time.Duration // since the start
	message
	ctx context.Context
}

// what is the method of the message, or the verb.
func (p posted) what() string {
	switch {
	case p.verb != http.MethodPost:
		return p.verb
	case p.Method == "":
		return "answer"
	}
	return p.Method
}

// Accept, Close and Addr make the stub a listener.
func (s *remoteStub) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closing:
		return nil, net.ErrClosed
	}
}

func (s *remoteStub) Close() error { return nil }

func (s *remoteStub) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7433} }

func (s *remoteStub) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	s.dials = append(s.dials, time.Now())
	refuse := s.down != 0
	if s.down > 0 {
		s.down--
	}
	s.mu.Unlock()
	if refuse {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	select {
	case s.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuse sets how many connections are refused from now on; negative: all.
func (s *remoteStub) refuse(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = n
}

// all returns what was seen so far.
func (s *remoteStub) all() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// whats returns what was seen so far by what it was.
func (s *remoteStub) whats() string {
	var out []string
	for _, p := range s.all() {
		out = append(out, p.what())
	}
	return strings.Join(out, " ")
}

// only returns what was seen of one kind.
func (s *remoteStub) only(what string) (some []posted) {
	for _, p := range s.all() {
		if p.what() == what {
			some = append(some, p)
		}
	}
	return some
}

// A bridged is a bridge with a client at one end and a stub at the other.
type bridged struct {
	*testing.T
	*remoteStub
	in    *io.PipeWriter
	lines chan string // closed at the end of the output
	ended chan error
	log   *bytes.Buffer // to be read when the bridge has ended
	stop  context.CancelFunc
	drop  func() // closes the connections that no request uses
}

// startBridge starts all three. It must run in a bubble; the bridge must end before the test does.
func startBridge(t *testing.T, o Options, serve func(w http.ResponseWriter, m posted)) *bridged {
	t.Helper()
	began := time.Now()
	stub := &remoteStub{serve: serve, conns: make(chan net.Conn), closing: make(chan struct{})}
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the stub reads: %v", err)
		}
		p := posted{verb: r.Method, path: r.URL.RequestURI(), header: r.Header, body: string(body),
			at: time.Since(began), ctx: r.Context()}
		if r.Method == http.MethodPost {
			if err := json.Unmarshal(body, &p.message); err != nil {
				t.Errorf("the stub got %q: %v", body, err)
			}
		}
		stub.mu.Lock()
		stub.seen = append(stub.seen, p)
		stub.mu.Unlock()
		serve(w, p)
	})}
	go func() { _ = hs.Serve(stub) }()
	transport := &http.Transport{DialContext: stub.dial}
	log := &bytes.Buffer{}
	if o.URL == "" {
		o.URL = "http://127.0.0.1:7433/mcp"
	}
	if o.Session == "" {
		o.Session = "conversation"
	}
	o.Base, o.EOFGrace, o.Refuse = transport, 5*time.Second, replies.Refusals("test")
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, stop := context.WithCancel(t.Context())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &bridged{T: t, remoteStub: stub, in: inW, lines: make(chan string, 1000), ended: make(chan error, 1), log: log,
		stop: stop, drop: transport.CloseIdleConnections}
	go func() {
		err := Run(ctx, o, inR, outW)
		_ = outW.Close()
		_ = inR.Close()
		b.ended <- err
	}()
	go func() {
		defer close(b.lines)
		s := bufio.NewScanner(outR)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			b.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		close(stub.closing)
		_ = hs.Close()
	})
	return b
}

func (b *bridged) send(lines ...string) {
	b.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(b.in, l+"\n"); err != nil {
			b.Fatal(err)
		}
	}
}

// receive returns the next line. In a bubble a line that never comes is a deadlock, which fails the test.
func (b *bridged) receive() string {
	b.Helper()
	l, ok := <-b.lines
	if !ok {
		b.Fatal("the output has ended")
	}
	return l
}

func (b *bridged) want(want ...string) {
	b.Helper()
	for _, w := range want {
		if got := b.receive(); got != w {
			b.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

// finish ends the input, and returns what was still written.
func (b *bridged) finish() (rest []string) {
	b.Helper()
	_ = b.in.Close()
	for l := range b.lines {
		rest = append(rest, l)
	}
	if err := <-b.ended; err != nil {
		b.Errorf("Bridge: %v", err)
	}
	return rest
}

// done is finish where nothing more may be written.
func (b *bridged) done() {
	b.Helper()
	if rest := b.finish(); len(rest) > 0 {
		b.Errorf("also written: %q", rest)
	}
}

// Messages of the tests.
const (
	helloLine   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	welcome     = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`
	keeps       = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"codehand/bridge":{"version":1}}}}}`
	bridgeReady = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

// answerJSON writes a JSON answer.
func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// answerStream begins a stream and returns what writes to it.
func answerStream(w http.ResponseWriter) func(parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	return func(parts ...string) {
		for _, p := range parts {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// legacy answers what opens and ends a legacy session, has no GET stream, and gives the rest to next.
func legacy(hello string, next func(w http.ResponseWriter, m posted)) func(http.ResponseWriter, posted) {
	return func(w http.ResponseWriter, m posted) {
		switch m.what() {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "session-1")
			answerJSON(w, 200, hello)
		case "notifications/initialized", "notifications/cancelled", "answer":
			w.WriteHeader(http.StatusAccepted)
		case http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case http.MethodDelete:
			w.WriteHeader(http.StatusOK)
		default:
			next(w, m)
		}
	}
}

func echo(w http.ResponseWriter, m posted) { answerJSON(w, 200, pong(string(m.ID))) }

// open says hello in the legacy era.
func (b *bridged) open(hello string) {
	b.Helper()
	b.send(helloLine)
	b.want(hello)
	b.send(bridgeReady)
	synctest.Wait()
}

// TestLegacy: a whole legacy session: the handle is in the path, the session's headers are on what comes behind
// initialize, ids and numbers stay as they are, and the session is deleted at the end.
func TestLegacy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{Token: func() string { return "secret" }, Version: "1.2"}, legacy(welcome, echo))
		ids := []string{"9007199254740993", `"1"`, "1", `""`, `"\u00e9\/"`, "-0"}
		b.open(welcome)
		for _, id := range ids {
			b.send(ping(id))
			b.want(pong(id))
		}
		b.done()
		if got := b.whats(); got != "initialize notifications/initialized GET"+strings.Repeat(" ping", len(ids))+
			" DELETE" {
			t.Errorf("sent: %s", got)
		}
		for i, p := range b.all() {
			session, version := "session-1", "2025-06-18"
			if i == 0 {
				session, version = "", ""
			}
			accept := "application/json, text/event-stream"
			switch p.verb {
			case http.MethodGet:
				accept = "text/event-stream"
			case http.MethodDelete:
				accept = ""
			}
			for name, want := range map[string]string{
				"Mcp-Session-Id": session, "Mcp-Protocol-Version": version, "Authorization": "Bearer secret",
				"User-Agent": "codehand/1.2", "Accept": accept, "Mcp-Method": "", "Mcp-Name": "",
			} {
				if got := p.header.Get(name); got != want {
					t.Errorf("%s: %s is %q, want %q", p.what(), name, got, want)
				}
			}
			if p.path != "/mcp/s/conversation" {
				t.Errorf("path %s", p.path)
			}
		}
		if got := b.only("initialize")[0].body; got != helloLine {
			t.Errorf("initialize became %s", got)
		}
		if strings.Contains(b.log.String(), "secret") {
			t.Error("the token is in the log")
		}
	})
}

// TestModern: every request names its version, method and subject in headers, and nothing is of a session.
func TestModern(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			if m.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Mcp-Session-Id", "nobody asked for it")
			echo(w, m)
		})
		for i, c := range []struct{ method, params, name string }{
			{"tools/call", `"name":"read_file"`, "read_file"},
			{"tools/call", `"name":"größe"`, "=?base64?Z3LDtsOfZQ==?="},
			{"tools/call", `"name":" a "`, "=?base64?IGEg?="},
			{"tools/call", `"name":"=?base64?YQ==?="`, "=?base64?PT9iYXNlNjQ/WVE9PT89?="},
			{"tools/call", `"name":"a\nMcp-Session-Id: b"`, "=?base64?YQpNY3AtU2Vzc2lvbi1JZDogYg==?="},
			{"prompts/get", `"name":"commit"`, "commit"},
			{"resources/read", `"uri":"codehand://job/1","name":"x"`, "codehand://job/1"},
			{"tools/list", `"name":"x"`, ""},
		} {
			id := fmt.Sprint(i)
			msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s,"_meta":{%s}}}`, id, c.method,
				c.params, modernMeta)
			b.send(msg)
			b.want(pong(id))
			all := b.all()
			got := all[len(all)-1]
			for name, want := range map[string]string{
				"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": c.method, "Mcp-Name": c.name, "Mcp-Session-Id": "",
			} {
				if got := got.header.Get(name); got != want {
					t.Errorf("%s %s: %s is %q, want %q", c.method, c.params, name, got, want)
				}
			}
			if got.body != msg {
				t.Errorf("the message became %s", got.body)
			}
		}
		b.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		b.done()
		all := b.all()
		if last := all[len(all)-1]; last.verb != http.MethodPost ||
			last.header.Get("Mcp-Method") != "notifications/roots/list_changed" {
			t.Errorf("the last one is %s with %v", last.what(), last.header)
		}
	})
}

// TestStreams: what comes as events is one line each, in order, before the answer: notifications and requests of
// the endpoint, of a POST and of the GET stream. The client's answers are posted.
func TestStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		serve := legacy(welcome, func(w http.ResponseWriter, m posted) {
			write := answerStream(w)
			write(": keep-alive\n\n", "id: 1\ndata:\n\n", "event: other\ndata: {}\n\n", "retry: 5\n\n")
			write("data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\ndata: " +
				"\"params\":{\"n\":1.10}}\n\n")
			write(`event: message`+"\r\n"+
				`data: {"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{}}`, "\r\n\r\n")
			<-asked
			write("data: not JSON\n\n", "data: [1]\n\n", `data: {"jsonrpc":"2.0"}`+"\n\n",
				`data: {"jsonrpc":"2.0","id":77,"result":{}}`+"\n\n")
			write("data: " + pong(string(m.ID)) + "\n\n")
			write(`data: {"jsonrpc":"2.0","method":"notifications/late"}` + "\n\n")
		})
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			switch {
			case m.verb == http.MethodGet:
				write := answerStream(w)
				write("data: " + `{"jsonrpc":"2.0","id":"s-2","method":"roots/list"}` + "\n\n")
				<-m.ctx.Done()
			default:
				serve(w, m)
				if m.what() == "answer" && strings.Contains(m.body, "s-1") {
					close(asked)
				}
			}
		})
		b.open(welcome)
		b.want(`{"jsonrpc":"2.0","id":"s-2","method":"roots/list"}`)
		b.send(`{"jsonrpc":"2.0","id":"s-2","error":{"code":-1,"message":"no"}}`)
		synctest.Wait() // answers of two questions are in no order, and may arrive so
		b.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a"}}`)
		b.want(`{"jsonrpc":"2.0", "method":"notifications/progress", "params":{"n":1.10}}`,
			`{"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{}}`)
		b.send(`{"jsonrpc":"2.0","id":"s-1","result":{"action":"accept"}}`)
		b.want(pong("5"), `{"jsonrpc":"2.0","method":"notifications/late"}`)
		b.done()
		answers := b.only("answer")
		if len(answers) != 2 || answers[0].body != `{"jsonrpc":"2.0","id":"s-2","error":{"code":-1,"message":"no"}}` ||
			answers[1].body != `{"jsonrpc":"2.0","id":"s-1","result":{"action":"accept"}}` ||
			answers[1].header.Get("Mcp-Session-Id") != "session-1" {
			t.Errorf("answers: %+v", answers)
		}
		if n := strings.Count(b.log.String(), "dropped"); n != 4 {
			t.Errorf("%d things were dropped, want 4:\n%s", n, b.log)
		}
	})
}

// TestBadAnswers: whatever comes back, the request is answered, with the client's id.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	const id = "9007199254740993"
	rpc := func(code int, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)
	}
	const host = "127.0.0.1:7433"
	for _, c := range []struct {
		name  string
		serve func(w http.ResponseWriter, m posted)
		want  string
	}{
		{"another number", func(w http.ResponseWriter, _ posted) { answerJSON(w, 200, pong("9007199254740992")) },
			pong(id)},
		{"lines", func(w http.ResponseWriter, _ posted) {
			answerJSON(w, 200, "\n{\n \"jsonrpc\":\"2.0\",\r\n \"id\":"+id+",\"result\":{}}\n")
		}, `{  "jsonrpc":"2.0",   "id":` + id + `,"result":{}}`},
		{"an error of the protocol", func(w http.ResponseWriter, _ posted) {
			answerJSON(w, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"x","data":1.10}}`)
		}, `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32020,"message":"x","data":1.10}}`},
		{"an error without an id", func(w http.ResponseWriter, _ posted) {
			answerJSON(w, 413, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}`)
		}, `{"id":` + id + `,"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}`},
		{"plain text", func(w http.ResponseWriter,
			_ posted) {
			http.Error(w, "go\x1b away\nplease", http.StatusTeapot)
		},
			rpc(-32603, host+" answered 418 I'm a teapot: go away please")},
		{"a page", func(w http.ResponseWriter, _ posted) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "<html>")
		}, rpc(-32603, host+" answered 500 Internal Server Error")},
		{"a page for an answer", func(w http.ResponseWriter, _ posted) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, rpc(-32603, host+`: the endpoint gave no answer: 200 with "text/html"`)},
		{"accepted", func(w http.ResponseWriter, _ posted) { w.WriteHeader(202) },
			rpc(-32603, host+`: the endpoint gave no answer: 202 with ""`)},
		{"no JSON", func(w http.ResponseWriter, _ posted) { answerJSON(w, 200, "{") },
			rpc(-32603, host+": the endpoint gave no answer")},
		{"nothing", func(w http.ResponseWriter, _ posted) { answerJSON(w, 200, "") },
			rpc(-32603, host+": the endpoint gave no answer")},
		{"an answer to something else", func(w http.ResponseWriter, _ posted) { answerJSON(w, 200, pong(`"x"`)) },
			rpc(-32603, host+": the endpoint gave no answer")},
		{"no session known", func(w http.ResponseWriter, _ posted) { http.Error(w, "Invalid session ID", 404) },
			rpc(-32603, host+" answered 404 Not Found: Invalid session ID")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := startBridge(t, Options{}, c.serve)
				b.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"a"}}`)
				b.want(c.want)
				b.done()
				if n := len(b.all()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// TestTooLong: messages over the limit are not passed on, in either form.
func TestTooLong(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			size := jsonrpc.MaxMessage
			if m.Method == "long" {
				size++
			}
			body := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":""}`
			body = body[:len(body)-2] + strings.Repeat("x", size-len(body)) + `"}`
			if string(m.ID) == "1" {
				answerJSON(w, 200, body)
				return
			}
			answerStream(w)("data: " + body + "\n\n")
		})
		for _, id := range []string{"1", "2"} {
			b.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"fits"}`)
			if got := b.receive(); len(got) != jsonrpc.MaxMessage {
				t.Errorf("%d bytes: %.100s", len(got), got)
			}
			b.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"long"}`)
			b.want(`{"jsonrpc":"2.0","id":` + id +
				`,"error":{"code":-32603,"message":"127.0.0.1:7433: a message exceeds 33554432 bytes"}}`)
		}
		b.done()
	})
}

// TestTable: a request whose id is in flight is refused, and so is one too many.
func TestTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := startBridge(t, Options{}, func(w http.ResponseWriter, m posted) {
			<-release
			echo(w, m)
		})
		b.send(ping("1"), ping("1"))
		b.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"request id already in use"}}`)
		for i := 2; i <= jsonrpc.MaxInFlight; i++ {
			b.send(ping(fmt.Sprint(i)))
		}
		b.send(ping(`"many"`), `{"jsonrpc":"2.0","id":"busy","method":"tools/call","params":{"name":"a"}}`)
		got := []string{b.receive(), b.receive()}
		slices.Sort(got)
		if !strings.Contains(got[0], `"isError":true`) || !strings.Contains(got[0], "BUSY") ||
			got[1] != `{"jsonrpc":"2.0","id":"many","error":{"code":-32603,"message":"too many requests in flight"}}` {
			t.Errorf("got %s", got)
		}
		close(release)
		if rest := b.finish(); len(rest) != jsonrpc.MaxInFlight {
			t.Errorf("%d answers, want %d", len(rest), jsonrpc.MaxInFlight)
		}
	})
}
