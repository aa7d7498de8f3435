package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/tool"
)

// A firstWriter is a response that hands over its first event, and takes the others. The second one waits.
type firstWriter struct {
	header http.Header
	first  chan string
	second chan struct{} // closed when the second write may go on; nil: at once

	got []string
}

func newFirstWriter() *firstWriter {
	return &firstWriter{header: http.Header{}, first: make(chan string, 1)}
}

func (w *firstWriter) Header() http.Header { return w.header }

func (w *firstWriter) WriteHeader(int) {}

func (w *firstWriter) FlushError() error { return nil }

func (w *firstWriter) SetWriteDeadline(time.Time) error { return nil }

func (w *firstWriter) Write(p []byte) (int, error) {
	switch w.got = append(w.got, string(p)); {
	case len(w.got) == 1:
		w.first <- string(p)
	case len(w.got) == 2 && w.second != nil:
		<-w.second
	}
	return len(p), nil
}

// sseEntry is the entry of the one stream that is open.
func (e *httpEndpoint) sseEntry(t *testing.T) *active {
	t.Helper()
	for _, x := range e.work.list() {
		if x.kind == "sse" {
			return x
		}
	}
	t.Fatal("no stream is open")
	return nil
}

// TestSSERevokedOnTheWay: a call had passed the look at its token when that was revoked, and came to its stream when the
// calls there were cancelled. It ran, for the time that a call gets whose client is gone.
func TestSSERevokedOnTheWay(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{fixtureTool("change", tool.Traits{Private: true, Local: true}, func(context.Context, tool.Env, word) (tool.Result, error) {
		<-release
		return tool.Result{}, nil
	})}})
	defer close(release)
	e, by := x.host()
	w := newFirstWriter()
	s := streamInto(t, e, by, w, w.first)
	there, goOn := make(chan struct{}), make(chan struct{})
	held := &flight{id: []byte(`"held"`), lost: func() {}, cancel: func(error) { // it holds the revocation just there
		close(there)
		<-goOn
	}}
	must(t, s.conn.table.add(held))
	e.sseEntry(t).cancel(errRevoked)
	<-there
	s.post(t, x.client("").CallBody("1", "change", `{}`, ""))
	if n := s.conn.table.calls(); n != 0 {
		t.Errorf("after the revocation %d calls were taken", n)
	}
	s.conn.table.done(held)
	close(goOn)
}

// TestSSEEndAnswers: a message was refused while another answer was on its way to the client, and the server ended. It was
// accepted, but the words of the refusal never came.
func TestSSEEndAnswers(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	synctest.Test(t, func(t *testing.T) {
		w := newFirstWriter()
		w.second = make(chan struct{})
		s := streamInto(t, e, by, w, w.first)
		if got := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); got != http.StatusAccepted {
			t.Fatalf("ping: %d", got)
		}
		synctest.Wait() // its answer is being written
		if got := s.post(t, `{"jsonrpc":"2.0","id":2,"method":"ping","method":"ping"}`); got != http.StatusBadRequest {
			t.Fatalf("a broken message: %d", got)
		}
		if got := s.post(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_files","arguments":{"a":1,"a":2}}}`); got != http.StatusAccepted {
			t.Fatalf("a call with broken arguments: %d", got)
		}
		e.sseEntry(t).cancel(errDraining)
		synctest.Wait()
		close(w.second)
		<-s.ended
		if last := w.got[len(w.got)-1]; len(w.got) != 3 || !strings.Contains(last, `"id":3,`) || !strings.Contains(last, "INPUT_INVALID") {
			t.Errorf("the stream ends with %q", w.got)
		}
	})
}

// TestSSEEndRefuses: a message that wants an answer came to a stream that takes no more. It was accepted, and there was
// never an answer.
func TestSSEEndRefuses(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	w := newFirstWriter()
	s := streamInto(t, e, by, w, w.first)
	s.close()
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                                                http.StatusNotFound,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_files","arguments":{"a":1,"a":2}}}`: http.StatusNotFound,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`:                           http.StatusAccepted,
	} {
		if got := s.post(t, body); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}
