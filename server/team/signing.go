package team

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/control"
	"codehand/server/endpoint"
	"codehand/server/issuer"
	"codehand/server/jsonrpc"
	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/signin"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/sandbox"
)

// Signing is how people sign in to serve by OAuth. nil: they do not.
type Signing struct {
	modes   auth.Modes
	OAuth   *oauth.Server   // with its own pages, or only the metadata of what is served
	issuers *issuer.Issuers // nil: none
	checked map[string]bool // issuers that /readyz tells of, by name; "": also whether there is any way to sign in
	people  *signin.Pages   // nil: there is no sign-in here
	prefix  string          // path of http.public_url
	dir     string          // of data
	log     *slog.Logger
}

// newSigning makes that of t; nil: auth.mode has no OAuth. The porter that asks it is made later.
func newSigning(ctx context.Context, t *Team) (*Signing, error) {
	o := t.o
	cfg := o.Config
	modes, err := auth.ParseModes(cfg.Auth.Mode)
	if err != nil || !modes.OAuth() {
		return nil, err // auth.New says what is wrong with it
	}
	g := &Signing{
		modes: modes, checked: map[string]bool{}, prefix: pathOf(cfg.HTTP.PublicURL), dir: o.Dir, log: o.Log,
	}
	options := oauth.Options{
		Store: o.Store, PublicURL: cfg.HTTP.PublicURL, SSE: cfg.HTTP.SSE, Alone: !modes.Pages(), Log: o.Log,
		Event: t.signed, ClientIP: t.clientIP, Revoked: t.revoked,
	}
	if modes.OIDC {
		g.issuers, err = issuer.New(issuer.Options{Issuers: cfg.Auth.Issuers, Ended: t.revoked, Log: o.Log})
		if err != nil {
			return nil, &config.Unusable{Err: err}
		}
		options.Issuers = g.issuers.URLs
	}
	if g.OAuth, err = oauth.New(ctx, options); err != nil || !modes.Pages() {
		return g, err
	}
	g.people, err = signin.New(ctx, signin.Options{
		Asks: g.OAuth, People: people.Open(o.Dir, nil), Store: o.Store, PublicURL: cfg.HTTP.PublicURL,
		Alone:    modes.Owner,
		Rights:   func(id string) (auth.Principal, bool) { return t.Porter.Rights(id) },
		Commands: func() string { return o.commandsInWords() }, ClientIP: t.clientIP, Event: t.pageEvent, Log: o.Log,
	})
	return g, err
}

// commandsInWords says to who approves a client how far commands are confined.
func (o Options) commandsInWords() string {
	switch {
	case o.Maker.NoShell != "":
		return "Commands cannot be run on this server."
	case o.Config.Sandbox.Policy == config.SandboxOff:
		return "Commands are not confined: they can do everything that this server's user account can."
	}
	level := o.Proven().Level
	if level >= sandbox.LevelFull {
		return "Commands are confined (level 3 of 3): of your files they reach only these directories."
	}
	return fmt.Sprintf("Commands are not fully confined (level %d of 3): they can reach other files of this machine, "+
		"too.", level)
}

// sources are what the porter asks about tokens.
func (g *Signing) sources() []auth.Source {
	var all []auth.Source
	if g == nil {
		return nil
	}
	if g.modes.Pages() {
		all = append(all, g.OAuth)
	}
	if g.issuers != nil {
		all = append(all, g.issuers)
	}
	return all
}

// metadata is for the challenges of the porter; nil: there is no OAuth.
func (g *Signing) metadata() func(*http.Request) string {
	if g == nil {
		return nil
	}
	return g.OAuth.Metadata
}

// initial are the scopes that challenges name; "": ours. Beside pages of our own they are ours: an issuer has its own
// list in its metadata.
func (g *Signing) initial() string {
	if g == nil || g.issuers == nil || g.modes.Pages() {
		return ""
	}
	return g.issuers.Initial()
}

// tokens says whether static tokens are good beside OAuth: then they have paths of their own.
func (g *Signing) tokens() bool { return g != nil && g.modes.Token }

// watch keeps what expires, until ctx ends.
func (g *Signing) watch(ctx context.Context) {
	if g == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if g.issuers != nil {
			g.issuers.Watch(ctx)
		}
	}()
	if g.modes.Pages() {
		serving := make(chan struct{})
		go func() {
			defer close(serving)
			if err := control.Serve(ctx, g.dir, g.OAuth, g.log); err != nil {
				g.log.Warn("codehand grants cannot reach this server", "err", err)
			}
		}()
		g.OAuth.Watch(ctx)
		<-serving
	}
	<-done
}

// checkIssuers lets /readyz tell of the issuers, each under its own name. Where people can sign in with issuers only,
// the server is not ready while none of them can be reached.
func (t *Team) checkIssuers(list []config.Issuer) {
	g := t.Signing
	if g == nil || g.issuers == nil {
		return
	}
	for _, i := range list {
		if g.checked[i.Name] {
			continue
		}
		g.checked[i.Name] = true
		t.health.AddCheck("oidc:"+i.Name, false,
			func(context.Context) (string, error) { return "", g.issuers.Status()[i.Name] })
	}
	if g.checked[""] || g.modes != (auth.Modes{OIDC: true}) {
		return
	}
	g.checked[""] = true
	t.health.AddCheck("auth", true, func(context.Context) (string, error) {
		for _, err := range g.issuers.Status() {
			if err == nil {
				return "", nil
			}
		}
		return "", errors.New("no issuer can be reached")
	})
}

// pages returns what serves a path that needs no token; nil: nothing there does.
func (g *Signing) pages(path string) http.Handler {
	if g == nil {
		return nil
	}
	page, below := strings.CutPrefix(path, g.prefix)
	if below && g.people != nil && (page == "/signin" || strings.HasPrefix(page, "/signin/")) {
		return http.StripPrefix(g.prefix, g.people)
	}
	return g.OAuth.Handler(path)
}

// tokenPath says whether a request came by a path for clients with a token of the tokens file.
func (t *Team) tokenPath(r *http.Request) bool {
	return t.Signing != nil &&
		strings.HasPrefix(strings.TrimPrefix(r.URL.Path, t.Signing.prefix), endpoint.PathTokens+"/")
}

// pathOf is the path of a URL without a slash at its end.
func pathOf(public string) string {
	u, err := url.Parse(public)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// clientIP is the address that a request comes from.
func (t *Team) clientIP(r *http.Request) netip.Addr { return t.Porter.ClientIP(r) }

// signed takes what happened to sign-ins into the audit and the numbers.
func (t *Team) signed(name string, fields map[string]any) {
	t.Metrics.Authenticated("oauth", name)
	t.Event(name, fields)
}

// pageEvent writes what happened on the pages of a sign-in to the audit. It counts guesses and does not list each: a
// guesser must not fill the disk.
func (t *Team) pageEvent(name string, fields map[string]any) {
	if name == "signin.failed" || name == "signin.limited" {
		ip, _ := fields["ip"].(string)
		n := t.quiet.due(name + " " + ip)
		if n == 0 {
			return
		}
		fields["count"] = n
	}
	t.Event(name, fields)
}

// revoked ends what was opened with a grant that has ended.
func (t *Team) revoked() {
	if e := t.Endpoint.Load(); e != nil {
		e.Revoke()
	}
}

// named are the principals by name. By default the owner works where the person who started serve would.
func named(cfg config.Config, p config.Principals) map[string]auth.Values {
	modes, err := auth.ParseModes(cfg.Auth.Mode)
	all := p.Named
	if err != nil || !modes.Owner || len(p.Default.Roots) > 0 || len(p.Named[people.Owner].Roots) > 0 {
		return all
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[string]auth.Values{}
	}
	v := all[people.Owner]
	v.Roots = slices.Clone(cfg.Roots)
	all[people.Owner] = v
	return all
}

// lacking returns what refuses a call that needs more scopes than were approved.
func (t *Team) lacking(tools *toolset.Set) func(*http.Request, auth.Principal, jsonrpc.Envelope) error {
	return func(r *http.Request, who auth.Principal, env jsonrpc.Envelope) error {
		if env.Method != "tools/call" {
			return nil
		}
		called, ok := tools.Get(env.Name)
		if !ok {
			return nil
		}
		need, _ := tenants.Scope(called)
		if e := t.Porter.Lacking(r, who, need); e != nil {
			return e
		}
		return nil
	}
}
