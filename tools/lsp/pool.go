package lsp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Limits of a Pool. A field that is 0 has the value of its comment.
type Limits struct {
	Idle     time.Duration // after which a server that nobody asked is ended: 10 minutes
	Servers  int           // that run at once: 8
	Restarts int           // of a server that broke, before it counts as broken: 3
	Soon     time.Duration // that an edit waits for what a server says of it: half a second
}

// forgiven is the time after which it is forgotten that a server broke.
const forgiven = 10 * time.Minute

// A Pool keeps the language servers of a process. It is safe for concurrent use; a nil Pool has none.
type Pool struct {
	servers []Server
	limits  Limits
	log     *slog.Logger

	ctx  context.Context // of starts; it ends with Close
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  map[key]*slot
	late   map[string][]Found         // by whom it concerns: what was found after the edit was answered
	owed   map[string]map[string]debt // by whom, and path
	checks uint64                     // how many there were
}

// maxLate is how many files with late news are kept for one session, maxDebts of how many files it is known that their
// errors are not told yet, and maxListeners for how many sessions.
const maxLate, maxDebts, maxListeners = 10, 100, 1000

// A Place is where a server works, and for whom. Two calls share a server if all of it is equal.
type Place struct {
	Owner string // whose files they are
	Root  string // canonical
	Roots string // all that the server can reach, as one text
	// Denied is what of it no server may read, as one text: one that started before a rule denied a file may know it
	Denied string
	// Confined stands for what else decides what the server can reach, and is only compared.
	Confined any
}

// A Launch starts the program of a server for a Place.
type Launch func(ctx context.Context, s Server) (Process, error)

// A slot is a server at a Place, whether it runs or not.
type slot struct {
	key
	server Server
	ready  chan struct{} // closed when client or err is set; nil: nothing was started
	client *Client       // nil: it is starting, or failed
	err    error
	broke  []time.Time // when it did, lately
	why    string      // it did so the last time
	used   time.Time
	users  int
	idle   *time.Timer
}

// New makes a Pool of servers, of which none is started.
func New(servers []Server, limits Limits, log *slog.Logger) *Pool {
	if limits.Idle == 0 {
		limits.Idle = 10 * time.Minute
	}
	if limits.Servers == 0 {
		limits.Servers = 8
	}
	if limits.Restarts == 0 {
		limits.Restarts = 3
	}
	if limits.Soon == 0 {
		limits.Soon = 500 * time.Millisecond
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{servers: servers, limits: limits, log: log, slots: map[key]*slot{}, late: map[string][]Found{},
		owed: map[string]map[string]debt{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Servers lists the servers that there are, in the order in which they are asked for a file. The slice is shared: only
// read.
func (p *Pool) Servers() []Server {
	if p == nil {
		return nil
	}
	return p.servers
}

// An UnavailableError says why there is no server to ask.
type UnavailableError struct {
	Server string
	Why    string
}

func (e *UnavailableError) Error() string { return e.Server + ": " + e.Why }

// A key tells slots apart.
type key struct {
	place Place
	name  string // of the server
}

// Use returns the server at a Place, which is started if it does not run, and holds it until done: it does not count as
// idle. It waits until the server has shaken hands, or for ctx. Errors: *UnavailableError, or that of ctx.
func (p *Pool) Use(ctx context.Context, at Place, server Server, launch Launch) (c *Client, done func(), err error) {
	for {
		s, ready, err := p.hold(at, server, launch)
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			p.release(s)
			return nil, nil, context.Cause(ctx)
		}
		p.mu.Lock()
		c, err := s.client, s.err
		p.mu.Unlock()
		if c != nil && c.alive() {
			return c, sync.OnceFunc(func() { p.release(s) }), nil
		}
		p.release(s)
		if c == nil && err != nil {
			return nil, nil, err
		}
	}
}

// Warm returns the server at a Place, if it runs and has shaken hands, and holds it as Use does. It never waits.
func (p *Pool) Warm(at Place, server Server) (c *Client, done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[key{at, server.Name}]
	if s == nil || s.client == nil || !s.client.alive() {
		return nil, nil, false
	}
	s.users++
	s.used = time.Now()
	return s.client, sync.OnceFunc(func() { p.release(s) }), true
}

// AnyWarm says whether a server runs for an owner at all. It is for those who would else have to find out more.
func (p *Pool) AnyWarm(owner string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		if s.place.Owner == owner && s.client != nil && s.client.alive() {
			return true
		}
	}
	return false
}

// hold returns the slot of a server that runs or is starting, with one more user, and what is closed once it is
// settled.
func (p *Pool) hold(at Place, server Server, launch Launch) (s *slot, ready <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, &UnavailableError{server.Name, "codehand is ending"}
	}
	k := key{at, server.Name}
	s = p.slots[k]
	if s == nil {
		s = &slot{key: k, server: server}
		p.slots[k] = s
	}
	if s.client != nil && !s.client.alive() {
		p.drop(s, true)
	}
	if s.ready == nil {
		if err := p.mayStart(s); err != nil {
			return nil, nil, err
		}
		s.ready, s.err = make(chan struct{}), nil
		p.work.Go(func() { p.start(s, launch) })
	}
	s.users++
	s.used = time.Now()
	return s, s.ready, nil
}

// mayStart says why a server is not started. It makes room by ending the one that nobody used for the longest time. The
// caller holds mu.
func (p *Pool) mayStart(s *slot) error {
	s.broke = slices.DeleteFunc(s.broke, func(t time.Time) bool { return time.Since(t) > forgiven })
	if len(s.broke) > p.limits.Restarts {
		return &UnavailableError{s.server.Name, fmt.Sprintf("it broke %d times within %v, the last time because %s",
			len(s.broke), forgiven, s.why)}
	}
	running, oldest := 0, (*slot)(nil)
	for _, o := range p.slots {
		if o.ready != nil {
			running++
		}
		if o.client != nil && o.users == 0 && (oldest == nil || o.used.Before(oldest.used)) {
			oldest = o
		}
	}
	if running < p.limits.Servers {
		return nil
	}
	if oldest == nil {
		return &UnavailableError{s.server.Name, fmt.Sprintf("%d language servers are working already", running)}
	}
	p.drop(oldest, false)
	return nil
}

// start starts a server, and settles the slot.
func (p *Pool) start(s *slot, launch Launch) {
	var c *Client
	proc, err := launch(p.ctx, s.server)
	started := err == nil
	if started {
		c, err = connect(p.ctx, s.server, s.place.Root, proc, p.log)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := s.ready
	if err != nil {
		p.log.Warn("a language server does not start", "server", s.server.Name, "root", s.place.Root, "cause", err)
		s.err = &UnavailableError{s.server.Name, err.Error()}
		if started { // else nothing broke: there is nothing to wait for
			s.broke, s.why = append(s.broke, time.Now()), err.Error()
		}
		s.ready = nil
	} else {
		s.client = c
		p.log.Info("a language server has started", "server", s.server.Name, "root", s.place.Root)
		if p.closed {
			p.drop(s, false)
		} else {
			s.idle = time.AfterFunc(p.limits.Idle, func() { p.rest(s, c) })
			p.work.Go(func() { p.watch(s, c) })
		}
	}
	close(ready)
}

// watch ends a server whose connection is lost.
func (p *Pool) watch(s *slot, c *Client) {
	<-c.conn.DisconnectNotify()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.client == c {
		p.drop(s, true)
	}
}

// rest ends a server that nobody has used for a while.
func (p *Pool) rest(s *slot, c *Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.client != c || p.closed {
		return
	}
	left := p.limits.Idle - time.Since(s.used)
	if s.users > 0 {
		left = p.limits.Idle
	}
	if left > 0 {
		s.idle.Reset(left)
		return
	}
	p.log.Info("a language server is ended, since nobody used it", "server", s.server.Name, "root", s.place.Root)
	p.drop(s, false)
	if s.users == 0 && len(s.broke) == 0 {
		delete(p.slots, s.key)
	}
}

// drop gives a server up and ends it. broke: it ended by itself. The caller holds mu.
func (p *Pool) drop(s *slot, broke bool) {
	c := s.client
	s.client, s.ready = nil, nil
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	if broke {
		s.broke = append(s.broke, time.Now())
		s.why = "it ended"
	}
	p.work.Go(func() {
		if broke {
			text := c.Why()
			p.log.Warn("a language server has ended", "server", s.server.Name, "cause", text)
			p.mu.Lock()
			s.why = text
			p.mu.Unlock()
		}
		c.end()
	})
}

func (p *Pool) release(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	s.used = time.Now()
}

// Close ends all servers with all that they started.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	for _, s := range p.slots {
		if s.client != nil {
			p.drop(s, false)
		}
	}
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
}

// A Question is whether edits made errors.
type Question struct {
	For   string // who is told what is found late
	Edits []Edit
}

// A Verdict is what is known when an edit is answered.
type Verdict struct {
	Found []Found
	Late  bool // a server that runs has not answered in time
}

// checked is what a check came to.
type checked struct {
	found []Found
	err   error
}

// Check asks the server at a Place, if it runs, which errors edits made: those that exactly the contents of the edits
// have and the ones before them had not, or before the first edit of a file whose errors were not told. It waits
// Limits.Soon at most. What is found later is kept for Late.
func (p *Pool) Check(ctx context.Context, at Place, server Server, q Question) (v Verdict) {
	c, done, ok := p.Warm(at, server)
	if !ok {
		return v
	}
	if c.checks.Add(1) > maxChecks {
		c.checks.Add(-1)
		done()
		return Verdict{Late: true}
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		c.checks.Add(-1)
		done()
		return v
	}
	p.late[q.For] = slices.DeleteFunc(p.late[q.For], func(f Found) bool { // this edit is told of it, if it is still so
		return slices.ContainsFunc(q.Edits, func(e Edit) bool { return e.Path == f.Path })
	})
	if len(p.late[q.For]) == 0 {
		delete(p.late, q.For)
	}
	p.checks++
	owed := debts{p, q.For, p.checks}
	answer := make(chan checked)
	answered := make(chan struct{})
	wait := time.NewTimer(p.limits.Soon)
	defer wait.Stop()
	p.work.Go(func() {
		defer done()
		defer c.checks.Add(-1)
		found, err := c.check(p.ctx, q.Edits, owed)
		if err != nil {
			p.log.Debug("a language server did not say what an edit made wrong", "server", server.Name, "cause", err)
		}
		select {
		case answer <- checked{found, err}:
		case <-answered:
			p.keep(q.For, found)
			if err == nil { // files without errors owe nothing; the others do until Late tells them
				owed.paid(q.Edits, found)
			}
		}
	})
	p.mu.Unlock()
	defer close(answered)
	select {
	case o := <-answer:
		v.Found, v.Late = o.found, o.err != nil && !errors.Is(o.err, ErrNoReport) && c.alive()
		if o.err == nil {
			owed.paid(q.Edits, nil)
		}
	case <-wait.C:
		v.Late = true
	case <-ctx.Done():
		v.Late = true
	}
	return v
}

// A debt is what was wrong with a file before edits whose errors are not told yet. The next edit of the file is held
// against that, or it would count their errors as old ones.
type debt struct {
	before []Problem
	by     uint64 // the check that held an edit against it last
}

// debts are those of one session, as one check sees them.
type debts struct {
	p     *Pool
	who   string
	check uint64
}

// of returns what was wrong with a file before the first edit that is not told yet.
func (d debts) of(path string) ([]Problem, bool) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	x, ok := d.p.owed[d.who][path]
	if ok {
		x.by = d.check
		d.p.owed[d.who][path] = x
	}
	return x.before, ok
}

// owe remembers what was wrong with a file before an edit.
func (d debts) owe(path string, before []Problem) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	mine := d.p.owed[d.who]
	if mine == nil && len(d.p.owed) >= maxListeners || len(mine) >= maxDebts {
		return
	}
	if mine == nil {
		mine = map[string]debt{}
		d.p.owed[d.who] = mine
	}
	mine[path] = debt{before, d.check}
}

// paid forgets the debts of files, except of those in which errors were found that are not told yet.
func (d debts) paid(edits []Edit, untold []Found) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	for _, e := range edits {
		waits := slices.ContainsFunc(untold, func(f Found) bool { return f.Path == e.Path })
		if !waits && d.p.owed[d.who][e.Path].by == d.check { // or a later edit is held against it
			d.p.forget(d.who, e.Path)
		}
	}
}

// forget drops a debt. The caller holds mu.
func (p *Pool) forget(who, path string) {
	if delete(p.owed[who], path); len(p.owed[who]) == 0 {
		delete(p.owed, who)
	}
}

// keep keeps what was found late.
func (p *Pool) keep(who string, found []Found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(found) == 0 || len(p.late) >= maxListeners && p.late[who] == nil {
		return
	}
	all := append(p.late[who], found...)
	p.late[who] = all[max(0, len(all)-maxLate):]
}

// Late returns, once, what was found after edits were answered, as far as their files still have the contents that it
// is about.
func (p *Pool) Late(who string) []Found {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	found := p.late[who]
	delete(p.late, who)
	p.mu.Unlock()
	found = slices.DeleteFunc(found, func(f Found) bool { return !f.Holds() })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range found {
		p.forget(who, f.Path)
	}
	return found
}
