package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/tools"
	"codehand/tools/tool"
)

// A httpSite is a server on HTTP in this process.
type httpSite struct {
	t      testing.TB
	server *Server
	url    string // without a path
	data   string // data directory
	work   string // root in mode none
	stop   func() error
	tokens map[string]string // by principal
}

// A siteSetup says what a httpSite is made of. Zero fields: defaults.
type siteSetup struct {
	tools      []tool.Tool
	settings   map[string]string
	principals []string               // with a token each; none: no authentication
	values     map[string]auth.Values // of the tokens
	data       string                 // of an earlier httpSite
	work       string
	tokens     map[string]string
	log        io.Writer // nil: none
	extend     func(*mcpserver.MCPServer)
	hooks      []config.Hook
	roots      time.Duration // that a client has to name its roots; 0: as long as it likes
}

// serveHTTP starts a httpSite. It ends with the test, or by stop.
func serveHTTP(t testing.TB, o siteSetup) *httpSite {
	t.Helper()
	x := &httpSite{t: t, data: o.data, work: o.work, tokens: o.tokens}
	if x.data == "" {
		x.data = filepath.Join(t.TempDir(), "data")
	}
	if x.work == "" {
		work, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		x.work = work
	}
	if o.tools == nil {
		o.tools = tools.All()
	}
	flags := map[string]string{"state-dir": x.data, "auth-local-peer": "any"}
	if len(o.principals) > 0 {
		flags["auth-mode"] = "token"
	}
	for k, v := range o.settings {
		flags[flagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{WorkDir: x.work, Home: t.TempDir(), Flags: flags, Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hooks.Entries = o.hooks
	if _, err := config.OpenState(x.data); err != nil {
		t.Fatal(err)
	}
	if x.tokens == nil {
		x.tokens = map[string]string{}
		file := auth.OpenTokenFile(TokenFile(cfg))
		for _, p := range o.principals {
			_, text, err := file.New(auth.Token{Principal: p, Values: o.values[p]})
			if err != nil {
				t.Fatal(err)
			}
			x.tokens[p] = text
		}
	}
	var log *slog.Logger
	if o.log != nil {
		log = slog.New(slog.NewTextHandler(o.log, nil))
	}
	s, err := New(Options{Config: cfg, Tools: o.tools, Version: "test", Serve: true, Extend: o.extend, Log: log, storeTime: hangAfter})
	if err != nil {
		t.Fatal(err)
	}
	patient(s, o.roots)
	x.server = s
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := s.HTTP(ctx, []Listener{{Listener: l, URL: x.url, Loopback: true}})
		if closing := s.Close(); err == nil {
			err = closing
		}
		ended <- err
	}()
	x.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(hangAfter):
			return fmt.Errorf("HTTP does not return")
		}
	})
	t.Cleanup(func() {
		if err := x.stop(); err != nil {
			t.Errorf("HTTP: %v", err)
		}
	})
	return x
}

// An httpClient is one client of a httpSite. The zero session is none.
type httpClient struct {
	t       testing.TB
	url     string
	token   string
	session string
	modern  bool
	info    string            // clientInfo.name; "": http-test
	extra   map[string]string // headers
}

func (x *httpSite) client(principal string) *httpClient {
	return &httpClient{t: x.t, url: x.url + "/mcp", token: x.tokens[principal]}
}

// hello begins a legacy session.
func (c *httpClient) hello() *httpClient {
	c.t.Helper()
	name := cmp.Or(c.info, "http-test")
	r := c.post(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + name + `","version":"1"}}}`)
	defer r.Body.Close()
	if c.session = r.Header.Get("Mcp-Session-Id"); r.StatusCode != http.StatusOK || c.session == "" {
		c.t.Fatalf("initialize: %s", r.Status)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return c
}

// request makes a request as this client makes them.
func (c *httpClient) request(ctx context.Context, method, url, body string) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", methodOf(body))
		var m struct{ Params struct{ Name string } }
		if _ = json.Unmarshal([]byte(body), &m); m.Params.Name != "" { // a body may be none
			r.Header.Set("Mcp-Name", m.Params.Name)
		}
	}
	for k, v := range c.extra {
		r.Header.Set(k, v)
	}
	return r
}

// methodOf is the method of a message; "": it is an answer, or no message.
func methodOf(message string) string {
	var m struct{ Method string }
	_ = json.Unmarshal([]byte(message), &m) // "" it is
	return m.Method
}

func (c *httpClient) post(body string) *http.Response {
	c.t.Helper()
	r, err := http.DefaultClient.Do(c.request(context.Background(), http.MethodPost, c.url, body))
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// callBody is a tools/call. meta is what _meta has besides what the era needs, with a comma before it.
func (c *httpClient) callBody(id, name, args, meta string) string {
	own := `"x":1`
	if c.modern {
		own = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"http-test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s%s}}}`, id, name, args, own, meta)
}

// A httpReply is what came back for one request.
type httpReply struct {
	status int
	kind   string
	notes  []string // data of the events before the answer
	answer string
}

// text is the text of a tool result; failed says that it is an error.
func (r httpReply) text() (text string, failed bool) {
	var a struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	_ = json.Unmarshal([]byte(r.answer), &a)
	for _, c := range a.Result.Content {
		text += c.Text
	}
	return text, a.Result.IsError
}

// call makes a call and reads the whole answer.
func (c *httpClient) call(id, name, args, meta string) httpReply {
	c.t.Helper()
	return c.do(c.request(context.Background(), http.MethodPost, c.url, c.callBody(id, name, args, meta)))
}

func (c *httpClient) do(q *http.Request) httpReply {
	c.t.Helper()
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	return readReply(c.t, r)
}

func readReply(t testing.TB, r *http.Response) httpReply {
	t.Helper()
	out := httpReply{status: r.StatusCode, kind: r.Header.Get("Content-Type")}
	if !strings.HasPrefix(out.kind, "text/event-stream") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		out.answer = strings.TrimSpace(string(body))
		return out
	}
	events := bufio.NewScanner(r.Body)
	events.Buffer(nil, 16<<20)
	for events.Scan() {
		data, ok := strings.CutPrefix(events.Text(), "data: ")
		if !ok {
			continue
		}
		if methodOf(data) == "" {
			out.answer = data
		} else {
			out.notes = append(out.notes, data)
		}
	}
	if err := events.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// notifying is a tool outside our table that sends notifications as the layer does: with a mark, so that one on a wrong
// stream is seen.
func notifying(notes int) func(*mcpserver.MCPServer) {
	return func(m *mcpserver.MCPServer) {
		m.AddTool(mcp.NewTool("notify_it", mcp.WithString("mark")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mark := r.GetString("mark", "")
			for i := range notes {
				if err := recordFrom(ctx).notify("notifications/message", map[string]any{"level": "info", "data": fmt.Sprintf("%s/%d", mark, i)}); err != nil {
					return nil, err
				}
			}
			return mcp.NewToolResultText(mark), nil
		})
	}
}

// TestNotificationsHTTP sends 20 notifications in each of 8 calls of one session at the same time: each comes on the
// stream of its own call, before its answer.
func TestNotificationsHTTP(t *testing.T) {
	t.Parallel()
	const calls, notes, runs = 8, 20, 20
	x := serveHTTP(t, siteSetup{extend: notifying(notes)})
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			c := x.client("")
			if era == "modern" {
				c.modern = true
			} else {
				c.hello()
			}
			lost, stray := 0, 0
			for run := range runs {
				var mu sync.Mutex
				var wg sync.WaitGroup
				for n := range calls {
					wg.Go(func() {
						mark := fmt.Sprintf("%d-%d", run, n)
						got := c.call(fmt.Sprintf("%q", mark), "notify_it", fmt.Sprintf(`{"mark":%q}`, mark), "")
						mu.Lock()
						defer mu.Unlock()
						if text, failed := got.text(); failed || text != mark {
							t.Errorf("answer of %s: %s", mark, got.answer)
						}
						if len(got.notes) < notes {
							lost += notes - len(got.notes)
						}
						for i, note := range got.notes {
							if !strings.Contains(note, fmt.Sprintf(`"%s/%d"`, mark, i)) {
								stray++
							}
						}
					})
				}
				wg.Wait()
			}
			t.Logf("%d notifications: %d lost or late, %d on a wrong stream or out of order", runs*calls*notes, lost, stray)
			if lost+stray > 0 {
				t.Fail()
			}
		})
	}
}

// TestPrincipalsApart has bob name everything that is alice's. Each answer is that for something that does not exist.
func TestPrincipalsApart(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}, settings: map[string]string{"sandbox.policy": "off", "permissions.ask_fallback": "client"}})
	alice, bob := x.client("alice").hello(), x.client("bob").hello()
	if text, failed := alice.call("1", "write_file", `{"file_path":"secret.txt","content":"alice's\n"}`, "").text(); failed {
		t.Fatal(text)
	}
	job, failed := alice.call("2", "run_shell", `{"command":"sleep 600","run_in_background":true}`, "").text()
	if failed {
		t.Fatal(job)
	}
	id := job[strings.Index(job, "job_"):]
	id = id[:16]

	// What bob gets for an id of alice must be, but for the id, what he gets for one that nobody has.
	forged := altered(alice.session)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		var got []httpReply
		for _, session := range []string{alice.session, forged, "ch1.x.y.z", "nonsense"} {
			c := *bob
			c.session = session
			body := ""
			if method == http.MethodPost {
				body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
			}
			got = append(got, c.do(c.request(t.Context(), method, c.url, body)))
		}
		for _, g := range got {
			if g.status != http.StatusNotFound || g.answer != got[0].answer {
				t.Errorf("%s with an id that is not bob's: %d %s", method, g.status, g.answer)
			}
		}
	}
	for _, name := range []string{"job_output", "job_stop"} {
		theirs := bob.call("3", name, fmt.Sprintf(`{"job_id":%q}`, id), "")
		nobodys := bob.call("3", name, `{"job_id":"job_aaaaaaaaaaaa"}`, "")
		if strings.ReplaceAll(timeless(theirs.answer), id, "job_aaaaaaaaaaaa") != timeless(nobodys.answer) {
			t.Errorf("%s tells bob about alice's job:\n%s\n%s", name, theirs.answer, nobodys.answer)
		}
	}
	if text, failed := alice.call("4", "job_output", fmt.Sprintf(`{"job_id":%q}`, id), "").text(); failed || !strings.Contains(text, "running") {
		t.Errorf("alice's job does not run any more: %s", text)
	}

	// A handle is a name: bob's is another, empty one.
	handle := `,"codehand/session":"shared-handle"`
	alice.call("5", "read_file", `{"file_path":"secret.txt"}`, handle)
	bob.call("6", "write_file", `{"file_path":"secret.txt","content":"bob's\n"}`, "")
	text, failed := bob.call("7", "edit_file", `{"file_path":"secret.txt","old_string":"bob","new_string":"rob"}`, handle).text()
	if !failed || !strings.Contains(text, "FILE_NOT_READ") {
		t.Errorf("bob edits on alice's read: %s", text)
	}
	for who, want := range map[string]string{"alice": "alice's\n", "bob": "bob's\n"} {
		got, err := os.ReadFile(filepath.Join(x.data, "workspaces", who, "secret.txt"))
		if err != nil || string(got) != want {
			t.Errorf("%s's file holds %q: %v", who, got, err)
		}
	}
	// And paths: alice's workspace, session directory and kept results lie outside bob's roots.
	secret := filepath.Join(x.data, "workspaces", "alice", "secret.txt")
	missing := filepath.Join(x.data, "workspaces", "carol", "secret.txt")
	a, _ := bob.call("8", "read_file", fmt.Sprintf(`{"file_path":%q}`, secret), "").text()
	b, _ := bob.call("8", "read_file", fmt.Sprintf(`{"file_path":%q}`, missing), "").text()
	if strings.ReplaceAll(a, "alice", "carol") != b || !strings.HasPrefix(a, "OUTSIDE_ROOTS") {
		t.Errorf("a path tells bob whether alice has it:\n%s\n%s", a, b)
	}
}

// timeless removes the duration from an answer.
func timeless(answer string) string {
	var v map[string]any
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		return answer
	}
	if result, ok := v["result"].(map[string]any); ok {
		if meta, ok := result["_meta"].(map[string]any); ok {
			delete(meta, "codehand/ms")
		}
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// TestConversationsApart has two conversations of one person on one connection, in the modern era.
func TestConversationsApart(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	path := filepath.Join(x.work, "f.txt")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	c := x.client("")
	c.modern = true
	a, b := `,"codehand/session":"conversation-a"`, `,"codehand/session":"conversation-b"`
	edit := `{"file_path":"f.txt","old_string":"one","new_string":"two"}`
	if text, failed := c.call("1", "read_file", `{"file_path":"f.txt"}`, a).text(); failed {
		t.Fatal(text)
	}
	if text, failed := c.call("2", "edit_file", edit, b).text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
		t.Errorf("conversation b edits on what a read: %s", text)
	}
	viaURL := *c
	viaURL.url = x.url + "/mcp/s/conversation-b"
	if text, failed := viaURL.call("3", "edit_file", edit, "").text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
		t.Errorf("conversation b by its URL edits on what a read: %s", text)
	}
	if got := viaURL.call("4", "edit_file", edit, a); got.status != http.StatusBadRequest || !strings.Contains(got.answer, "-32602") {
		t.Errorf("a handle in the URL and another in _meta: %d %s", got.status, got.answer)
	}
	if text, failed := c.call("5", "edit_file", edit, a).text(); failed {
		t.Errorf("conversation a cannot edit what it read: %s", text)
	}

	// Without handles both share the key of the workspace: the version of the read decides.
	write("one\n")
	text, _ := c.call("6", "read_file", `{"file_path":"f.txt"}`, "").text()
	_, version, ok := strings.Cut(text, "[version ")
	if !ok {
		t.Fatalf("no version is shown: %s", text)
	}
	version = strings.TrimSuffix(strings.TrimSpace(version), "]")
	write("one, changed by somebody\n")
	c.call("7", "read_file", `{"file_path":"f.txt"}`, "") // the other conversation reads the new content
	stale := fmt.Sprintf(`{"file_path":"f.txt","old_string":"one","new_string":"two","version":%q}`, version)
	if text, failed := c.call("8", "edit_file", stale, "").text(); !failed || !strings.HasPrefix(text, "FILE_CHANGED") {
		t.Errorf("an edit with an old version passes on another conversation's read: %s", text)
	}
}

// TestRestartHTTP stops a httpSite between two calls of one session. The client notices nothing: its id is still good, and
// what it read still counts.
func TestRestartHTTP(t *testing.T) {
	t.Parallel()
	first := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	c := first.client("alice").hello()
	for _, step := range []struct{ name, args string }{
		{"write_file", `{"file_path":"f.txt","content":"one\n"}`},
		{"read_file", `{"file_path":"f.txt"}`},
	} {
		if text, failed := c.call("1", step.name, step.args, "").text(); failed {
			t.Fatal(text)
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := serveHTTP(t, siteSetup{principals: []string{"alice"}, data: first.data, work: first.work, tokens: first.tokens})
	c.url = second.url + "/mcp"
	if text, failed := c.call("2", "edit_file", `{"file_path":"f.txt","old_string":"one","new_string":"two"}`, "").text(); failed {
		t.Errorf("after a restart: %s", text)
	}
	if got := c.do(c.request(t.Context(), http.MethodDelete, c.url, "")); got.status != http.StatusOK {
		t.Errorf("DELETE: %d", got.status)
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	third := serveHTTP(t, siteSetup{principals: []string{"alice"}, data: first.data, work: first.work, tokens: first.tokens})
	c.url = third.url + "/mcp"
	if got := c.call("3", "read_file", `{"file_path":"f.txt"}`, ""); got.status != http.StatusNotFound {
		t.Errorf("a deleted session after a restart: %d %s", got.status, got.answer)
	}
}

// TestSSE speaks the transport of 2024-11-05.
func TestSSE(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}})
	c := x.client("alice")
	r, err := http.DefaultClient.Do(c.request(t.Context(), http.MethodGet, x.url+"/sse", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("every page may read the stream")
	}
	events := make(chan string, 100)
	go func() {
		defer close(events)
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				events <- data
			}
		}
	}()
	path := <-events
	if !strings.HasPrefix(path, "/message?sessionId=") {
		t.Fatalf("endpoint %s", path)
	}
	send := func(c *httpClient, body string) int {
		got := c.do(c.request(t.Context(), http.MethodPost, x.url+path, body))
		return got.status
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"sse","version":"1"}}}`
	if got := send(x.client("bob"), hello); got != http.StatusNotFound {
		t.Errorf("bob posts to alice's stream: %d", got)
	}
	if got := send(c, hello); got != http.StatusAccepted {
		t.Fatalf("initialize: %d", got)
	}
	if got := <-events; !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
		t.Errorf("initialize: %s", got)
	}
	send(c, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(c, `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"write_file","arguments":{"file_path":"a","content":"x\n"}}}`)
	if got := <-events; !strings.Contains(got, `"id":9007199254740993`) || strings.Contains(got, "isError") {
		t.Errorf("write_file: %s", got)
	}
	if got := send(c, `{"jsonrpc":"2.0","id":1,"Method":"x","method":"ping"}`); got != http.StatusBadRequest {
		t.Errorf("an ambiguous key: %d", got)
	}
	send(c, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if got := <-events; got != `{"jsonrpc":"2.0","id":3,"result":{}}` {
		t.Errorf("ping: %s", got)
	}
	_ = r.Body.Close()
	for range events {
	}
	deadline := time.After(hangAfter)
	for send(c, `{"jsonrpc":"2.0","id":4,"method":"ping"}`) != http.StatusNotFound {
		select {
		case <-deadline:
			t.Fatal("a closed stream still takes messages")
		default:
		}
	}
}
