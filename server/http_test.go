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

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/listen"
	"codehand/server/mcpgo"
	"codehand/server/replaytest"
	"codehand/server/state"
	"codehand/tools"
	"codehand/tools/agent/loop"
	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// A httpSite is a server on HTTP in this process.
type httpSite struct {
	t      testing.TB
	server *Server
	url    string // without a path
	data   string // data directory
	work   string // root in mode none
	home   string // of the user
	stop   func() error
	tokens map[string]string // by principal
}

// A siteSetup says what a httpSite is made of. Zero fields: defaults.
type siteSetup struct {
	tools      []tool.Tool                     // that need none of the server's engines
	make       func(tools.Engines) []tool.Tool // in place of tools; neither: tools.All
	settings   map[string]string
	principals []string               // with a token each; none: no authentication
	values     map[string]auth.Values // of the tokens
	data       string                 // of an earlier httpSite
	work, home string
	tokens     map[string]string
	log        io.Writer // nil: none
	extend     func(*mcpserver.MCPServer)
	hooks      []config.Hook
	roots      time.Duration                 // that a client has to name its roots; 0: as long as it likes
	store      func(state.Store) state.Store // takes the place of the Store; nil: nothing does
	model      loop.Model                    // of sub-agents; nil: that of the settings
	proven     func() sandbox.Report         // nil: limitsOnly
}

// serveHTTP starts a httpSite. It ends with the test, or by stop.
func serveHTTP(t testing.TB, o siteSetup) *httpSite {
	t.Helper()
	x := &httpSite{t: t, data: o.data, work: o.work, home: cmp.Or(o.home, t.TempDir()), tokens: o.tokens}
	if x.data == "" {
		x.data = filepath.Join(t.TempDir(), "data")
	}
	if x.work == "" {
		x.work = leaktest.Dir(t)
	}
	flags := map[string]string{"state-dir": x.data, "auth-local-peer": "any", "read-line-format": "tab"}
	if len(o.principals) > 0 {
		flags["auth-mode"] = "token"
	}
	for k, v := range o.settings {
		flags[replaytest.FlagOf(k)] = v
	}
	cfg, _, err := config.Load(config.Sources{WorkDir: x.work, Home: x.home, Flags: flags, Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hooks.Entries = o.hooks
	if _, err := config.OpenState(x.data); err != nil {
		t.Fatal(err)
	}
	if x.tokens == nil {
		x.tokens = map[string]string{}
		file := auth.OpenTokenFile(cfg.TokenFile())
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
	if o.proven == nil {
		o.proven = limitsOnly
	}
	s, err := New(Options{Options: engines.Options{Proven: o.proven, Config: cfg, Tools: making(o.tools, o.make), Version: "test", Serve: true, Log: log, StoreTime: replaytest.HangAfter, Model: o.model}, Extend: o.extend})
	if err != nil {
		t.Fatal(err)
	}
	s.patience = replaytest.HangAfter // however slow this machine is, a test loses no note
	patient(s, o.roots)
	if o.store != nil {
		s.engines.Store = o.store(s.engines.Store)
	}
	x.server = s
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := s.HTTP(ctx, []listen.Listener{{Listener: l, URL: x.url, Loopback: true}})
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
		case <-time.After(replaytest.HangAfter):
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

func (x *httpSite) client(principal string) *replaytest.HTTPClient {
	return &replaytest.HTTPClient{T: x.t, URL: x.url + "/mcp", Token: x.tokens[principal]}
}

// notifying is a tool outside our table that sends notifications as the layer does: with a mark, so that one on a wrong
// stream is seen.
func notifying(notes int) func(*mcpserver.MCPServer) {
	return func(m *mcpserver.MCPServer) {
		m.AddTool(mcp.NewTool("notify_it", mcp.WithString("mark")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mark := r.GetString("mark", "")
			for i := range notes {
				if err := mcpgo.Notify(ctx, "notifications/message", map[string]any{"level": "info", "data": fmt.Sprintf("%s/%d", mark, i)}); err != nil {
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
	calls, notes, runs := 8, 20, leaktest.Rounds(5, 20)
	x := serveHTTP(t, siteSetup{extend: notifying(notes)})
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			c := x.client("")
			if era == "modern" {
				c.Modern = true
			} else {
				c.Hello()
			}
			lost, stray := 0, 0
			for run := range runs {
				var mu sync.Mutex
				var wg sync.WaitGroup
				for n := range calls {
					wg.Go(func() {
						mark := fmt.Sprintf("%d-%d", run, n)
						got := c.Call(fmt.Sprintf("%q", mark), "notify_it", fmt.Sprintf(`{"mark":%q}`, mark), "")
						mu.Lock()
						defer mu.Unlock()
						if text, failed := got.Text(); failed || text != mark {
							t.Errorf("answer of %s: %s", mark, got.Answer)
						}
						if len(got.Notes) < notes {
							lost += notes - len(got.Notes)
						}
						for i, note := range got.Notes {
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
	alice, bob := x.client("alice").Hello(), x.client("bob").Hello()
	if text, failed := alice.Call("1", "write_file", `{"file_path":"secret.txt","content":"alice's\n"}`, "").Text(); failed {
		t.Fatal(text)
	}
	job, failed := alice.Call("2", "run_shell", `{"command":"sleep 600","run_in_background":true}`, "").Text()
	if failed {
		t.Fatal(job)
	}
	id := job[strings.Index(job, "job_"):]
	id = id[:16]

	// What bob gets for an id of alice must be, but for the id, what he gets for one that nobody has.
	forged := replaytest.Altered(alice.Session)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		var got []replaytest.HTTPReply
		for _, session := range []string{alice.Session, forged, "ch1.x.y.z", "nonsense"} {
			c := *bob
			c.Session = session
			body := ""
			if method == http.MethodPost {
				body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
			}
			got = append(got, c.Do(c.Request(t.Context(), method, c.URL, body)))
		}
		for _, g := range got {
			if g.Status != http.StatusNotFound || g.Answer != got[0].Answer {
				t.Errorf("%s with an id that is not bob's: %d %s", method, g.Status, g.Answer)
			}
		}
	}
	for _, name := range []string{"job_output", "job_stop"} {
		theirs := bob.Call("3", name, fmt.Sprintf(`{"job_id":%q}`, id), "")
		nobodys := bob.Call("3", name, `{"job_id":"job_aaaaaaaaaaaa"}`, "")
		if strings.ReplaceAll(timeless(theirs.Answer), id, "job_aaaaaaaaaaaa") != timeless(nobodys.Answer) {
			t.Errorf("%s tells bob about alice's job:\n%s\n%s", name, theirs.Answer, nobodys.Answer)
		}
	}
	if text, failed := alice.Call("4", "job_output", fmt.Sprintf(`{"job_id":%q}`, id), "").Text(); failed || !strings.Contains(text, "running") {
		t.Errorf("alice's job does not run any more: %s", text)
	}

	// A handle is a name: bob's is another, empty one.
	handle := `,"codehand/session":"shared-handle"`
	alice.Call("5", "read_file", `{"file_path":"secret.txt"}`, handle)
	bob.Call("6", "write_file", `{"file_path":"secret.txt","content":"bob's\n"}`, "")
	text, failed := bob.Call("7", "edit_file", `{"file_path":"secret.txt","old_string":"bob","new_string":"rob"}`, handle).Text()
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
	a, _ := bob.Call("8", "read_file", fmt.Sprintf(`{"file_path":%q}`, secret), "").Text()
	b, _ := bob.Call("8", "read_file", fmt.Sprintf(`{"file_path":%q}`, missing), "").Text()
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
	c.Modern = true
	a, b := `,"codehand/session":"conversation-a"`, `,"codehand/session":"conversation-b"`
	edit := `{"file_path":"f.txt","old_string":"one","new_string":"two"}`
	if text, failed := c.Call("1", "read_file", `{"file_path":"f.txt"}`, a).Text(); failed {
		t.Fatal(text)
	}
	if text, failed := c.Call("2", "edit_file", edit, b).Text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
		t.Errorf("conversation b edits on what a read: %s", text)
	}
	viaURL := *c
	viaURL.URL = x.url + "/mcp/s/conversation-b"
	if text, failed := viaURL.Call("3", "edit_file", edit, "").Text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
		t.Errorf("conversation b by its URL edits on what a read: %s", text)
	}
	if got := viaURL.Call("4", "edit_file", edit, a); got.Status != http.StatusBadRequest || !strings.Contains(got.Answer, "-32602") {
		t.Errorf("a handle in the URL and another in _meta: %d %s", got.Status, got.Answer)
	}
	if text, failed := c.Call("5", "edit_file", edit, a).Text(); failed {
		t.Errorf("conversation a cannot edit what it read: %s", text)
	}

	// Without handles both share the key of the workspace: the version of the read decides.
	write("one\n")
	text, _ := c.Call("6", "read_file", `{"file_path":"f.txt"}`, "").Text()
	_, version, ok := strings.Cut(text, "[version ")
	if !ok {
		t.Fatalf("no version is shown: %s", text)
	}
	version = strings.TrimSuffix(strings.TrimSpace(version), "]")
	write("one, changed by somebody\n")
	c.Call("7", "read_file", `{"file_path":"f.txt"}`, "") // the other conversation reads the new content
	stale := fmt.Sprintf(`{"file_path":"f.txt","old_string":"one","new_string":"two","version":%q}`, version)
	if text, failed := c.Call("8", "edit_file", stale, "").Text(); !failed || !strings.HasPrefix(text, "FILE_CHANGED") {
		t.Errorf("an edit with an old version passes on another conversation's read: %s", text)
	}
}

// TestRestartHTTP stops a httpSite between two calls of one session. The client notices nothing: its id is still good, and
// what it read still counts.
func TestRestartHTTP(t *testing.T) {
	t.Parallel()
	first := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	c := first.client("alice").Hello()
	for _, step := range []struct{ name, args string }{
		{"write_file", `{"file_path":"f.txt","content":"one\n"}`},
		{"read_file", `{"file_path":"f.txt"}`},
	} {
		if text, failed := c.Call("1", step.name, step.args, "").Text(); failed {
			t.Fatal(text)
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := serveHTTP(t, siteSetup{principals: []string{"alice"}, data: first.data, work: first.work, tokens: first.tokens})
	c.URL = second.url + "/mcp"
	if text, failed := c.Call("2", "edit_file", `{"file_path":"f.txt","old_string":"one","new_string":"two"}`, "").Text(); failed {
		t.Errorf("after a restart: %s", text)
	}
	if got := c.Do(c.Request(t.Context(), http.MethodDelete, c.URL, "")); got.Status != http.StatusOK {
		t.Errorf("DELETE: %d", got.Status)
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	third := serveHTTP(t, siteSetup{principals: []string{"alice"}, data: first.data, work: first.work, tokens: first.tokens})
	c.URL = third.url + "/mcp"
	if got := c.Call("3", "read_file", `{"file_path":"f.txt"}`, ""); got.Status != http.StatusNotFound {
		t.Errorf("a deleted session after a restart: %d %s", got.Status, got.Answer)
	}
}

// TestSSE speaks the transport of 2024-11-05.
func TestSSE(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}})
	c := x.client("alice")
	r, err := http.DefaultClient.Do(c.Request(t.Context(), http.MethodGet, x.url+"/sse", ""))
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
	send := func(c *replaytest.HTTPClient, body string) int {
		got := c.Do(c.Request(t.Context(), http.MethodPost, x.url+path, body))
		return got.Status
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
	deadline := time.After(replaytest.HangAfter)
	for send(c, `{"jsonrpc":"2.0","id":4,"method":"ping"}`) != http.StatusNotFound {
		select {
		case <-deadline:
			t.Fatal("a closed stream still takes messages")
		default:
		}
	}
}
