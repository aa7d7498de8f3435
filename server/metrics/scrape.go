package metrics

import (
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"

	"codehand/tools/shell"
)

// Handler answers GET and HEAD of /metrics, in Prometheus' text. It does not authenticate: see MayScrape.
func (m *Counts) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !looks(w, r) {
			return
		}
		p := &page{}
		goOnto(p)
		processOnto(p)
		for _, f := range m.families {
			f.onto(p)
		}
		p.answer(w, r)
	})
}

// MayScrape says who may read the metrics on a main listener; a listener of their own is open to all that reach it. In
// mode none peers on this machine may, otherwise a bearer of the token of metrics.token_file, or an admin. An empty
// token permits none. The caller reads the Authorization header before the Porter, which removes it.
func MayScrape(modeNone, loopback bool, bearer, token string, admin bool) bool {
	if admin || modeNone && loopback {
		return true
	}
	// Hashes, because ConstantTimeCompare tells the length.
	a, b := sha256.Sum256([]byte(bearer)), sha256.Sum256([]byte(token))
	return token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Gauges are read at each scrape. A nil function is a gauge that is not there. The keys of the maps become labels, so
// they are constants of this program.
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

// A scrape reads the gauges for each request for the metrics. It is safe for concurrent use if they are.
type scrape struct {
	g     Gauges
	build []string // version, revision and goversion of codehand_build_info
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

func (s *scrape) onto(p *page) {
	// A series that comes only when its value is not 0 cannot be alerted on, so the usual keys are always there.
	each := func(name, help, label string, f func() map[string]int, usual ...string) {
		if f == nil {
			return
		}
		values := maps.Clone(f())
		if values == nil {
			values = map[string]int{}
		}
		for _, k := range usual {
			values[k] += 0
		}
		p.family(name, help, gaugeKind, func() {
			for _, k := range slices.Sorted(maps.Keys(values)) {
				p.sample(name, pairsOf([]string{label}, []string{k}), float64(values[k]))
			}
		})
	}
	each("codehand_sessions", "Sessions that have their handles open.", "transport", s.g.Sessions,
		"http", "sse", "stdio")
	each("codehand_streams", "Open streams.", "kind", s.g.Streams, "get", "sse", "listen")
	each("codehand_jobs", "Background commands of the sessions that have their handles open.", "state", s.g.Jobs,
		string(shell.Running), string(shell.Lost))
	if f := s.g.InFlight; f != nil {
		p.single("codehand_calls_in_flight", "Tool calls that are not answered yet.", gaugeKind, float64(f()))
	}
	if f := s.g.Waiting; f != nil {
		p.single("codehand_gate_waiting", "Tool calls that wait for others of their session.", gaugeKind, float64(f()))
	}
	backend := pairsOf([]string{"backend"}, []string{s.g.Backend})
	if f := s.g.StoreUp; f != nil {
		p.family("codehand_store_up", "1 if the Store answers.", gaugeKind, func() {
			p.sample("codehand_store_up", backend, oneIf(f()))
		})
	}
	if f := s.g.StoreBytes; f != nil {
		p.family("codehand_store_bytes", "Size of all values in the Store.", gaugeKind, func() {
			p.sample("codehand_store_bytes", backend, float64(f()))
		})
	}
	if f := s.g.SandboxLevel; f != nil {
		p.single("codehand_sandbox_level", "Level of the sandbox for commands, 0 to 3.", gaugeKind, float64(f()))
	}
	if f := s.g.Draining; f != nil {
		p.single("codehand_draining", "1 while the server ends.", gaugeKind, oneIf(f()))
	}
	p.single("codehand_replicas", "Live replicas.", gaugeKind, 1)
	if f := s.g.TokensReadable; f != nil {
		p.single("codehand_tokens_readable", "1 if the tokens in force are those of the tokens file.", gaugeKind,
			oneIf(f()))
	}
	p.family("codehand_build_info", "The program.", gaugeKind, func() {
		p.sample("codehand_build_info", pairsOf([]string{"version", "revision", "goversion"}, s.build), 1)
	})
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
