package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/metrics"
	"codehand/server/public"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/tenants"
	"codehand/tools/session"
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

// PathTokens stands before the paths of MCP for clients with a token of the tokens file, where others sign in by OAuth:
// what is below it never names OAuth, since some clients show no token to a server that offers a sign-in.
const PathTokens = "/t"

// Options of an Endpoint.
type Options struct {
	stdio.Server // what every transport needs of the server: Serve, Refuse, Follow and more
	HTTP         config.HTTP
	Session      config.Session
	Log          *slog.Logger
	Versions     []string // of the protocol, newest first
	// Patience is how long a progress notification waits for a slow SSE client before it is dropped; 0: as usual.
	Patience time.Duration

	Porter  *auth.Porter // authenticates a request: finds its principal
	Tenants *tenants.Registry
	Signer  *Signer
	Records sessions.Records
	Cluster *Cluster // nil: this process serves everybody
	Team    Team
	// CheckHeaders compares the headers of a modern request with its body, as the protocol requires. nil: they agree.
	CheckHeaders func(env jsonrpc.Envelope, message []byte, header http.Header) *jsonrpc.Error
	// Forget ends the handles and jobs of a session that its client ended.
	Forget func(session.Key)
	// ForgetAll is Forget for all sessions of a principal.
	ForgetAll func(principal string)
	// Sweep is run about once a minute, while the endpoint serves.
	Sweep func()
	// Report logs an internal error and returns the error that refers the client to it.
	Report func(ctx context.Context, where string, err error) *jsonrpc.Error
}

// A SignIn is what the endpoint needs of a sign-in by OAuth. The zero value is of none.
type SignIn struct {
	// Pages returns what serves a path that needs no token, such as the pages of a sign-in; nil: nothing there does.
	// What it returns looks at the Origin of a request itself.
	Pages func(path string) http.Handler
	// TokenPaths says whether the paths below PathTokens exist.
	TokenPaths bool
	// Lacking refuses a message that needs scopes which the caller's client may ask the person for; nil: it lacks none.
	Lacking func(r *http.Request, who auth.Principal, env jsonrpc.Envelope) error
}

// A Team is what operators see of the endpoint: metrics, health, and callbacks for the audit log.
type Team struct {
	Metrics     *metrics.Counts
	Health      *metrics.Health
	Mode        string // of auth
	SignIn      SignIn
	ScrapeToken string // opens /metrics; "": there is none
	MetricsAway bool   // /metrics has an address of its own
	// Public proves that http.public_url leads here. Until it is open nothing else is served; nil: there is no such
	// URL.
	Public  *public.Prover
	Event   func(name string, fields map[string]any)
	Refused func(ip string, err error)    // notes who was not let in
	Limited func(principal, quota string) // notes that a quota refused a request
}

// An Endpoint is a server on HTTP. It is safe for concurrent use.
type Endpoint struct {
	o         Options
	sessions  *httpSessions
	sse       *sseStreams
	work      activity
	bodies    bodies
	base      context.Context // of all calls; ends when the drain is over
	stop      context.CancelCauseFunc
	keepAlive time.Duration
	front     front
	prefix    string   // path of http.public_url, before our own
	hosts     []string // allowed besides those of a listener
	unserved  unservedHosts
	named     sync.Map // running calls by principal and codehand/call: *jsonrpc.Flight
	sseWarned sync.Once
}

// errDraining is the cause of a cancel when the server ends.
var errDraining = errors.New("server is shutting down")

// New makes an endpoint that serves nothing yet.
func New(o Options) *Endpoint {
	if o.Team.SignIn.Pages == nil {
		o.Team.SignIn.Pages = func(string) http.Handler { return nil }
	}
	if o.Team.SignIn.Lacking == nil {
		o.Team.SignIn.Lacking = func(*http.Request, auth.Principal, jsonrpc.Envelope) error { return nil }
	}
	e := &Endpoint{o: o, keepAlive: keepAliveGap, sse: newSSEStreams()}
	e.base, e.stop = context.WithCancelCause(context.Background())
	e.prefix, e.hosts = publicHosts(o.HTTP.PublicURL)
	e.front = front{mode: o.Team.Mode, proxy: o.HTTP.BehindProxy, prefix: e.prefix, prover: o.Team.Public}
	e.hosts = append(e.hosts, o.HTTP.AllowedHosts...)
	e.sessions = newHTTPSessions(e)
	return e
}

// Serve serves on the listeners until ctx ends, then drains: calls that run may finish, streams are ended. It closes
// the listeners. The error is that of a listener; after a clean drain it is nil.
func (e *Endpoint) Serve(ctx context.Context, ls []listen.Listener) error {
	broken := make(chan error, len(ls))
	var servers []*http.Server
	for _, l := range ls {
		h := &http.Server{
			Handler:                      e.on(l),
			DisableGeneralOptionsHandler: true, // it would answer `OPTIONS *` before our checks
			ReadHeaderTimeout:            headerTime,
			IdleTimeout:                  idleTime,
			MaxHeaderBytes:               maxHeader,
			ErrorLog:                     slog.NewLogLogger(e.o.Log.Handler(), slog.LevelDebug),
			HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxHTTP2},
			TLSConfig:                    l.TLS,
			Protocols:                    protocols(l.TLS != nil),
		}
		servers = append(servers, h)
		in := e.o.Porter.Listener(l.Listener)
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
	jobs.Go(func() { e.o.Porter.Watch(background, e.Revoke) })
	jobs.Go(func() { e.sessions.sweepLoop(background) })
	e.o.Team.Health.Ready()

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

// Count returns how many streams of each kind are open, requests under "", and legacy sessions in use under "sessions".
func (e *Endpoint) Count() map[string]int {
	n := e.work.count()
	n["sessions"] = e.sessions.count()
	return n
}

// protocols are HTTP/1.1, and with TLS also HTTP/2; never HTTP/2 in clear.
func protocols(tls bool) *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	p.SetHTTP2(tls)
	return p
}

// Revoke ends the streams and cancels the calls of principals that lost the token they came with. The sessions of those
// who had signed in end soon after.
func (e *Endpoint) Revoke() {
	e.work.cancelIf(func(x *active) bool {
		by := x.by.Load()
		return !e.o.Porter.Valid(x.who) || by != nil && !e.o.Porter.Valid(*by)
	}, errRevoked)
	select {
	case e.sessions.revoked <- struct{}{}:
	default: // they will be looked at anyway
	}
}

// errRevoked is the cause of a cancel when a token is revoked.
var errRevoked = errors.New("the token was revoked")

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
	by      atomic.Pointer[auth.Principal] // of an SSE stream: the principal that posted to it last; nil: none did
	kind    string                         // get, sse, listen, away: a stream, which ends first; "": a request
	away    bool                           // another node serves it
	session string                         // id of the legacy session of a stream; "": none
	cancel  func(cause error)
}

// begin adds a request or stream, and then checks its token once more: a token that was revoked since the guard checked
// it is found here or by Revoke.
func (e *Endpoint) begin(x *active) error {
	if !e.work.begin(x) {
		return draining()
	}
	if err := e.valid(x.who); err != nil {
		e.work.end(x)
		return err
	}
	return nil
}

// valid reports whether the token that authenticated a request is still valid.
func (e *Endpoint) valid(who auth.Principal) error {
	if e.o.Porter.Valid(who) {
		return nil
	}
	return &auth.Error{Status: http.StatusUnauthorized, Code: "invalid_token", Message: "token not accepted"}
}

// begin adds x. It returns false if the server is shutting down.
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

// close makes begin refuse more. The channel is closed when all open requests and streams have ended.
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

// closing reports whether close was called.
func (a *activity) closing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// endStreams ends the streams.
func (a *activity) endStreams(cause error) {
	a.cancelIf(func(x *active) bool { return x.kind != "" }, cause)
}

// cancelIf cancels the requests and streams that match.
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
func (e *Endpoint) route(path string) (route, handle string, ok bool) {
	path = strings.TrimPrefix(path, e.prefix)
	if rest, ok := strings.CutPrefix(path, PathTokens+"/"); ok && e.o.Team.SignIn.TokenPaths {
		path = "/" + rest
	}
	switch {
	case path == pathMCP, path == pathSSE && e.o.HTTP.SSE, path == pathMessage && e.o.HTTP.SSE:
		return path, "", true
	case strings.HasPrefix(path, pathHandle):
		handle = strings.TrimPrefix(path, pathHandle)
		return pathMCP, handle, handle != "" && !strings.Contains(handle, "/")
	}
	return "", "", false
}
