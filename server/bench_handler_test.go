package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/listen"
	"codehand/server/replaytest"
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

// BenchmarkHTTPHandler is what a call costs from the guard to the answer, without net/http and the network: token,
// session, corridor, audit, metrics. The call is that of BenchmarkHTTPRoundTrip, which says what a client notices of it.
func BenchmarkHTTPHandler(b *testing.B) {
	mode := "bypassPermissions"
	quota := map[string]string{}
	for _, q := range []string{"calls_per_minute", "burst", "requests_per_minute", "bytes_in_per_minute", "bytes_out_per_minute"} {
		quota[q] = "0"
	}
	x := serveHTTP(b, siteSetup{
		principals: []string{"bench"}, values: map[string]auth.Values{"bench": {Mode: &mode, MaxMode: &mode, Quota: quota}},
		settings: map[string]string{"sandbox.policy": "off"},
	})
	c := x.client("bench").Hello()
	started, failed := c.Call("1", "run_shell", `{"command":"true","run_in_background":true}`, "").Text()
	if failed {
		b.Fatal(started)
	}
	args := fmt.Sprintf(`{"job_id":%q`, replaytest.JobID.FindString(started))
	for said := ""; !strings.Contains(said, "no new output"); {
		if said, failed = c.Call("2", "job_output", args+`,"block":true}`, "").Text(); failed {
			b.Fatal(said)
		}
	}
	body := replaytest.CallLine("3", "job_output", args+"}", "")
	request := c.Request(b.Context(), http.MethodPost, "http://localhost/mcp", body)
	request.RequestURI, request.RemoteAddr = "/mcp", "127.0.0.1:40000"
	handler := x.server.endpoint.Load().on(listen.Listener{Unix: true}) // any Host: that of the listener does not matter here

	b.ReportAllocs()
	for b.Loop() {
		// net/http has a context that ends for each request, too.
		ctx, cancel := context.WithCancel(context.Background())
		r := request.Clone(ctx)
		r.Body = io.NopCloser(strings.NewReader(body))
		w := &memoryResponse{header: http.Header{}}
		handler.ServeHTTP(w, r)
		cancel()
		if w.status != http.StatusOK || !bytes.Contains(w.body.Bytes(), []byte("no new output")) {
			b.Fatalf("status %d: %s", w.status, w.body.Bytes())
		}
	}
}
