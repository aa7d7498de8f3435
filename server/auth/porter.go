package auth

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth/limits"
	"codehand/server/auth/peers"
)

// Options of a Porter.
type Options struct {
	Mode      string            // as ParseModes reads it, but not auto
	LocalPeer string            // same-user, any; "": same-user; of mode none
	TokenFile string            // absolute; of mode token
	Local     Principal         // who calls in mode none; its Quota counts
	Default   Values            // of every principal
	Named     map[string]Values // by ID
	Groups    []Group           // of principals that a Source knows
	// absolute; where a principal's root is when nobody says: <Workspaces>/{principal}; "": nowhere
	Workspaces string
	Trusted    []netip.Prefix // proxies whose X-Forwarded-For counts
	Sources    []Source       // of tokens that are in no file, asked in this order
	// Metadata returns the URL of the metadata of the resource that a request is for, for challenges; "": this resource
	// has none. nil: OAuth is off, and no challenge names it.
	Metadata func(*http.Request) string
	Initial  string // scopes that challenges tell clients to ask for, with spaces between; "": all about tools
	// TokensOnly says whether a request came by a path on which only tokens of the tokens file are good, and no
	// challenge names OAuth. Some clients show no token of theirs to a server that offers a sign-in. nil: there is no
	// such path.
	TokensOnly func(*http.Request) bool
	Now        func() time.Time // nil: time.Now
	Log        *slog.Logger     // nil: nothing is logged
}

// What Options.LocalPeer takes.
const (
	sameUser = "same-user"
	anyUser  = "any"
)

// via begins Principal.Via of who came with a token.
const via = "token:"

// A Porter says who sent a request. It is safe for concurrent use.
type Porter struct {
	o       Options
	file    *TokenFile
	peers   *peers.Peers // nil: the system does not tell, or each request needs a token
	clients clients
	uses    uses

	loading sync.Mutex // one reading of the file at a time; covers seen
	seen    sight

	rights                  // its lock covers held, too
	held   map[string]*held // by id

	limits limits.Limiters
}

// held is a token as the server has it.
type held struct {
	*line
	principal Principal
	enabled   bool
}

// New reads the tokens. The error names file and line, or the key that is wrong.
func New(o Options) (*Porter, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Porter{o: o, clients: clients{log: o.Log}, uses: uses{at: map[string]time.Time{}},
		rights: rights{workspaces: o.Workspaces}}
	if p.o.Local.Slug == "" && p.o.Local.ID != "" {
		p.o.Local.Slug = Slug(p.o.Local.ID)
	}
	p.o.Local.Via = ModeNone
	if o.Workspaces != "" && !filepath.IsAbs(o.Workspaces) {
		return nil, fmt.Errorf("the directory of workspaces, %s, must be absolute", o.Workspaces)
	}
	ways, err := ParseModes(o.Mode)
	if err != nil {
		return nil, fmt.Errorf("auth.mode: %w", err)
	}
	if ways.None {
		p.peers = peers.New()
		switch o.LocalPeer {
		case "", sameUser:
			if p.peers == nil {
				o.Log.Warn("this system does not say which user connects: auth.local_peer acts as any")
			}
		case anyUser:
		default:
			return nil, fmt.Errorf("auth.local_peer: unknown value %q; use same-user or any", o.LocalPeer)
		}
		return p, nil
	}
	if ways.Pages() {
		p.peers = peers.New()
	}
	if err := p.Configure(o.Default, o.Named, o.Groups); err != nil {
		return nil, err
	}
	if !ways.Token {
		return p, nil
	}
	if !filepath.IsAbs(o.TokenFile) {
		return nil, fmt.Errorf("the tokens file, %s, must be absolute", o.TokenFile)
	}
	p.file = OpenTokenFile(o.TokenFile)
	if err := p.Reload(); err != nil {
		return nil, err
	}
	if used, err := p.file.LastUse(); err != nil {
		o.Log.Warn("cannot read when tokens were last used", "err", err)
	} else {
		p.uses.merge(used)
	}
	return p, nil
}

// Configure sets what the operator says about principals, from the next request on. The error names the key; then
// nothing changes.
func (p *Porter) Configure(general Values, named map[string]Values, groups []Group) error {
	if err := general.Check(); err != nil {
		return fmt.Errorf("principals.default: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(named)) {
		err := CheckID(id)
		if err == nil {
			err = named[id].Check()
		}
		if err != nil {
			return fmt.Errorf("principals.%q: %w", id, err)
		}
	}
	for _, g := range groups {
		if err := g.Values.Check(); err != nil {
			return fmt.Errorf("principals.groups.%q: %w", g.Name, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told++
	p.general, p.named, p.groups = general, maps.Clone(named), slices.Clone(groups)
	for id, h := range p.held {
		p.held[id] = p.hold(h.line)
	}
	return nil
}

// hold resolves a token. The caller has mu.
func (p *rights) hold(l *line) *held {
	id := l.token.Principal
	h := &held{line: l}
	h.principal, h.enabled = Resolve(id, p.workspaces, l.token.Values, p.named[id], p.general)
	h.principal.Via = via + l.token.ID
	if len(l.token.Values.Roots) > 0 {
		whole, _ := Resolve(id, p.workspaces, p.named[id], p.general)
		h.principal.Whole = whole.Roots
	}
	return h
}

// An Error is a request that is not let in.
type Error struct {
	Status     int           // HTTP
	Code       string        // data.code of the body: unauthenticated, invalid_token, ...
	Message    string        // for people; repeats nothing of the request
	Challenge  string        // WWW-Authenticate; "": none
	RetryAfter time.Duration // 0: none
	Reason     string        // for log and audit only, such as "token k3v7q2mzpa expired"; "": the code says all
}

func (e *Error) Error() string { return e.Message }

// The challenges of static tokens. They never name OAuth: a client would start a login that cannot end.
const (
	challenge    = `Bearer realm="codehand"`
	challengeBad = challenge + `, error="invalid_token"`
)

// challenged puts OAuth into the challenge of a refusal, where it is on.
func (o *Options) challenged(r *http.Request, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Status != http.StatusUnauthorized || o.Metadata == nil {
		return err
	}
	where := o.Metadata(r)
	if where == "" || o.tokensOnly(r) {
		return err
	}
	c := *e
	scopes := cmp.Or(o.Initial, everything.String())
	c.Challenge = challenge + `, resource_metadata="` + where + `", scope="` + scopes + `"`
	if e.Code != "unauthenticated" {
		c.Challenge += `, error="invalid_token", error_description="token not accepted"`
	}
	return &c
}

func (o *Options) tokensOnly(r *http.Request) bool { return o.TokensOnly != nil && o.TokensOnly(r) }

func (o *Options) sources(r *http.Request) []Source {
	if o.tokensOnly(r) {
		return nil
	}
	return o.Sources
}

// Lacking is the refusal of a call that needs more scopes than its access token has: the client may ask the person for
// them. It is nil for a principal whose token no sign-in could change.
func (p *Porter) Lacking(r *http.Request, who Principal, need Scopes) *Error {
	if who.brought == nil || p.o.Metadata == nil || who.Scopes.Has(need) {
		return nil
	}
	where := p.o.Metadata(r)
	whole, _ := p.narrowed(&Found{ID: who.ID, Groups: who.brought.found.Groups})
	if where == "" || !whole.Scopes.Has(need) {
		return nil // only the operator can change that
	}
	ask := (who.Scopes | need).String()
	for _, source := range p.o.Sources {
		if s, ok := source.(scoper); ok {
			if theirs, mine := s.Ask(who, who.Scopes|need); mine {
				ask = theirs
			}
		}
	}
	if ask == "" {
		return nil
	}
	return &Error{Status: http.StatusForbidden, Code: "insufficient_scope",
		Message:   "This call needs scopes that were not approved: " + need.String() + ".",
		Challenge: challenge + `, error="insufficient_scope", scope="` + ask + `", resource_metadata="` + where + `"`}
}

// NotAccepted is the one answer to tokens that are wrong, whatever is wrong with them. reason is for the log.
func NotAccepted(reason string) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: "invalid_token", Message: "token not accepted",
		Challenge: challengeBad, Reason: reason}
}

// Authenticate says who sent r, or an *Error. It removes the Authorization header from r.
//
// Whatever is answered with 401 counts as a failure of the client's address, unless there were no credentials: a client
// that asks before it shows its token guesses nothing. An address with too many failures gets 429 for whatever else it
// sends, but a good token passes: behind a proxy or a tunnel, or in one office, the failures of one client are not
// those of the others.
func (p *Porter) Authenticate(r *http.Request) (Principal, error) {
	who, err := p.authenticate(r)
	return who, p.o.challenged(r, err)
}

func (p *Porter) authenticate(r *http.Request) (Principal, error) {
	shows := r.Header.Values("Authorization")
	r.Header.Del("Authorization") // nothing later may forward, log or keep it
	if p.o.Mode == ModeNone {
		return p.local(r)
	}
	now, from := p.o.Now(), p.ClientIP(r)
	p.clients.forwarded(r, p.o.Trusted)
	if wait := p.clients.failures.Refused(from, now); wait > 0 {
		if who, ok := p.good(r, shows, now); ok {
			return who, nil
		}
		return Principal{}, &Error{Status: http.StatusTooManyRequests, Code: "too_many_failures", RetryAfter: wait,
			Message: "Too many attempts to authenticate failed. Send a valid token, or try again later."}
	}
	if tokenInQuery(r.URL.RawQuery) {
		return Principal{}, inQuery()
	}
	token, shown := bearer(shows)
	switch shown {
	case noCredentials:
		if len(shows) > 0 {
			p.clients.failed(from, now)
		}
		return Principal{}, &Error{Status: http.StatusUnauthorized, Code: "unauthenticated", Challenge: challenge,
			Message: "Authentication is needed: send the header Authorization: Bearer TOKEN."}
	case badCredentials:
		p.clients.failed(from, now)
		return Principal{}, NotAccepted("not one Bearer token")
	}
	if f, mine, err := p.o.ofSource(r, token, now); err != nil {
		if e, ok := errors.AsType[*Error](err); !ok || e.Status == http.StatusUnauthorized {
			p.clients.failed(from, now)
		}
		return Principal{}, err
	} else if mine {
		return p.foreign(&f)
	}
	h, err := p.find(token, now)
	if err != nil {
		p.clients.failed(from, now)
		return Principal{}, err
	}
	if !h.enabled {
		return Principal{}, disabled("token " + h.token.ID)
	}
	p.uses.note(h.token.ID, now)
	return h.principal.clone(), nil
}

// good returns the principal of the one good token that r brings; !ok: it brings none. It counts no failure.
func (p *Porter) good(r *http.Request, shows []string, now time.Time) (who Principal, ok bool) {
	token, shown := bearer(shows)
	if shown != oneToken || tokenInQuery(r.URL.RawQuery) {
		return Principal{}, false
	}
	f, mine, err := p.o.ofSource(r, token, now)
	if mine {
		if err == nil {
			who, err = p.foreign(&f)
		}
		return who, err == nil
	}
	h, err := p.find(token, now)
	if err != nil || !h.enabled {
		return Principal{}, false
	}
	p.uses.note(h.token.ID, now)
	return h.principal.clone(), true
}

// ofSource asks the sources of r for the token. !mine: none of them made it, and err is nil.
func (o *Options) ofSource(r *http.Request, token string, now time.Time) (f Found, mine bool, err error) {
	for _, source := range o.sources(r) {
		if f, mine, err = source.Find(token, now); mine {
			return f, true, err
		}
	}
	return Found{}, false, nil
}

func disabled(reason string) *Error {
	return &Error{Status: http.StatusForbidden, Code: "principal_disabled", Reason: reason,
		Message: "This principal is disabled. Ask the operator."}
}

func inQuery() *Error {
	return &Error{Status: http.StatusBadRequest, Code: "token_in_query",
		Message: "A token does not belong in the URL: send it in the header Authorization: Bearer TOKEN."}
}

// dummy is compared with when there is no such id, so that both take the same time. No text has this hash.
var dummy [sha256.Size]byte

// find returns the token that text is. Whatever is wrong, the error is the same for the client.
func (p *Porter) find(text string, now time.Time) (*held, error) {
	sum := sha256.Sum256([]byte(text))
	id, _ := parseToken(text)
	p.mu.RLock()
	h := p.held[id]
	p.mu.RUnlock()
	want := &dummy
	if h != nil {
		want = &h.hash
	}
	same := subtle.ConstantTimeCompare(sum[:], want[:]) == 1
	if h == nil || !same {
		return nil, NotAccepted("unknown token")
	}
	if state := h.token.State(now); state != "active" {
		return nil, NotAccepted("token " + id + " " + state)
	}
	return h, nil
}

// Valid says whether what p was authenticated with still holds: its token is neither revoked nor expired nor gone, and
// means the same. What is open for who must end if it does not.
func (p *Porter) Valid(who Principal) bool {
	if p.o.Mode == ModeNone {
		return who.Via == ModeNone
	}
	for _, source := range p.o.Sources {
		if valid, mine := source.Valid(who); mine {
			return valid && p.unchanged(who)
		}
	}
	id, ok := strings.CutPrefix(who.Via, via)
	p.mu.RLock()
	h := p.held[id]
	p.mu.RUnlock()
	return ok && h != nil && h.enabled && h.token.State(p.o.Now()) == "active" && h.principal.sameRights(who)
}

// Ended says whether who signed in here and that has ended. It is false if only rights changed, and for tokens of the
// tokens file and of issuers: the next one of the same principal goes on with what they began.
func (p *Porter) Ended(who Principal) bool {
	for _, source := range p.o.Sources {
		if valid, mine := source.Valid(who); mine {
			return !valid && who.Token() != ""
		}
	}
	return false
}

// lastUse returns when each token was last used, by id. TokenFile.LastUse has it for other processes.
func (p *Porter) lastUse() map[string]time.Time { return p.uses.all() }

// Limits returns the quotas of a principal: the same ones for all its tokens, with the numbers of who.Quota. They are
// kept while they are in use, and 10 min after that.
func (p *Porter) Limits(who Principal) *limits.Limiter {
	return p.limits.Of(who.ID, who.Quota, p.o.Now)
}
