package server

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A lateWriter is a response whose client has the answer when the handler has not gone on yet.
type lateWriter struct {
	*httptest.ResponseRecorder
	answered chan struct{} // closed when the client has it
	goOn     chan struct{} // closed when the handler may
}

func newLateWriter() *lateWriter {
	return &lateWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
}

func (w *lateWriter) FlushError() error {
	close(w.answered)
	<-w.goOn
	return nil
}

// TestAnsweredName: a client had its answer and used the name of the call again, before the handler of the first had gone
// on. The second call could not be cancelled by it, and in the modern era a call with a name by nothing else.
func TestAnsweredName(t *testing.T) {
	t.Parallel()
	const name = `,"codehand/call":"call-1"`
	x := staged(t, nil)
	c := x.client("alice").Of2026()
	c.Call("1", "watch", `{"no":1}`, "") // from now on there is an endpoint
	e := x.server.endpoint.Load()
	r := arriving(t.Context(), c, c.CallBody("1", "watch", `{"no":1}`, name))
	who, err := e.t.porter.Authenticate(r)
	must(t, err)
	w, ended := newLateWriter(), make(chan struct{})
	go func() {
		defer close(ended)
		e.post(w, r, caller{who: who, limits: e.t.porter.Limits(who), done: func() {}}, "")
	}()
	<-w.answered
	second := c.Launch(t.Context(), "1", "hold", "a", name)
	x.expect(t, x.began, "a")
	close(w.goOn)
	<-ended
	c.Cancel("1", name)
	x.expect(t, x.ended, "a cancelled")
	unanswered(t, arrived(t, second))
}

// TestAnsweredFailedInitialize: an initialize failed when its principal had one session less than the limit. Its place was
// given back after the answer, so that the next attempt could be refused for it.
func TestAnsweredFailedInitialize(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	before := e.sessions.count()
	w, ended := newLateWriter(), make(chan struct{})
	go func() {
		defer close(ended)
		e.post(w, arriving(t.Context(), x.client(""), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`), by, "")
	}()
	<-w.answered
	if got := e.sessions.count(); got != before {
		t.Errorf("after %s there are %d sessions, before there were %d", w.Body, got, before)
	}
	close(w.goOn)
	<-ended
}

// TestAnsweredCounted: who scrapes right after an answer finds the request counted.
func TestAnsweredCounted(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	e, by := x.host()
	c := x.client("").Hello()
	w, ended := newLateWriter(), make(chan struct{})
	go func() {
		defer close(ended)
		e.post(w, arriving(t.Context(), c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), by, "")
	}()
	<-w.answered
	if text := scraped(t, e.t.metrics); !strings.Contains(text, `mcp_method_name="ping"`) {
		t.Error("the ping is not counted")
	}
	close(w.goOn)
	<-ended
}
