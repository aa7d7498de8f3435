package server

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/shell"
)

const (
	// sessionIdle is how long a session without a call keeps its handles. Its truth is in the Store and on disk, so
	// the client never notices.
	sessionIdle = 30 * time.Minute
	// maxSessions is how many sessions of a process have handles, if nobody says.
	maxSessions = 10_000
	// sweepEvery is how often idle sessions are looked for, at most.
	sweepEvery = time.Minute
	// localID is who calls over stdio and in process.
	localID = "local"
)

var errHandle = errors.New("codehand/session must be 8-64 of [A-Za-z0-9._-]")

// stdioKey says whose call one on stdio is: the explicit handle of the request, that of the environment, the client's id for
// this call, the environment's conversation id, or this process, in this order. It never yields an empty one.
func (s *Server) stdioKey(env jsonrpc.Envelope) session.Key {
	key := session.Key{Principal: localID}
	switch {
	case env.HasSession:
		key.Session = kindHandle + env.Session
	case config.Handle(s.cfg.StdioHandle):
		key.Session = kindHandle + s.cfg.StdioHandle
	case env.HasThreadID && config.Conversation(env.ThreadID):
		key.Session = kindThread + env.ThreadID
	case s.cfg.StdioProcessID != "":
		key.Session = kindConversation + s.cfg.StdioProcessID
	default:
		key.Session = kindProcess + s.process
	}
	return key
}

// The kinds of session keys.
const (
	kindHandle       = "h:" // explicit handle
	kindThread       = "t:" // the client's id for this call
	kindHTTP         = "m:" // Mcp-Session-Id
	kindSSE          = "s:" // sessionId of legacy SSE
	kindConversation = "e:" // id in the environment
	kindProcess      = "p:" // stdio without any of them
	kindWorkspace    = "w:" // modern HTTP without any of them: all conversations of one person share it
)

// httpKey says whose call one over HTTP is: the explicit handle of the request or its URL, the client's id for this call,
// the transport session, and without any of them the workspace.
func httpKey(who auth.Principal, env jsonrpc.Envelope, handle, transport string) (session.Key, *jsonrpc.Error) {
	key := session.Key{Principal: who.ID}
	if env.HasSession && handle != "" && env.Session != handle {
		return key, &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: "codehand/session and the handle in the URL differ"}
	}
	if env.HasSession {
		handle = env.Session
	}
	switch {
	case env.HasSession || handle != "":
		if !config.Handle(handle) {
			return key, &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: errHandle.Error()}
		}
		key.Session = kindHandle + handle
	case env.HasThreadID && config.Conversation(env.ThreadID):
		key.Session = kindThread + env.ThreadID
	case transport != "":
		key.Session = transport
	default:
		key.Session = kindWorkspace + rootsKey(who.Roots)
	}
	return key, nil
}

// checkHandle refuses a handle that has not the form of one. Its content is a name, not a right.
func checkHandle(env jsonrpc.Envelope) error {
	if env.HasSession && !config.Handle(env.Session) {
		return errHandle
	}
	return nil
}

// rootsKey names a list of roots.
func rootsKey(roots []string) string { return state.Hash(strings.Join(roots, "\x00")) }

// newID returns 16 random bytes as text: nobody can guess it, and it never repeats.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// newRef returns the 8 characters by which a person finds a log line.
func newRef() string { return strings.ToUpper(newID()[:8]) }

// sessions holds the handles of the sessions in use. It is safe for concurrent use.
type sessions struct {
	build func(session.Key, *place) (*session.State, func(), error)
	now   func() time.Time
	after time.Duration // how long an idle session keeps its handles
	most  int           // sessions with handles; over it, idle ones lose theirs early

	// began and ended are told when a session gets its handles and when it has lost them, in whatever place. began may
	// take its time; ended must not wait for anybody. nil: nobody listens.
	began func(*session.State)
	ended func(st *session.State, why string)
	left  func() // told when a call is over; nil: nobody listens

	mu    sync.Mutex
	live  map[seat]*liveSession
	swept time.Time
	held  int           // calls that have not released their session
	over  chan struct{} // closed when held is 0 after closeAll, which makes it; from then on no call gets a session

	ending sync.WaitGroup // sessions that end took out of live; it grows under mu and never after closeAll took the rest
}

// errClosed says that the process ends.
var errClosed = errors.New("the server is closed")

// A seat is one session in one place. Tokens with different rights have different handles, over the same memory.
type seat struct {
	key session.Key
	at  *place
}

// A liveSession is a session whose handles are open.
type liveSession struct {
	state *session.State
	close func()
	calls int
	last  time.Time // of the last call's end

	prompts promptMark // of its modern clients over HTTP
}

func newSessions(build func(session.Key, *place) (*session.State, func(), error)) *sessions {
	return &sessions{build: build, now: time.Now, after: sessionIdle, most: maxSessions, live: map[seat]*liveSession{}}
}

// acquire finds or rebuilds the session and returns a copy of its State for one call. The caller runs release when the
// call is over; a session in use is never dropped.
func (s *sessions) acquire(key session.Key, at *place) (state *session.State, release func(), err error) {
	if key.Principal == "" || key.Session == "" {
		return nil, nil, errors.New("a session key is never empty")
	}
	l, fresh, err := s.hold(key, at)
	if err != nil {
		return nil, nil, err
	}
	if fresh && s.began != nil { // it asks the Store, for which the calls of other sessions must not wait
		s.began(l.state)
	}
	c := *l.state
	done := false
	return &c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !done {
			done = true
			l.calls--
			l.last = s.now()
			if s.held--; s.held == 0 && s.over != nil {
				close(s.over)
			}
			if s.left != nil {
				s.left()
			}
		}
	}, nil
}

// hold finds or rebuilds the session for one call. fresh says that it had handles nowhere.
func (s *sessions) hold(key session.Key, at *place) (l *liveSession, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return nil, false, errClosed
	}
	s.sweep()
	l = s.live[seat{key, at}]
	if l == nil {
		st, end, err := s.build(key, at)
		if err != nil {
			return nil, false, err
		}
		fresh = !s.seated(key)
		l = &liveSession{state: st, close: end}
		s.live[seat{key, at}] = l
		s.makeRoom()
	}
	l.calls++
	s.held++
	return l, fresh, nil
}

// idle drops the handles of idle sessions, if it is time to look.
func (s *sessions) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
}

// end drops the handles of one session for good, with its jobs.
func (s *sessions) end(key session.Key) {
	s.mu.Lock()
	var gone []*liveSession
	for at, l := range s.live {
		if at.key == key {
			gone = append(gone, l)
			delete(s.live, at)
		}
	}
	s.ending.Add(len(gone))
	s.mu.Unlock()
	defer s.ending.Add(-len(gone))
	for _, l := range gone {
		l.close()
	}
	if len(gone) > 0 && s.ended != nil {
		s.ended(gone[0].state, sessionClosed)
	}
}

// Why a session has no handles any more.
const (
	sessionClosed   = "closed"   // its client ended it
	sessionDropped  = "idle"     // nobody called for long; the next call resumes it
	sessionShutDown = "shutdown" // the server ended
)

// seated says whether a session has handles anywhere. The caller holds mu.
func (s *sessions) seated(key session.Key) bool {
	for at := range s.live {
		if at.key == key {
			return true
		}
	}
	return false
}

// drop closes the handles at one seat. The caller holds mu.
func (s *sessions) drop(at seat, why string) {
	l := s.live[at]
	l.close()
	delete(s.live, at)
	if s.ended != nil && !s.seated(at.key) {
		s.ended(l.state, why)
	}
}

// jobs returns how many jobs of the sessions in use there are, by state.
func (s *sessions) jobs() map[string]int {
	s.mu.Lock()
	var shells []*shell.Shell
	for _, l := range s.live {
		if l.state.Shell != nil {
			shells = append(shells, l.state.Shell)
		}
	}
	s.mu.Unlock()
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

// sweep drops the handles of idle sessions. The caller holds mu.
func (s *sessions) sweep() {
	now := s.now()
	if now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for at, l := range s.live {
		if l.calls == 0 && now.Sub(l.last) > s.after && !busy(l.state) {
			s.drop(at, sessionDropped)
		}
	}
}

// makeRoom drops the handles of the session that is idle the longest, if there are too many. The caller holds mu, and
// what it has just made is in use.
func (s *sessions) makeRoom() {
	if len(s.live) <= s.most {
		return
	}
	var oldest seat
	for at, l := range s.live {
		if l.calls == 0 && !l.last.IsZero() && (s.live[oldest] == nil || l.last.Before(s.live[oldest].last)) && !busy(l.state) {
			oldest = at
		}
	}
	if s.live[oldest] != nil {
		s.drop(oldest, sessionDropped)
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

// closeAll ends every session, and waits for those that are ended already: their jobs end with their whole trees. No call gets
// one any more; the channel is closed when the last call that had one is over.
func (s *sessions) closeAll() (over <-chan struct{}) {
	s.mu.Lock()
	live := s.live
	s.live = map[seat]*liveSession{}
	if s.over == nil {
		if s.over = make(chan struct{}); s.held == 0 {
			close(s.over)
		}
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	states := map[session.Key]*session.State{}
	for at, l := range live {
		wg.Go(l.close)
		states[at.key] = l.state
	}
	wg.Wait()
	for _, st := range states {
		if s.ended != nil {
			s.ended(st, sessionShutDown)
		}
	}
	s.ending.Wait()
	return s.over
}
