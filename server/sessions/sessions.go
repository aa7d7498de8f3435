package sessions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"codehand/server/tenants"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/shell"
)

const (
	// idleTime is how long a session without a call keeps its handles. Its truth is in the Store and on disk, so the
	// client never notices.
	idleTime = 30 * time.Minute
	// maxLive is how many sessions of a process have handles, unless Options say otherwise.
	maxLive = 10_000
	// sweepEvery is how often idle sessions are looked for, at most.
	sweepEvery = time.Minute
)

// A Table holds the handles of the sessions in use. It is safe for concurrent use. Its exported fields are set before
// its first use.
type Table struct {
	// Build opens the handles of a session of a tenant, and returns what closes them.
	Build func(session.Key, *tenants.Tenant) (*session.State, func(), error)
	Now   func() time.Time
	Idle  time.Duration // how long an idle session keeps its handles
	Most  int           // sessions with handles; over it, idle ones lose theirs early

	// Began and Ended are called when a session gets its handles and when it has lost them, for every tenant. Began may
	// take its time; Ended must not block. nil: not called.
	Began func(*session.State)
	Ended func(st *session.State, why string)
	Left  func() // called when a call is over; nil: not called
	// Check says why a person cannot set a rule for a session of a tenant, in a list of Lists.
	Check func(at *tenants.Tenant, list string, r permission.Rule) error

	mu    sync.Mutex
	live  map[seat]*liveSession
	swept time.Time
	held  int           // calls that have not released their session
	over  chan struct{} // closed when held is 0 after CloseAll, which makes it; from then on no call gets a session

	// sessions that end took out of live; it grows under mu and never after CloseAll took the rest
	ending sync.WaitGroup
}

// errClosed says that the process ends.
var errClosed = errors.New("the server is closed")

// A seat is one session of one tenant. Tokens with different rights have different handles, over the same memory.
type seat struct {
	key session.Key
	at  *tenants.Tenant
}

// A liveSession is a session whose handles are open.
type liveSession struct {
	state *session.State
	close func()
	calls int
	last  time.Time // of the last call's end

	shown PromptMark // of its modern clients over HTTP
}

// NewTable makes a table without sessions.
func NewTable(build func(session.Key, *tenants.Tenant) (*session.State, func(), error)) *Table {
	return &Table{Build: build, Now: time.Now, Idle: idleTime, Most: maxLive, live: map[seat]*liveSession{}}
}

// Acquire finds or rebuilds the session and returns a copy of its State for one call. The caller runs release when the
// call is over; a session in use is never dropped.
func (t *Table) Acquire(key session.Key, at *tenants.Tenant) (state *session.State, release func(), err error) {
	if key.Principal == "" || key.Session == "" {
		return nil, nil, errors.New("a session key is never empty")
	}
	l, fresh, err := t.hold(key, at)
	if err != nil {
		return nil, nil, err
	}
	if fresh && t.Began != nil { // it asks the Store, for which the calls of other sessions must not wait
		t.Began(l.state)
	}
	c := *l.state
	done := false
	return &c, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !done {
			done = true
			l.calls--
			l.last = t.Now()
			if t.held--; t.held == 0 && t.over != nil {
				close(t.over)
			}
			if t.Left != nil {
				t.Left()
			}
		}
	}, nil
}

// hold finds or rebuilds the session for one call. fresh says that it had handles nowhere.
func (t *Table) hold(key session.Key, at *tenants.Tenant) (l *liveSession, fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return nil, false, errClosed
	}
	t.sweep()
	l = t.live[seat{key, at}]
	if l == nil {
		st, end, err := t.Build(key, at)
		if err != nil {
			return nil, false, err
		}
		fresh = !t.seated(key)
		l = &liveSession{state: st, close: end}
		t.live[seat{key, at}] = l
		t.makeRoom()
	}
	l.calls++
	t.held++
	return l, fresh, nil
}

// DropIdle drops the handles of idle sessions, if it is time to look.
func (t *Table) DropIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
}

// End drops the handles of one session for good, with its jobs.
func (t *Table) End(key session.Key) { t.endIf(func(k session.Key) bool { return k == key }) }

// EndOf is End for all sessions of a principal.
func (t *Table) EndOf(principal string) {
	t.endIf(func(k session.Key) bool { return k.Principal == principal })
}

func (t *Table) endIf(match func(session.Key) bool) {
	t.mu.Lock()
	var gone []*liveSession
	for at, l := range t.live {
		if match(at.key) {
			gone = append(gone, l)
			delete(t.live, at)
		}
	}
	t.ending.Add(len(gone))
	t.mu.Unlock()
	defer t.ending.Add(-len(gone))
	told := map[session.Key]bool{}
	for _, l := range gone {
		l.close()
	}
	for _, l := range gone {
		if key := l.state.Key; t.Ended != nil && !told[key] {
			told[key] = true
			t.Ended(l.state, ended)
		}
	}
}

// Why a session has no handles any more.
const (
	ended    = "closed"   // its client ended it
	idled    = "idle"     // no call came for long; the next one resumes it
	shutDown = "shutdown" // the server ended
)

// seated says whether a session has handles anywhere. The caller holds mu.
func (t *Table) seated(key session.Key) bool {
	for at := range t.live {
		if at.key == key {
			return true
		}
	}
	return false
}

// drop closes the handles at one seat. The caller holds mu.
func (t *Table) drop(at seat, why string) {
	l := t.live[at]
	l.close()
	delete(t.live, at)
	if t.Ended != nil && !t.seated(at.key) {
		t.Ended(l.state, why)
	}
}

// Jobs returns how many jobs of the sessions in use there are, by state.
func (t *Table) Jobs() map[string]int {
	t.mu.Lock()
	var shells []*shell.Shell
	for _, l := range t.live {
		if l.state.Shell != nil {
			shells = append(shells, l.state.Shell)
		}
	}
	t.mu.Unlock()
	n := map[string]int{}
	for _, sh := range shells {
		jobs, err := sh.List(context.Background())
		if err != nil {
			continue // the Store's own numbers say that it does not answer
		}
		for _, j := range jobs {
			n[string(j.State)]++
		}
	}
	return n
}

// A RunningCommand is one that runs in a session.
type RunningCommand struct {
	Key   session.Key
	Roots []string // of the session's tenant
	shell.Info
}

// Running returns the commands that run in the sessions in use, the oldest first.
func (t *Table) Running(ctx context.Context) (all []RunningCommand) {
	t.mu.Lock()
	shells := map[*shell.Shell]RunningCommand{}
	for at, l := range t.live {
		if l.state.Shell != nil {
			shells[l.state.Shell] = RunningCommand{Key: at.key, Roots: at.at.Space.Whole()}
		}
	}
	t.mu.Unlock()
	for sh, c := range shells {
		jobs, err := sh.List(ctx)
		if err != nil {
			continue // the Store's own numbers say that it does not answer
		}
		for _, j := range jobs {
			if j.State == shell.Running {
				c.Info = j
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b RunningCommand) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// StopCommand ends a command of a session in use with its whole tree. found is false if no such command runs there.
func (t *Table) StopCommand(ctx context.Context, id string, of func(session.Key) bool) (found bool, err error) {
	t.mu.Lock()
	var shells []*shell.Shell
	for at, l := range t.live {
		if l.state.Shell != nil && of(at.key) {
			shells = append(shells, l.state.Shell)
		}
	}
	t.mu.Unlock()
	for _, sh := range shells {
		jobs, err := sh.List(ctx)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(jobs, func(i shell.Info) bool { return i.ID == id && i.State == shell.Running }) {
			_, err := sh.Stop(ctx, id)
			return true, err
		}
	}
	return false, nil
}

// sweep drops the handles of idle sessions. The caller holds mu.
func (t *Table) sweep() {
	now := t.Now()
	if now.Sub(t.swept) < sweepEvery {
		return
	}
	t.swept = now
	for at, l := range t.live {
		if l.calls == 0 && now.Sub(l.last) > t.Idle && !busy(l.state) {
			t.drop(at, idled)
		}
	}
}

// makeRoom drops the handles of the session that is idle the longest, if there are too many. The caller holds mu, and
// what it has just made is in use.
func (t *Table) makeRoom() {
	if len(t.live) <= t.Most {
		return
	}
	var oldest seat
	for at, l := range t.live {
		if l.calls == 0 && !l.last.IsZero() && (t.live[oldest] == nil || l.last.Before(t.live[oldest].last)) &&
			!busy(l.state) {
			oldest = at
		}
	}
	if t.live[oldest] != nil {
		t.drop(oldest, idled)
	}
}

// busy says whether a job of the session runs. If its records cannot be read, it may.
func busy(st *session.State) bool {
	if st.Shell == nil {
		return false
	}
	jobs, err := st.Shell.List(context.Background())
	return err != nil || slices.ContainsFunc(jobs, func(i shell.Info) bool { return i.State == shell.Running })
}

// CloseAll ends every session, and waits for those that are ended already: their jobs end with their whole trees. No
// call gets one any more; the channel is closed when the last call that had one is over.
func (t *Table) CloseAll() (over <-chan struct{}) {
	t.mu.Lock()
	live := t.live
	t.live = map[seat]*liveSession{}
	if t.over == nil {
		if t.over = make(chan struct{}); t.held == 0 {
			close(t.over)
		}
	}
	t.mu.Unlock()
	var wg sync.WaitGroup
	states := map[session.Key]*session.State{}
	for at, l := range live {
		wg.Go(l.close)
		states[at.key] = l.state
	}
	wg.Wait()
	for _, st := range states {
		if t.Ended != nil {
			t.Ended(st, shutDown)
		}
	}
	t.ending.Wait()
	return t.over
}
