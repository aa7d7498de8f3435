package pipeline

import (
	"crypto/rand"
	"sync"
	"time"

	"codehand/tools/session"
)

// A Visit is one call's way through the corridor. Its calls do not overlap; Leave may come at any time.
type Visit struct {
	pipe    *Pipeline
	state   *session.State
	id      string
	arrived time.Time

	mu      sync.Mutex
	ticket  *ticket   // at the session's gate; nil: given up, a new one is taken at the gate
	atGate  bool      // too late to step aside
	trees   []*ticket // at the gates of trees, while a writer runs
	running bool      // Call has not returned: it leaves by itself

	commanded bool // by Call alone
}

// Commanded says whether the Call that has returned, or one from within it, ran a command that was not proved to change
// nothing.
func (v *Visit) Commanded() bool { return v.commanded }

// Arrive takes a ticket at the session's gate. Call it in the order in which calls came in. The State may be changed
// until Visit.Call; its Key may not.
func (p *Pipeline) Arrive(s *session.State) *Visit {
	v := &Visit{pipe: p, state: s, id: randomText(16), arrived: time.Now()}
	v.ticket = p.gates.take(gateKey{session: s.Key}, p.readers(), v.arrived)
	return v
}

// Leave gives the ticket up. The transport defers it, so that a request that mcp-go answers by itself does not hold up
// the queue. It does nothing the second time, and nothing while Call runs: a call that is still at work keeps its
// place until it is done.
func (v *Visit) Leave() {
	v.mu.Lock()
	busy := v.running
	v.mu.Unlock()
	if !busy {
		v.leave()
	}
}

// leave gives up all that the visit holds, trees first.
func (v *Visit) leave() {
	v.mu.Lock()
	trees, own := v.trees, v.ticket
	v.trees, v.ticket, v.atGate = nil, nil, false
	v.mu.Unlock()
	for _, t := range trees {
		v.pipe.gates.drop(t)
	}
	v.pipe.gates.drop(own)
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

// stand brings the visit to the session's gate, with a new ticket if the first one was given up, and says when the
// ticket was taken.
func (v *Visit) stand(tool string, writer bool) (t *ticket, taken time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := &v.pipe.gates
	taken = v.arrived
	if v.ticket == nil {
		taken = time.Now()
		v.ticket = g.take(gateKey{session: v.state.Key}, v.pipe.readers(), taken)
	}
	v.atGate = true
	g.arrive(v.ticket, tool, writer)
	return v.ticket, taken
}

// hold remembers a tree's ticket, to be given up with the rest.
func (v *Visit) hold(t *ticket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.trees = append(v.trees, t)
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
	defer v.mu.Unlock()
	v.running = false
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
