package endpoint

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What one node began, another one goes on with, so that the client sees one answer. Half an event, or half a message,
// is not gone on with.
func TestResumed(t *testing.T) {
	t.Parallel()
	const stream, plain = "text/event-stream", "application/json"
	const request = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{}}}`
	type part struct {
		kind   string // "": the node died before the header
		status int
		body   string
	}
	for name, c := range map[string]struct {
		parts  []part
		stuck  bool // the next part is not written
		status int
		kind   string
		want   string
	}{
		"nothing had left":      {[]part{{}, {plain, 200, `{"id":7}`}}, false, 200, plain, `{"id":7}`},
		"nothing, and an error": {[]part{{}, {plain, 503, `{"error":{}}`}}, false, 503, plain, `{"error":{}}`},
		"stream and stream": {[]part{{stream, 200, ": keep-alive\n\ndata: 1\n\n"}, {stream, 200, "data: 2\n\n"}}, false, 200, stream,
			": keep-alive\n\ndata: 1\n\ndata: 2\n\n"},
		"an open stream":    {[]part{{stream, 200, ""}, {stream, 200, "data: 2\n\n"}}, false, 200, stream, "data: 2\n\n"},
		"stream and answer": {[]part{{stream, 200, "data: 1\n\n"}, {plain, 200, "{\"id\":7}\n"}}, false, 200, stream, "data: 1\n\nevent: message\ndata: {\"id\":7}\n\n"},
		"stream and a refusal of HTTP": {[]part{{stream, 200, "data: 1\n\n"}, {plain, 503, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"no room"}}`}},
			false, 200, stream, "data: 1\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"no room\"}}\n\n"},
		"three nodes":      {[]part{{stream, 200, "data: 1\n\n"}, {stream, 200, ""}, {plain, 200, "{}"}}, false, 200, stream, "data: 1\n\nevent: message\ndata: {}\n\n"},
		"half an event":    {[]part{{stream, 200, "data: 1\n\ndata: "}}, true, 200, stream, "data: 1\n\ndata: "},
		"half a message":   {[]part{{plain, 200, `{"id":`}}, true, 200, plain, `{"id":`},
		"half of a second": {[]part{{stream, 200, "data: 1\n\n"}, {plain, 200, `{"id":`}}, true, 200, stream, "data: 1\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := httptest.NewRecorder()
			w := &resumed{ResponseWriter: got}
			for i, p := range c.parts {
				if i > 0 && !w.next() {
					t.Fatalf("part %d is not written", i)
				}
				if p.kind == "" {
					continue
				}
				w.Header().Set("Content-Type", p.kind)
				w.WriteHeader(p.status)
				_, _ = io.WriteString(w, p.body) // a recorder takes all
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
			}
			if !c.stuck {
				w.end([]byte(request))
			} else if w.next() {
				t.Error("another node goes on")
			}
			if got.Code != c.status || got.Header().Get("Content-Type") != c.kind {
				t.Errorf("the client got %d, %s", got.Code, got.Header().Get("Content-Type"))
			}
			if got.Body.String() != c.want {
				t.Errorf("the client got %q, want %q", got.Body, c.want)
			}
		})
	}
}
