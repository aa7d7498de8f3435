package pipeline

import (
	"crypto/rand"
	"sync"
	"time"

	"codehand/tools/results"
	"codehand/tools/session"
)

// A Visit is one call's way through the pipeline. Its calls do not overlap; Leave may come at any time.
type Visit struct {
	pipe    *Pipeline
	state   *session.State
	id      string
	arrived time.Time

	shelf    *results.Shelf // for what the call shows; nil: the session keeps no results
	answered func()         // ends the turn of the calls that arrived with it

	mu      sync.Mutex
	ticket  *ticket  // at the session's gate; nil: given up, a new one is taken at the gate
	atGate  bool     // too late to step aside
	running bool     // Call has not returned: it leaves by itself
	left    bool     // Leave was called
	ids     []string // of the call and those that it made, in Pipeline.calls

	commanded bool // by Call alone
}

// Commanded says whether the Call that has returned, or one from within it, ran a command that was not proved to change
// nothing.
func (v *Visit) Commanded() bool { return v.commanded }

// Arrive takes a ticket at the session's gate. Call it in the order in which calls came in. The State may be changed
// until Visit.Call; its Key may not.
func (p *Pipeline) Arrive(s *session.State) *Visit {
	v := p.visit(s)
	v.answers(v.id)
	if s.Results != nil {
		v.shelf, v.answered = s.Results.Arrive()
		if s.Shared {
			v.answered() // the next call may belong to another conversation
		}
	}
	return v
}

// visit takes a ticket for a call that is counted with what the session shows already.
func (p *Pipeline) visit(s *session.State) *Visit {
	v := &Visit{pipe: p, state: s, id: randomText(16), arrived: time.Now(), shelf: s.Results, answered: func() {}}
	v.ticket = p.gates.take(v.gate(), p.readers(), v.arrived)
	return v
}

// gate names the gate of the session. The calls of a session that several conversations share have one each: what they
// may not do at once, the locks on files keep apart.
func (v *Visit) gate() gateKey {
	key := gateKey{session: v.state.Key}
	if v.state.Shared {
		key.call = v.id
	}
	return key
}

// Leave gives the ticket up. The transport defers it, so that a request that mcp-go answers by itself does not hold up
// the queue. It does nothing the second time, and nothing while Call runs: a call that is still at work keeps its
// place until it is done.
func (v *Visit) Leave() {
	v.answered()
	v.mu.Lock()
	busy := v.running
	v.left = true
	v.mu.Unlock()
	if !busy {
		v.leave()
		v.forget()
	}
}

// answers notes a call whose result the answer of this one may name.
func (v *Visit) answers(call string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ids = append(v.ids, call)
	v.pipe.calls.Store(call, nil)
}

// forget ends what answers noted.
func (v *Visit) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range v.ids {
		v.pipe.calls.Delete(id)
	}
	v.ids = nil
}

// leave gives the ticket up, also in the middle of a call.
func (v *Visit) leave() {
	v.mu.Lock()
	t := v.ticket
	v.ticket, v.atGate = nil, false
	v.mu.Unlock()
	v.pipe.gates.drop(t)
}

// stepAside gives up the place in the session's queue, unless the call is already at the gate.
func (v *Visit) stepAside() {
	v.mu.Lock()
	var t *ticket
	if !v.atGate {
		t, v.ticket = v.ticket, nil
	}
	v.mu.Unlock()
	v.pipe.gates.drop(t)
}

// asideAfter gives up the place in the queue after a while, unless what it returns is called before.
func (v *Visit) asideAfter(d time.Duration) (stop func() bool) {
	return time.AfterFunc(d, v.stepAside).Stop
}

// stand brings the visit to the session's gate, with a new ticket if the first one was given up, and says when the
// ticket was taken.
func (v *Visit) stand(tool string, writer bool) (t *ticket, taken time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := &v.pipe.gates
	taken = v.arrived
	if v.ticket == nil {
		taken = time.Now()
		v.ticket = g.take(v.gate(), v.pipe.readers(), taken)
	}
	v.atGate = true
	g.arrive(v.ticket, tool, writer)
	return v.ticket, taken
}

// begin and end mark the time in which Call runs.
func (v *Visit) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running = true
}

func (v *Visit) end() {
	v.leave()
	v.mu.Lock()
	v.running = false
	left := v.left
	v.mu.Unlock()
	if left {
		v.forget()
	}
}

// randomText returns n random characters, at most 16, of a-z and 2-7.
func randomText(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	var b [16]byte
	_, _ = rand.Read(b[:n]) // it never fails
	for i, c := range b[:n] {
		b[i] = letters[c%32]
	}
	return string(b[:n])
}
