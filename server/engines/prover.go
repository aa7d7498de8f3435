package engines

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/sandbox"
)

// A prover remembers what this machine was proven to do. It is safe for concurrent use.
type prover struct {
	prove  func(context.Context) sandbox.Report
	recall func() (sandbox.Report, error) // what an earlier process proved; nil: that does not count here
	keep   func(sandbox.Report) error     // for later processes; nil: nothing is kept
	log    *slog.Logger

	ctx    context.Context // ends with close
	end    context.CancelFunc
	beside sync.WaitGroup // proves again what was recalled

	found   atomic.Pointer[sandbox.Report] // that counts from now on; nil: none yet
	before  sync.Once
	earlier atomic.Pointer[sandbox.Report] // that an earlier process proved; nil: none, or nobody asked for it
	proving sync.Mutex                     // covers busy and until, and is held while the machine is probed
	busy    sandbox.Report
	until   time.Time // when busy no longer counts
}

// newProver returns a prover without functions. It must be closed.
func newProver(log *slog.Logger) *prover {
	p := &prover{log: log}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// close ends the probes that run, and waits for those beside commands.
func (p *prover) close() {
	p.end()
	p.proving.Lock() // who holds it may begin such
	defer p.proving.Unlock()
	p.beside.Wait()
}

// busyFor is how long it counts that the machine was too busy for the probes. It needs that time for other things, and
// everyone who asks meanwhile would wait.
const busyFor = 5 * time.Second

// known returns the report that counts from now on, if there is one. It never waits.
func (p *prover) known() (sandbox.Report, bool) {
	if r := p.found.Load(); r != nil {
		return *r, true
	}
	return sandbox.Report{}, false
}

// expected returns what is known, or else what an earlier process proved: the first command will most likely find the
// same. It probes nothing, so that a client which begins does not wait, and a server without commands proves nothing.
func (p *prover) expected() (sandbox.Report, bool) {
	if r, ok := p.known(); ok {
		return r, true
	}
	p.before.Do(func() {
		if p.recall == nil {
			return
		}
		if r, err := p.recall(); err == nil {
			p.earlier.Store(&r)
		}
	})
	if r := p.earlier.Load(); r != nil {
		return *r, true
	}
	return sandbox.Report{}, false
}

// report returns what is known. Before that it takes what an earlier process proved, and proves it again beside that;
// if there is none it probes the machine, or waits for who does.
func (p *prover) report() sandbox.Report {
	if r, ok := p.known(); ok {
		return r
	}
	p.proving.Lock()
	defer p.proving.Unlock()
	if r, ok := p.known(); ok {
		return r
	}
	if time.Now().Before(p.until) {
		return p.busy
	}
	if p.recall != nil {
		r, err := p.recall()
		if err == nil {
			p.found.Store(&r)
			if p.ctx.Err() == nil {
				p.beside.Go(func() { p.again(r) })
			}
			return r
		}
		p.log.Debug("probing the sandbox: no earlier proof counts", "cause", err.Error())
	}
	r := p.prove(p.ctx)
	if r.Unknown() {
		p.busy, p.until = r, time.Now().Add(busyFor)
	} else {
		p.found.Store(&r)
		p.kept(r)
	}
	return r
}

// again proves what was recalled. What it finds counts at once. A machine that was too busy for it has shown nothing,
// and commands at a level that it does not have fail.
func (p *prover) again(was sandbox.Report) {
	r := p.prove(p.ctx)
	if r.Unknown() || p.ctx.Err() != nil {
		return
	}
	if r.Same(was) {
		return
	}
	r.Lowered = r.Level < was.Level
	p.found.Store(&r)
	p.kept(r)
	attrs := []any{"was", was.Level, "is", r.Level, "gaps", r.Gaps}
	if r.Failed != nil {
		attrs = append(attrs, "cause", r.Failed.Probe, "remedy", r.Failed.Remedy)
	}
	p.log.Warn("the sandbox confines commands in another way than an earlier start proved", attrs...)
}

// kept keeps a report for later processes. Without it they wait for the probes.
func (p *prover) kept(r sandbox.Report) {
	if p.keep == nil {
		return
	}
	if err := p.keep(r); err != nil {
		p.log.Warn("the next start waits for the probes of the sandbox: what they showed was not kept",
			"cause", err.Error())
	}
}
