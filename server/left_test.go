package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/tools"
	"codehand/tools/tool"
)

// goneContext is the context of a request whose client has left, before anybody was told.
type goneContext struct{ context.Context }

func (goneContext) Err() error { return context.Canceled }

// host is the endpoint of a site, and the caller that it knows without a token.
func (x *httpSite) host() (*httpEndpoint, caller) {
	x.client("").Hello() // from now on there is an endpoint
	who := x.server.localPrincipal()
	return x.server.endpoint.Load(), caller{who: who, limits: x.server.team.porter.Limits(who), done: func() {}}
}

// arriving is a request as the endpoint gets it from net/http.
func arriving(ctx context.Context, c *replaytest.HTTPClient, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header = c.Request(ctx, http.MethodPost, c.URL, body).Header
	return r
}

// inSession names the session of a call, whatever it comes by.
const inSession = `,"codehand/session":"session-1"`

// readFirst begins a session that has read a file, in which an edit can be made any number of times.
func (x *httpSite) readFirst(t *testing.T) (c *replaytest.HTTPClient, file, edit string) {
	t.Helper()
	file = filepath.Join(x.work, "a.txt")
	must(t, os.WriteFile(file, []byte("one\n"), 0o600))
	c = x.client("").Hello()
	if text, failed := c.Call("1", "read_file", `{"file_path":"`+file+`"}`, inSession).Text(); failed {
		t.Fatalf("read_file: %s", text)
	}
	return c, file, `{"file_path":"` + file + `","old_string":"one","new_string":"one more"}`
}

// mustRead checks that an edit is refused, since the client has not seen the file as it is.
func mustRead(t *testing.T, r replaytest.HTTPReply) {
	t.Helper()
	if text, failed := r.Text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
		t.Errorf("what nobody was told of counts as seen; the same edit again: %q", text)
	}
}

// TestLeftUntold: an edit ends after its client has left and before the layer was told. It counted as seen, so that the
// client, which sends it again, got it twice.
func TestLeftUntold(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	c, file, edit := x.readFirst(t)
	e.post(httptest.NewRecorder(), arriving(goneContext{context.Background()}, c, c.CallBody("2", "edit_file", edit, inSession)), by, "")
	if got, err := os.ReadFile(file); err != nil || string(got) != "one more\n" {
		t.Fatalf("the edit of a client that left: %q, %v", got, err)
	}
	mustRead(t, c.Call("3", "edit_file", edit, inSession))
}

// deadWriter is a response to a client that cannot be written to.
type deadWriter struct{ http.ResponseWriter }

func (deadWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestLeftAtWrite: that a note could not be written is known to the call at once, also while nobody has run what follows
// from it.
func TestLeftAtWrite(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	rec, never := &record{limits: by.limits}, make(chan struct{})
	defer close(never)
	r := e.newResponder(deadWriter{httptest.NewRecorder()}, rec, &flight{}, true, func() { <-never })
	if err := r.tell("notifications/message", nil); err == nil {
		t.Fatal("a note was written to a broken connection")
	}
	if !rec.left() {
		t.Error("the call believes that its client is there")
	}
	var out *lineWriter
	told := false
	dead := deadWriter{httptest.NewRecorder()}
	out = jsonrpc.NewLineWriter(&sseWriter{w: dead, control: http.NewResponseController(dead), limits: by.limits, lost: func() {
		select {
		case <-out.failed:
			t.Error("the calls of a stream are told after all others")
		default:
			told = true
		}
	}}, jsonrpc.ProgressPatience)
	if err := out.write([]byte("{}\n"), 0, nil); err == nil || !told {
		t.Errorf("a broken stream: %v, its calls were told: %v", err, told)
	}
}

// deafWriter is a response whose second write goes on until it is broken off, whatever its deadline.
type deafWriter struct{ *stuckWriter }

func (deafWriter) SetWriteDeadline(time.Time) error { return nil }

// An insideStream is a stream of legacy SSE that is served into a writer of the test.
type insideStream struct {
	*sseStream
	e     *httpEndpoint
	by    caller
	url   string
	leave func()        // its client does
	ended chan struct{} // closed when its handler returns
}

// streamInto opens one. first is the first event that the writer gets.
func streamInto(t *testing.T, e *httpEndpoint, by caller, w http.ResponseWriter, first <-chan string) *insideStream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	s := &insideStream{e: e, by: by, leave: leave, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		e.openSSE(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/sse", nil), by)
	}()
	_, path, _ := strings.Cut(<-first, "data: ")
	s.url = strings.TrimSpace(path)
	_, id, _ := strings.Cut(s.url, "sessionId=")
	s.sseStream = e.sse.find(id)
	return s
}

// post posts a message and returns the status.
func (s *insideStream) post(t *testing.T, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.e.message(answer, r, s.by)
	return answer.Code
}

// TestLeftStream: an edit ends after the client of its stream has left, while a write to that client hangs. It counted as
// seen until the write was over.
func TestLeftStream(t *testing.T) {
	t.Parallel()
	began, release := make(chan string), make(chan struct{})
	x := serveHTTP(t, siteSetup{tools: append(tools.All(), fixtureTool("late", tool.Traits{Private: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		began <- in.Text
		<-release
		return tool.Result{Text: "done", Meta: tool.Meta{Files: []tool.FileChange{{Path: in.Text, Op: "change"}}}}, nil
	}))})
	e, by := x.host()
	c, file, edit := x.readFirst(t)
	w := deafWriter{&stuckWriter{header: http.Header{}, first: make(chan string, 1), stuck: make(chan struct{}), broken: make(chan struct{})}}
	defer w.breakOff()
	s := streamInto(t, e, by, w, w.first)
	if got := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); got != http.StatusAccepted {
		t.Fatalf("ping: %d", got)
	}
	<-w.stuck
	if got := s.post(t, c.CallBody("2", "late", `{"text":"`+file+`"}`, inSession)); got != http.StatusAccepted {
		t.Fatalf("the call: %d", got)
	}
	<-began
	s.leave()
	<-s.conn.out.failed // nothing is written any more
	close(release)
	x.await(t, "the call ends", func() bool { return s.conn.table.calls() == 0 })
	mustRead(t, c.Call("3", "edit_file", edit, inSession))
	w.breakOff()
	<-s.ended
}
