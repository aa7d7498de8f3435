package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/pipeline"
	"codehand/server/places"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/state"
	"codehand/server/team"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// open is how many streams of each kind a server over HTTP has open, requests under "", and sessions.
func open(s *Server) map[string]int {
	if e := s.team.Endpoint.Load(); e != nil {
		return e.Count()
	}
	return nil // it has not begun to serve
}

// soon ends when a request that hangs is a failure.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), replaytest.HangAfter)
	t.Cleanup(cancel)
	return ctx
}

// revoke takes all tokens away.
func (x *httpSite) revoke(t *testing.T) {
	t.Helper()
	gone, err := auth.OpenTokenFile(x.server.cfg.TokenFile()).Revoke(func(auth.Token) bool { return true })
	if err != nil || len(gone) == 0 {
		t.Fatalf("%d tokens were revoked: %v", len(gone), err)
	}
	must(t, x.server.Reload(x.server.cfg.Principals))
}

// again is a later start over the data of x, which is stopped.
func (x *httpSite) again(t *testing.T, o siteSetup) *httpSite {
	t.Helper()
	must(t, x.stop())
	o.data, o.work, o.home, o.tokens = x.data, x.work, x.home, x.tokens
	return serveHTTP(t, o)
}

// TestArrivalOrder: calls that arrive at the same time stand in the same order in each queue of their principal and at the
// gate of their session. When one was first in one and second in the other each waited for the other, for 10 s.
func TestArrivalOrder(t *testing.T) {
	t.Parallel()
	const rounds, calls = 500, 8
	var order []int // only one writer of a session runs at a time
	mark := fixtureTool("mark", tool.Traits{Private: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		order = append(order, len(in.Text))
		return tool.Result{Text: "done"}, nil
	})
	mark.Spec.Scope = tool.ScopeShell
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{mark}})
	s := x.server
	who := team.LocalPrincipal(s.cfg)
	who.ID, who.Quota = "busy", limits.Quota{ConcurrentCalls: 1, ConcurrentShells: 1}
	limits := s.team.Porter.Limits(who)
	at, err := s.team.Tenants.Of(team.LocalPrincipal(s.cfg))
	must(t, err)
	for round := range rounds {
		turns := make([]places.Places, calls)
		inputs := make([]json.RawMessage, calls)
		start := make(chan struct{})
		var all sync.WaitGroup
		for i := range calls {
			env, bad := jsonrpc.Scan([]byte(replaytest.CallLine(1, "mark", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", i)), "")))
			if bad != nil {
				t.Fatal(bad.Message)
			}
			key, err := sessions.HTTPKey(who, env, "handle-one", "")
			must(t, err)
			all.Go(func() {
				<-start
				state, release, err := s.sessions.Acquire(key, at)
				if err != nil {
					t.Error(err)
					return
				}
				c := s.calls.Places.Take(&request.Turn{State: state, Req: request.Request{Caller: request.Caller{Limits: limits}}}, mark)
				t.Cleanup(func() { c.Leave(); release() })
				turns[i], inputs[i] = c, env.Arguments
			})
		}
		close(start)
		all.Wait()

		orders := make([][]int, 3) // of the queue of calls, of that of commands, at the gate
		for queue := range 2 {
			var mu sync.Mutex
			for i, c := range turns {
				all.Go(func() {
					if ok, err := c.Queues[queue].Wait(t.Context()); !ok {
						t.Errorf("no turn: %v", err)
					}
					mu.Lock()
					orders[queue] = append(orders[queue], i)
					mu.Unlock()
					c.Queues[queue].Leave()
				})
			}
			all.Wait()
		}
		order = nil
		for i, c := range turns {
			all.Go(func() {
				if _, err := c.Visit.Call(t.Context(), mark, inputs[i], pipeline.Arrival{}); err != nil {
					t.Error(err)
				}
				c.Visit.Leave()
			})
		}
		all.Wait()
		orders[2] = order
		if !slices.Equal(orders[0], orders[1]) || !slices.Equal(orders[0], orders[2]) || len(order) != calls {
			t.Fatalf("round %d: calls stand in the order %v for the calls, %v for the commands, %v at the gate", round, orders[0], orders[1], orders[2])
		}
	}
}

// counting is a tool that may change something, and counts its runs.
func counting(runs *atomic.Int64) tool.Tool {
	return fixtureTool("count", tool.Traits{Private: true, Local: true}, func(context.Context, tool.Env, word) (tool.Result, error) {
		runs.Add(1)
		return tool.Result{Text: "counted"}, nil
	})
}

// A halfSent is a request whose client has sent the header, and was told to go on with the body.
type halfSent struct {
	conn net.Conn
	in   *bufio.Reader
	body string
}

// half sends the header of q. more are header lines; answer says what came instead of the request for the body.
func half(t *testing.T, q *http.Request, body string, more ...string) (h *halfSent, answer *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", q.URL.Host)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the answer was read, or nobody waits for it
	must(t, c.SetDeadline(time.Now().Add(replaytest.HangAfter)))
	head := q.Method + " " + q.URL.RequestURI() + " HTTP/1.1\r\nHost: " + q.URL.Host + "\r\nExpect: 100-continue\r\n"
	for name, values := range q.Header {
		head += name + ": " + values[0] + "\r\n"
	}
	_, err = io.WriteString(c, head+strings.Join(more, "\r\n")+"\r\n\r\n")
	must(t, err)
	h = &halfSent{conn: c, in: bufio.NewReader(c), body: body}
	r, err := http.ReadResponse(h.in, q)
	must(t, err)
	if r.StatusCode != http.StatusContinue {
		return nil, r
	}
	return h, nil
}

// finish sends the body and returns the answer.
func (h *halfSent) finish(t *testing.T) replaytest.HTTPReply {
	t.Helper()
	_, err := io.WriteString(h.conn, h.body)
	must(t, err)
	r, err := http.ReadResponse(h.in, nil)
	must(t, err)
	defer r.Body.Close()
	return replaytest.ReadReply(t, r)
}

// TestRevokedWhileSending: a token that is revoked while the body of a request comes starts nothing. The call was made,
// and could run for minutes.
func TestRevokedWhileSending(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"legacy call", "modern call", "initialize", "message on SSE"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			x := serveHTTP(t, siteSetup{principals: []string{"alice"}, tools: []tool.Tool{counting(&runs)}})
			c := x.client("alice")
			body := hello
			switch what {
			case "legacy call":
				body = c.Hello().CallBody("1", "count", "{}", "")
			case "modern call":
				body = c.Of2026().CallBody("1", "count", "{}", "")
			case "message on SSE":
				c = x.tap(t, c).HTTPClient
				c.URL = x.url + strings.TrimPrefix(c.URL, x.url)
				body = c.CallBody("1", "count", "{}", "")
			}
			q := c.Request(soon(t), http.MethodPost, c.URL, body)
			h, refused := half(t, q, body, fmt.Sprintf("Content-Length: %d", len(body)))
			if refused != nil {
				t.Fatalf("before the body: %s", refused.Status)
			}
			x.revoke(t)
			if got := h.finish(t); got.Status != http.StatusUnauthorized {
				t.Errorf("with a token that was revoked meanwhile: %d %s", got.Status, got.Answer)
			}
			must(t, x.stop())
			if n := runs.Load(); n != 0 {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

// TestRevokedListen: the listen of a revoked token ends without an answer. It ended with an internal error.
func TestRevokedListen(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	c := x.client("alice").Of2026()
	r, err := http.DefaultClient.Do(c.Request(soon(t), http.MethodPost, c.URL, listenLine("1", `{"toolsListChanged":true}`)))
	must(t, err)
	defer r.Body.Close()
	in := bufio.NewReader(r.Body)
	for line := ""; !strings.Contains(line, "acknowledged"); {
		line, err = in.ReadString('\n')
		must(t, err)
	}
	x.revoke(t)
	rest, err := io.ReadAll(in)
	if err != nil || strings.Contains(string(rest), "data:") {
		t.Errorf("after the revocation: %q, %v", rest, err)
	}
}

// TestListenNeedsStream: who listens takes an event stream. Without one the request hung, with no byte ever.
func TestListenNeedsStream(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	c := x.client("").Of2026()
	c.Extra = map[string]string{"Accept": "application/json"}
	got := arrived(t, replaytest.Async(c.Request(soon(t), http.MethodPost, c.URL, listenLine("1", `{"toolsListChanged":true}`))))
	if got.Status != http.StatusNotAcceptable || open(x.server)["listen"] != 0 {
		t.Errorf("got %+v", got)
	}
}

// A pausing Store waits in its first Get of a client record until it is told to go on.
type pausing struct {
	state.Store
	paused  atomic.Bool
	reached chan struct{}
	goOn    chan struct{}
}

func (p *pausing) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	v, rev, err := p.Store.Get(ctx, key)
	if strings.HasSuffix(key, ".client") && p.paused.CompareAndSwap(false, true) {
		close(p.reached)
		<-p.goOn
	}
	return v, rev, err
}

// sessionKeys are what the Store has of alice's sessions.
func (x *httpSite) sessionKeys(t *testing.T) []string {
	t.Helper()
	keys, err := x.server.engines.Store.Keys(t.Context(), state.Key(state.Session, state.Hash("alice")))
	must(t, err)
	return keys
}

// TestDeleteBeatsAdoption: a session that is deleted while a request after a restart takes it up is gone. It came back to
// life for half an hour.
func TestDeleteBeatsAdoption(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	o := siteSetup{principals: []string{"alice"}, tools: []tool.Tool{counting(&runs)}}
	first := serveHTTP(t, o)
	c := first.client("alice").Hello()
	store := &pausing{reached: make(chan struct{}), goOn: make(chan struct{})}
	o.store = func(s state.Store) state.Store {
		store.Store = s
		return store
	}
	x := first.again(t, o)
	c.URL = x.url + "/mcp"
	early := replaytest.Async(c.Request(soon(t), http.MethodPost, c.URL, c.CallBody("1", "count", "{}", "")))
	<-store.reached
	if got := c.Delete(); got != http.StatusOK {
		t.Fatalf("DELETE: %d", got)
	}
	close(store.goOn)
	if got := arrived(t, early); got.Status != http.StatusNotFound {
		t.Errorf("the request that took it up: %d %s", got.Status, got.Answer)
	}
	if got := c.Call("2", "count", "{}", ""); got.Status != http.StatusNotFound {
		t.Errorf("a later request: %d %s", got.Status, got.Answer)
	}
	if n := runs.Load(); n != 0 || open(x.server)["sessions"] != 0 {
		t.Errorf("the tool ran %d times, %d sessions live", n, open(x.server)["sessions"])
	}
	if keys := x.sessionKeys(t); len(keys) != 1 || !strings.HasSuffix(keys[0], ".gone") {
		t.Errorf("the Store has %v", keys)
	}
}

// TestDeleteClears: nothing is left of a deleted session but that it is gone: no record of a job that its end writes, none
// of a call that was cancelled by it, and no place of its stream.
func TestDeleteClears(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	stubborn := fixtureTool("stubborn", tool.Traits{Private: true, Local: true, Ungated: true}, func(ctx context.Context, env tool.Env, _ word) (tool.Result, error) {
		close(began)
		<-ctx.Done()
		_, err := env.Cwd.Change(context.WithoutCancel(ctx), func(string) (string, error) { return env.Space.Cwd(), nil })
		return tool.Result{}, err
	})
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice"}, make: allAnd(stubborn),
		settings: map[string]string{"sandbox.policy": "off", "permissions.ask_fallback": "client"},
		values:   map[string]auth.Values{"alice": {Quota: map[string]string{"streams": "1"}}},
	})
	c := x.client("alice").Hello()
	stream := replaytest.Async(c.Request(soon(t), http.MethodGet, c.URL, ""))
	x.await(t, "the stream is open", func() bool { return open(x.server)["get"] == 1 })
	if text, failed := c.Call("1", "run_shell", `{"command":"sleep 600","run_in_background":true}`, "").Text(); failed {
		t.Fatal(text)
	}
	running := replaytest.Async(c.Request(soon(t), http.MethodPost, c.URL, c.CallBody("2", "stubborn", "{}", "")))
	<-began
	if got := c.Delete(); got != http.StatusOK {
		t.Fatalf("DELETE: %d", got)
	}
	arrived(t, running)
	if keys := x.sessionKeys(t); len(keys) != 1 || !strings.HasSuffix(keys[0], ".gone") {
		t.Errorf("the Store has %v", keys)
	}
	arrived(t, stream)
	other := x.client("alice").Hello()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.DefaultClient.Do(other.Request(ctx, http.MethodGet, other.URL, ""))
	must(t, err)
	cancel()
	_ = r.Body.Close() // cancelled
	if r.StatusCode != http.StatusOK {
		t.Errorf("the stream of another session: %s", r.Status)
	}
}

// TestLateAnswer: the answer of a client to a question that nobody remembers costs it nothing, least of all its session.
// After a restart it got 404, which tells clients to begin anew.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	c := x.client("alice").Hello()
	for _, when := range []string{"before a restart", "after it"} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":5,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":"s-1","result":{}}`,
			`{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"x"}}`,
		} {
			r := c.Post(body)
			_ = r.Body.Close() // not looked at
			if r.StatusCode == http.StatusNotFound || r.StatusCode >= 500 {
				t.Errorf("%s %s: %s", when, body, r.Status)
			}
		}
		if got := c.Do(c.Request(soon(t), http.MethodPost, c.URL, `{"jsonrpc":"2.0","id":6,"method":"ping"}`)); got.Status != http.StatusOK {
			t.Errorf("%s, ping after the answers: %d %s", when, got.Status, got.Answer)
		}
		if when == "before a restart" {
			x = x.again(t, siteSetup{principals: []string{"alice"}})
			c.URL = x.url + "/mcp"
		}
	}
}

// TestMetricsCredentials: only the scrape token itself, as a bearer, and an admin's open the metrics; any other header
// opens nothing, and lifts no check of Host and Origin.
func TestMetricsCredentials(t *testing.T) {
	t.Parallel()
	const secret = "the-scrape-token"
	file := filepath.Join(t.TempDir(), "scrape")
	replaytest.WriteFile(t, file, []byte(secret+"\n"))
	admin := true
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice", "root"}, values: map[string]auth.Values{"root": {Admin: &admin}},
		settings: map[string]string{"metrics.token_file": file},
	})
	none := serveHTTP(t, siteSetup{})
	const own, strange = "", "rebound.example:7433"
	for _, try := range []struct {
		site *httpSite
		host string
		auth string
		want int
	}{
		{x, own, "Bearer " + secret, http.StatusOK},
		{x, strange, "Bearer " + secret, http.StatusOK}, // a scraper comes by whatever address it found
		{x, own, secret, http.StatusUnauthorized},
		{x, strange, secret, http.StatusUnauthorized},
		{x, own, "Basic " + secret, http.StatusUnauthorized},
		{x, own, "Bearer " + secret + "x", http.StatusUnauthorized},
		{x, own, "Bearer ", http.StatusUnauthorized},
		{x, own, "Bearer " + x.tokens["root"], http.StatusOK},
		{x, own, "Bearer " + x.tokens["alice"], http.StatusForbidden},
		{x, own, "", http.StatusUnauthorized},
		{x, strange, "", http.StatusForbidden},
		{none, own, "", http.StatusOK},
		{none, strange, "", http.StatusForbidden},
		{none, strange, "x", http.StatusForbidden},
		{none, strange, "Bearer x", http.StatusForbidden},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, try.site.url+"/metrics", nil)
		must(t, err)
		if try.host != own {
			q.Host = try.host
			q.Header.Set("Origin", "http://"+try.host)
		}
		if try.auth != "" {
			q.Header.Set("Authorization", try.auth)
		}
		r, err := http.DefaultClient.Do(q)
		must(t, err)
		body, err := io.ReadAll(r.Body)
		must(t, err)
		_ = r.Body.Close() // was read
		if got := strings.Contains(string(body), "codehand_build_info"); r.StatusCode != try.want || got != (try.want == http.StatusOK) {
			t.Errorf("host %q, %q: %s, metrics: %v; want %d", try.host, try.auth, r.Status, got, try.want)
		}
	}
}

// TestBodiesWithoutLength: a body of unknown length counts as the largest one until it is there. Forty of them were read
// at once where one was allowed.
func TestBodiesWithoutLength(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Quota: map[string]string{"bytes_in_per_minute": "1MiB"}}}})
	c := x.client("alice")
	begin := func() (*halfSent, *http.Response) {
		q := c.Request(soon(t), http.MethodPost, c.URL, hello)
		return half(t, q, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hello), hello), "Transfer-Encoding: chunked")
	}
	one, refused := begin()
	if refused != nil {
		t.Fatalf("the first: %s", refused.Status)
	}
	for range 3 {
		if _, refused := begin(); refused == nil || refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("Retry-After") == "" {
			t.Fatalf("another one while it comes is read, or refused otherwise: %+v", refused)
		}
	}
	if got := one.finish(t); got.Status != http.StatusOK {
		t.Errorf("the first: %d %s", got.Status, got.Answer)
	}
	two, refused := begin() // the first has given back what did not come
	if refused != nil {
		t.Fatalf("after it was small: %s", refused.Status)
	}
	if got := two.finish(t); got.Status != http.StatusOK {
		t.Errorf("the second: %d %s", got.Status, got.Answer)
	}
}

// TestBytesOut: what leaves as an answer and what leaves on the stream of a session count.
func TestBytesOut(t *testing.T) {
	t.Parallel()
	setup := siteSetup{principals: []string{"alice"}, values: map[string]auth.Values{"alice": {Quota: map[string]string{"bytes_out_per_minute": "20KiB"}}}}
	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		x := serveHTTP(t, setup)
		c := x.client("alice").Hello()
		for sent := 0; sent < 60<<10; {
			got := c.Do(c.Request(soon(t), http.MethodPost, c.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if got.Status == http.StatusTooManyRequests {
				return
			}
			sent += len(got.Answer)
		}
		t.Error("three times the quota left")
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		x := serveHTTP(t, setup)
		c := x.client("alice").Hello()
		r, err := http.DefaultClient.Do(c.Request(soon(t), http.MethodGet, c.URL, ""))
		must(t, err)
		defer r.Body.Close()
		x.await(t, "the stream is open", func() bool { return open(x.server)["get"] == 1 })
		in := bufio.NewReader(r.Body)
		sent := 0
		for n := 0; sent < 60<<10; n++ {
			x.changeList()
			for line := ""; !strings.Contains(line, "list_changed"); sent += len(line) {
				line, err = in.ReadString('\n')
				must(t, err)
			}
			ping := c.Request(soon(t), http.MethodPost, c.URL, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if n%50 == 0 && c.Do(ping).Status == http.StatusTooManyRequests {
				return
			}
		}
		t.Error("three times the quota left on a stream")
	})
}

// A downStore does not answer while it is down.
type downStore struct {
	state.Store
	down atomic.Bool
}

func (s *downStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if s.down.Load() {
		return nil, 0, state.ErrDown
	}
	return s.Store.Get(ctx, key)
}

func (s *downStore) Set(ctx context.Context, key string, value []byte) error {
	if s.down.Load() {
		return state.ErrDown
	}
	return s.Store.Set(ctx, key, value)
}

// TestStoreDown: while the Store does not answer a session is known by its id alone, so no client is told that its session
// is gone; ending one has to wait.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	o := siteSetup{principals: []string{"alice", "bob"}, tools: []tool.Tool{echoing()}}
	first := serveHTTP(t, o)
	c := first.client("alice").Hello()
	store := &downStore{}
	o.store = func(s state.Store) state.Store {
		store.Store = s
		return store
	}
	x := first.again(t, o)
	c.URL = x.url + "/mcp"
	store.down.Store(true)
	for _, method := range []string{"ping", "tools/list"} {
		if got := c.Do(c.Request(soon(t), http.MethodPost, c.URL, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)); got.Status != http.StatusOK || !strings.Contains(got.Answer, `"result"`) {
			t.Errorf("%s: %d %s", method, got.Status, got.Answer)
		}
	}
	x.client("alice").Hello()
	stolen := x.client("bob")
	stolen.Session = c.Session
	if got := stolen.Do(stolen.Request(soon(t), http.MethodPost, stolen.URL, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)); got.Status != http.StatusNotFound {
		t.Errorf("bob with alice's id: %d", got.Status)
	}
	if got := c.Delete(); got != http.StatusServiceUnavailable {
		t.Errorf("DELETE: %d", got)
	}
	store.down.Store(false)
	if got := c.Delete(); got != http.StatusOK {
		t.Errorf("DELETE when it is back: %d", got)
	}
	if got := c.Delete(); got != http.StatusNotFound {
		t.Errorf("DELETE again: %d", got)
	}
}

// TestReconnectedStream: after a restart a client that opens a second stream before its first is seen to be gone still
// gets what is broadcast. The second one was deaf when the first ended.
func TestReconnectedStream(t *testing.T) {
	t.Parallel()
	first := serveHTTP(t, siteSetup{})
	c := first.client("").Hello()
	x := first.again(t, siteSetup{})
	c.URL = x.url + "/mcp"
	connect := func() (*bufio.Reader, context.CancelFunc) {
		ctx, cancel := context.WithCancel(soon(t))
		t.Cleanup(cancel)
		r, err := http.DefaultClient.Do(c.Request(ctx, http.MethodGet, c.URL, ""))
		must(t, err)
		t.Cleanup(func() { _ = r.Body.Close() })
		return bufio.NewReader(r.Body), cancel
	}
	streams := func() int { return open(x.server)["get"] }
	_, lose := connect()
	x.await(t, "one stream is open", func() bool { return streams() == 1 })
	in, _ := connect()
	lose()
	// Either the second stream goes on and hears, or it ends and the client comes back.
	heard := make(chan string, 1)
	go func() {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				heard <- "end"
				return
			}
			if strings.Contains(line, "list_changed") {
				heard <- "broadcast"
				return
			}
		}
	}()
	x.await(t, "the first stream is over", func() bool { return streams() <= 1 })
	got := ""
	x.await(t, "the second stream hears or ends", func() bool {
		x.changeList()
		select {
		case got = <-heard:
			return true
		default:
			return false
		}
	})
	if got == "broadcast" {
		return
	}
	in, _ = connect()
	x.await(t, "a stream is open", func() bool { return streams() == 1 })
	x.changeList()
	for line := ""; !strings.Contains(line, "list_changed"); {
		var err error
		line, err = in.ReadString('\n')
		must(t, err)
	}
}

// TestLongClientNames: what a client says about itself is kept in short, so that 200 sessions do not hold 600 MiB, and is
// still known after a restart.
func TestLongClientNames(t *testing.T) {
	t.Parallel()
	o := siteSetup{tools: []tool.Tool{fixtureTool("who", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
		return tool.Result{Text: env.Client.Name + " " + env.Client.Version + " " + env.Client.Revision}, nil
	})}}
	x := serveHTTP(t, o)
	c := x.client("")
	long := strings.Repeat("n", 1<<18)
	r := c.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + long + `","version":"` + long + `"}}}`)
	_ = r.Body.Close() // not looked at
	if c.Session = r.Header.Get("Mcp-Session-Id"); r.StatusCode != http.StatusOK || c.Session == "" {
		t.Fatalf("initialize: %s", r.Status)
	}
	key := session.Key{Principal: auth.LocalID, Session: sessions.ByHTTP + c.Session}
	kept, gone, err := sessions.Records{Store: x.server.engines.Store}.Recall(t.Context(), key)
	must(t, err)
	if gone || len(kept.Name) > 1000 || len(kept.Version) > 1000 || !strings.HasPrefix(kept.Name, "nnn") {
		t.Errorf("a name of %d bytes and a version of %d bytes are kept", len(kept.Name), len(kept.Version))
	}
	x = x.again(t, o)
	c.URL = x.url + "/mcp"
	if text, failed := c.Call("2", "who", "{}", "").Text(); failed || text != kept.Name+" "+kept.Version+" 2025-11-25" {
		t.Errorf("after a restart the client is %.40s", text)
	}
}

// TestCancelledInitialize: the cancel of an initialize is ignored on every transport. Its answer was lost.
func TestCancelledInitialize(t *testing.T) {
	t.Parallel()
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	for range 20 {
		f := start(t, setup{silent: true})
		must(t, f.Send(hello+"\n"+cancel))
		if l := f.line(t); !strings.Contains(l, `"id":1,"result"`) {
			t.Fatalf("on stdio: %s", l)
		}
	}
	x := serveHTTP(t, siteSetup{})
	for range 20 {
		s := x.tap(t, x.client(""))
		s.post(hello)
		s.post(cancel)
		if got := s.next(t); !strings.Contains(got, `"id":1,"result"`) {
			t.Fatalf("on SSE: %s", got)
		}
		s.close()
	}
}

// TestUnixListener serves on a socket in the file system: no Host is asked for, sessions and streams work, and the socket
// is gone at the end.
func TestUnixListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(leaktest.Public(t), "s")
	flags := map[string]string{"state-dir": filepath.Join(dir, "data"), "http-listen": "unix:" + path}
	cfg, _, err := config.Load(config.Sources{WorkDir: dir, Home: dir, Flags: flags, Serve: true})
	must(t, err)
	ls, err := listen.Open(t.Context(), cfg, listen.Options{})
	must(t, err)
	s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: cfg, Tools: only(echoing()), Version: "test", Serve: true, StoreTime: replaytest.HangAfter}})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.HTTP(ctx, ls) }()
	defer func() {
		stop()
		must(t, <-ended)
		must(t, s.Close())
		if _, err := net.Dial("unix", path); err == nil {
			t.Error("the socket is still served")
		}
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	c := &replaytest.HTTPClient{T: t, URL: "http://whatever.example/mcp"}
	do := func(method, url, body string) *http.Response {
		t.Helper()
		r, err := client.Do(c.Request(soon(t), method, url, body))
		must(t, err)
		t.Cleanup(func() { _ = r.Body.Close() })
		return r
	}
	c.Session = do(http.MethodPost, c.URL, hello).Header.Get("Mcp-Session-Id")
	if text, failed := replaytest.ReadReply(t, do(http.MethodPost, c.URL, c.CallBody("1", "echo", `{"text":"over a socket"}`, ""))).Text(); failed || text != "over a socket" {
		t.Errorf("a call: %s", text)
	}
	in := bufio.NewReader(do(http.MethodGet, "http://whatever.example/sse", "").Body)
	if line, err := in.ReadString('\n'); err != nil || line != "event: endpoint\n" {
		t.Fatalf("SSE: %q, %v", line, err)
	}
	line, err := in.ReadString('\n')
	must(t, err)
	if r := do(http.MethodPost, "http://whatever.example"+strings.TrimSpace(strings.TrimPrefix(line, "data: ")), `{"jsonrpc":"2.0","id":2,"method":"ping"}`); r.StatusCode != http.StatusAccepted {
		t.Errorf("message: %s", r.Status)
	}
	var answer json.RawMessage
	for answer == nil {
		line, err := in.ReadString('\n')
		must(t, err)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			answer = json.RawMessage(strings.TrimSpace(data))
		}
	}
	if string(answer) != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("ping: %s", answer)
	}
}
