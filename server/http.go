package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/listen"
)

// Deadlines and limits of the listener.
const (
	headerTime   = 5 * time.Second  // for the header of a request
	bodyTime     = 30 * time.Second // for its body
	writeTime    = 30 * time.Second // for each write of an answer
	idleTime     = 60 * time.Second // between the requests of a connection
	maxHeader    = 64 << 10         // bytes
	maxHTTP2     = 100              // requests at once on one HTTP/2 connection
	keepAliveGap = 10 * time.Second // between the comments on an open stream
)

// Paths of MCP.
const (
	pathMCP     = "/mcp"
	pathHandle  = "/mcp/s/"
	pathSSE     = "/sse"
	pathMessage = "/message"
	pathMetrics = "/metrics" // not of MCP
)

// An httpEndpoint is one Server on HTTP.
type httpEndpoint struct {
	s         *Server
	t         *team
	log       *slog.Logger
	stream    *mcpserver.StreamableHTTPServer
	sessions  *httpSessions
	sse       *sseStreams
	work      activity
	bodies    bodies
	base      context.Context // of all calls; ends when the drain is over
	stop      context.CancelCauseFunc
	keepAlive time.Duration
	prefix    string   // path of http.public_url, before our own
	hosts     []string // allowed besides those of a listener
	origins   []string
	named     sync.Map // running calls by principal and codehand/call: *flight
	heeding   sync.Map // open listens that want to hear of other prompts, by *responder: session.Key
	sseWarned sync.Once
}

// errDraining is the cause of a cancel when the server ends.
var errDraining = errors.New("server is shutting down")

func (s *Server) newEndpoint() *httpEndpoint {
	e := &httpEndpoint{s: s, t: s.team, log: s.log, keepAlive: keepAliveGap}
	e.base, e.stop = context.WithCancelCause(context.Background())
	e.prefix, e.hosts = publicHosts(s.cfg.HTTP.PublicURL)
	e.hosts = append(e.hosts, s.cfg.HTTP.AllowedHosts...)
	e.origins = s.cfg.HTTP.AllowedOrigins
	e.sessions = newHTTPSessions(s)
	e.sse = newSSEStreams()
	e.stream = mcpserver.NewStreamableHTTPServer(s.mcp,
		mcpserver.WithSessionIdManagerResolver(idResolver{}),
		mcpserver.WithStreamableHTTPProtocolVersions(s.versions...),
		mcpserver.WithHTTPContextFunc(e.modernSession),
		mcpserver.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)),
	)
	return e
}

// HTTP serves on the listeners until ctx ends, then drains: calls that run may finish, streams are ended. It closes the
// listeners. The error is that of a listener; after a clean drain it is nil.
func (s *Server) HTTP(ctx context.Context, ls []listen.Listener) error {
	if s.team == nil {
		return errors.New("this server was not made to serve HTTP")
	}
	e := s.newEndpoint()
	s.endpoint.Store(e)
	defer s.endpoint.Store(nil)
	broken := make(chan error, len(ls))
	var servers []*http.Server
	for _, l := range ls {
		h := &http.Server{
			Handler:                      e.on(l),
			DisableGeneralOptionsHandler: true, // it would answer `OPTIONS *` before our checks
			ReadHeaderTimeout:            headerTime,
			IdleTimeout:                  idleTime,
			MaxHeaderBytes:               maxHeader,
			ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
			HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2},
			TLSConfig:                    l.TLS,
			Protocols:                    protocols(l.TLS != nil),
		}
		servers = append(servers, h)
		in := e.t.porter.Listener(l.Listener)
		go func() {
			if l.TLS != nil {
				broken <- h.ServeTLS(in, "", "")
			} else {
				broken <- h.Serve(in)
			}
		}()
	}
	background, end := context.WithCancel(context.Background())
	var jobs sync.WaitGroup
	jobs.Go(func() { e.t.porter.Watch(background, e.revoke) })
	jobs.Go(func() { e.sessions.sweepLoop(background, e) })
	e.t.health.Ready()

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-broken:
	}
	e.drain(servers, ls)
	for _, l := range ls {
		_ = l.Close() // mostly it is closed; but one whose Serve had not begun is unknown to its http.Server
	}
	end()
	jobs.Wait()
	if failed != nil && !errors.Is(failed, http.ErrServerClosed) {
		return fmt.Errorf("listener: %w", failed)
	}
	return nil
}

// protocols are HTTP/1.1, and with TLS also HTTP/2; never HTTP/2 in clear.
func protocols(tls bool) *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(tls)
	return p
}

// revoke ends the streams and cancels the calls of whoever lost the token they came with.
func (e *httpEndpoint) revoke() {
	e.work.cancelIf(func(x *active) bool { return !e.t.porter.Valid(x.who) }, errRevoked)
}

// errRevoked is the cause of a cancel when a token is revoked.
var errRevoked = errors.New("the token was revoked")

// Reload takes what the operator now says about principals, and reads the tokens again. With an error that part stays as
// it was.
func (s *Server) Reload(p config.Principals) error {
	if s.team == nil {
		return nil
	}
	err := errors.Join(s.team.porter.Configure(p.Default, p.Named), s.team.porter.Reload())
	if e := s.endpoint.Load(); e != nil {
		e.revoke()
	}
	s.team.places.reload(p)
	s.team.event("config.reload", map[string]any{"ok": err == nil})
	return err
}

// An activity is all requests and streams that are open. It is safe for concurrent use; the zero value is ready.
type activity struct {
	mu      sync.Mutex
	open    map[*active]struct{}
	closed  bool          // no more are taken
	drained chan struct{} // closed when none is open and no more are taken; nil until close
}

// An active is one open request or stream.
type active struct {
	who     auth.Principal
	kind    string // get, sse, listen: a stream, which ends first; "": a request
	session string // id of the legacy session of a stream; "": none
	cancel  func(cause error)
}

// begin enters a request or stream. A token that was revoked after it had let its request in is noticed here or by
// revoke.
func (e *httpEndpoint) begin(x *active) error {
	if !e.work.begin(x) {
		return draining()
	}
	if err := e.valid(x.who); err != nil {
		e.work.end(x)
		return err
	}
	return nil
}

// valid says whether the token of a request that was let in still holds.
func (e *httpEndpoint) valid(who auth.Principal) error {
	if e.t.porter.Valid(who) {
		return nil
	}
	return &auth.Error{Status: http.StatusUnauthorized, Code: "invalid_token", Message: "token not accepted"}
}

// begin enters one. ok is false when the server ends.
func (a *activity) begin(x *active) (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	if a.open == nil {
		a.open = map[*active]struct{}{}
	}
	a.open[x] = struct{}{}
	return true
}

func (a *activity) end(x *active) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, x)
	if a.closed && len(a.open) == 0 {
		close(a.drained)
	}
}

// close takes no more. The channel is closed when all have ended.
func (a *activity) close() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed, a.drained = true, make(chan struct{})
		if len(a.open) == 0 {
			close(a.drained)
		}
	}
	return a.drained
}

// closing says whether close was called.
func (a *activity) closing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// endStreams ends the streams.
func (a *activity) endStreams(cause error) {
	a.cancelIf(func(x *active) bool { return x.kind != "" }, cause)
}

// cancelIf cancels what matches.
func (a *activity) cancelIf(match func(*active) bool, cause error) {
	for _, x := range a.list() {
		if match(x) {
			x.cancel(cause)
		}
	}
}

func (a *activity) list() []*active {
	a.mu.Lock()
	defer a.mu.Unlock()
	xs := make([]*active, 0, len(a.open))
	for x := range a.open {
		xs = append(xs, x)
	}
	return xs
}

// count returns how many streams of each kind are open, requests under "".
func (a *activity) count() map[string]int {
	n := map[string]int{}
	for _, x := range a.list() {
		n[x.kind]++
	}
	return n
}

// route splits a path into the MCP route and the handle in it. ok is false for a path that is not of MCP.
func (e *httpEndpoint) route(path string) (route, handle string, ok bool) {
	path = strings.TrimPrefix(path, e.prefix)
	switch {
	case path == pathMCP, path == pathSSE && e.s.cfg.HTTP.SSE, path == pathMessage && e.s.cfg.HTTP.SSE:
		return path, "", true
	case strings.HasPrefix(path, pathHandle):
		handle = strings.TrimPrefix(path, pathHandle)
		return pathMCP, handle, handle != "" && !strings.Contains(handle, "/")
	}
	return "", "", false
}
