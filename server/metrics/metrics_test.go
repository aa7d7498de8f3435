package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/pipeline"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// numbers are those of a process with these tools and plain values for every gauge.
func numbers(version string, tools ...tool.Tool) *Counts {
	return New(Options{
		Version: version, Tools: tools, Gauges: gaugesOf(),
		Methods: []string{"tools/call", "tools/list", "ping"}, Versions: []string{"2025-06-18", "2025-11-25", "2026-07-28"},
	})
}

// gaugesOf are plain values for every gauge.
func gaugesOf() Gauges {
	number := func(n int) func() int { return func() int { return n } }
	truth := func(v bool) func() bool { return func() bool { return v } }
	return Gauges{
		Sessions: func() map[string]int { return map[string]int{"http": 3, "sse": 1} },
		Streams:  func() map[string]int { return map[string]int{"get": 2, "console": 1} },
		Jobs:     func() map[string]int { return map[string]int{"running": 4} },
		InFlight: number(5), Waiting: number(6), SandboxLevel: number(2),
		StoreUp: truth(true), Draining: truth(false), TokensReadable: truth(true),
		StoreBytes: func() int64 { return 7 }, Backend: "embedded",
	}
}

// named are tools that are nothing but their names.
func named(names ...string) (tools []tool.Tool) {
	for _, n := range names {
		tools = append(tools, tool.Tool{Spec: tool.Spec{Name: n}})
	}
	return tools
}

// scraped is what a scraper reads.
func scraped(t testing.TB, m *Counts) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET /metrics: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestTable holds what is scraped against the table of names, types and labels on which dashboards and alerts
// depend.
func TestTable(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"mcp_server_operation_duration_seconds":     "HISTOGRAM error_type,gen_ai_tool_name,mcp_method_name,mcp_protocol_version,network_transport",
		"mcp_server_session_duration_seconds":       "HISTOGRAM error_type,mcp_protocol_version,network_transport",
		"codehand_calls_total":                      "COUNTER outcome,tool",
		"codehand_calls_in_flight":                  "GAUGE ",
		"codehand_gate_waiting":                     "GAUGE ",
		"codehand_sessions":                         "GAUGE transport",
		"codehand_streams":                          "GAUGE kind",
		"codehand_jobs":                             "GAUGE state",
		"codehand_decisions_total":                  "COUNTER by,decision",
		"codehand_refusals_total":                   "COUNTER code",
		"codehand_result_runes_total":               "COUNTER kind,tool",
		"codehand_auth_total":                       "COUNTER method,outcome",
		"codehand_limited_total":                    "COUNTER quota",
		"codehand_store_operation_duration_seconds": "HISTOGRAM backend,op,outcome",
		"codehand_store_up":                         "GAUGE backend",
		"codehand_store_bytes":                      "GAUGE backend",
		"codehand_audit_lines_total":                "COUNTER ",
		"codehand_audit_errors_total":               "COUNTER ",
		"codehand_sandbox_level":                    "GAUGE ",
		"codehand_draining":                         "GAUGE ",
		"codehand_replicas":                         "GAUGE ",
		"codehand_tokens_readable":                  "GAUGE ",
		"codehand_build_info":                       "GAUGE goversion,revision,version",
	}
	got := table(t, everything(t))
	for name := range got {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			delete(got, name)
		}
	}
	if !maps.Equal(got, want) {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if got[name] != want[name] {
				t.Errorf("%s: got %q, want %q", name, got[name], want[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if _, ok := got[name]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
	}
	text := scraped(t, everything(t))
	always := []string{"go_goroutines "}
	if runtime.GOOS == "linux" {
		always = append(always, "process_resident_memory_bytes ")
	}
	for _, series := range append(always,
		`mcp_server_operation_duration_seconds_bucket{error_type="",gen_ai_tool_name="read_file",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",network_transport="tcp",le="300"} 1`,
		`mcp_server_session_duration_seconds_bucket{error_type="",mcp_protocol_version="2025-11-25",network_transport="tcp",le="86400"} 1`,
		`codehand_sessions{transport="http"} 3`, `codehand_sessions{transport="stdio"} 0`,
		`codehand_streams{kind="get"} 2`, `codehand_streams{kind="listen"} 0`, `codehand_streams{kind="console"} 1`,
		`codehand_jobs{state="running"} 4`, `codehand_jobs{state="lost"} 0`,
		"codehand_calls_in_flight 5", "codehand_gate_waiting 6", "codehand_sandbox_level 2", "codehand_draining 0", "codehand_replicas 1",
		`codehand_store_up{backend="embedded"} 1`, `codehand_store_bytes{backend="embedded"} 7`,
		`codehand_build_info{goversion="`+runtime.Version()+`"`, `version="1.2.3"} 1`,
		`codehand_result_runes_total{kind="shown",tool="read_file"} 12`,
	) {
		if !strings.Contains(text, series) {
			t.Errorf("nothing scraped begins with %s", series)
		}
	}
}

// everything is metrics in which everything was counted once.
func everything(t *testing.T) *Counts {
	t.Helper()
	m := numbers("1.2.3", named("read_file")...)
	m.Request("tools/call", "read_file", "", "2025-11-25", "http", time.Millisecond)
	m.Call(pipeline.Record{Tool: "read_file", Code: "ok", Decision: "allow", By: "mode", Runes: 12})
	m.Call(pipeline.Record{Tool: "read_file", Code: "FILE_NOT_FOUND", Verdict: "allow"})
	m.Authenticated("none", "ok")
	m.Limited("calls_per_minute")
	m.Ended("2025-11-25", "http", time.Hour)
	m.Audited(nil)
	m.Audited(errors.New("disk full"))
	s := m.Measure(state.NewMemory(state.MemoryOptions{}), "embedded")
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// table is the type and the labels of each family.
func table(t *testing.T, m *Counts) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, f := range parsed(t, scraped(t, m)) {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[f.GetName()] = f.GetType().String() + " " + strings.Join(labels, ",")
	}
	return got
}

// A client chooses the method, the tool and the version, and none of its words may become a label: series are never
// freed, and a label is public.
func TestLabelsAreClosed(t *testing.T) {
	t.Parallel()
	read := tool.Tool{Spec: tool.Spec{Name: "read_file", Aliases: []string{"Read"}}}
	for _, c := range []struct {
		method, tool, failure, version, transport string
		want                                      operation
	}{
		{"tools/call", "read_file", "", "2025-11-25", "http", operation{"tools/call", "read_file", "", "2025-11-25", "tcp"}},
		{"tools/call", "Read", "tool_error", "2026-07-28", "sse", operation{"tools/call", "read_file", "tool_error", "2026-07-28", "tcp"}},
		{"tools/call", "/etc/secret", "-32602", "2025-11-25", "unix", operation{"tools/call", "unknown", "-32602", "2025-11-25", "unix"}},
		{"tools/list", "", "", "2025-11-25", "stdio", operation{"tools/list", "", "", "2025-11-25", "pipe"}},
		{"secret/method", "", "-32601", "secret version", "http", operation{"other", "", "-32601", "", "tcp"}},
		{"ping", "", "secret words", "", "http", operation{"ping", "", "other", "", "tcp"}},
		{"ping", "", "-1", "", "http", operation{"ping", "", "other", "", "tcp"}},
		{"ping", "", "32700", "", "http", operation{"ping", "", "other", "", "tcp"}},
	} {
		m := numbers("1", read)
		m.Request(c.method, c.tool, c.failure, c.version, c.transport, time.Second)
		if got := slices.Collect(maps.Keys(*m.operations.all.Load())); len(got) != 1 || got[0] != c.want {
			t.Errorf("%q %q %q %q %q: got %+v, want %+v", c.method, c.tool, c.failure, c.version, c.transport, got, c.want)
		}
	}

	m := numbers("1", read)
	m.Call(pipeline.Record{
		Key: session.Key{Principal: "planted", Session: "planted"}, Client: "planted", ClientVersion: "planted", Tool: "planted", Via: "planted",
		Rule: "planted", Origin: "planted", Mode: "planted", Verdict: "allow", Code: "ok", Kept: "planted", Call: "planted", Ref: "planted",
		From: pipeline.From{Auth: "planted", IP: "planted", Trace: "planted"}, Files: []tool.FileChange{{Path: "planted"}},
	})
	m.Request("planted", "planted", "planted", "planted", "planted", time.Second)
	m.Ended("planted", "planted", time.Second)
	if text := scraped(t, m); strings.Contains(text, "planted") {
		t.Errorf("what a call said is scraped:\n%s", text)
	}
}

func TestToolsAreBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range maxToolLabels + 50 {
		names = append(names, fmt.Sprintf("tool_%03d", i))
	}
	m := numbers("1", named(names...)...)
	for _, n := range append(names, "no_such_tool") {
		m.Call(pipeline.Record{Tool: n, Code: "ok"})
	}
	labels := map[string]bool{}
	for k := range *m.calls.all.Load() {
		labels[k[0]] = true
	}
	if len(labels) != maxToolLabels+2 || !labels["tool_199"] || labels["tool_200"] || !labels["other"] || !labels["unknown"] {
		t.Errorf("%d labels for %d tools, tool_199 %v, tool_200 %v, other %v, unknown %v; want 200, other and unknown",
			len(labels), len(names), labels["tool_199"], labels["tool_200"], labels["other"], labels["unknown"])
	}
	if want := fmt.Sprintf(`codehand_calls_total{outcome="ok",tool="other"} %d`, 50); !strings.Contains(scraped(t, m), want) {
		t.Errorf("want %s", want)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		record  pipeline.Record
		outcome string // "": it is not counted
	}{
		{"well", pipeline.Record{Code: "ok"}, "ok"},
		{"the client left after the end", pipeline.Record{Code: "ok", Cancelled: true}, "ok"},
		{"a tool's own refusal", pipeline.Record{Code: "FILE_NOT_FOUND"}, "tool_error"},
		{"denied by a rule", pipeline.Record{Code: "PERMISSION_DENIED"}, "denied"},
		{"nobody to ask", pipeline.Record{Code: "ASK_UNAVAILABLE"}, "denied"},
		{"no scope", pipeline.Record{Code: "SCOPE_MISSING"}, "denied"},
		{"over the rate", pipeline.Record{Code: "RATE_LIMITED"}, "limited"},
		{"the Store is down", pipeline.Record{Code: "STATE_UNAVAILABLE"}, "unavailable"},
		{"no audit, no call", pipeline.Record{Code: "AUDIT_UNAVAILABLE"}, "unavailable"},
		{"cancelled", pipeline.Record{Code: "CANCELLED", Cancelled: true}, "cancelled"},
		{"cancelled with another word", pipeline.Record{Code: "COMMAND_FAILED", Cancelled: true}, "cancelled"},
		{"bad input", pipeline.Record{Code: "INPUT_INVALID"}, "tool_error"},
		{"begins", pipeline.Record{Started: true}, ""},
		{"waits for a person", pipeline.Record{Code: "PENDING"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := numbers("1", named("x")...)
			c.record.Tool, c.record.Decision, c.record.By = "x", "ask.allow", "user"
			m.Call(c.record)
			m.Call(pipeline.Record{Tool: "x", Code: "ok"}) // came not so far as to a decision
			want := map[string]int{`codehand_calls_total{outcome="ok",tool="x"}`: 1}
			if c.outcome != "" {
				want[`codehand_calls_total{outcome="`+c.outcome+`",tool="x"}`]++
				want[`codehand_decisions_total{by="user",decision="ask.allow"}`]++
			}
			if c.outcome != "" && c.outcome != "ok" {
				want[`codehand_refusals_total{code="`+c.record.Code+`"}`]++
			}
			got := map[string]int{}
			for line := range strings.Lines(scraped(t, m)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				for _, family := range []string{"codehand_calls_total", "codehand_decisions_total", "codehand_refusals_total"} {
					if n, err := strconv.Atoi(value); err == nil && strings.HasPrefix(name, family) {
						got[name] = n
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestNil(t *testing.T) {
	t.Parallel()
	var m *Counts
	m.Request("ping", "", "", "", "http", 0)
	m.Call(pipeline.Record{})
	m.Authenticated("none", "ok")
	m.Limited("streams")
	m.Ended("", "http", 0)
	m.Audited(nil)
	s := state.NewMemory(state.MemoryOptions{})
	t.Cleanup(func() { _ = s.Close() })
	if m.Measure(s, "memory") != s {
		t.Error("a Store that nobody measures is wrapped")
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("GET /metrics: %d, want 404", w.Code)
	}
}

func TestAtTheSameTime(t *testing.T) {
	t.Parallel()
	m := numbers("1", named("a", "b")...)
	const goroutines, times = 8, 100
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for j := range times {
				m.Call(pipeline.Record{Tool: string(rune('a' + (i+j)%2)), Code: "ok", Decision: "allow", By: "mode", Runes: 1})
				m.Request("tools/call", "a", fmt.Sprint(-32000-j), "", "http", 0)
			}
			if text := scraped(t, m); !strings.Contains(text, "codehand_calls_total") {
				t.Error("nothing is scraped")
			}
		})
	}
	wg.Wait()
	text := scraped(t, m)
	for _, name := range []string{"a", "b"} {
		if want := fmt.Sprintf(`codehand_calls_total{outcome="ok",tool=%q} %d`, name, goroutines*times/2); !strings.Contains(text, want) {
			t.Errorf("want %s in\n%s", want, text)
		}
	}
}

func TestMethod(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	New(Options{Version: "1"}).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /metrics: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestMayScrape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		modeNone, loopback bool
		bearer, token      string
		admin, want        bool
	}{
		{name: "nobody"},
		{name: "this machine, mode none", modeNone: true, loopback: true, want: true},
		{name: "another machine, mode none", modeNone: true},
		{name: "this machine, mode token", loopback: true},
		{name: "no token set, none shown", loopback: true, bearer: "", token: ""},
		{name: "no token set, one shown", bearer: "x"},
		{name: "the token", bearer: "scrape-me", token: "scrape-me", want: true},
		{name: "another token", bearer: "scrape-you", token: "scrape-me"},
		{name: "a beginning of the token", bearer: "scrape", token: "scrape-me"},
		{name: "no token shown", token: "scrape-me"},
		{name: "an admin", admin: true, want: true},
	} {
		if got := MayScrape(c.modeNone, c.loopback, c.bearer, c.token, c.admin); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// failing is a Store of which every operation fails.
type failing struct{ state.Store }

func (failing) Get(context.Context, string) ([]byte, uint64, error) {
	return nil, 0, errors.New("down")
}

func TestMeasuredStore(t *testing.T) {
	t.Parallel()
	m := New(Options{Version: "1"})
	inner := state.NewMemory(state.MemoryOptions{})
	s := m.Measure(inner, "memory")
	t.Cleanup(func() { _ = s.Close() })
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const key = "sess.p.s.cell.x"
	check(s.Set(ctx, key, []byte("1")))
	value, rev, err := s.Get(ctx, key)
	check(err)
	if string(value) != "1" {
		t.Fatalf("got %q", value)
	}
	for _, want := range []bool{true, false} { // the second comes too late
		if ok, err := s.Swap(ctx, key, []byte("2"), rev); err != nil || ok != want {
			t.Fatalf("Swap: %v %v, want %v", ok, err, want)
		}
	}
	keys, err := s.Keys(ctx, "sess.p.s")
	check(err)
	if !slices.Equal(keys, []string{key}) {
		t.Errorf("keys: %q", keys)
	}
	check(s.Append(ctx, "job.p.s", []byte("x")))
	if values, _, err := s.Tail(ctx, "job.p.s", 0, 10); err != nil || len(values) != 1 {
		t.Errorf("Tail: %q %v", values, err)
	}
	check(s.Delete(ctx, key))
	check(s.Ping(ctx))
	if _, _, err := m.Measure(failing{inner}, "memory").Get(ctx, key); err == nil {
		t.Error("an error is lost")
	}
	text := scraped(t, m)
	for _, series := range []string{
		`outcome="ok"} 1` + "\x00set", `outcome="ok"} 1` + "\x00get", `outcome="error"} 1` + "\x00get", `outcome="ok"} 1` + "\x00swap",
		`outcome="lost"} 1` + "\x00swap", `outcome="ok"} 1` + "\x00keys", `outcome="ok"} 1` + "\x00append", `outcome="ok"} 1` + "\x00tail",
		`outcome="ok"} 1` + "\x00delete", `outcome="ok"} 1` + "\x00ping",
	} {
		outcome, op, _ := strings.Cut(series, "\x00")
		if want := fmt.Sprintf(`codehand_store_operation_duration_seconds_count{backend="memory",op=%q,%s`, op, outcome); !strings.Contains(text, want) {
			t.Errorf("want %s", want)
		}
	}
}

// TestAlerts: an alert on a metric or a label that does not exist never fires, without any sign.
func TestAlerts(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../packaging/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := table(t, everything(t))
	var alerts, exprs int
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ": ")
		switch {
		case ok && key == "alert":
			alerts++
			if exprs++; exprs != alerts {
				t.Errorf("%s stands after an alert without expr", value)
			}
			exprs--
		case ok && key == "expr":
			exprs++
			metrics := alertMetric.FindAllStringSubmatch(value, -1)
			if len(metrics) == 0 {
				t.Errorf("no metric in %s", value)
			}
			for _, match := range metrics {
				name := match[1]
				if base, cut := strings.CutSuffix(name, "_bucket"); cut && strings.HasPrefix(known[base], "HISTOGRAM ") {
					name = base
				}
				kindOf, labels, exists := strings.Cut(known[name], " ")
				if !exists {
					t.Errorf("there is no metric %s (%s)", name, value)
				}
				if rate := strings.Contains(value, "rate("+match[0]) || strings.Contains(value, "increase("+match[0]); rate == (kindOf == "GAUGE") {
					t.Errorf("%s is a %s: %s", name, kindOf, value)
				}
				for _, l := range alertLabel.FindAllStringSubmatch(match[2], -1) {
					if !slices.Contains(strings.Split(labels, ","), l[1]) {
						t.Errorf("%s has no label %s, only %s", name, l[1], labels)
					}
				}
			}
		}
	}
	if alerts != 7 || exprs != alerts {
		t.Errorf("%d alerts with %d expressions; want 7", alerts, exprs)
	}
}

var (
	alertMetric = regexp.MustCompile(`\b((?:codehand|mcp_server)_[a-z_]+)(\{[^}]*\})?`)
	alertLabel  = regexp.MustCompile(`([a-z_]+)\s*(?:=~?|!=|!~)\s*"`)
)

// BenchmarkMetrics is what one tool call pays.
func BenchmarkMetrics(b *testing.B) {
	m := numbers("1", named("read_file", "edit_file")...)
	b.ReportAllocs()
	for b.Loop() {
		m.Call(pipeline.Record{Tool: "read_file", Code: "ok", Decision: "allow", By: "mode", Runes: 100})
		m.Request("tools/call", "read_file", "", "2025-11-25", "http", time.Millisecond)
		m.Authenticated("token", "ok")
		m.Audited(nil)
	}
}
