package endpoint

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// An httpSession caches a legacy transport session that is in use: its client and its open requests. Everything that
// must last is in the id and in the Store, so the cache entry may be dropped between any two requests.
type httpSession struct {
	id     string
	key    session.Key      // principal and transport session; its client record is stored under it
	opener session.Key      // what its calls have is remembered under it, with the token that opened it
	table  jsonrpc.InFlight // requests of the client
	asks   jsonrpc.Outgoing // requests to the client, sent during its own requests
	client atomic.Pointer[sessions.ClientRecord]

	prompts sessions.PromptMark
	roots   tenants.ClientRoots

	users int            // requests and streams; covered by httpSessions.mu, as are the next three
	who   auth.Principal // who used it last
	// as opener, of each token of the principal that it was used with
	states map[session.Key]bool
	last   time.Time
	began  time.Time
}

// httpSessions are the legacy sessions in use. It is safe for concurrent use.
type httpSessions struct {
	e   *Endpoint
	now func() time.Time

	revoked chan struct{} // receives a value when the token of a session may have been revoked

	mu   sync.Mutex
	live map[string]*httpSession // by id
	per  map[string]int          // live ones by principal
}

func newHTTPSessions(e *Endpoint) *httpSessions {
	return &httpSessions{e: e, now: time.Now, revoked: make(chan struct{}, 1), live: map[string]*httpSession{},
		per: map[string]int{}}
}

// errNoSession is returned by acquire, errTooManySessions by start.
var (
	errNoSession       = errors.New("unknown session")
	errTooManySessions = errors.New("too many sessions; end one, or wait until one is idle")
)

// noSession is what clients get for an id that is not theirs, in the words that they know from other servers.
const noSession = "Invalid session ID"

// start makes a new session of the principal. The error is errTooManySessions.
func (h *httpSessions) start(who auth.Principal) (*httpSession, error) {
	most := h.e.o.Session.MaxPerPrincipal
	if q := who.Quota.Sessions; q > 0 {
		most = min(most, q)
	}
	id := h.e.o.Signer.id(labelSession, who.ID)
	x := h.newSession(who, id)
	x.users = 1
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.per[who.ID] >= most && !h.spare(who.ID) {
		return nil, errTooManySessions
	}
	h.add(x)
	return x, nil
}

// spare drops the session of a principal that was idle longest, among those of clients that open one for each call:
// else a chat of 200 calls in half an hour would be at the limit. The session stays valid, as one that was idle. The
// caller has mu.
func (h *httpSessions) spare(principal string) (dropped bool) {
	var oldest *httpSession
	for _, x := range h.live {
		idle := x.key.Principal == principal && x.users == 0 && h.reopens(x)
		if idle && (oldest == nil || x.last.Before(oldest.last)) {
			oldest = x
		}
	}
	if oldest == nil {
		return false
	}
	h.remove(oldest)
	h.ended(oldest)
	return true
}

// reopens says whether the client of a session opens one for each call, so that the session is no conversation.
func (h *httpSessions) reopens(x *httpSession) bool {
	client := x.client.Load()
	return client != nil && h.e.o.Reopens != nil && h.e.o.Reopens(client.Name)
}

// newSession makes an entry for an id. It is not in the table yet.
func (h *httpSessions) newSession(who auth.Principal, id string) *httpSession {
	key := session.Key{Principal: who.ID, Session: sessions.ByHTTP + id}
	x := &httpSession{id: id, key: key, began: h.now(), who: who, opener: sessions.Sealed(who, key)}
	x.states = map[session.Key]bool{x.opener: true}
	x.roots.Keep = func(ctx context.Context, said []string) { // for its requests after a restart
		c := *x.client.Load()
		c.Roots = said
		x.client.Store(&c)
		if err := h.e.o.Records.Remember(context.WithoutCancel(ctx), x.key, &c); err != nil {
			h.e.o.Log.Warn("a client record cannot be kept", "err", err)
		}
	}
	return x
}

// usedBy notes whose request uses the session now. The caller has httpSessions.mu.
func (x *httpSession) usedBy(who auth.Principal) {
	x.who = who
	x.states[sessions.Sealed(who, x.key)] = true
}

// opened notes a session whose initialize succeeded.
func (h *httpSessions) opened(ctx context.Context, x *httpSession, c *sessions.ClientRecord) {
	x.client.Store(c)
	x.roots.Restore(c.HasRoots, c.Roots)
	if err := h.e.o.Records.Remember(ctx, x.key, c); err != nil {
		h.e.o.Log.Warn("a client record cannot be kept", "err", err)
	}
	h.e.o.Team.Event("session.start", map[string]any{"p": x.key.Principal, "sk": x.opener.Session,
		"client": c.Name + "/" + c.Version, "tr": "http"})
}

func (h *httpSessions) add(x *httpSession) {
	h.live[x.id] = x
	h.per[x.key.Principal]++
}

func (h *httpSessions) remove(x *httpSession) {
	if h.live[x.id] != x {
		return
	}
	delete(h.live, x.id)
	if h.per[x.key.Principal]--; h.per[x.key.Principal] == 0 {
		delete(h.per, x.key.Principal)
	}
}

// acquire returns the session of an id that this server issued to the principal. If the session is not in memory, after
// a restart or because it was idle, it is restored, since clients do not initialize again. An unknown, deleted or
// expired id (session.ttl) is errNoSession.
func (h *httpSessions) acquire(ctx context.Context, who auth.Principal, id string) (*httpSession, error) {
	h.mu.Lock()
	if x := h.live[id]; x != nil && x.key.Principal == who.ID { // the MAC was checked when it was added
		x.users++
		x.usedBy(who)
		h.mu.Unlock()
		return x, nil
	}
	h.mu.Unlock()
	if !h.e.o.Signer.valid(labelSession, who.ID, id) {
		return nil, errNoSession
	}

	x := h.newSession(who, id)
	client, gone, err := h.e.o.Records.Recall(ctx, x.key)
	if err != nil { // the Store is not reachable: trust the MAC for this one request
		h.e.o.Log.Warn("a session is taken by its id alone", "err", err)
		x.client.Store(&sessions.ClientRecord{})
		x.users = 1
		return x, nil
	}
	if gone {
		return nil, errNoSession
	}
	x.client.Store(client)
	x.roots.Restore(client.HasRoots, client.Roots)
	h.mu.Lock()
	if other := h.live[id]; other != nil {
		other.users++
		other.usedBy(who)
		h.mu.Unlock()
		return other, nil
	}
	h.add(x)
	x.users++
	h.mu.Unlock()
	// Look again: the session may have been deleted between Recall and add, and live sessions are not checked.
	if _, gone, err := h.e.o.Records.Recall(ctx, x.key); err == nil && gone {
		h.mu.Lock()
		h.remove(x)
		h.mu.Unlock()
		return nil, errNoSession
	}
	return x, nil
}

// release gives back what start and acquire returned.
func (h *httpSessions) release(x *httpSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.users--
	x.last = h.now()
}

// forget ends a session for good: its id is never valid again, its requests and streams are cancelled, its jobs are
// ended, and then what is remembered of it is removed.
func (h *httpSessions) forget(ctx context.Context, x *httpSession) error {
	if err := h.e.o.Records.Bury(ctx, x.key); err != nil {
		return err
	}
	h.mu.Lock()
	h.remove(x)
	states := slices.Collect(maps.Keys(x.states))
	h.mu.Unlock()
	drained := x.table.Close()
	x.asks.Close()
	x.table.CancelAll(errSessionEnded)
	h.e.work.cancelIf(func(a *active) bool { return a.session == x.id }, errSessionEnded)
	stdio.Within(drained, stdio.CancelGrace)
	for _, key := range states {
		h.e.o.Forget(key)
		if key != x.key {
			h.e.o.Records.Clear(ctx, key)
		}
	}
	h.e.o.Records.Clear(ctx, x.key)
	h.ended(x)
	h.e.o.Team.Event("session.end", map[string]any{"p": x.key.Principal, "sk": x.opener.Session})
	return nil
}

// drop removes a session whose initialize failed.
func (h *httpSessions) drop(x *httpSession) {
	if x.client.Load() != nil {
		return // it was initialized before
	}
	h.mu.Lock()
	h.remove(x)
	h.mu.Unlock()
}

// errSessionEnded is the cause of a cancel when the client deletes its session.
var errSessionEnded = errors.New("the session was deleted")

// dismiss forgets the sessions of a principal. They stay valid.
func (h *httpSessions) dismiss(principal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live {
		if x.key.Principal == principal {
			x.asks.Close()
			h.remove(x)
			h.ended(x)
		}
	}
}

// unask ends all pending questions to clients. The server is draining and accepts no more answers.
func (h *httpSessions) unask() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live {
		x.asks.Close()
	}
}

// sweepLoop drops idle sessions once a minute, and ends those whose user lost its token.
func (h *httpSessions) sweepLoop(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.revoked:
			h.endRevoked(ctx)
		case <-tick.C:
			h.sweep()
			h.e.o.Sweep()
		}
	}
}

// endRevoked ends the sessions that were last used with a token which has been revoked, or whose grant has ended, with
// the jobs that run in them. A client that signed in anew and went on has another token.
func (h *httpSessions) endRevoked(ctx context.Context) {
	h.mu.Lock()
	users := make(map[*httpSession]auth.Principal, len(h.live))
	for _, x := range h.live {
		users[x] = x.who
	}
	h.mu.Unlock()
	for x, who := range users {
		if !h.e.o.Porter.Ended(who) {
			continue
		}
		if err := h.forget(ctx, x); err != nil {
			h.e.o.Log.Error("a session whose token was revoked cannot be ended", "err", err)
		}
	}
}

func (h *httpSessions) sweep() {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live {
		if x.users == 0 && now.Sub(x.last) > h.e.o.Session.Idle {
			h.remove(x)
			h.ended(x)
		}
	}
}

// ended counts the end of a session.
func (h *httpSessions) ended(x *httpSession) {
	version := ""
	if c := x.client.Load(); c != nil {
		version = c.Protocol
	}
	h.e.o.Team.Metrics.Ended(version, "http", h.now().Sub(x.began))
}

// count returns how many sessions are in use.
func (h *httpSessions) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.live)
}
