package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/state"
	"codehand/server/stdio"
	"codehand/tools/session"
)

// A httpSession is a legacy transport session that was used lately: what mcp-go knows of it, and its open requests. Its
// truth is in its id and in the Store, so it may be dropped between any two requests.
type httpSession struct {
	id     string
	key    session.Key // of its client record
	table  jsonrpc.InFlight
	asks   questions // of its requests
	client atomic.Pointer[clientRecord]

	prompts promptMark
	roots   clientRoots

	users  int     // requests and streams; covered by httpSessions.mu
	holder *active // the first open stream, by which mcp-go knows the session; likewise
	last   time.Time
	began  time.Time
}

// httpSessions are the legacy sessions in use. It is safe for concurrent use.
type httpSessions struct {
	s   *Server
	now func() time.Time

	mu   sync.Mutex
	live map[string]*httpSession // by id
	per  map[string]int          // live ones by principal
}

func newHTTPSessions(s *Server) *httpSessions {
	return &httpSessions{s: s, now: time.Now, live: map[string]*httpSession{}, per: map[string]int{}}
}

// The errors of acquire.
var (
	errNoSession       = errors.New("unknown session")
	errTooManySessions = errors.New("too many sessions; end one, or wait until one is idle")
)

// noSession is what clients get for an id that is not theirs, in the words that they know from other servers.
const noSession = "Invalid session ID"

// start makes room for a new session of the principal.
func (h *httpSessions) start(who auth.Principal) (*httpSession, error) {
	most := h.s.cfg.Session.MaxPerPrincipal
	if q := who.Quota.Sessions; q > 0 {
		most = min(most, q)
	}
	id := h.s.team.signer.id(labelSession, who.ID)
	x := &httpSession{id: id, key: session.Key{Principal: who.ID, Session: kindHTTP + id}, users: 1, began: h.now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.per[who.ID] >= most {
		return nil, errTooManySessions
	}
	h.add(x)
	return x, nil
}

// opened notes a session whose initialize succeeded.
func (h *httpSessions) opened(ctx context.Context, x *httpSession, c *clientRecord) {
	x.client.Store(c)
	x.roots.begin(c)
	if err := h.s.remember(ctx, x.key, c); err != nil {
		h.s.log.Warn("a client record cannot be kept", "err", err)
	}
	h.s.team.event("session.start", map[string]any{"p": x.key.Principal, "sk": x.key.Session, "client": c.Name + "/" + c.Version, "tr": "http"})
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

// acquire finds the session of an id that we made for this principal. One that this process does not know is adopted:
// clients do not initialize again, so neither a restart nor an expiry may ask them to. Every other id is errNoSession.
func (h *httpSessions) acquire(ctx context.Context, who auth.Principal, id string) (*httpSession, error) {
	h.mu.Lock()
	if x := h.live[id]; x != nil && x.key.Principal == who.ID { // its mac was looked at before
		x.users++
		h.mu.Unlock()
		return x, nil
	}
	h.mu.Unlock()
	if !h.s.team.signer.valid(labelSession, who.ID, id) {
		return nil, errNoSession
	}

	x := &httpSession{id: id, key: session.Key{Principal: who.ID, Session: kindHTTP + id}, began: h.now()}
	client, gone, err := h.s.recall(ctx, x.key)
	if err != nil { // the Store is away: the id alone must do, for this request
		h.s.log.Warn("a session is taken by its id alone", "err", err)
		x.client.Store(&clientRecord{})
		x.users = 1
		return x, nil
	}
	if gone {
		return nil, errNoSession
	}
	x.client.Store(client)
	x.roots.begin(client)
	h.mu.Lock()
	if other := h.live[id]; other != nil {
		other.users++
		h.mu.Unlock()
		return other, nil
	}
	h.add(x)
	x.users++
	h.mu.Unlock()
	// Once more: it may have been ended between the look and the entry, and what is live is not looked at again.
	if _, gone, err := h.s.recall(ctx, x.key); err == nil && gone {
		h.mu.Lock()
		h.remove(x)
		h.mu.Unlock()
		return nil, errNoSession
	}
	return x, nil
}

// hold notes a stream of a session.
func (h *httpSessions) hold(x *httpSession, stream *active) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.holder == nil {
		x.holder = stream
	}
}

// unhold says whether the stream that ends is the one by which mcp-go knows the session.
func (h *httpSessions) unhold(x *httpSession, stream *active) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x.holder != stream {
		return false
	}
	x.holder = nil
	return true
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
func (h *httpSessions) forget(ctx context.Context, e *httpEndpoint, x *httpSession) error {
	if err := h.s.bury(ctx, x.key); err != nil {
		return err
	}
	h.mu.Lock()
	h.remove(x)
	h.mu.Unlock()
	drained := x.table.Close()
	x.asks.close()
	x.table.CancelAll(errSessionEnded)
	e.work.cancelIf(func(a *active) bool { return a.session == x.id }, errSessionEnded)
	stdio.Within(drained, stdio.CancelGrace)
	e.free(x.id)
	h.s.sessions.end(x.key)
	h.s.clear(ctx, x.key)
	h.ended(x)
	h.s.team.event("session.end", map[string]any{"p": x.key.Principal, "sk": x.key.Session})
	return nil
}

// drop lets go of a session whose initialize failed.
func (h *httpSessions) drop(e *httpEndpoint, x *httpSession) {
	if x.client.Load() != nil {
		return // it is one that was initialized before
	}
	h.mu.Lock()
	h.remove(x)
	h.mu.Unlock()
	e.free(x.id)
}

// errSessionEnded is the cause of a cancel when the client deletes its session.
var errSessionEnded = errors.New("the session was deleted")

// unask ends all questions without an answer: the server ends, and takes none any more.
func (h *httpSessions) unask() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live {
		x.asks.close()
	}
}

// sweepLoop drops what is idle, once a minute.
func (h *httpSessions) sweepLoop(ctx context.Context, e *httpEndpoint) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.sweep(e)
			h.s.sessions.idle()
			h.s.engines.keeps.look()
		}
	}
}

func (h *httpSessions) sweep(e *httpEndpoint) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.live {
		if x.users == 0 && now.Sub(x.last) > h.s.cfg.Session.Idle {
			h.remove(x)
			e.free(x.id) // under the lock: who comes next must find it gone, or make it again afterwards
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
	h.s.team.metrics.Ended(version, "http", h.now().Sub(x.began))
}

// count returns how many sessions are in use.
func (h *httpSessions) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.live)
}

// free lets mcp-go drop its objects of a session. Our id manager lets every id pass, so nothing is ended for good.
func (e *httpEndpoint) free(id string) {
	r := &mcpserver.HTTPRequest{Method: http.MethodDelete, Header: http.Header{mcpserver.HeaderKeySessionID: {id}}, Context: context.Background()}
	e.stream.Handle(discard{header: http.Header{}}, r)
}

// A discard is a response that nobody waits for.
type discard struct{ header http.Header }

func (d discard) Header() http.Header       { return d.header }
func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Flush()                      {}
func (discard) CanStream() bool             { return false }

// An idResolver gives mcp-go the id that was made for a request. Every check was made before.
type idResolver struct{}

// ResolveSessionIdManager is the name that mcp-go asks for.
//
//nolint:revive // it is not ours
func (idResolver) ResolveSessionIdManager(r *http.Request) mcpserver.SessionIdManager {
	if r == nil {
		return idManager("")
	}
	if rec := recordFrom(r.Context()); rec != nil {
		return idManager(rec.newID)
	}
	return idManager("")
}

type idManager string

func (m idManager) Generate() string             { return string(m) }
func (idManager) Validate(string) (bool, error)  { return false, nil }
func (idManager) Terminate(string) (bool, error) { return false, nil }

// remember writes what a client said about itself, for requests after a restart.
func (s *Server) remember(ctx context.Context, key session.Key, c *clientRecord) error {
	c.V = 1
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return s.engines.store.Set(ctx, cellKey(key, clientKey), body)
}

// recall reads it. gone says that the session was ended for good. A session without a record has an empty one.
func (s *Server) recall(ctx context.Context, key session.Key) (c *clientRecord, gone bool, err error) {
	tomb, _, err := s.engines.store.Get(ctx, cellKey(key, "gone"))
	if err != nil || tomb != nil {
		return nil, tomb != nil, err
	}
	c = &clientRecord{}
	body, _, err := s.engines.store.Get(ctx, cellKey(key, clientKey))
	if err != nil {
		return nil, false, err
	}
	if body != nil {
		if err := json.Unmarshal(body, c); err != nil {
			s.log.Warn("a client record cannot be read", "err", err)
			c = &clientRecord{}
		}
	}
	return c, false, nil
}

// bury marks a session as gone.
func (s *Server) bury(ctx context.Context, key session.Key) error {
	if err := s.engines.store.Set(ctx, cellKey(key, "gone"), []byte(`{"v":1}`)); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

// clear removes all that is remembered of a session but that it is gone. What cannot be removed ends with its life.
func (s *Server) clear(ctx context.Context, key session.Key) {
	store := s.engines.store
	keys, err := store.Keys(ctx, state.Key(state.Session, state.Hash(key.Principal), state.Hash(key.Session)))
	for _, k := range keys {
		if k != cellKey(key, "gone") {
			err = errors.Join(err, store.Delete(ctx, k))
		}
	}
	if err != nil {
		s.log.Warn("what a session left cannot be removed", "err", err)
	}
}

func cellKey(key session.Key, cell string) string {
	return state.Key(state.Session, state.Hash(key.Principal), state.Hash(key.Session), cell)
}
