package metrics

import (
	"compress/gzip"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// parsed is a page as Prometheus reads it.
func parsed(t testing.TB, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("Prometheus does not read the page: %v\n%s", err, text)
	}
	return families
}

// TestFormat: Prometheus' own parser finds in a page what was counted, whatever is in labels and helps.
func TestFormat(t *testing.T) {
	t.Parallel()
	const hard = "a\\b\"c\nd{}=,ü"
	p := &page{}
	v := &vector[*histogram]{name: "h", help: hard, kind: histogramKind, labels: []string{"z", "a"},
		all: map[string]*histogram{}, born: func() *histogram { return newHistogram([]float64{0.5, 2}) }}
	for _, seconds := range []float64{0.1, 0.5, 0.6, 2, 3, 1000} {
		v.with(hard, "1").observe(seconds)
	}
	v.with("other", "1").observe(1)
	v.onto(p)
	p.single("unbounded", "Endless.", gaugeKind, math.Inf(1))
	p.single("below", "Endless.", gaugeKind, math.Inf(-1))
	p.single("big", "Many.", counterKind, 1<<53)
	p.family("nothing", "Without a sample.", gaugeKind, func() {})
	text := string(p.text())

	got := parsed(t, text)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"below", "big", "h", "unbounded"}) {
		t.Errorf("families %q", names)
	}
	h := got["h"]
	if h.GetHelp() != hard || h.GetType() != dto.MetricType_HISTOGRAM || len(h.GetMetric()) != 2 {
		t.Fatalf("histogram %v", h)
	}
	for _, m := range h.GetMetric() {
		labels := m.GetLabel()
		if len(labels) != 2 || labels[0].GetName() != "a" || labels[0].GetValue() != "1" || labels[1].GetName() != "z" {
			t.Fatalf("labels %v", labels)
		}
		if labels[1].GetValue() != hard {
			continue
		}
		var below []uint64
		for _, b := range m.GetHistogram().GetBucket() {
			below = append(below, b.GetCumulativeCount())
		}
		if !slices.Equal(below, []uint64{2, 4, 6}) { // a value on a bound is below it
			t.Errorf("buckets %d", below)
		}
		if sum := m.GetHistogram().GetSampleSum(); math.Abs(sum-1006.2) > 1e-9 || m.GetHistogram().GetSampleCount() != 6 {
			t.Errorf("sum %v of %d", sum, m.GetHistogram().GetSampleCount())
		}
	}
	if v := got["big"].GetMetric()[0].GetCounter().GetValue(); v != 1<<53 {
		t.Errorf("big is %v", v)
	}
	if v := got["unbounded"].GetMetric()[0].GetGauge().GetValue(); !math.IsInf(v, 1) {
		t.Errorf("unbounded is %v", v)
	}
}

// TestGoAndProcess: the names that dashboards for Go programs ask for are all there, none of them told twice, and what
// cannot be nothing is not.
func TestGoAndProcess(t *testing.T) {
	t.Parallel()
	text := scraped(t, everything(t))
	families := parsed(t, text)
	for _, n := range goNumbers {
		if strings.Count(text, "# TYPE "+n.name+" ") != 1 || families[n.name] == nil {
			t.Errorf("%s is not there once", n.name)
		}
	}
	value := func(name string) float64 {
		m := families[name].GetMetric()
		if len(m) != 1 {
			t.Errorf("%s is not there", name)
			return 0
		}
		return m[0].GetGauge().GetValue() + m[0].GetCounter().GetValue() // of which one is set
	}
	for _, name := range []string{
		"go_goroutines", "go_info", "go_threads", "go_sched_gomaxprocs_threads", "go_gc_gogc_percent",
		"go_gc_gomemlimit_bytes", "go_memstats_alloc_bytes", "go_memstats_alloc_bytes_total", "go_memstats_heap_objects",
		"go_memstats_heap_sys_bytes", "go_memstats_mallocs_total", "go_memstats_stack_inuse_bytes",
		"go_memstats_sys_bytes", "process_start_time_seconds",
	} {
		if value(name) <= 0 {
			t.Errorf("%s is %v", name, value(name))
		}
	}
	if all, part := value("go_memstats_sys_bytes"), value("go_memstats_heap_sys_bytes"); part > all {
		t.Errorf("the heap has %v of %v bytes", part, all)
	}
	if got := families["go_gc_duration_seconds"].GetMetric()[0].GetSummary().GetQuantile(); len(got) != 5 {
		t.Errorf("go_gc_duration_seconds has %d quantiles, want 5", len(got))
	}
}

func TestPacked(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.000": false, "x-gzip": false,
		"identity": false, "deflate,gzip": true, "gzip;q=x": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept-Encoding", header)
		w := httptest.NewRecorder()
		numbers("1").Handler().ServeHTTP(w, r)
		body, packed := io.Reader(w.Body), w.Header().Get("Content-Encoding") == "gzip"
		if packed != want {
			t.Errorf("Accept-Encoding %q: packed %v, want %v", header, packed, want)
		}
		if packed {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		text, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(text), "\ncodehand_replicas 1\n") {
			t.Errorf("Accept-Encoding %q: %v, %d bytes", header, err, len(text))
		}
		if kind := w.Header().Get("Content-Type"); kind != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("Content-Type %q", kind)
		}
	}
}
