package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/session"
	"codehand/tools/tool"
)

// Limits of waiting. Several clients give up after 60 s without telling us, and a write must not run after its client
// has left.
const (
	maxReaders    = 10               // of one session at the same time
	waitUnheard   = 45 * time.Second // for a client that gave no progress token
	waitHeard     = 10 * time.Minute // for one that did
	noteEvery     = 10 * time.Second
	hookPatience  = 5 * time.Second // hooks that take longer cost the call its place in the queue
	leastRunning  = 5 * time.Second // what a call has for running, however long it waited
	gateTimeShape = "2006-01-02T15:04:05Z"
)

// A gateKey names a gate.
type gateKey struct {
	session session.Key
	call    string // of a session that several conversations share: the only call at the gate; else ""
}

// gates holds the gates in use. The zero value is ready. One lock covers all gates and tickets: what it protects are a
// few steps in short queues.
type gates struct {
	mu      sync.Mutex
	open    map[gateKey]*gate
	waiting atomic.Int64 // calls in await
}

// A gate lets one writer or several readers in, in the order of their tickets. It exists while it has a ticket.
type gate struct {
	key   gateKey
	size  int       // how many readers may be in
	queue []*ticket // not yet in, oldest first
	in    []*ticket // one writer, or readers
}

// A ticket is one call's place at one gate. All fields but gate are covered by the lock of gates.
type ticket struct {
	gate  *gate
	ready chan struct{} // closed when the call is let in; nil: no call waits for it

	arrived bool // the call stands at the gate; until then its ticket only holds back the later ones
	writer  bool
	tool    string    // "" until it is known
	since   time.Time // taken; once it works: began to
	works   bool      // its call runs
	let     bool      // it was let in
	gone    bool
}

// take puts a new ticket at the end of a queue. size counts if the gate is new.
func (g *gates) take(key gateKey, size int, now time.Time) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.open[key]
	if at == nil {
		at = &gate{key: key, size: size}
		if g.open == nil {
			g.open = map[gateKey]*gate{}
		}
		g.open[key] = at
	}
	t := &ticket{gate: at, since: now}
	at.queue = append(at.queue, t)
	return t
}

// arrive says that the call of t stands at the gate now, and wants in.
func (g *gates) arrive(t *ticket, tool string, writer bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.arrived, t.tool, t.writer = true, tool, writer
	t.gate.advance()
}

// drop gives a ticket up, whether it waits or is in. The second time it does nothing.
func (g *gates) drop(t *ticket) {
	if t == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.gone {
		return
	}
	t.gone = true
	is := func(o *ticket) bool { return o == t }
	at := t.gate
	at.queue = slices.DeleteFunc(at.queue, is)
	at.in = slices.DeleteFunc(at.in, is)
	at.advance()
	if len(at.queue) == 0 && len(at.in) == 0 {
		delete(g.open, at.key)
	}
}

// advance admits calls strictly from the front, as many as fit: none overtakes another.
func (at *gate) advance() {
	for len(at.queue) > 0 {
		t := at.queue[0]
		full := len(at.in) >= at.size || len(at.in) > 0 && (t.writer || at.in[0].writer)
		if !t.arrived || full {
			return
		}
		at.queue = slices.Delete(at.queue, 0, 1)
		at.in = append(at.in, t)
		t.let = true
		if t.ready != nil {
			close(t.ready)
		}
	}
}

// work says that the call of t runs now.
func (g *gates) work(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.since, t.works = time.Now(), true
}

// An obstacle is what a ticket waits for.
type obstacle struct {
	tool    string // "": a call that is not yet known
	since   time.Time
	running bool
}

// ahead says what t waits for: the call that has been in for longest, else the first in the queue.
func (g *gates) ahead(t *ticket) obstacle {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := t.gate
	if len(at.in) > 0 {
		o := slices.MinFunc(at.in, func(a, b *ticket) int { return a.since.Compare(b.since) })
		return obstacle{o.tool, o.since, o.works}
	}
	o := at.queue[0] // t at the latest
	return obstacle{o.tool, o.since, false}
}

func (o obstacle) String() string {
	name := cmp.Or(o.tool, "An earlier call")
	verb := "waiting"
	if o.running {
		verb = "running"
	}
	return fmt.Sprintf("%s has been %s since %s", name, verb, o.since.UTC().Format(gateTimeShape))
}

// A wait is how long, and with what words, a call waits.
type wait struct {
	until time.Time
	note  func(string) // nil: no note is sent
}

// ready returns what is closed when t is let in; nil: it is.
func (g *gates) ready(t *ticket) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.let {
		return nil
	}
	if t.ready == nil {
		t.ready = make(chan struct{})
	}
	return t.ready
}

// await waits until t is let in. Else the ticket is given up, and the error says why.
func (g *gates) await(ctx context.Context, t *ticket, w wait) error {
	ready := g.ready(t)
	if ready == nil {
		return nil
	}
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	limit := time.NewTimer(time.Until(w.until))
	defer limit.Stop()
	notes := time.NewTicker(noteEvery)
	defer notes.Stop()
	for {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			g.drop(t)
			return interrupted(ctx)
		case <-limit.C:
			o := g.ahead(t)
			g.drop(t)
			return tool.Refuse(tool.Busy, "%s. Nothing was done. Try again.", o)
		case <-notes.C:
			if w.note != nil {
				w.note("waiting: " + g.ahead(t).String())
			}
		}
	}
}

// Waiting is how many calls wait at a gate now.
func (p *Pipeline) Waiting() int { return int(p.gates.waiting.Load()) }

// enter lets the call through the gate of its session. The ticket is given up by leave. Calls of other sessions are not
// waited for, whatever they do: filestate locks the files that a call changes, also against other processes.
func (c *call) enter(ctx context.Context) error {
	v, p := c.visit, c.pipe
	if c.bound.Traits.Ungated {
		v.stepAside()
		return nil
	}
	t, taken := v.stand(c.bound.Spec.Name, !c.bound.Traits.Parallel)
	w := wait{until: taken.Add(waitUnheard)}
	if c.arrival.Token {
		w = wait{until: taken.Add(waitHeard), note: func(text string) { c.progress(0, 0, text) }}
	}
	if err := p.gates.await(ctx, t, w); err != nil {
		return err
	}
	p.gates.work(t)
	return nil
}

// readers is how many readers of a session run at the same time.
func (p *Pipeline) readers() int {
	if p.Parallel < 1 || p.Parallel > maxReaders {
		return maxReaders
	}
	return p.Parallel
}
