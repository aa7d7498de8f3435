package endpoint

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"codehand/server/listen"
)

// A memoryResponse is what net/http gives a handler, without the connection.
type memoryResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *memoryResponse) Header() http.Header { return m.header }

func (m *memoryResponse) WriteHeader(status int) { m.status = status }

func (m *memoryResponse) Write(p []byte) (int, error) { return m.body.Write(p) }

func (*memoryResponse) FlushError() error { return nil }

func (*memoryResponse) SetReadDeadline(time.Time) error { return nil }

func (*memoryResponse) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkHTTPHandler is what a call costs from the guard to the answer, without net/http and the network, and without the
// server, which BenchmarkServe measures. BenchmarkHTTPRoundTrip says what a client notices of both.
func BenchmarkHTTPHandler(b *testing.B) {
	x := newSite(b, setup{tireless: true})
	body := callLine
	request := posted(b.Context(), body, headerSession, x.hello(b))
	request.RemoteAddr = "127.0.0.1:40000"
	handler := x.on(listen.Listener{Unix: true}) // any Host: that of the listener does not matter here

	b.ReportAllocs()
	for b.Loop() {
		// net/http has a context that ends for each request, too.
		ctx, cancel := context.WithCancel(context.Background())
		r := request.Clone(ctx)
		r.Body = io.NopCloser(strings.NewReader(body))
		w := &memoryResponse{header: http.Header{}}
		handler.ServeHTTP(w, r)
		cancel()
		if w.status != http.StatusOK || !bytes.Contains(w.body.Bytes(), []byte(`"result"`)) {
			b.Fatalf("status %d: %s", w.status, w.body.Bytes())
		}
	}
}
