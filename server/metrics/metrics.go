package metrics

import (
	"runtime"
	"slices"
	"time"

	"codehand/server/pipeline"
	"codehand/tools/tool"
)

// Counts are the numbers of one process, for Prometheus. They are safe for concurrent use. A nil *Counts counts
// nothing.
//
// No label ever holds a principal, a session, a path, a host or free text: every value is one of a closed list, or the
// word that stands for the rest of them.
type Counts struct {
	families          []interface{ onto(*page) }
	tools             map[string]string // by name and alias: the label
	methods, versions []string          // that are labels

	operations *children[operation, *histogram]
	lives      *children[[2]string, *histogram] // of sessions: version, network transport
	calls      *children[[2]string, *counter]   // tool, outcome
	decisions  *children[[2]string, *counter]   // decision, by
	refusals   *children[string, *counter]      // code
	shown      *children[string, *counter]      // tool
	auth       *children[[2]string, *counter]   // method, outcome
	limits     *children[string, *counter]      // quota
	stores     *vector[*histogram]

	auditLines, auditErrors *counter
}

// operationSeconds are the buckets of OpenTelemetry's conventions for MCP; sessions live longer, and the Store answers
// sooner.
var (
	operationSeconds = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	sessionSeconds   = append(slices.Clone(operationSeconds), 3600, 86400)
	storeSeconds     = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2}
)

// Options are what the numbers know of their process.
type Options struct {
	Version           string      // of codehand
	Tools             []tool.Tool // whose names may be labels; any other is unknown
	Methods, Versions []string    // of MCP, that may be labels; any other method is other, any other version empty
	Gauges            Gauges
}

// New makes the numbers of a process.
func New(o Options) *Counts {
	m := &Counts{tools: toolLabels(o.Tools), methods: o.Methods, versions: o.Versions}
	m.families = append(m.families, &scrape{o.Gauges, []string{o.Version, revision(), runtime.Version()}})

	operations := m.histogram("mcp_server_operation_duration_seconds",
		"How long requests of MCP took.", operationSeconds, "mcp_method_name", "gen_ai_tool_name", "error_type",
		"mcp_protocol_version", "network_transport")
	m.operations = newChildren(func(o operation) *histogram {
		return operations.with(o.method, o.tool, o.failure, o.version, o.network)
	})
	lives := m.histogram("mcp_server_session_duration_seconds", "How long sessions lived.", sessionSeconds,
		"mcp_protocol_version", "network_transport", "error_type")
	m.lives = newChildren(func(l [2]string) *histogram { return lives.with(l[0], l[1], "") })
	m.stores = m.histogram("codehand_store_operation_duration_seconds", "How long the Store took.", storeSeconds,
		"op", "backend", "outcome")

	m.calls = m.pairs("codehand_calls_total", "Tool calls that are over, by what became of them.", "tool", "outcome")
	m.decisions = m.pairs("codehand_decisions_total", "Decisions about calls, and who made them.", "decision", "by")
	m.auth = m.pairs("codehand_auth_total", "Attempts to authenticate.", "method", "outcome")
	m.refusals = m.singles("codehand_refusals_total", "Refused tool calls, by code.", "code")
	m.limits = m.singles("codehand_limited_total", "Refusals for a quota.", "quota")
	runes := m.counter("codehand_result_runes_total", "Characters of results.", "tool", "kind")
	m.shown = newChildren(func(t string) *counter { return runes.with(t, "shown") })

	m.auditLines = m.counter("codehand_audit_lines_total",
		"Lines of the audit log that were written.").with()
	m.auditErrors = m.counter("codehand_audit_errors_total",
		"Lines of the audit log that could not be written.").with()
	return m
}

func (m *Counts) counter(name, help string, labels ...string) *vector[*counter] {
	v := &vector[*counter]{name: name, help: help, kind: counterKind, labels: labels, all: map[string]*counter{},
		born: func() *counter { return &counter{} }}
	m.families = append(m.families, v)
	return v
}

func (m *Counts) histogram(name, help string, buckets []float64, labels ...string) *vector[*histogram] {
	v := &vector[*histogram]{name: name, help: help, kind: histogramKind, labels: labels,
		all: map[string]*histogram{}, born: func() *histogram { return newHistogram(buckets) }}
	m.families = append(m.families, v)
	return v
}

func (m *Counts) pairs(name, help, first, second string) *children[[2]string, *counter] {
	v := m.counter(name, help, first, second)
	return newChildren(func(l [2]string) *counter { return v.with(l[0], l[1]) })
}

func (m *Counts) singles(name, help, label string) *children[string, *counter] {
	v := m.counter(name, help, label)
	return newChildren(func(l string) *counter { return v.with(l) })
}

// An operation is the labels of one request.
type operation struct{ method, tool, failure, version, network string }

// Request counts one MCP request: its method, tool or "", JSON-RPC error code, "tool_error" or "", protocol version and
// transport (http, sse, unix, stdio).
func (m *Counts) Request(method, tool, failure, version, transport string, took time.Duration) {
	if m == nil {
		return
	}
	o := operation{known(m.methods, method, otherLabel), "", knownFailure(failure), known(m.versions, version, ""),
		network(transport)}
	if tool != "" {
		o.tool = m.tool(tool)
	}
	m.operations.at(o).observe(took.Seconds())
}

// Call counts a finished call. One that begins, or that waits for a person, is not finished.
func (m *Counts) Call(r pipeline.Record) {
	if m == nil || r.Started || r.Code == pending {
		return
	}
	name := m.tool(r.Tool)
	m.calls.at([2]string{name, callOutcome(r)}).add(1)
	if r.Decision != "" {
		m.decisions.at([2]string{r.Decision, r.By}).add(1) // words of the pipeline
	}
	if r.Code != fine {
		m.refusals.at(r.Code).add(1) // a constant of tools/tool
	}
	m.shown.at(name).add(r.Runes)
}

// Authenticated counts an attempt: method none, token; outcome ok, or the code of the refusal.
func (m *Counts) Authenticated(method, outcome string) {
	if m != nil {
		m.auth.at([2]string{method, outcome}).add(1)
	}
}

// Limited counts a refusal for a quota.
func (m *Counts) Limited(quota string) {
	if m != nil {
		m.limits.at(quota).add(1)
	}
}

// Ended counts a session's end after it lived for d.
func (m *Counts) Ended(version, transport string, d time.Duration) {
	if m != nil {
		m.lives.at([2]string{known(m.versions, version, ""), network(transport)}).observe(d.Seconds())
	}
}

// Audited counts a line of the audit, or a failure to write one.
func (m *Counts) Audited(err error) {
	switch {
	case m == nil:
	case err != nil:
		m.auditErrors.add(1)
	default:
		m.auditLines.add(1)
	}
}
