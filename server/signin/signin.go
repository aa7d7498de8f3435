package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/state"
)

// Asks are the sign-ins that wait for a person, and what came of them. *oauth.Server is one.
type Asks interface {
	Pending(ctx context.Context, id string) (oauth.Ask, error)
	SameBrowser(r *http.Request, id string) bool
	HoldAsk(id string)
	Approve(ctx context.Context, id string, d oauth.Decision) (redirect string, err error)
	Refuse(ctx context.Context, id string) (redirect string, err error)
	Grants(ctx context.Context) ([]oauth.Grant, error)
	RevokeGrant(ctx context.Context, id string) error
}

// Options of Pages.
type Options struct {
	Asks      Asks
	People    *people.Book
	Hasher    *people.Hasher // nil: the usual one
	Store     state.Store
	PublicURL string // http.public_url; "": browsers come from this machine alone
	Alone     bool   // only the owner signs in: the page asks for no name
	// Rights is what the operator gives a principal; ok is false if it may not sign in.
	Rights func(id string) (who auth.Principal, ok bool)
	// Commands says in a sentence how far commands are confined, or that there are none.
	Commands func() string
	ClientIP func(*http.Request) netip.Addr           // for limits; nil: that of the connection
	Event    func(name string, fields map[string]any) // for the audit: signin.*; nil: none
	Now      func() time.Time                         // nil: time.Now
	Log      *slog.Logger                             // nil: nothing is logged
}

// Pages serve everything below /signin/. They are safe for concurrent use.
type Pages struct {
	o          Options
	key        []byte // of CSRF tokens and browser marks, and of what seals invitations
	hasher     *people.Hasher
	limits     limits
	ceremonies ceremonies
	decided    decided
	public     *url.URL // of PublicURL; nil: none
	routes     *http.ServeMux
}

// New makes Pages. The error is that of the Store, or of a wrong PublicURL.
func New(ctx context.Context, o Options) (*Pages, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Event == nil {
		o.Event = func(string, map[string]any) {}
	}
	if o.ClientIP == nil {
		o.ClientIP = func(r *http.Request) netip.Addr {
			at, _ := netip.ParseAddrPort(r.RemoteAddr) // of a Unix socket: the zero Addr
			return at.Addr().Unmap()
		}
	}
	p := &Pages{o: o, hasher: o.Hasher}
	if p.hasher == nil {
		p.hasher = people.NewHasher(people.Cost{})
	}
	if o.PublicURL != "" {
		var err error
		if p.public, err = url.Parse(o.PublicURL); err != nil || p.public.Host == "" {
			return nil, fmt.Errorf("http.public_url %q is no URL", o.PublicURL)
		}
	}
	var err error
	if p.key, err = signingKey(ctx, o.Store); err != nil {
		return nil, err
	}
	p.route()
	return p, nil
}

// signingKey is the key that all processes of a Store share, so that a page that was open during a restart still works.
func signingKey(ctx context.Context, store state.Store) ([]byte, error) {
	name := state.Key(state.Keyring, "signin")
	for {
		old, rev, err := store.Get(ctx, name)
		if err != nil || len(old) == sha256.Size {
			return old, err
		}
		made := make([]byte, sha256.Size)
		_, _ = rand.Read(made) // never fails
		if ok, err := store.Swap(ctx, name, made, rev); err != nil || ok {
			return made, err
		}
	}
}

// sign is a MAC over parts, for one use of the key.
func (p *Pages) sign(use string, parts ...string) string {
	m := hmac.New(sha256.New, p.key)
	for _, part := range append([]string{use}, parts...) {
		fmt.Fprintf(m, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (p *Pages) route() {
	mux := http.NewServeMux()
	page := func(pattern string, serve func(*visit)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, serve) })
	}
	page("GET /signin/{$}", p.account)
	page("GET /signin/ask/{id}", p.ask)
	page("POST /signin/ask/{id}", p.decide)
	page("POST /signin/login", p.login)
	page("POST /signin/logout", p.logout)
	page("GET "+people.InvitePath+"{code}", p.follow)
	page("GET /signin/invite", p.invited)
	page("POST /signin/invite", p.accept)
	page("POST /signin/revoke", p.revoke)
	page("POST /signin/passkey/remove", p.removePasskey)
	page(patternBegin, p.beginPasskey)
	page(patternFinish, p.finishPasskey)
	for name, kind := range assets {
		mux.HandleFunc("GET /signin/"+name, func(w http.ResponseWriter, r *http.Request) {
			serveAsset(w, r, name, kind)
		})
	}
	page("/", func(v *visit) {
		v.fail(http.StatusNotFound, "Not found", "There is no such page here.")
	})
	p.routes = mux
}

// ServeHTTP serves a request whose path begins with /signin, without the path of PublicURL.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// No Cross-Origin-Opener-Policy: clients open this page in a window of theirs and wait for it.
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	// Our forms need their Origin, which no-referrer would make null; other hosts learn nothing either way.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy(false, ""))
	if r.URL.Path == "/signin" { // relative, since a proxy may have taken a prefix away
		h.Set("Location", "signin/")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.routes.ServeHTTP(w, r)
}

// policy is the Content-Security-Policy of a page. forms are the places beside our own that a form may lead to:
// browsers hold form-action also against what a form's answer redirects to.
func policy(script bool, forms string) string {
	text := "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
	if script {
		text += "; script-src 'self'; connect-src 'self'"
	}
	return text + strings.TrimRight("; form-action 'self' "+forms, " ")
}

// formTargets are where the answer to an Ask goes, as sources of a policy. What could not be one is left out.
func formTargets(c oauth.ClientInfo) string {
	if c.Loopback {
		return "http:" // a source cannot name [::1], and programs choose their port
	}
	host := c.RedirectHost
	if host == "" || strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789+-.:") != "" {
		return ""
	}
	name, _, _ := strings.Cut(host, ":")
	return "https://" + name + ":* " + name + ":" // a host, or the scheme of an app's URL
}

// decided are the sign-ins that were decided here, so that a page that is shown again says how. It is safe for
// concurrent use.
type decided struct {
	mu  sync.Mutex
	how map[string]string
	all []string // in order
}

const maxDecided = 1000

func (d *decided) note(id, how string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.how == nil {
		d.how = map[string]string{}
	}
	d.how[id] = how
	if d.all = append(d.all, id); len(d.all) > maxDecided {
		delete(d.how, d.all[0])
		d.all = d.all[1:]
	}
}

func (d *decided) of(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.how[id]
}
