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
	"codehand/server/replaytest"
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
	case <-time.After(replaytest.HangAfter):
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
	for limit := time.Now().Add(replaytest.HangAfter); time.Now().Before(limit); runtime.Gosched() {
		if open(x.server)[""] == want {
			return
		}
	}
	t.Fatalf("%v requests are open, want %d", open(x.server), want)
}

// arrived reads a reply that must come.
func arrived(t *testing.T, from <-chan replaytest.HTTPReply) replaytest.HTTPReply {
	t.Helper()
	select {
	case r := <-from:
		return r
	case <-time.After(replaytest.HangAfter):
		t.Fatal("no response")
		return replaytest.HTTPReply{}
	}
}

// unanswered checks that a cancelled request got neither an answer nor a note after its cancel.
func unanswered(t *testing.T, r replaytest.HTTPReply) {
	t.Helper()
	if r.Status != http.StatusOK || !strings.HasPrefix(r.Kind, "text/event-stream") || r.Answer != "" || len(r.Notes) > 1 {
		t.Errorf("a cancelled request got %+v", r)
	}
	for _, n := range r.Notes {
		if strings.Contains(n, "after the cancel") {
			t.Errorf("a note after the cancel: %s", n)
		}
	}
}

// TestCancelHTTPLegacy: a running and a queued call are cancelled by a notification of their session.
func TestCancelHTTPLegacy(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	c := x.client("alice").Hello()
	running := c.Launch(t.Context(), "1", "hold", "a", "")
	x.expect(t, x.began, "a")
	queued := c.Launch(t.Context(), "2", "hold", "b", "")
	x.open(t, 2)
	if got := c.Cancel("2", ""); got != http.StatusAccepted {
		t.Errorf("cancel: %d", got)
	}
	unanswered(t, arrived(t, queued))
	x.quiet(t)
	c.Cancel("1", "")
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, running))

	// Its id is free, and so is the gate.
	again := c.Launch(t.Context(), "1", "hold", "c", "")
	x.expect(t, x.began, "c")
	c.Cancel("2", "") // of what is over
	x.release("c")
	x.expect(t, x.ended, "c released")
	if text, failed := arrived(t, again).Text(); failed || text != "done c" {
		t.Errorf("after a cancel: %s", text)
	}
}

// inOne is the _meta of modern calls that wait for each other: those of one session. Without a handle none does.
const inOne = `,"codehand/session":"session-1"`

// TestCancelHTTPModern: a running and a queued call are cancelled when their stream is closed.
func TestCancelHTTPModern(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	c := x.client("alice").Of2026()
	one, cancelOne := context.WithCancel(t.Context())
	two, cancelTwo := context.WithCancel(t.Context())
	defer cancelTwo()
	c.Launch(one, "1", "hold", "a", inOne)
	x.expect(t, x.began, "a")
	c.Launch(two, "1", "hold", "b", inOne)
	x.open(t, 2)
	cancelTwo()
	x.open(t, 1)
	x.quiet(t)
	cancelOne()
	x.expect(t, x.ended, "a cancelled")
	x.open(t, 0)
	again := c.Launch(t.Context(), "1", "hold", "c", inOne)
	x.expect(t, x.began, "c")
	x.release("c")
	if text, failed := arrived(t, again).Text(); failed || text != "done c" {
		t.Errorf("after a cancel: %s", text)
	}
}

// An sseClient is one client of legacy SSE.
type sseClient struct {
	*replaytest.HTTPClient
	events chan string
	close  func()
}

// sse opens a stream.
func (x *stage) sse(t *testing.T, who string) *sseClient {
	t.Helper()
	c := x.client(who)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.DefaultClient.Do(c.Request(ctx, http.MethodGet, x.url+"/sse", ""))
	if err != nil {
		t.Fatal(err)
	}
	s := &sseClient{HTTPClient: c, events: make(chan string, 100), close: cancel}
	go func() {
		defer close(s.events)
		defer r.Body.Close()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.events <- data
			}
		}
	}()
	s.URL = x.url + <-s.events
	s.post(hello)
	if got := <-s.events; !strings.Contains(got, `"result"`) {
		t.Fatalf("initialize: %s", got)
	}
	return s
}

func (s *sseClient) post(body string) {
	s.T.Helper()
	if r := s.Do(s.Request(context.Background(), http.MethodPost, s.URL, body)); r.Status != http.StatusAccepted {
		s.T.Fatalf("message: %d %s", r.Status, r.Answer)
	}
}

func (s *sseClient) begin(id, name, mark string) {
	s.T.Helper()
	s.post(s.CallBody(id, name, fmt.Sprintf(`{"text":%q}`, mark), ""))
}

// TestCancelSSE: a running and a queued call are cancelled by a notification on the same stream.
func TestCancelSSE(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	s, other := x.sse(t, "alice"), x.sse(t, "alice")
	s.begin("10", "hold", "a")
	x.expect(t, x.began, "a")
	s.begin("11", "hold", "b")
	other.Cancel("10", "") // not its stream
	s.Cancel("11", "")
	s.Cancel("10", "")
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

// TestCancelOfOthers: only the owner, in the same session, can cancel a call.
func TestCancelOfOthers(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	t.Run("legacy", func(t *testing.T) {
		c := x.client("alice").Hello()
		running := c.Launch(t.Context(), "1", "hold", "legacy", "")
		x.expect(t, x.began, "legacy")
		stolen := x.client("bob")
		stolen.Session = c.Session
		for name, try := range map[string]struct {
			c    *replaytest.HTTPClient
			id   string
			want int
		}{
			"bob in his own session":    {x.client("bob").Hello(), "1", http.StatusAccepted},
			"bob in alice's":            {stolen, "1", http.StatusNotFound},
			"alice in another session":  {x.client("alice").Hello(), "1", http.StatusAccepted},
			"alice in the modern era":   {x.client("alice").Of2026(), "1", http.StatusAccepted},
			"alice on SSE":              {x.sse(t, "alice").HTTPClient, "1", http.StatusAccepted},
			"unknown id":                {c, "2", http.StatusAccepted},
			"the id as a string":        {c, `"1"`, http.StatusAccepted},
			"the id in another writing": {c, "1.0", http.StatusAccepted},
			"no id":                     {c, "null", http.StatusAccepted},
			"a list of ids":             {c, "[1]", http.StatusAccepted},
		} {
			if got := try.c.Cancel(try.id, ""); got != try.want {
				t.Errorf("%s: %d, want %d", name, got, try.want)
			}
		}
		if got := stolen.Do(stolen.Request(t.Context(), http.MethodDelete, stolen.URL, "")); got.Status != http.StatusNotFound {
			t.Errorf("bob deletes alice's session: %d", got.Status)
		}
		x.release("legacy")
		x.expect(t, x.ended, "legacy released")
		if text, failed := arrived(t, running).Text(); failed || text != "done legacy" {
			t.Errorf("alice's call: %s", text)
		}
	})
	for _, who := range []string{"alice", "bob"} {
		t.Run("modern, "+who, func(t *testing.T) {
			mark := "modern-" + who
			a := x.client("alice").Of2026()
			running := a.Launch(t.Context(), "1", "hold", mark, `,"codehand/call":"`+mark+`"`)
			x.expect(t, x.began, mark)
			b := x.client(who).Of2026()
			ctx, cancel := context.WithCancel(t.Context())
			b.Launch(ctx, "1", "watch", mark+"-2", `,"codehand/session":"another-one"`)
			x.expect(t, x.began, mark+"-2")
			b.Cancel("1", "")
			b.Cancel("1", `,"codehand/call":"unknown"`)
			b.Cancel("1", `,"codehand/call":""`)
			if who == "bob" {
				b.Cancel("1", `,"codehand/call":"`+mark+`"`) // the names are each principal's own
			}
			x.quiet(t)
			cancel()
			x.expect(t, x.ended, mark+"-2 cancelled")
			x.release(mark)
			x.expect(t, x.ended, mark+" released")
			if text, failed := arrived(t, running).Text(); failed || text != "done "+mark {
				t.Errorf("alice's call: %s", text)
			}
		})
	}
}

// TestCancelByName: in the modern era a call that has a name is cancelled by it, from any connection of its principal.
func TestCancelByName(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	c := x.client("alice").Of2026()
	running := c.Launch(t.Context(), "1", "hold", "a", `,"codehand/call":"call-1"`+inOne)
	x.expect(t, x.began, "a")
	queued := c.Launch(t.Context(), "1", "hold", "b", `,"codehand/call":"call-2"`+inOne)
	x.open(t, 2)
	c.Cancel("7", `,"codehand/call":"call-2"`)
	unanswered(t, arrived(t, queued))
	c.Cancel("7", `,"codehand/call":"call-1"`+inOne)
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, running))
	again := c.Launch(t.Context(), "1", "hold", "c", `,"codehand/call":"call-1"`+inOne)
	x.expect(t, x.began, "c")
	c.Cancel("7", `,"codehand/call":"call-1"`+inOne)
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
					c.Modern = true
				} else {
					c.Hello()
				}
				ctx, cancel := context.WithCancel(t.Context())
				c.Launch(ctx, "1", test.tool, "a", test.meta)
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
			c := x.client("bob").Of2026()
			c.Launch(ctx, "1", "watch", "b", "")
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

// TestRevoked: a principal whose token is revoked loses its calls and streams, and no other principal does.
func TestRevoked(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1h"})
	legacy, modern := x.client("alice").Hello(), x.client("alice").Of2026()
	stream := replaytest.Async(legacy.Request(t.Context(), http.MethodGet, legacy.URL, ""))
	x.await(t, "the stream is open", func() bool { return open(x.server)["get"] == 1 })
	s := x.sse(t, "alice")
	s.begin("1", "tend", "sse")
	x.expect(t, x.began, "sse")
	first := legacy.Launch(t.Context(), "1", "tend", "legacy", "")
	x.expect(t, x.began, "legacy")
	second := modern.Launch(t.Context(), "1", "tend", "modern", `,"codehand/session":"another-one"`)
	x.expect(t, x.began, "modern")
	bob := x.client("bob").Hello()
	theirs := bob.Launch(t.Context(), "1", "tend", "bob's", "")
	x.expect(t, x.began, "bob's")

	file := auth.OpenTokenFile(x.server.cfg.TokenFile())
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
		case <-time.After(replaytest.HangAfter):
			t.Fatalf("only these ended: %v", ended)
		}
	}
	if !ended["sse cancelled"] || !ended["legacy cancelled"] || !ended["modern cancelled"] {
		t.Errorf("ended: %v", ended)
	}
	for _, ended := range []<-chan replaytest.HTTPReply{first, second} {
		r := arrived(t, ended)
		status := http.StatusUnauthorized
		if r.Kind == "text/event-stream" { // progress came before, or did not
			status = http.StatusOK
		}
		if r.Status != status || !strings.Contains(r.Answer, "the token was revoked while this call ran") {
			t.Errorf("a call whose token was revoked: %+v", r)
		}
	}
	if r := arrived(t, stream); r.Status != http.StatusOK {
		t.Errorf("the GET stream: %+v", r)
	}
	for e := range s.events { // to its end
		if !strings.Contains(e, "notifications/") {
			t.Errorf("after the revocation: %s", e)
		}
	}
	if got := legacy.Call("2", "watch", `{"text":"x"}`, ""); got.Status != http.StatusUnauthorized {
		t.Errorf("a call with a revoked token: %d", got.Status)
	}
	x.release("bob's")
	if text, failed := arrived(t, theirs).Text(); failed || text != "done bob's" {
		t.Errorf("bob's call: %s", text)
	}
}

// TestDeleteSession ends the calls and the stream of that session, and of no other.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	x := staged(t, nil)
	one, two := x.client("alice").Hello(), x.client("alice").Hello()
	stream := replaytest.Async(one.Request(t.Context(), http.MethodGet, one.URL, ""))
	x.await(t, "the stream is open", func() bool { return open(x.server)["get"] == 1 })
	first := one.Launch(t.Context(), "1", "tend", "a", "")
	x.expect(t, x.began, "a")
	second := two.Launch(t.Context(), "1", "tend", "b", "")
	x.expect(t, x.began, "b")
	if got := one.Do(one.Request(t.Context(), http.MethodDelete, one.URL, "")); got.Status != http.StatusOK {
		t.Fatalf("DELETE: %d %s", got.Status, got.Answer)
	}
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, first))
	arrived(t, stream)
	x.quiet(t)
	x.release("b")
	if text, failed := arrived(t, second).Text(); failed || text != "done b" {
		t.Errorf("the call of another session: %s", text)
	}
}

// TestVanish has clients go without a word in the middle of everything that can be open. Nothing of it stays.
func TestVanish(t *testing.T) {
	t.Parallel()
	x := staged(t, map[string]string{"http.orphan_grace": "1s"})
	at := strings.TrimPrefix(x.url, "http://")
	head := func(c *replaytest.HTTPClient, line, more string) string {
		h := line + " HTTP/1.1\r\nHost: " + at + "\r\nAccept: text/event-stream\r\nAuthorization: Bearer " + c.Token + "\r\n" + more
		if c.Session != "" {
			h += "Mcp-Session-Id: " + c.Session + "\r\n"
		}
		return h + "\r\n"
	}
	post := func(c *replaytest.HTTPClient, more, body string) string {
		return head(c, "POST /mcp", fmt.Sprintf("%sContent-Type: application/json\r\nContent-Length: %d\r\n", more, len(body))) + body
	}
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	const modern = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: "
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			legacy, now := x.client("alice").Hello(), x.client("alice").Of2026()
			for _, raw := range []string{
				head(now, "GET /sse", ""),
				head(legacy, "GET /mcp", ""),
				post(now, modern+"subscriptions/listen\r\n", listen),
				post(now, modern+"tools/call\r\nMcp-Name: watch\r\n", now.CallBody("1", "watch", `{"text":"x"}`, `,"progressToken":"p"`)),
				post(legacy, "", legacy.CallBody("1", "tend", `{"text":"x"}`, `,"progressToken":"p"`)),
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
	x.await(t, "nothing is open", func() bool {
		n := open(x.server)
		return n[""]+n["get"]+n["sse"]+n["listen"] == 0
	})
	if text, failed := x.client("alice").Hello().Call("2", "watch", `{"no":1}`, "").Text(); !failed || !strings.HasPrefix(text, "INPUT_INVALID") {
		t.Errorf("afterwards: %s", text)
	}
}
