package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"codehand/server/pipeline"
)

// metrics are the numbers of one process, for Prometheus. They are safe for concurrent use. A nil *metrics counts
// nothing.
type metrics struct {
	registry *prometheus.Registry
}

// gauges are asked when somebody scrapes.
type gauges struct {
	sessions, streams func() map[string]int // by transport, by kind
	jobs              func() map[string]int // by state
	inFlight, waiting func() int
	storeUp, draining func() bool
	storeBytes        func() int64
	backend           string
	sandboxLevel      func() int
}

func newMetrics(version string, g gauges) *metrics { return &metrics{registry: prometheus.NewRegistry()} }

// handler answers GET /metrics.
func (m *metrics) handler() http.Handler { return http.NotFoundHandler() }

// request counts one MCP request: its method, tool or "", JSON-RPC error code, "tool_error" or "", protocol version and
// transport (http, sse, stdio).
func (m *metrics) request(method, tool, failure, version, transport string, took time.Duration) {}

// call counts a finished call.
func (m *metrics) call(r pipeline.Record) {}

// authenticated counts an attempt: method none, token; outcome ok, or the code of the refusal.
func (m *metrics) authenticated(method, outcome string) {}

// limited counts a refusal for a quota.
func (m *metrics) limited(quota string) {}

// ended counts a session's end after it lived for d.
func (m *metrics) ended(version, transport string, d time.Duration) {}

// audited counts a line of the audit, or a failure to write one.
func (m *metrics) audited(err error) {}
