package endpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/server/listen"
	"codehand/server/metrics"
	"codehand/server/pipeline"
	"codehand/server/public"
)

// A caller is who sent a request that passed the guard.
type caller struct {
	who    auth.Principal
	limits *limits.Limiter
	ip     string
	page   bool   // a web page sent it without a token, and its origin is not allowed
	done   func() // gives back what the request holds of its quotas

	relayed string // its name where a node may send it again; "": none does
}

// from says where the calls of a request come from. era is "" where each call says it.
func (c caller) from(transport, era string) pipeline.From {
	return pipeline.From{Auth: c.who.Via, Transport: transport, Era: era, IP: c.ip, Page: c.page}
}

// corsHeaders are what pages of a listed origin may send and see.
const (
	corsAllow = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, " +
		"Mcp-Method, Mcp-Name"
	corsExpose = "Mcp-Session-Id, WWW-Authenticate"
)

// on returns the handler of one listener. It makes the checks that need no body, cheapest and least revealing first.
func (e *Endpoint) on(l listen.Listener) http.Handler {
	hosts := slices.Clone(e.hosts)
	if l.Loopback {
		hosts = append(hosts, loopbackHosts(l.Listener)...)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bound(w, r)
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		switch r.URL.Path {
		case "/healthz":
			e.o.Team.Health.ServeAlive(w, r)
			return
		case "/readyz":
			if err := cmp.Or(e.front.unproven(), e.front.outside(r, true)); err != nil { // probes use any Host
				deny(w, r, err)
				return
			}
			e.ready(w, r)
			return
		}
		// Skip the checks of Host and Origin for a scraper with a token: it may use any address, and no web page has
		// its token.
		if r.URL.Path == pathMetrics && e.o.Team.Mode != auth.ModeNone && len(r.Header["Authorization"]) > 0 {
			e.metricsPage(w, r)
			return
		}
		if e.work.closing() {
			h.Set("Connection", "close")
			deny(w, r, draining())
			return
		}
		if !l.Unix && !slices.Contains(hosts, strings.ToLower(r.Host)) && !(l.Loopback && forwarded(r)) {
			refusal := e.unserved.refuse(strings.ToLower(r.Host), e.o.Log)
			if e.o.Team.Mode == auth.ModeNone && !public.OnThisMachine(hostOf(r)) {
				refusal.Message = "this Host is not served here, because nobody signs in. " + signInRemedy
			}
			deny(w, r, refusal)
			return
		}
		if err := e.front.outside(r, l.Unix); err != nil {
			deny(w, r, err)
			return
		}
		if e.front.challenge(w, r) {
			return
		}
		if err := e.front.unproven(); err != nil {
			deny(w, r, err)
			return
		}
		if page := e.o.Team.SignIn.Pages(r.URL.Path); page != nil {
			if err := e.o.Porter.Page(r); err != nil {
				deny(w, r, err)
				return
			}
			page.ServeHTTP(w, r)
			return
		}
		origin, ok := e.origin(r, l)
		if !ok {
			deny(w, r, &auth.Error{Status: http.StatusForbidden, Code: "forbidden_origin",
				Message: "pages of this origin may not call this server"})
			return
		}
		if origin != "" {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", corsExpose)
			h.Add("Vary", "Origin")
			if r.Method == http.MethodOptions {
				preflight(w, r)
				return
			}
		}
		e.routed(w, r)
	})
}

// bound sets the deadlines of a request. Without them a body that never arrives, or an answer that the client never
// reads, would hold a connection for ever, even before the caller is authenticated. Long calls and streams lift them.
func bound(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	end := time.Now()
	if r.ContentLength != 0 {
		end = end.Add(bodyTime)
		_ = control.SetReadDeadline(end)
	}
	_ = control.SetWriteDeadline(end.Add(writeTime))
}

// routed serves a request that passed the checks of Host and Origin.
func (e *Endpoint) routed(w http.ResponseWriter, r *http.Request) {
	route, handle, ok := e.route(r.URL.Path)
	if !ok && r.URL.Path == pathMetrics {
		route, ok = pathMetrics, true
	}
	if !ok {
		deny(w, r, &auth.Error{Status: http.StatusNotFound, Code: "not_found",
			Message: "there is nothing here; MCP is at /mcp"})
		return
	}
	methods := allowed(route)
	if !slices.Contains(methods, r.Method) {
		list := strings.Join(methods, ", ")
		w.Header().Set("Allow", list)
		deny(w, r, &auth.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "use " + list})
		return
	}
	if route == pathMetrics {
		e.metricsPage(w, r)
		return
	}
	// net/http notices that a client is gone only after it has read the whole body
	if r.Method != http.MethodPost && r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		deny(w, r, &auth.Error{Status: http.StatusBadRequest, Code: "body_unexpected",
			Message: r.Method + " has no body here"})
		return
	}
	who, ip, err := e.authenticate(r)
	if err != nil {
		deny(w, r, err)
		return
	}
	if e.o.Cluster == nil {
		e.serve(w, r, who, ip, route, handle, "")
		return
	}
	trip := &trip{e: e, w: w, r: r, who: who, ip: ip}
	if !trip.away() {
		e.serve(trip.answer(), r, who, ip, route, handle, trip.call)
		trip.arrived()
	}
}

// serve serves a request of a principal whose workspace this process has. relayed is its name where a node may send it
// again; "": none does.
func (e *Endpoint) serve(w http.ResponseWriter, r *http.Request, who auth.Principal,
	ip, route, handle, relayed string) {
	c, err := e.admit(r, who, ip)
	if err != nil {
		deny(w, r, err)
		return
	}
	c.relayed = relayed
	defer c.done()
	switch {
	case handle != "" && !config.Handle(handle) && r.Method != http.MethodPost: // a POST is answered as a message
		deny(w, r, badHandle())
	case route == pathSSE:
		e.openSSE(w, r, c)
	case route == pathMessage:
		e.message(w, r, c)
	case r.Method == http.MethodPost:
		e.post(w, r, c, handle)
	case r.Method == http.MethodGet:
		e.get(w, r, c)
	default:
		e.delete(w, r, c)
	}
}

// allowed are the methods of a route.
func allowed(route string) []string {
	switch route {
	case pathMCP:
		return []string{http.MethodGet, http.MethodPost, http.MethodDelete}
	case pathMessage:
		return []string{http.MethodPost}
	}
	return []string{http.MethodGet}
}

// unlisted says whether a web page sent r that is not among origins.
func unlisted(r *http.Request, origins []string) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && !slices.Contains(origins, origin)
}

// authenticate finds out who calls, and from which address; "": it has none.
func (e *Endpoint) authenticate(r *http.Request) (who auth.Principal, ip string, err error) {
	who, err = e.o.Porter.Authenticate(r)
	if at := e.o.Porter.ClientIP(r); at.IsValid() { // a unix socket has none
		ip = at.String()
	}
	if err != nil {
		e.o.Team.Refused(ip, err)
		return who, ip, err
	}
	e.o.Team.Metrics.Authenticated(how(who.Via), "ok")
	return who, ip, nil
}

// admit counts a request against the quotas of its principal.
func (e *Endpoint) admit(r *http.Request, who auth.Principal, ip string) (c caller, err error) {
	c = caller{who: who, limits: e.o.Porter.Limits(who), ip: ip,
		page: who.Via == auth.ModeNone && unlisted(r, e.o.HTTP.AllowedOrigins)}
	size := r.ContentLength
	if size < 0 {
		size = e.o.HTTP.MaxBody
	}
	if err := c.limits.Request(size); err != nil {
		return caller{}, e.limited(c, "requests", err)
	}
	if c.done, err = c.limits.Connection(r.RemoteAddr); err != nil {
		return caller{}, e.limited(c, "connections", err)
	}
	return c, nil
}

// limited notes that a quota refused a request, and returns the answer to it.
func (e *Endpoint) limited(c caller, quota string, err error) error {
	e.o.Team.Limited(c.who.ID, quota)
	over, ok := errors.AsType[*limits.OverError](err)
	if !ok {
		return err
	}
	return &auth.Error{Status: http.StatusTooManyRequests, Code: "rate_limited", RetryAfter: over.After,
		Reason: over.Quota, Message: over.Error()}
}

// ready answers GET /readyz. In auth mode none, only callers that the listener accepts get an answer (on Linux, the
// user who started the server). With tokens, everyone learns whether the server is ready; local callers and admins also
// see the result of each check.
func (e *Endpoint) ready(w http.ResponseWriter, r *http.Request) {
	full := e.front.local(r)
	if e.o.Team.Mode == auth.ModeNone || len(r.Header["Authorization"]) > 0 {
		who, err := e.o.Porter.Authenticate(r)
		if err != nil && e.o.Team.Mode == auth.ModeNone {
			deny(w, r, err)
			return
		}
		full = full || err == nil && who.Admin
	}
	e.o.Team.Health.ServeReady(w, r, full)
}

func isLoopbackPeer(r *http.Request) bool {
	if strings.HasPrefix(r.RemoteAddr, "@") || r.RemoteAddr == "" {
		return true // a unix socket
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// metricsPage answers GET /metrics for callers that may read it.
func (e *Endpoint) metricsPage(w http.ResponseWriter, r *http.Request) {
	if e.o.Team.MetricsAway {
		deny(w, r, &auth.Error{Status: http.StatusNotFound, Code: "not_found",
			Message: "metrics have an address of their own"})
		return
	}
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		bearer = ""
	}
	peer := e.front.local(r)
	if metrics.MayScrape(e.o.Team.Mode == auth.ModeNone, peer, bearer, e.o.Team.ScrapeToken, false) {
		if e.o.Team.Mode == auth.ModeNone {
			if _, err := e.o.Porter.Authenticate(r); err != nil { // another user of this machine
				deny(w, r, err)
				return
			}
		}
		e.o.Team.Metrics.Handler().ServeHTTP(w, r)
		return
	}
	who, err := e.o.Porter.Authenticate(r)
	if err == nil && !who.Admin {
		err = &auth.Error{Status: http.StatusForbidden, Code: "insufficient_scope", Message: "metrics are for admins"}
	}
	if err != nil {
		deny(w, r, err)
		return
	}
	e.o.Team.Metrics.Handler().ServeHTTP(w, r)
}

// how is the kind of an authentication, without its id.
func how(via string) string {
	kind, _, _ := strings.Cut(via, ":")
	return kind
}

// origin reports whether the web page that sent r may do so, and returns its origin for the response. "", true: no web
// page sent it.
func (e *Endpoint) origin(r *http.Request, l listen.Listener) (origin string, ok bool) {
	all := r.Header["Origin"]
	switch {
	case len(all) == 0:
		return "", true
	case len(all) > 1:
		return "", false
	}
	origin = all[0]
	if slices.Contains(e.o.HTTP.AllowedOrigins, origin) {
		return origin, true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || origin != u.Scheme+"://"+u.Host || u.Host == "" || strings.HasSuffix(u.Host, ":") {
		return "", false
	}
	return origin, l.Loopback && isLoopbackName(u.Hostname())
}

func isLoopbackName(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// forwarded says whether a request of this machine names this machine at any port, as one through a forward does
// (`ssh -L 8080:localhost:7433`). A name that a web page brought to our address is never one of these.
func forwarded(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || !isLoopbackName(strings.ToLower(host)) || !isLoopbackPeer(r) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// unservedHosts are the hosts that requests named and that are not served. It is safe for concurrent use.
type unservedHosts struct {
	mu    sync.Mutex
	known map[string]bool
}

// maxUnserved bounds them: a client can name any number.
const maxUnserved = 1000

// refuse is the answer to a request for host, in lower case. The first request for each host is logged. Both say what
// would serve it, because a proxy or a name that the operator forgot looks like an attack.
func (u *unservedHosts) refuse(host string, log *slog.Logger) *auth.Error {
	refusal := &auth.Error{Status: http.StatusForbidden, Code: "forbidden_host",
		Message: "this Host is not served here"}
	if host == "" || len(host) > 260 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.:[]") != "" {
		return refusal // no setting takes it
	}
	refusal.Message += fmt.Sprintf(": %s. The operator can add %q to http.allowed_hosts (--http-allowed-hosts %s)",
		host, host, host)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.known[host] && len(u.known) < maxUnserved {
		if u.known == nil {
			u.known = map[string]bool{}
		}
		u.known[host] = true
		log.Warn("refused a request: its Host is not served; to serve it, add it to http.allowed_hosts", "host", host)
	}
	return refusal
}

// loopbackHosts are the names under which this machine reaches a loopback listener.
func loopbackHosts(l net.Listener) []string {
	names := []string{"localhost", "127.0.0.1", "[::1]"}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return names
	}
	for _, n := range names[:3:3] {
		names = append(names, n+":"+port)
	}
	return names
}

// publicHosts are the path and the hosts of http.public_url. The default port may be written or not.
func publicHosts(public string) (prefix string, hosts []string) {
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return "", nil
	}
	host := strings.ToLower(u.Host)
	hosts = []string{host, strings.TrimSuffix(host, ":"+u.Port())} // some proxies pass the name without its port
	if port := map[string]string{"http": "80", "https": "443"}[u.Scheme]; u.Port() == "" {
		hosts = append(hosts, host+":"+port)
	}
	return strings.TrimSuffix(u.Path, "/"), hosts
}

// preflight answers a browser's CORS preflight request.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Get("Access-Control-Request-Headers")))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// allowedHeaders returns the headers that a preflight allows. Mcp-Param-* is an open set, so the answer lists those
// that the browser asks for.
func allowedHeaders(asked string) string {
	allow := corsAllow
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(strings.ToLower(name), "mcp-param-") && validToken(name) {
			allow += ", " + name
		}
	}
	return allow
}

func validToken(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// deny answers a request that is not served, on MCP paths with a JSON-RPC error.
func deny(w http.ResponseWriter, r *http.Request, err error) {
	refusal, ok := errors.AsType[*auth.Error](err)
	if !ok {
		refusal = &auth.Error{Status: http.StatusInternalServerError, Code: "internal", Message: "internal error"}
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if refusal.Challenge != "" {
		h.Set("WWW-Authenticate", refusal.Challenge)
	}
	if refusal.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int((refusal.RetryAfter+time.Second-1)/time.Second))))
	}
	body, _ := jsonrpc.Marshal(map[string]any{"error": map[string]string{"code": refusal.Code,
		"message": refusal.Message}})
	if ofMCP(r.URL.Path) {
		code := jsonrpc.CodeInvalidRequest
		if refusal.Status >= 500 {
			code = jsonrpc.CodeInternal
		}
		body = refusalBody(nil,
			&jsonrpc.Error{Code: code, Message: refusal.Message, Data: map[string]string{"code": refusal.Code}})
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(refusal.Status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// ofMCP reports whether a path is an MCP endpoint, under any prefix.
func ofMCP(path string) bool {
	return strings.HasSuffix(path, pathMCP) || strings.Contains(path, pathHandle) || strings.HasSuffix(path, pathSSE) ||
		strings.HasSuffix(path, pathMessage)
}

// body reads the body of a POST, if it may be read at all.
func (e *Endpoint) body(w http.ResponseWriter, r *http.Request, c caller) ([]byte, *auth.Error) {
	most := e.o.HTTP.MaxBody
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || kind != "application/json" || len(r.Header["Content-Type"]) > 1:
		return nil, &auth.Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: "Content-Type must be application/json"}
	case len(r.Header["Content-Encoding"]) > 0:
		return nil, &auth.Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: "Content-Encoding is not supported"}
	case r.ContentLength > most:
		w.Header().Set("Connection", "close") // what follows is not read
		return nil, tooBig(most)
	}
	body, err := e.bodies.read(http.MaxBytesReader(w, r.Body, most), r.ContentLength)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // bound set it
	_ = control.SetWriteDeadline(time.Now().Add(writeTime))
	switch {
	case err == nil:
	case isTooBig(err):
		return nil, tooBig(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, &auth.Error{Status: http.StatusRequestTimeout, Code: "body_timeout",
			Message: "the body did not come in time"}
	default:
		return nil, &auth.Error{Status: http.StatusBadRequest, Code: "body_broken", Message: "the body cannot be read"}
	}
	if r.ContentLength < 0 { // the guard charged the quota for the largest body: give back the rest
		c.limits.Unread(most - int64(len(body)))
	}
	return body, nil
}

func tooBig(most int64) *auth.Error {
	return &auth.Error{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
		Message: "the body exceeds " + strconv.FormatInt(most, 10) + " bytes"}
}

func isTooBig(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// refusalBody is a JSON-RPC error as the body of an answer. Without an id it has none, not even null: it answers an
// HTTP request.
func refusalBody(id json.RawMessage, e *jsonrpc.Error) []byte {
	if id != nil {
		return jsonrpc.ErrorLine(id, e)
	}
	body, err := jsonrpc.Marshal(e)
	if err != nil {
		body, _ = jsonrpc.Marshal(&jsonrpc.Error{Code: e.Code, Message: e.Message})
	}
	return append(append([]byte(`{"jsonrpc":"2.0","error":`), body...), '}', '\n')
}
