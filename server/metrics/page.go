package metrics

import (
	"bytes"
	"compress/gzip"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// This file is what this program needs of Prometheus' text format 0.0.4. client_golang knows the other formats, too,
// and so brings protobuf: 2.2 MB of the binary and 1 ms of every start, also of stdio, which has no metrics.
// TestFormat reads the page with Prometheus' own parser.

// kinds of families, in the words of the format.
const (
	counterKind   = "counter"
	gaugeKind     = "gauge"
	histogramKind = "histogram"
	summaryKind   = "summary"
)

// A page is what one scrape answers: families, which are sorted by name at the end. It is for one goroutine.
type page struct {
	families []block
	lines    []byte // of the family that is being written
}

type block struct {
	name string
	text []byte
}

// family adds what samples writes, under its help and kind. A family without a sample is left out.
func (p *page) family(name, help, kind string, samples func()) {
	p.lines = nil
	samples()
	if len(p.lines) == 0 {
		return
	}
	head := "# HELP " + name + " " + helpEscapes.Replace(help) + "\n# TYPE " + name + " " + kind + "\n"
	p.families = append(p.families, block{name, append([]byte(head), p.lines...)})
}

// single adds a family with one sample that has no labels.
func (p *page) single(name, help, kind string, value float64) {
	p.family(name, help, kind, func() { p.sample(name, "", value) })
}

// sample adds a line; labels are those of pairsOf.
func (p *page) sample(name, labels string, value float64) {
	p.lines = append(p.lines, name...)
	if labels != "" {
		p.lines = append(append(append(p.lines, '{'), labels...), '}')
	}
	p.lines = append(append(append(p.lines, ' '), number(value)...), '\n')
}

// text is the whole page.
func (p *page) text() []byte {
	slices.SortFunc(p.families, func(a, b block) int { return strings.Compare(a.name, b.name) })
	var all bytes.Buffer
	for _, f := range p.families {
		all.Write(f.text)
	}
	return all.Bytes()
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// pairsOf writes labels as name="value", sorted by name.
func pairsOf(names, values []string) string {
	pairs := make([]string, len(names))
	for i, n := range names {
		pairs[i] = n + `="` + labelEscapes.Replace(values[i]) + `"`
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// A series is one set of labels of a family.
type series interface {
	samples(p *page, name, labels string)
}

// A vector is a family whose series are counted here. It is safe for concurrent use. Its series stay for ever, so the
// values of its labels come from closed lists.
type vector[S series] struct {
	name, help, kind string
	labels           []string
	born             func() S

	mu  sync.Mutex
	all map[string]S // by pairsOf its labels
}

// with is the series with these values, in the order of the labels' names.
func (v *vector[S]) with(values ...string) S {
	pairs := pairsOf(v.labels, values)
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.all[pairs]
	if !ok {
		s = v.born()
		v.all[pairs] = s
	}
	return s
}

func (v *vector[S]) onto(p *page) {
	v.mu.Lock()
	defer v.mu.Unlock()
	pairs := make([]string, 0, len(v.all))
	for labels := range v.all {
		pairs = append(pairs, labels)
	}
	slices.Sort(pairs)
	p.family(v.name, v.help, v.kind, func() {
		for _, labels := range pairs {
			v.all[labels].samples(p, v.name, labels)
		}
	})
}

// A counter only grows. It is safe for concurrent use.
type counter struct{ n atomic.Uint64 }

func (c *counter) add(n int) {
	if n > 0 {
		c.n.Add(uint64(n))
	}
}

func (c *counter) samples(p *page, name, labels string) { p.sample(name, labels, float64(c.n.Load())) }

// A histogram counts seconds in buckets. It is safe for concurrent use; a scrape in the middle of an observation may
// have it in the buckets and not in the sum.
type histogram struct {
	bounds []float64       // ascending; the last bucket, without a bound, is not among them
	counts []atomic.Uint64 // one more than bounds
	sum    atomic.Uint64   // bits of a float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
}

func (h *histogram) observe(seconds float64) {
	i, _ := slices.BinarySearch(h.bounds, seconds) // a value on a bound is in its bucket
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+seconds)) {
			return
		}
	}
}

func (h *histogram) samples(p *page, name, labels string) {
	le := `le="`
	if labels != "" {
		le = labels + `,le="`
	}
	var total uint64
	for i := range h.counts {
		total += h.counts[i].Load()
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		p.sample(name+"_bucket", le+number(bound)+`"`, float64(total))
	}
	p.sample(name+"_sum", labels, math.Float64frombits(h.sum.Load()))
	p.sample(name+"_count", labels, float64(total))
}

// answer writes the page, packed if the scraper takes that.
func (p *page) answer(w http.ResponseWriter, r *http.Request) {
	text := p.text()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Add("Vary", "Accept-Encoding")
	if takesGzip(r.Header.Get("Accept-Encoding")) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(text) // into memory
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		text = packed.Bytes()
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // a scraper that went away
}

// takesGzip reads an Accept-Encoding header.
func takesGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		coding, parameters, _ := strings.Cut(strings.TrimSpace(one), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, weighed := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !weighed || err == nil && weight > 0
	}
	return false
}
