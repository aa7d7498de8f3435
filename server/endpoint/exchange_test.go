package endpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/request"
)

// TestDeleteBeatsRequest: a request that had found its session before it was deleted, and had not yet begun, does not
// begin.
func TestDeleteBeatsRequest(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	x := newSite(t, setup{changes: true, call: func(context.Context, request.Request) request.Answer {
		runs.Add(1)
		return request.Answer{Result: json.RawMessage(`{}`)}
	}})
	id := x.hello(t)
	scope, err := x.sessions.acquire(t.Context(), x.by.who, id)
	must(t, err)
	defer x.sessions.release(scope)
	at, err := x.o.Tenants.Of(x.by.who)
	must(t, err)
	end, ended := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, pathMCP, nil), httptest.NewRecorder()
	end.Header.Set(headerSession, id)
	if x.delete(ended, end, x.by); ended.Code != http.StatusOK {
		t.Fatalf("DELETE: %d", ended.Code)
	}
	env, _ := jsonrpc.Scan([]byte(callLine))
	w := httptest.NewRecorder()
	late := &exchange{
		e: x.Endpoint, w: w, r: posted(t.Context(), callLine), c: x.by, env: env, body: []byte(callLine), tenant: at, scope: scope,
	}
	late.request()
	if w.Code != http.StatusNotFound || runs.Load() != 0 {
		t.Errorf("it got %d %s, and the tool ran %d times", w.Code, w.Body, runs.Load())
	}
}

// TestSilentCall: the answer to a call that is silent for long becomes a stream with comments, in both eras, so that no
// proxy believes the connection dead. A client that accepts no stream gets none.
func TestSilentCall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, accept string
		modern       bool
	}{
		{name: "legacy", accept: "application/json, text/event-stream"},
		{name: "modern", accept: "application/json, text/event-stream", modern: true},
		{name: "legacy without streams", accept: "application/json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began, release := make(chan struct{}), make(chan struct{})
			x := newSite(t, setup{changes: true, call: func(context.Context, request.Request) request.Answer {
				close(began)
				<-release
				return request.Answer{Result: json.RawMessage(`{"said":"done"}`)}
			}})
			x.keepAlive = time.Millisecond
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.listen(t)+pathMCP, strings.NewReader(callLine))
			must(t, err)
			q.Header.Set("Content-Type", "application/json")
			q.Header.Set("Accept", test.accept)
			if test.modern {
				q.Header.Set(headerVersion, jsonrpc.FirstModern)
			} else {
				q.Header.Set(headerSession, x.hello(t))
			}
			stream := strings.Contains(test.accept, "event-stream")
			type reply struct {
				r   *http.Response
				err error
			}
			replies := make(chan reply, 1)
			go func() {
				r, err := http.DefaultClient.Do(q)
				replies <- reply{r, err}
			}()
			<-began
			if !stream {
				close(release)
			}
			got := <-replies
			must(t, got.err)
			defer got.r.Body.Close()
			kind, in := got.r.Header.Get("Content-Type"), bufio.NewReader(got.r.Body)
			if stream != (kind == "text/event-stream") {
				t.Fatalf("the answer is %s", kind)
			}
			for range 3 {
				if !stream {
					break
				}
				line, err := in.ReadString('\n')
				must(t, err)
				blank, err := in.ReadString('\n')
				must(t, err)
				if line != ": keep-alive\n" || blank != "\n" {
					t.Errorf("on the silent stream: %q %q", line, blank)
				}
			}
			if stream {
				close(release)
			}
			rest, err := io.ReadAll(in)
			if err != nil || strings.Count(string(rest), `"said":"done"`) != 1 {
				t.Errorf("at the end: %q, %v", rest, err)
			}
		})
	}
}

// TestStreamHearsAll: what is told after a client has seen that its stream is open comes on it. It was lost, if it came before
// the stream was entered among those that hear.
func TestStreamHearsAll(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	ctx, leave := context.WithCancel(t.Context())
	x := newSite(t, setup{follow: func(p request.Peer) {
		if w.Flushed {
			t.Error("the stream was open before it was entered")
		}
		must(t, p.Notify("notifications/tools/list_changed", nil))
		leave()
	}})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, pathMCP, nil)
	r.Header.Set(headerSession, x.hello(t))
	x.get(w, r, x.by)
	if got := w.Body.String(); strings.Count(got, "tools/list_changed") != 1 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("the stream: %v %q", w.Header(), got)
	}
}

// TestLeftUntold: a call that looks right after its client has left sees that at once. It did not, and an edit counted
// as delivered: the client sent it again, and it was made twice.
func TestLeftUntold(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	var before, after bool
	x := newSite(t, setup{changes: true, call: func(_ context.Context, r request.Request) request.Answer {
		before = request.Left(r.Peer)
		leave()
		after = request.Left(r.Peer)
		return request.Answer{Result: json.RawMessage(`{}`)}
	}})
	x.post(httptest.NewRecorder(), posted(ctx, callLine, headerSession, x.hello(t)), x.by, "")
	if before || !after {
		t.Errorf("a client that is there has left: %v; one that left: %v", before, after)
	}
}

// deadWriter is a response to a client that cannot be written to.
type deadWriter struct{ http.ResponseWriter }

func (deadWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestLeftAtWrite: a call sees at once that a note could not be written, even before the handlers of that failure have
// run.
func TestLeftAtWrite(t *testing.T) {
	t.Parallel()
	var sent error
	var left bool
	x := newSite(t, setup{changes: true, call: func(_ context.Context, r request.Request) request.Answer {
		sent = r.Peer.Notify("notifications/message", nil)
		left = request.Left(r.Peer)
		return request.Answer{Result: json.RawMessage(`{}`)}
	}})
	id := x.hello(t)
	x.post(deadWriter{httptest.NewRecorder()}, posted(t.Context(), callLine, headerSession, id), x.by, "")
	if sent == nil {
		t.Error("a note was written to a broken connection")
	}
	if !left {
		t.Error("the call believes that its client is there")
	}

	var out *jsonrpc.LineWriter
	told := false
	dead := deadWriter{httptest.NewRecorder()}
	out = jsonrpc.NewLineWriter(&sseWriter{w: dead, control: http.NewResponseController(dead), limits: x.by.limits, lost: func() {
		select {
		case <-out.Failed:
			t.Error("the calls of a stream are told after all others")
		default:
			told = true
		}
	}}, jsonrpc.ProgressPatience)
	if err := out.WriteLine([]byte("{}\n"), 0, nil); err == nil || !told {
		t.Errorf("a broken stream: %v, its calls were told: %v", err, told)
	}
}
