package endpoint

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/request"
)

// A firstWriter is a response that hands over its first event, and takes the others. The second one waits.
type firstWriter struct {
	header http.Header
	first  chan string
	second chan struct{} // closed when the second write may go on; nil: at once
	each   func(string)  // gets every event; nil: nothing does

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
	if w.each != nil {
		w.each(string(p))
	}
	return len(p), nil
}

// sseEntry is the entry of the one stream that is open.
func (x *site) sseEntry(t *testing.T) *active {
	t.Helper()
	for _, a := range x.work.list() {
		if a.kind == "sse" {
			return a
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
	x := newSite(t, setup{changes: true, call: func(context.Context, request.Request) request.Answer {
		<-release
		return request.Answer{Result: json.RawMessage(`{}`)}
	}})
	defer close(release)
	w := newFirstWriter()
	s := streamInto(t, x, w, w.first)
	there, goOn := make(chan struct{}), make(chan struct{})
	held := &jsonrpc.Flight{ID: []byte(`"held"`), Cancel: func(error) { // it holds the revocation just there
		close(there)
		<-goOn
	}}
	must(t, s.conn.Flights.Add(held))
	x.sseEntry(t).cancel(errRevoked)
	<-there
	s.post(t, callLine)
	if n := s.conn.Flights.Calls(); n != 0 {
		t.Errorf("after the revocation %d calls were taken", n)
	}
	s.conn.Flights.Done(held)
	close(goOn)
	<-s.ended
}

// TestSSEEndAnswers: a message was refused while another answer was on its way to the client, and the server ended. It was
// accepted, but the words of the refusal never came.
func TestSSEEndAnswers(t *testing.T) {
	t.Parallel()
	x := newSite(t, setup{})
	synctest.Test(t, func(t *testing.T) {
		w := newFirstWriter()
		w.second = make(chan struct{})
		s := streamInto(t, x, w, w.first)
		if got := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); got != http.StatusAccepted {
			t.Fatalf("ping: %d", got)
		}
		synctest.Wait() // its answer is being written
		if got := s.post(t, `{"jsonrpc":"2.0","id":2,"method":"ping","method":"ping"}`); got != http.StatusBadRequest {
			t.Fatalf("a broken message: %d", got)
		}
		if got := s.post(t, brokenCall); got != http.StatusAccepted {
			t.Fatalf("a call with broken arguments: %d", got)
		}
		x.sseEntry(t).cancel(errDraining)
		synctest.Wait()
		close(w.second)
		<-s.ended
		if last := w.got[len(w.got)-1]; len(w.got) != 3 || !strings.Contains(last, `"id":3,`) || !strings.Contains(last, `"isError":true`) {
			t.Errorf("the stream ends with %q", w.got)
		}
	})
}

// TestSSEEndRefuses: a message that wants an answer came to a stream that takes no more. It was accepted, and there was
// never an answer.
func TestSSEEndRefuses(t *testing.T) {
	t.Parallel()
	x := newSite(t, setup{})
	w := newFirstWriter()
	s := streamInto(t, x, w, w.first)
	s.drain()
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`: http.StatusNotFound,
		brokenCall: http.StatusNotFound,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`: http.StatusAccepted,
	} {
		if got := s.post(t, body); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}
