package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"codehand/tools/shell"
)

// Handler answers GET and HEAD of /metrics, in Prometheus' text. It asks nobody who they are: see MayScrape.
func (m *Counts) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	inner := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !looks(w, r) {
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// MayScrape says who may read the metrics on a main listener; on one of their own, whoever reaches it may. In mode none
// that is a peer on this machine, otherwise who shows the token of metrics.token_file, or an admin. An empty token
// opens to nobody. The caller looks at the Authorization header before the Porter, which removes it.
func MayScrape(modeNone, loopback bool, bearer, token string, admin bool) bool {
	if admin || modeNone && loopback {
		return true
	}
	// Hashes, because ConstantTimeCompare tells the length.
	a, b := sha256.Sum256([]byte(bearer)), sha256.Sum256([]byte(token))
	return token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Gauges are asked when somebody scrapes. A nil function is a gauge that is not there. The keys of the maps become
// labels, so they are constants of this program.
type Gauges struct {
	Sessions, Streams func() map[string]int // by transport, by kind
	Jobs              func() map[string]int // by state
	InFlight, Waiting func() int
	StoreUp, Draining func() bool
	StoreBytes        func() int64
	Backend           string
	SandboxLevel      func() int
	TokensReadable    func() bool // the tokens in force are those of the file
}

// A scrape asks the gauges, each time that somebody reads the metrics. It is safe for concurrent use if they are.
type scrape struct {
	g      Gauges
	labels []string // of codehand_build_info

	sessions, streams, jobs, inFlight, waiting, storeUp, storeBytes *prometheus.Desc
	sandbox, draining, replicas, tokens, build                      *prometheus.Desc
}

func newScrape(version string, g Gauges) *scrape {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("codehand_"+name, help, labels, nil)
	}
	return &scrape{
		g: g, labels: []string{version, revision(), runtime.Version()},
		sessions:   desc("sessions", "Sessions that have their handles open.", "transport"),
		streams:    desc("streams", "Open streams.", "kind"),
		jobs:       desc("jobs", "Background commands of the sessions that have their handles open.", "state"),
		inFlight:   desc("calls_in_flight", "Tool calls that are not answered yet."),
		waiting:    desc("gate_waiting", "Tool calls that wait for others of their session."),
		storeUp:    desc("store_up", "1 if the Store answers.", "backend"),
		storeBytes: desc("store_bytes", "Size of all values in the Store.", "backend"),
		sandbox:    desc("sandbox_level", "Level of the sandbox for commands, 0 to 3."),
		draining:   desc("draining", "1 while the server ends."),
		replicas:   desc("replicas", "Live replicas."),
		tokens:     desc("tokens_readable", "1 if the tokens in force are those of the tokens file."),
		build:      desc("build_info", "The program.", "version", "revision", "goversion"),
	}
}

// revision is the commit that the program was built from; "" if the build does not say.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// Describe implements prometheus.Collector.
func (s *scrape) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.sessions, s.streams, s.jobs, s.inFlight, s.waiting, s.storeUp, s.storeBytes, s.sandbox, s.draining,
		s.replicas, s.tokens, s.build,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *scrape) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	// A series that comes only when its value is not 0 cannot be alerted on, so the usual keys are always there.
	each := func(d *prometheus.Desc, f func() map[string]int, usual ...string) {
		if f == nil {
			return
		}
		values := f()
		for _, k := range usual {
			send(d, float64(values[k]), k)
		}
		for k, v := range values {
			if !slices.Contains(usual, k) {
				send(d, float64(v), k)
			}
		}
	}
	number := func(d *prometheus.Desc, f func() int) {
		if f != nil {
			send(d, float64(f()))
		}
	}
	truth := func(d *prometheus.Desc, f func() bool, labels ...string) {
		if f == nil {
			return
		}
		v := 0.0
		if f() {
			v = 1
		}
		send(d, v, labels...)
	}
	each(s.sessions, s.g.Sessions, "http", "sse", "stdio")
	each(s.streams, s.g.Streams, "get", "sse", "listen")
	each(s.jobs, s.g.Jobs, string(shell.Running), string(shell.Lost))
	number(s.inFlight, s.g.InFlight)
	number(s.waiting, s.g.Waiting)
	truth(s.storeUp, s.g.StoreUp, s.g.Backend)
	if s.g.StoreBytes != nil {
		send(s.storeBytes, float64(s.g.StoreBytes()), s.g.Backend)
	}
	number(s.sandbox, s.g.SandboxLevel)
	truth(s.draining, s.g.Draining)
	send(s.replicas, 1)
	truth(s.tokens, s.g.TokensReadable)
	send(s.build, 1, s.labels...)
}
