package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/request"
)

// An insideStream is a stream of legacy SSE that is served into a writer of the test.
type insideStream struct {
	*sseStream
	x     *site
	url   string
	leave func()        // its client does
	ended chan struct{} // closed when its handler returns
}

// streamInto opens one. first is the first event that the writer gets.
func streamInto(t *testing.T, x *site, w http.ResponseWriter, first <-chan string) *insideStream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	s := &insideStream{x: x, leave: leave, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		x.openSSE(w, httptest.NewRequestWithContext(ctx, http.MethodGet, pathSSE, nil), x.by)
	}()
	_, path, _ := strings.Cut(<-first, "data: ")
	s.url = strings.TrimSpace(path)
	_, id, _ := strings.Cut(s.url, "sessionId=")
	s.sseStream = x.sse.find(id)
	return s
}

// post posts a message and returns the status.
func (s *insideStream) post(t *testing.T, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.x.message(answer, r, s.x.by)
	return answer.Code
}

// TestSSEKeepAlive: a stream on which nothing happens has a comment now and then, and is no event by it.
func TestSSEKeepAlive(t *testing.T) {
	t.Parallel()
	x := newSite(t, setup{})
	x.keepAlive = time.Millisecond
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.listen(t)+pathSSE, nil)
	must(t, err)
	r, err := http.DefaultClient.Do(q)
	must(t, err)
	defer r.Body.Close()
	var got []string
	for lines := bufio.NewScanner(r.Body); len(got) < 9 && lines.Scan(); {
		got = append(got, lines.Text())
	}
	if len(got) < 9 || got[0] != "event: endpoint" || !strings.HasPrefix(got[1], "data: /message?") || got[2] != "" {
		t.Fatalf("the stream begins with %q", got)
	}
	for i := 3; i < 9; i += 2 {
		if got[i] != ": keep-alive" || got[i+1] != "" {
			t.Errorf("then comes %q", got[i:i+2])
		}
	}
}

// TestSSELeavesNothing: a stream that has ended, from either side, has released all that it held. It kept a goroutine
// and with it the response, for ever. A bubble ends only when all goroutines in it have.
func TestSSELeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*insideStream){
		"closed by the client": func(s *insideStream) { s.leave() },
		"closed by the server": func(s *insideStream) { s.x.work.endStreams(errDraining) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newSite(t, setup{})
			synctest.Test(t, func(t *testing.T) {
				w := newFirstWriter()
				s := streamInto(t, x, w, w.first)
				s.post(t, pingLine)
				end(s)
				<-s.ended
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		x := newSite(t, setup{})
		x.work.close()
		synctest.Test(t, func(t *testing.T) {
			w := httptest.NewRecorder()
			x.openSSE(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, pathSSE, nil), x.by)
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("while the server ends: %d %s", w.Code, w.Body)
			}
		})
	})
}

// A stuckWriter is a response to a client that reads the first event and then nothing more.
type stuckWriter struct {
	header http.Header
	first  chan string   // the first write
	stuck  chan struct{} // closed when a write blocks
	broken chan struct{} // closed by a deadline that has passed

	mu     sync.Mutex
	writes int
	inside int
}

func newStuckWriter() *stuckWriter {
	return &stuckWriter{header: http.Header{}, first: make(chan string, 1), stuck: make(chan struct{}), broken: make(chan struct{})}
}

func (w *stuckWriter) Header() http.Header { return w.header }

func (w *stuckWriter) WriteHeader(int) {}

func (w *stuckWriter) FlushError() error { return nil }

func (w *stuckWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.writes++
	n := w.writes
	w.inside++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.inside--
		w.mu.Unlock()
	}()
	switch n {
	case 1:
		w.first <- string(p)
		return len(p), nil
	case 2:
		close(w.stuck)
	}
	<-w.broken
	return 0, os.ErrDeadlineExceeded
}

func (w *stuckWriter) SetWriteDeadline(d time.Time) error {
	if !d.IsZero() && !d.After(time.Now()) {
		w.breakOff()
	}
	return nil
}

// breakOff ends what blocks.
func (w *stuckWriter) breakOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.broken:
	default:
		close(w.broken)
	}
}

// TestSSEWriterIsOut: when the handler of a stream returns, no goroutine uses its response any more, also if the client
// does not read. net/http uses it again then.
func TestSSEWriterIsOut(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an answer of the reading side": brokenCall,
		"an answer":                     pingLine,
	} {
		t.Run(name, func(t *testing.T) {
			x := newSite(t, setup{})
			synctest.Test(t, func(t *testing.T) {
				w := newStuckWriter()
				s := streamInto(t, x, w, w.first)
				if got := s.post(t, body); got != http.StatusAccepted {
					t.Fatalf("message: %d", got)
				}
				<-w.stuck
				s.leave() // the client is gone, or the server ends
				<-s.ended
				w.mu.Lock()
				inside := w.inside
				w.mu.Unlock()
				if inside != 0 {
					t.Errorf("%d writes go on in a response that has ended", inside)
				}
				w.breakOff() // so that the test ends also then
			})
		})
	}
}

// brokenCall is a call whose arguments no parser should guess about.
const brokenCall = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"tool","arguments":{"a":1,"a":2}}}`

// deafWriter is a response whose second write goes on until it is broken off, whatever its deadline.
type deafWriter struct{ *stuckWriter }

func (deafWriter) SetWriteDeadline(time.Time) error { return nil }

// TestLeftStream: a call on a stream sees that its client has left, also while a write to that client hangs. An edit counted
// as seen until the write was over.
func TestLeftStream(t *testing.T) {
	t.Parallel()
	began, release, left := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	x := newSite(t, setup{changes: true, call: func(_ context.Context, r request.Request) request.Answer {
		close(began)
		<-release
		left <- request.Left(r.Peer)
		return request.Answer{Result: json.RawMessage(`{}`)}
	}})
	w := deafWriter{newStuckWriter()}
	defer w.breakOff()
	s := streamInto(t, x, w, w.first)
	if got := s.post(t, pingLine); got != http.StatusAccepted {
		t.Fatalf("ping: %d", got)
	}
	<-w.stuck
	if got := s.post(t, strings.Replace(callLine, `"id":1`, `"id":2`, 1)); got != http.StatusAccepted {
		t.Fatalf("the call: %d", got)
	}
	<-began
	s.leave()
	<-s.conn.Out.Failed // nothing is written any more
	close(release)
	if !<-left {
		t.Error("the call believes that its client is there")
	}
	w.breakOff()
	<-s.ended
}
