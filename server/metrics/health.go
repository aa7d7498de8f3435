package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"codehand/tools/results"
)

const (
	// healthAge is how long an answer of the checks is used again: a balancer with many probes must not load the Store.
	healthAge = time.Second
	// healthTime is how long a check may take before it counts as failed.
	healthTime = 500 * time.Millisecond
	// maxHealthText bounds what one check says, in characters.
	maxHealthText = 200
)

// Health answers the probes of /healthz and /readyz. It begins as starting. It is safe for concurrent use.
type Health struct {
	replica, version string

	mu    sync.Mutex // of the phase and the checks
	phase string     // starting, draining; "": work is taken
	all   []*check

	round chan struct{} // holds one token while a caller runs the checks; the others wait for its result
	found []finding
	at    time.Time // of found
}

// A check is one thing that readiness depends on.
type check struct {
	name      string
	essential bool
	run       func(context.Context) (string, error)

	// answer is where a run that took too long will put what it finds; nil: none is under way. One that hangs is not
	// joined by a second.
	answer chan finding
}

// A finding is what a check said.
type finding struct {
	check *check
	text  string
	ok    bool
}

// NewHealth is the health of a process that has not said yet that it is ready.
func NewHealth(replica, version string) *Health {
	return &Health{replica: replica, version: version, phase: "starting", round: make(chan struct{}, 1)}
}

// AddCheck adds one. Its text is shown to operators, "" as ok; with an error the server is degraded, or not ready if
// the check is essential. run is called at most once a second, by one goroutine at a time, never while the server
// starts or drains, and should return when its context ends.
func (h *Health) AddCheck(name string, essential bool, run func(context.Context) (string, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, &check{name: name, essential: essential, run: run})
}

// Ready says that the start is over.
func (h *Health) Ready() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == "starting" {
		h.phase = ""
	}
}

// Drain says that no more work is wanted, for good.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase = "draining"
}

// Draining says whether Drain was called.
func (h *Health) Draining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.phase == "draining"
}

// ServeAlive answers /healthz: the process answers, and nothing more.
func (h *Health) ServeAlive(w http.ResponseWriter, r *http.Request) {
	if !looks(w, r) {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte("ok")) // a prober that is gone needs no answer
	}
}

// A readiness is the body of /readyz.
type readiness struct {
	Ready   bool              `json:"ready"`
	Replica string            `json:"replica,omitempty"`
	Version string            `json:"version,omitempty"`
	Checks  map[string]string `json:"checks,omitempty"`
}

// ServeReady answers /readyz: 503 while the server starts or drains, or while an essential check fails; with
// `?strict=1` while any fails. Who gets full, a peer on this machine or an admin, reads what each check says, the
// others only whether.
func (h *Health) ServeReady(w http.ResponseWriter, r *http.Request, full bool) {
	if !looks(w, r) {
		return
	}
	found, phase := h.look()
	body := readiness{Ready: phase == ""}
	if full {
		body.Replica, body.Version, body.Checks = h.replica, h.version, map[string]string{}
		if phase != "" {
			body.Checks["server"] = phase
		}
	}
	strict := r.URL.Query().Get("strict") == "1"
	for _, f := range found {
		if !f.ok && (f.check.essential || strict) {
			body.Ready = false
		}
		if full {
			body.Checks[f.check.name] = f.text
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !body.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if r.Method == http.MethodHead {
		return
	}
	text, err := json.Marshal(body)
	if err == nil {
		_, _ = w.Write(append(text, '\n')) // a prober that is gone needs no answer
	}
}

// looks refuses what is neither GET nor HEAD.
func looks(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	w.WriteHeader(http.StatusMethodNotAllowed)
	return false
}

// look returns what the checks found, at most healthAge ago, or why they were not asked.
func (h *Health) look() (found []finding, phase string) {
	h.mu.Lock()
	phase, all := h.phase, h.all
	h.mu.Unlock()
	if phase != "" {
		return nil, phase // what the checks look at is not there yet, or not any more
	}
	h.round <- struct{}{} // at most healthTime
	defer func() { <-h.round }()
	if h.at.IsZero() || time.Since(h.at) >= healthAge {
		h.found = runChecks(all)
		h.at = time.Now()
	}
	return h.found, ""
}

// runChecks runs all of them at once, and waits healthTime at most. The context is none of a request's: what is found
// is for everybody.
func runChecks(all []*check) []finding {
	ctx, cancel := context.WithTimeout(context.Background(), healthTime)
	defer cancel()
	for _, c := range all {
		if c.hangs() {
			continue
		}
		answer := make(chan finding, 1)
		c.answer = answer
		go func() { answer <- c.ask(ctx) }()
	}
	found := make([]finding, len(all))
	for i, c := range all {
		select {
		case found[i] = <-c.answer:
			c.answer = nil
			continue
		case <-ctx.Done():
		}
		select { // another check used up the time, but this one has answered
		case found[i] = <-c.answer:
			c.answer = nil
		default:
			found[i] = finding{c, noAnswer, false}
		}
	}
	return found
}

// noAnswer is the text of a check that took too long.
var noAnswer = fmt.Sprintf("degraded: no answer within %v", healthTime)

// hangs says whether an earlier run is still under way. What one found that has ended since is old, and dropped.
func (c *check) hangs() bool {
	if c.answer == nil {
		return false
	}
	select {
	case <-c.answer:
		c.answer = nil
		return false
	default:
		return true
	}
}

// ask runs the check. One that panics must not take the process with it.
func (c *check) ask(ctx context.Context) (f finding) {
	f.check = c
	defer func() {
		if p := recover(); p != nil {
			f.text, f.ok = "degraded: internal error", false
		}
	}()
	text, err := c.run(ctx)
	if ctx.Err() != nil {
		return finding{c, noAnswer, false}
	}
	if err != nil {
		return finding{c, results.Line("degraded: "+err.Error(), maxHealthText), false}
	}
	if text == "" {
		text = "ok"
	}
	return finding{c, results.Line(text, maxHealthText), true}
}
