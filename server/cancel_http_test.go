package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/tools/tool"
)

// A stage is a site whose tools say when they begin and end, and end when they are told to: `hold` and `tend` may change
// something, `watch` only reads. Only one `hold` runs in a workspace.
type stage struct {
	*httpSite
	began chan string // marks
	ended chan string // marks with what ended them: cancelled or released

	mu       sync.Mutex
	releases map[string]chan struct{}
}

// staged starts one for alice and bob.
func staged(t *testing.T, settings map[string]string) *stage {
	t.Helper()
	x := &stage{began: make(chan string, 100), ended: make(chan string, 100), releases: map[string]chan struct{}{}}
	run := func(ctx context.Context, env tool.Env, in word) (tool.Result, error) {
		env.Progress(1, 0, in.Text)
		x.began <- in.Text
		select {
		case <-ctx.Done():
			env.Progress(2, 0, "after the cancel")
			x.ended <- in.Text + " cancelled"
			return tool.Result{}, ctx.Err()
		case <-x.door(in.Text):
			x.ended <- in.Text + " released"
			return tool.Result{Text: "done " + in.Text}, nil
		}
	}
	x.httpSite = serveHTTP(t, siteSetup{
		principals: []string{"alice", "bob"}, settings: settings,
		values: map[string]auth.Values{"alice": {Quota: map[string]string{"connections": "0", "streams": "0"}}}, // what ended may be counted a while
		tools: []tool.Tool{
			fixtureTool("hold", tool.Traits{Private: true, Local: true}, run),
			fixtureTool("tend", tool.Traits{Private: true, Local: true, Ungated: true}, run),
			fixtureTool("watch", reader, run),
		},
	})
	return x
}

// door opens when release is called.
func (x *stage) door(mark string) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.releases[mark] == nil {
		x.releases[mark] = make(chan struct{})
	}
	return x.releases[mark]
}

func (x *stage) release(mark string) { close(x.door(mark)) }

// expect waits for the next thing that a tool says.
func (x *stage) expect(t *testing.T, from chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("a tool says %q, want %q", got, want)
		}
	case <-time.After(hangAfter):
		t.Fatalf("no tool says %q", want)
	}
}

// quiet fails if a tool has said something.
func (x *stage) quiet(t *testing.T) {
	t.Helper()
	select {
	case got := <-x.began:
		t.Errorf("%s began", got)
	case got := <-x.ended:
		t.Errorf("%s", got)
	default:
	}
}

// open waits until so many requests are open, so that the last one has arrived.
func (x *stage) open(t *testing.T, want int) {
	t.Helper()
	for limit := time.Now().Add(hangAfter); time.Now().Before(limit); runtime.Gosched() {
		if x.server.endpoint.Load().work.count()[""] == want {
			return
		}
	}
	t.Fatalf("%v requests are open, want %d", x.server.endpoint.Load().work.count(), want)
}

// async sends a request and reads its answer beside the test. Status 0 is one that broke off.
func async(q *http.Request) <-chan httpReply {
	done := make(chan httpReply, 1)
	go func() {
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			done <- httpReply{}
			return
		}
		defer r.Body.Close()
		out := httpReply{status: r.StatusCode, kind: r.Header.Get("Content-Type")}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			out.status = 0
		}
		for line := range strings.Lines(string(body)) {
			data, isData := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !isData && strings.HasPrefix(out.kind, "text/event-stream") {
				continue
			}
			if methodOf(data) == "" {
				out.answer = data
			} else {
				out.notes = append(out.notes, data)
			}
		}
		done <- out
	}()
	return done
}

// launch makes a call whose request lives as long as ctx.
func (c *httpClient) launch(ctx context.Context, id, name, mark, meta string) <-chan httpReply {
	c.t.Helper()
	args := fmt.Sprintf(`{"text":%q}`, mark)
	return async(c.request(ctx, http.MethodPost, c.url, c.callBody(id, name, args, meta+`,"progressToken":"p-`+mark+`"`)))
}

// cancel posts notifications/cancelled. meta is what its _meta has besides what the era needs, with a comma before it.
func (c *httpClient) cancel(id, meta string) int {
	c.t.Helper()
	own := `"x":1`
	if c.modern {
		own = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"_meta":{%s%s}}}`, id, own, meta)
	return c.do(c.request(context.Background(), http.MethodPost, c.url, body)).status
}

func (c *httpClient) of2026() *httpClient {
	c.modern = true
	return c
}

// arrived reads a reply that must come.
func arrived(t *testing.T, from <-chan httpReply) httpReply {
	t.Helper()
	select {
	case r := <-from:
		return r
	case <-time.After(hangAfter):
		t.Fatal("no response")
		return httpReply{}
	}
}

// unanswered checks that a cancelled request got neither an answer nor a note after its cancel.
func unanswered(t *testing.T, r httpReply) {
	t.Helper()
	if r.status != http.StatusOK || !strings.HasPrefix(r.kind, "text/event-stream") || r.answer != "" || len(r.notes) > 1 {
		t.Errorf("a cancelled request got %+v", r)
	}
	for _, n := range r.notes {
		if strings.Contains(n, "after the cancel") {
			t.Errorf("a note after the cancel: %s", n)
		}
	}
}

// TestCancelHTTPLegacy: a running and a queued call are cancelled by a notification of their session.
func TestCancelHTTPLegacy(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	c := x.client("alice").hello()
	running := c.launch(t.Context(), "1", "hold", "a", "")
	x.expect(t, x.began, "a")
	queued := c.launch(t.Context(), "2", "hold", "b", "")
	x.open(t, 2)
	if got := c.cancel("2", ""); got != http.StatusAccepted {
		t.Errorf("cancel: %d", got)
	}
	unanswered(t, arrived(t, queued))
	x.quiet(t)
	c.cancel("1", "")
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, running))

	// Its id is free, and so is the gate.
	again := c.launch(t.Context(), "1", "hold", "c", "")
	x.expect(t, x.began, "c")
	c.cancel("2", "") // of what is over
	x.release("c")
	x.expect(t, x.ended, "c released")
	if text, failed := arrived(t, again).text(); failed || text != "done c" {
		t.Errorf("after a cancel: %s", text)
	}
}

// TestCancelHTTPModern: a running and a queued call are cancelled when their stream is closed.
func TestCancelHTTPModern(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	c := x.client("alice").of2026()
	one, cancelOne := context.WithCancel(t.Context())
	two, cancelTwo := context.WithCancel(t.Context())
	defer cancelTwo()
	c.launch(one, "1", "hold", "a", "")
	x.expect(t, x.began, "a")
	c.launch(two, "1", "hold", "b", "")
	x.open(t, 2)
	cancelTwo()
	x.open(t, 1)
	x.quiet(t)
	cancelOne()
	x.expect(t, x.ended, "a cancelled")
	x.open(t, 0)
	again := c.launch(t.Context(), "1", "hold", "c", "")
	x.expect(t, x.began, "c")
	x.release("c")
	if text, failed := arrived(t, again).text(); failed || text != "done c" {
		t.Errorf("after a cancel: %s", text)
	}
}

// An sseClient is one client of legacy SSE.
type sseClient struct {
	*httpClient
	events chan string
	close  func()
}

// sse opens a stream.
func (x *stage) sse(t *testing.T, who string) *sseClient {
	t.Helper()
	c := x.client(who)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.DefaultClient.Do(c.request(ctx, http.MethodGet, x.url+"/sse", ""))
	if err != nil {
		t.Fatal(err)
	}
	s := &sseClient{httpClient: c, events: make(chan string, 100), close: cancel}
	go func() {
		defer close(s.events)
		defer r.Body.Close()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.events <- data
			}
		}
	}()
	s.url = x.url + <-s.events
	s.post(hello)
	if got := <-s.events; !strings.Contains(got, `"result"`) {
		t.Fatalf("initialize: %s", got)
	}
	return s
}

func (s *sseClient) post(body string) {
	s.t.Helper()
	if r := s.do(s.request(context.Background(), http.MethodPost, s.url, body)); r.status != http.StatusAccepted {
		s.t.Fatalf("message: %d %s", r.status, r.answer)
	}
}

func (s *sseClient) begin(id, name, mark string) {
	s.t.Helper()
	s.post(s.callBody(id, name, fmt.Sprintf(`{"text":%q}`, mark), ""))
}

// TestCancelSSE: a running and a queued call are cancelled by a notification on the same stream.
func TestCancelSSE(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	s, other := x.sse(t, "alice"), x.sse(t, "alice")
	s.begin("10", "hold", "a")
	x.expect(t, x.began, "a")
	s.begin("11", "hold", "b")
	other.cancel("10", "") // not its stream
	s.cancel("11", "")
	s.cancel("10", "")
	x.expect(t, x.ended, "a cancelled")
	s.begin("10", "hold", "c")
	x.expect(t, x.began, "c") // and not b
	x.release("c")
	if got := <-s.events; !strings.Contains(got, `"id":10`) || !strings.Contains(got, "done c") {
		t.Errorf("the next event is %s", got)
	}
	x.expect(t, x.ended, "c released")
	x.quiet(t)
}

// TestCancelOfOthers: nobody but the owner, in the same session, ends a call.
func TestCancelOfOthers(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	t.Run("legacy", func(t *testing.T) {
		c := x.client("alice").hello()
		running := c.launch(t.Context(), "1", "hold", "legacy", "")
		x.expect(t, x.began, "legacy")
		stolen := x.client("bob")
		stolen.session = c.session
		for name, try := range map[string]struct {
			c    *httpClient
			id   string
			want int
		}{
			"bob in his own session":    {x.client("bob").hello(), "1", http.StatusAccepted},
			"bob in alice's":            {stolen, "1", http.StatusNotFound},
			"alice in another session":  {x.client("alice").hello(), "1", http.StatusAccepted},
			"alice in the modern era":   {x.client("alice").of2026(), "1", http.StatusAccepted},
			"alice on SSE":              {x.sse(t, "alice").httpClient, "1", http.StatusAccepted},
			"unknown id":                {c, "2", http.StatusAccepted},
			"the id as a string":        {c, `"1"`, http.StatusAccepted},
			"the id in another writing": {c, "1.0", http.StatusAccepted},
			"no id":                     {c, "null", http.StatusAccepted},
			"a list of ids":             {c, "[1]", http.StatusAccepted},
		} {
			if got := try.c.cancel(try.id, ""); got != try.want {
				t.Errorf("%s: %d, want %d", name, got, try.want)
			}
		}
		if got := stolen.do(stolen.request(t.Context(), http.MethodDelete, stolen.url, "")); got.status != http.StatusNotFound {
			t.Errorf("bob deletes alice's session: %d", got.status)
		}
		x.release("legacy")
		x.expect(t, x.ended, "legacy released")
		if text, failed := arrived(t, running).text(); failed || text != "done legacy" {
			t.Errorf("alice's call: %s", text)
		}
	})
	for _, who := range []string{"alice", "bob"} {
		t.Run("modern, "+who, func(t *testing.T) {
			mark := "modern-" + who
			a := x.client("alice").of2026()
			running := a.launch(t.Context(), "1", "hold", mark, `,"codehand/call":"`+mark+`"`)
			x.expect(t, x.began, mark)
			b := x.client(who).of2026()
			ctx, cancel := context.WithCancel(t.Context())
			b.launch(ctx, "1", "watch", mark+"-2", `,"codehand/session":"another-one"`)
			x.expect(t, x.began, mark+"-2")
			b.cancel("1", "")
			b.cancel("1", `,"codehand/call":"unknown"`)
			b.cancel("1", `,"codehand/call":""`)
			if who == "bob" {
				b.cancel("1", `,"codehand/call":"`+mark+`"`) // the names are each principal's own
			}
			x.quiet(t)
			cancel()
			x.expect(t, x.ended, mark+"-2 cancelled")
			x.release(mark)
			x.expect(t, x.ended, mark+" released")
			if text, failed := arrived(t, running).text(); failed || text != "done "+mark {
				t.Errorf("alice's call: %s", text)
			}
		})
	}
}

// TestCancelByName: in the modern era a call that has a name is cancelled by it, from any connection of its principal.
func TestCancelByName(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	c := x.client("alice").of2026()
	running := c.launch(t.Context(), "1", "hold", "a", `,"codehand/call":"call-1"`)
	x.expect(t, x.began, "a")
	queued := c.launch(t.Context(), "1", "hold", "b", `,"codehand/call":"call-2"`)
	x.open(t, 2)
	c.cancel("7", `,"codehand/call":"call-2"`)
	unanswered(t, arrived(t, queued))
	c.cancel("7", `,"codehand/call":"call-1"`)
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, running))
	again := c.launch(t.Context(), "1", "hold", "c", `,"codehand/call":"call-1"`)
	x.expect(t, x.began, "c")
	c.cancel("7", `,"codehand/call":"call-1"`)
	x.expect(t, x.ended, "c cancelled")
	unanswered(t, arrived(t, again))
	x.quiet(t)
}

// TestConnectionLost: when its client is gone a call that only reads ends at once; one that may have changed something
// goes on, but in the modern era only if it has a name by which it can be asked for again.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	const name = `,"codehand/call":"call-1"`
	for _, test := range []struct {
		name, tool, meta string
		modern, goesOn   bool
	}{
		{name: "legacy, reads", tool: "watch"},
		{name: "legacy, writes", tool: "hold", goesOn: true},
		{name: "modern, reads", tool: "watch", modern: true},
		{name: "modern, writes", tool: "hold", modern: true},
		{name: "modern with a name, reads", tool: "watch", modern: true, meta: name},
		{name: "modern with a name, writes", tool: "hold", modern: true, meta: name, goesOn: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lose := func(x *stage) {
				c := x.client("alice")
				if test.modern {
					c.modern = true
				} else {
					c.hello()
				}
				ctx, cancel := context.WithCancel(t.Context())
				c.launch(ctx, "1", test.tool, "a", test.meta)
				x.expect(t, x.began, "a")
				cancel()
			}
			x := staged(t, map[string]string{"http.orphan_grace": "1h"})
			lose(x)
			if !test.goesOn {
				x.expect(t, x.ended, "a cancelled")
				return
			}
			// Once another call of the same kind was seen to be lost, this one was, too.
			ctx, cancel := context.WithCancel(t.Context())
			c := x.client("bob").of2026()
			c.launch(ctx, "1", "watch", "b", "")
			x.expect(t, x.began, "b")
			cancel()
			x.expect(t, x.ended, "b cancelled")
			x.quiet(t)
			x.release("a")
			x.expect(t, x.ended, "a released")

			const grace = time.Second
			x = staged(t, map[string]string{"http.orphan_grace": grace.String()})
			began := time.Now()
			lose(x)
			x.expect(t, x.ended, "a cancelled")
			if d := time.Since(began); d < grace {
				t.Errorf("cancelled after %v, before its grace", d)
			}
		})
	}
}

// TestStreamLost is TestConnectionLost for SSE.
func TestStreamLost(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	s := x.sse(t, "alice")
	s.begin("1", "hold", "a")
	x.expect(t, x.began, "a")
	other := x.sse(t, "alice")
	other.begin("1", "watch", "b")
	x.expect(t, x.began, "b")
	s.close()
	other.close()
	x.expect(t, x.ended, "b cancelled")
	x.quiet(t)
	x.release("a")
	x.expect(t, x.ended, "a released")

	const grace = time.Second
	x = staged(t, map[string]string{"http.orphan_grace": grace.String()})
	s = x.sse(t, "alice")
	s.begin("1", "hold", "a")
	x.expect(t, x.began, "a")
	began := time.Now()
	s.close()
	x.expect(t, x.ended, "a cancelled")
	if d := time.Since(began); d < grace {
		t.Errorf("cancelled after %v, before its grace", d)
	}
}

// TestRevoked: whoever loses a token loses calls and streams, and nobody else does.
func TestRevoked(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	legacy, modern := x.client("alice").hello(), x.client("alice").of2026()
	stream := async(legacy.request(t.Context(), http.MethodGet, legacy.url, ""))
	x.await(t, "the stream is open", func() bool { return x.server.endpoint.Load().work.count()["get"] == 1 })
	s := x.sse(t, "alice")
	s.begin("1", "tend", "sse")
	x.expect(t, x.began, "sse")
	first := legacy.launch(t.Context(), "1", "tend", "legacy", "")
	x.expect(t, x.began, "legacy")
	second := modern.launch(t.Context(), "1", "tend", "modern", `,"codehand/session":"another-one"`)
	x.expect(t, x.began, "modern")
	bob := x.client("bob").hello()
	theirs := bob.launch(t.Context(), "1", "tend", "bob's", "")
	x.expect(t, x.began, "bob's")

	file := auth.OpenTokenFile(TokenFile(x.server.cfg))
	if _, err := file.Revoke(func(t auth.Token) bool { return t.Principal == "alice" }); err != nil {
		t.Fatal(err)
	}
	if err := x.server.Reload(x.server.cfg.Principals); err != nil {
		t.Fatal(err)
	}
	ended := map[string]bool{}
	for range 3 {
		select {
		case mark := <-x.ended:
			ended[mark] = true
		case <-time.After(hangAfter):
			t.Fatalf("only these ended: %v", ended)
		}
	}
	if !ended["sse cancelled"] || !ended["legacy cancelled"] || !ended["modern cancelled"] {
		t.Errorf("ended: %v", ended)
	}
	unanswered(t, arrived(t, first))
	unanswered(t, arrived(t, second))
	if r := arrived(t, stream); r.status != http.StatusOK {
		t.Errorf("the GET stream: %+v", r)
	}
	for e := range s.events { // to its end
		if !strings.Contains(e, "notifications/") {
			t.Errorf("after the revocation: %s", e)
		}
	}
	if got := legacy.call("2", "watch", `{"text":"x"}`, ""); got.status != http.StatusUnauthorized {
		t.Errorf("a call with a revoked token: %d", got.status)
	}
	x.release("bob's")
	if text, failed := arrived(t, theirs).text(); failed || text != "done bob's" {
		t.Errorf("bob's call: %s", text)
	}
}

// TestDeleteSession ends the calls and the stream of that session, and of no other.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	one, two := x.client("alice").hello(), x.client("alice").hello()
	stream := async(one.request(t.Context(), http.MethodGet, one.url, ""))
	x.await(t, "the stream is open", func() bool { return x.server.endpoint.Load().work.count()["get"] == 1 })
	first := one.launch(t.Context(), "1", "tend", "a", "")
	x.expect(t, x.began, "a")
	second := two.launch(t.Context(), "1", "tend", "b", "")
	x.expect(t, x.began, "b")
	if got := one.do(one.request(t.Context(), http.MethodDelete, one.url, "")); got.status != http.StatusOK {
		t.Fatalf("DELETE: %d %s", got.status, got.answer)
	}
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, first))
	arrived(t, stream)
	x.quiet(t)
	x.release("b")
	if text, failed := arrived(t, second).text(); failed || text != "done b" {
		t.Errorf("the call of another session: %s", text)
	}
}

// TestVanish has clients go without a word in the middle of everything that can be open. Nothing of it stays.
func TestVanish(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1s"})
	at := strings.TrimPrefix(x.url, "http://")
	head := func(c *httpClient, line, more string) string {
		h := line + " HTTP/1.1\r\nHost: " + at + "\r\nAccept: text/event-stream\r\nAuthorization: Bearer " + c.token + "\r\n" + more
		if c.session != "" {
			h += "Mcp-Session-Id: " + c.session + "\r\n"
		}
		return h + "\r\n"
	}
	post := func(c *httpClient, more, body string) string {
		return head(c, "POST /mcp", fmt.Sprintf("%sContent-Type: application/json\r\nContent-Length: %d\r\n", more, len(body))) + body
	}
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	const modern = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: "
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			legacy, now := x.client("alice").hello(), x.client("alice").of2026()
			for _, raw := range []string{
				head(now, "GET /sse", ""),
				head(legacy, "GET /mcp", ""),
				post(now, modern+"subscriptions/listen\r\n", listen),
				post(now, modern+"tools/call\r\nMcp-Name: watch\r\n", now.callBody("1", "watch", `{"text":"x"}`, `,"progressToken":"p"`)),
				post(legacy, "", legacy.callBody("1", "tend", `{"text":"x"}`, `,"progressToken":"p"`)),
			} {
				c, err := net.Dial("tcp", at)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.WriteString(c, raw); err != nil {
					t.Error(err)
				}
				if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") { // it is open
					t.Errorf("%.60q: %q, %v", raw, line, err)
				}
				if i%2 == 0 {
					_ = c.(*net.TCPConn).SetLinger(0) // a reset
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	for limit := time.Now().Add(hangAfter); len(x.server.endpoint.Load().work.list()) > 0; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("still open: %v", x.server.endpoint.Load().work.count())
		}
	}
	if text, failed := x.client("alice").hello().call("2", "watch", `{"no":1}`, "").text(); !failed || !strings.HasPrefix(text, "INPUT_INVALID") {
		t.Errorf("afterwards: %s", text)
	}
}
