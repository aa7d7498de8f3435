package oauth

import (
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Paths, below that of http.public_url.
const (
	pathAuthorize = "/oauth/authorize"
	pathToken     = "/oauth/token"
	pathRevoke    = "/oauth/revoke"
	pathRegister  = "/oauth/register"
	pathAsk       = "/signin/ask/" // and the id of an Ask
	pathServer    = "/.well-known/oauth-authorization-server"
	pathResource  = "/.well-known/oauth-protected-resource"
)

// A route is one path that this room serves.
type route struct {
	method string
	open   bool // pages of any origin may call it: it looks at no cookie
	serve  http.HandlerFunc
}

// Handler returns what serves a path, as the request has it; nil: nothing here does. None of the paths needs a token.
func (s *Server) Handler(path string) http.Handler {
	if r, ok := s.route(path); ok {
		return r
	}
	return nil
}

func (s *Server) route(path string) (route, bool) {
	if rest, ok := strings.CutPrefix(path, pathResource+s.prefix); ok {
		if r, ok := s.resourceRoute(rest); ok {
			return r, true
		}
	}
	if rest, ok := strings.CutPrefix(path, s.prefix+pathResource); ok {
		return s.resourceRoute(rest)
	}
	if s.o.Alone {
		return route{}, false
	}
	// RFC 8414 and 9728 put the issuer's path behind the well-known one. A proxy that forwards only that path is
	// served, too.
	switch rest, ok := strings.CutPrefix(path, pathServer); {
	case ok && (rest == s.prefix || rest == s.prefix+"/mcp" || rest == s.prefix+"/sse"):
		return route{http.MethodGet, true, s.serverMetadata}, true
	}
	rest, ok := strings.CutPrefix(path, s.prefix)
	if to := guessed[path]; to != "" {
		rest, ok = to, true
	}
	if !ok {
		return route{}, false
	}
	switch rest {
	case pathServer:
		return route{http.MethodGet, true, s.serverMetadata}, true
	case pathAuthorize, "/authorize":
		return route{http.MethodGet, false, s.authorize}, true
	case pathToken, "/token":
		return route{http.MethodPost, true, s.tokens.token}, true
	case pathRevoke:
		return route{http.MethodPost, true, s.tokens.revoke}, true
	case pathRegister, "/register":
		return route{http.MethodPost, true, s.clients.register}, true
	}
	return route{}, false
}

// guessed are the paths that some clients take without looking at the metadata, at the root of the host: claude.ai on
// the web (anthropics/claude-ai-mcp#846 and #962, open in August 2026). No metadata names them.
var guessed = map[string]string{"/authorize": pathAuthorize, "/token": pathToken, "/register": pathRegister}

// resourceRoute is the metadata of one resource. Without a resource there is none.
func (s *Server) resourceRoute(rest string) (route, bool) {
	if rest != "/mcp" && (rest != "/sse" || !s.o.SSE) {
		return route{}, false
	}
	serve := func(w http.ResponseWriter, r *http.Request) { s.resourceMetadata(w, r, rest) }
	return route{http.MethodGet, true, serve}, true
}

// ServeHTTP makes the checks that all routes share.
func (t route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if t.open {
		h.Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", t.method)
			h.Set("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization, Mcp-Protocol-Version")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if r.Method != t.method && !(t.method == http.MethodGet && t.open && r.Method == http.MethodHead) {
		h.Set("Allow", t.method)
		(&problem{status: http.StatusMethodNotAllowed, code: "invalid_request", text: "use " + t.method}).write(w)
		return
	}
	if t.method == http.MethodPost && r.URL.RawQuery != "" {
		wrong("invalid_request", "parameters belong in the body, not in the URL").write(w)
		return
	}
	t.serve(w, r)
}

// serverMetadata serves RFC 8414.
func (s *Server) serverMetadata(w http.ResponseWriter, r *http.Request) {
	base := s.baseOf(r)
	if base == "" {
		unknownHost().write(w)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                         base,
		"authorization_endpoint":                         base + pathAuthorize,
		"token_endpoint":                                 base + pathToken,
		"revocation_endpoint":                            base + pathRevoke,
		"registration_endpoint":                          base + pathRegister,
		"scopes_supported":                               scopesSupported,
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
	})
}

// scopesSupported are what a client can ask for. The console of administrators is not for clients.
var scopesSupported = []string{"mcp:read", "mcp:write", "mcp:shell", "mcp:web"}

// resourceMetadata serves RFC 9728.
func (s *Server) resourceMetadata(w http.ResponseWriter, r *http.Request, path string) {
	base := s.baseOf(r)
	if base == "" {
		unknownHost().write(w)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"resource": base + path, "authorization_servers": s.issuers(base), "scopes_supported": scopesSupported,
		"bearer_methods_supported": []string{"header"}, "resource_name": "codehand",
	})
}

func (s *Server) issuers(base string) []string {
	all := []string{} // never null
	if !s.o.Alone {
		all = append(all, base)
	}
	if s.o.Issuers != nil {
		all = append(all, s.o.Issuers()...)
	}
	return all
}

// Metadata returns the URL of the metadata of the resource that a request is for; "": there is none.
func (s *Server) Metadata(r *http.Request) string {
	base := s.baseOf(r)
	if base == "" {
		return ""
	}
	if s.o.SSE && (strings.HasSuffix(r.URL.Path, "/sse") || strings.HasSuffix(r.URL.Path, "/message")) {
		return base + pathResource + "/sse"
	}
	return base + pathResource + "/mcp"
}

func unknownHost() *problem {
	return wrong("invalid_request", "this server does not know the address that clients use: set http.public_url")
}

// A problem is an answer of RFC 6749, section 5.2.
type problem struct {
	status int
	code   string
	text   string
	wait   time.Duration // 0: none
}

func (p *problem) Error() string { return p.code + ": " + p.text }

func wrong(code, text string) *problem {
	return &problem{status: http.StatusBadRequest, code: code, text: text}
}

func temporary(text string) *problem {
	return &problem{status: http.StatusServiceUnavailable, code: "temporarily_unavailable", text: text,
		wait: time.Second}
}

// failed is an error of the Store or of this program, which is logged.
func (s *shared) failed(doing string, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if isTemporary(err) {
		s.o.Log.Warn("cannot "+doing, "err", err)
		return temporary("the server cannot reach its store now; try again")
	}
	s.o.Log.Error("cannot "+doing, "err", err)
	return &problem{status: http.StatusInternalServerError, code: "server_error",
		text: "internal error; the log says more"}
}

func (p *problem) write(w http.ResponseWriter) {
	if p.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(max(1, p.wait.Seconds())))))
	}
	writeJSON(w, p.status, map[string]string{"error": p.code, "error_description": p.text})
}

func tooMany(wait time.Duration) *problem {
	return &problem{status: http.StatusTooManyRequests, code: "temporarily_unavailable", wait: wait,
		text: "too many requests from this address; try again later"}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body := append(encode(v), '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// readBody reads a body of the one type that is allowed.
func readBody(w http.ResponseWriter, r *http.Request, want string) ([]byte, *problem) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != want || len(r.Header["Content-Type"]) > 1 || len(r.Header["Content-Encoding"]) > 0 {
		return nil, &problem{status: http.StatusUnsupportedMediaType, code: "invalid_request",
			text: "Content-Type must be " + want}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &problem{status: http.StatusRequestEntityTooLarge, code: "invalid_request",
			text: "the body is too large"}
	}
	if err != nil {
		return nil, wrong("invalid_request", "the body cannot be read")
	}
	return body, nil
}

// A form is parameters. Who reads one refuses it if a parameter stands there twice.
type form url.Values

// parseForm reads parameters. twice names all that stand there more than once, in order.
func parseForm(text string) (f form, twice []string, err error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, nil, errors.New("the parameters cannot be read")
	}
	for key, all := range values {
		if len(all) > 1 {
			twice = append(twice, key)
		}
	}
	slices.Sort(twice)
	return form(values), twice, nil
}

func (f form) get(key string) string { return url.Values(f).Get(key) }

func (s *shared) clientIP(r *http.Request) netip.Addr {
	if s.o.ClientIP != nil {
		return s.o.ClientIP(r)
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap()
}
