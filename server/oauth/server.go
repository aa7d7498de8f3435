package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/state"
)

// Options of a Server.
type Options struct {
	Store state.Store
	// PublicURL is http.public_url, which decides the issuer. "": clients are on this machine, and the issuer is the
	// loopback address that they call.
	PublicURL string
	SSE       bool            // whether /sse is served, too
	Issuers   func() []string // of others, whose tokens are good here, too; nil: none
	// there is no sign-in here: only the metadata of resources is served
	Alone    bool
	ClientIP func(*http.Request) netip.Addr           // for limits; nil: that of the connection
	Event    func(name string, fields map[string]any) // for the audit: login, refresh, logout; nil: none
	Revoked  func()                                   // a grant has ended; streams that it opened must end; nil: none
	Fetch    http.RoundTripper                        // gets metadata documents; nil: from public addresses only
	Now      func() time.Time                         // nil: time.Now
	Log      *slog.Logger                             // nil: nothing is logged
}

// Limits of a Server.
const (
	maxLive       = 10_000 // grants in memory
	storePatience = 2 * time.Second
	sweepEvery    = time.Minute
	turns         = 64
)

// A Server issues tokens, and is the auth.Source that knows them. It is safe for concurrent use.
type Server struct {
	*shared
	*grants
	*askTable
	clients *registry
	tokens  *issuing
}

// A shared is what all parts of a Server need.
type shared struct {
	o      Options
	base   string // of PublicURL, without a slash at its end; "": of each request
	prefix string // path of base
	rates  rates
}

// New makes a Server. The error is that of the Store, or of a wrong PublicURL.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Event == nil {
		o.Event = func(string, map[string]any) {}
	}
	if o.Revoked == nil {
		o.Revoked = func() {}
	}
	all := &shared{o: o, base: strings.TrimSuffix(o.PublicURL, "/"), rates: newRates(o.Now)}
	if o.PublicURL != "" {
		u, err := url.Parse(all.base)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("http.public_url %q is no URL", o.PublicURL)
		}
		if u.Scheme != "https" && !isLoopbackName(u.Hostname()) {
			return nil, fmt.Errorf("http.public_url %q: signing in needs https", o.PublicURL)
		}
		all.prefix = u.Path
	}
	s := &Server{shared: all, grants: &grants{shared: all, seed: maphash.MakeSeed(), live: map[string]*held{}},
		clients:  &registry{shared: all, docs: newDocuments(o), all: map[string]*client{}},
		askTable: &askTable{shared: all, waits: map[string]waiting{}}}
	s.tokens = &issuing{all, s.grants, s.clients}
	if err := s.clients.loadClients(ctx); err != nil {
		return nil, err
	}
	if err := s.loadAsks(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *grants) turn(id string) *sync.Mutex { return &s.locks[maphash.String(s.seed, id)%turns] }

// baseOf returns the URL below which a request's client sees this server; "": it is none of ours.
func (s *shared) baseOf(r *http.Request) string {
	if s.base != "" {
		return s.base
	}
	u, err := url.Parse("http://" + r.Host)
	if err != nil || !isLoopbackName(u.Hostname()) || u.Host != r.Host {
		return ""
	}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// isOurs says whether a resource, as resourceOf returned it once, is still one of this server.
func (s *shared) isOurs(resource string) bool {
	if s.base != "" {
		_, ok := resourceOf(s.base, resource)
		return ok
	}
	u, err := url.Parse(resource)
	return err == nil && isLoopbackName(u.Hostname())
}

// resourceOf returns a resource of RFC 8707 in its one form; ok is false if it is not one of base: base itself or an
// address of MCP below it.
func resourceOf(base, text string) (resource string, ok bool) {
	if text == "" {
		return base + "/mcp", true
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > maxRedirect || u.User != nil || u.Opaque != "" || strings.ContainsAny(text, "?#") ||
		u.EscapedPath() != u.Path {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; usual != "" {
		host = strings.TrimSuffix(host, usual)
	}
	rest, ok := strings.CutPrefix(u.Scheme+"://"+host+strings.TrimSuffix(u.Path, "/"), base)
	if !ok {
		return "", false
	}
	handle, isHandle := strings.CutPrefix(rest, "/mcp/s/")
	if isHandle && handle != "" && isBase64URL(handle) {
		rest = "/mcp"
	}
	return base + rest, slices.Contains([]string{"", "/mcp", "/sse"}, rest)
}

// event writes about a grant into the audit.
func (s *grants) event(name string, g record, more map[string]any) {
	fields := map[string]any{"p": g.Who, "grant": g.ID, "client": g.Client.Name, "host": g.Client.shownHost()}
	maps.Copy(fields, more)
	s.o.Event(name, fields)
}

// shownHost is the host that says most of a client.
func (c ClientInfo) shownHost() string {
	switch {
	case c.Host != "":
		return c.Host
	case c.Loopback:
		return "localhost"
	}
	return c.RedirectHost
}

// Watch ends what has expired and keeps the last use of grants, until ctx ends.
func (s *Server) Watch(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
			defer cancel()
			s.saveUse(last)
			return
		case <-tick.C:
			s.sweep(ctx)
		}
	}
}

// sweep deletes what has ended, from memory and the Store.
func (s *Server) sweep(ctx context.Context) {
	s.saveUse(ctx)
	s.sweepAsks()
	s.clients.sweepClients(ctx)
	keys, err := s.o.Store.Keys(ctx, state.Grant)
	if err != nil {
		s.o.Log.Warn("cannot look for grants that have ended", "err", err)
		return
	}
	for _, key := range keys {
		s.expire(ctx, strings.TrimPrefix(key, state.Grant+"."))
	}
}

// expire ends a grant whose time is up.
func (s *grants) expire(ctx context.Context, id string) {
	turn := s.turn(id)
	turn.Lock()
	defer turn.Unlock()
	raw, _, err := s.o.Store.Get(ctx, grantKey(id))
	if err != nil || raw == nil {
		return
	}
	g, err := decodeGrant(raw)
	if err != nil || !g.over(s.o.Now()) { // what this program cannot read may be a newer one's
		return
	}
	reason := "expired"
	if !g.Code.Used {
		reason = "the client did not fetch its tokens"
	}
	if err := s.end(ctx, g, &ending{reason: reason}); err != nil {
		s.o.Log.Warn("cannot delete a grant that has ended", "grant", id, "err", err)
	}
}

func useKey(id string) string { return state.Key(state.TokenUse, id) }

// A use is when a grant was used last.
type use struct {
	V  int   `json:"v"`
	At int64 `json:"at"` // Unix seconds
}

// saveUse writes when grants were used last. Nothing is decided by it, so an error costs a minute of it.
func (s *grants) saveUse(ctx context.Context) {
	s.mu.RLock()
	live := slices.Collect(maps.Values(s.live))
	s.mu.RUnlock()
	for _, h := range live {
		at := h.used.Load()
		if at == h.saved.Load() {
			continue
		}
		if s.o.Store.Set(ctx, useKey(h.ID), encode(use{formatOfValues, at})) == nil {
			h.saved.Store(at)
		}
	}
}

func (s *grants) storedUse(ctx context.Context, id string) (at int64, ok bool) {
	raw, _, err := s.o.Store.Get(ctx, useKey(id))
	var u use
	if err != nil || raw == nil || json.Unmarshal(raw, &u) != nil {
		return 0, false
	}
	return u.At, true
}

// isTemporary says whether an error is one of the moment.
func isTemporary(err error) bool {
	return errors.Is(err, state.ErrDown) || errors.Is(err, state.ErrUnsure) || errors.Is(err, state.ErrFull) ||
		errors.Is(err, context.DeadlineExceeded)
}
