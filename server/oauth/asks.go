package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/state"
)

// Limits of sign-ins that wait.
const (
	maxAsks        = 1000
	maxAsksOfOne   = 50       // network
	maxState       = 2 << 10  // bytes of the parameter state
	maxQuery       = 16 << 10 // bytes of a request to authorize
	maxScope       = 1000     // bytes of the parameter scope
	maxDecideTries = 5
)

// An askRecord is a sign-in in the Store. Its key is the hash of its id.
type askRecord struct {
	V         int         `json:"v"`
	Client    ClientInfo  `json:"client,omitzero"`
	Redirect  string      `json:"redirect,omitempty"`
	State     string      `json:"state,omitempty"`
	Challenge string      `json:"challenge,omitempty"`
	Scopes    auth.Scopes `json:"scopes,omitempty"`
	Resource  string      `json:"resource,omitempty"`
	Issuer    string      `json:"issuer,omitempty"`
	Browser   digest      `json:"browser,omitzero"` // of the cookie that began it
	Created   time.Time   `json:"created"`
	Expires   time.Time   `json:"expires"`
	Done      bool        `json:"done,omitempty"`
}

// An askTable keeps sign-ins that wait, in the Store, and counts them by network. It is safe for concurrent use.
type askTable struct {
	*shared
	mu    sync.Mutex
	waits map[string]waiting // by key
}

type waiting struct {
	from netip.Prefix
	ends time.Time
	held bool // a signed-in person looks at it
}

func askKey(id string) string { return state.Key(state.SignIn, state.Hash(id)) }

func isAskID(id string) bool { return len(id) == 26 && strings.Trim(id, idLetters) == "" }

// loadAsks counts what waited before a restart.
func (s *askTable) loadAsks(ctx context.Context) error {
	keys, err := s.o.Store.Keys(ctx, state.SignIn)
	for _, key := range keys {
		s.waits[key] = waiting{ends: s.o.Now().Add(AskLife)}
	}
	return err
}

func (s *askTable) sweepAsks() { // the Store drops them itself
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	for key, a := range s.waits {
		if !now.Before(a.ends) {
			delete(s.waits, key)
		}
	}
}

// begin counts a sign-in. If a network has too many, its oldest one makes room; if all together are too many, the
// oldest of all does. Behind a tunnel all people are one network, and a flood of sign-ins must not lock others out. One
// that a signed-in person looks at stays. gone is the key of the one that made room; "": none had to. ok is false if
// none can.
func (s *askTable) begin(key string, at netip.Addr) (gone string, ok bool) {
	s.sweepAsks()
	from, _ := at.Prefix(min(at.BitLen(), 64))
	s.mu.Lock()
	defer s.mu.Unlock()
	same, first, firstSame := 0, "", ""
	for k, a := range s.waits {
		older := func(than string) bool { return !a.held && (than == "" || a.ends.Before(s.waits[than].ends)) }
		if older(first) {
			first = k
		}
		if a.from != from {
			continue
		}
		if same++; older(firstSame) {
			firstSame = k
		}
	}
	switch {
	case same >= maxAsksOfOne:
		gone, ok = firstSame, firstSame != ""
	case len(s.waits) >= maxAsks:
		gone = cmp.Or(firstSame, first)
		ok = gone != ""
	default:
		ok = true
	}
	if ok {
		delete(s.waits, gone)
		s.waits[key] = waiting{from: from, ends: s.o.Now().Add(AskLife)}
	}
	return gone, ok
}

// hasAsk says whether a sign-in is counted: it did not have to make room.
func (s *askTable) hasAsk(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.waits[key]
	return ok
}

// HoldAsk keeps a sign-in from making room for newer ones: a signed-in person looks at it.
func (s *Server) HoldAsk(id string) {
	s.askTable.mu.Lock()
	defer s.askTable.mu.Unlock()
	if a, ok := s.waits[askKey(id)]; ok {
		a.held = true
		s.waits[askKey(id)] = a
	}
}

func (s *askTable) decided(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waits, key)
}

// keepAsk puts a sign-in into the Store; false: too many wait.
func (s *askTable) keepAsk(ctx context.Context, id string, a askRecord, from netip.Addr) (bool, error) {
	key := askKey(id)
	gone, ok := s.begin(key, from)
	if !ok {
		return false, nil
	}
	if gone != "" {
		if err := s.o.Store.Delete(ctx, gone); err != nil { // it goes by itself, later
			s.o.Log.Warn("cannot delete a sign-in that made room", "err", err)
		}
	}
	if ok, err := s.o.Store.Swap(ctx, key, encode(a), 0); err != nil || !ok {
		s.decided(key)
		return false, errors.Join(err, errors.New("a sign-in was not kept"))
	}
	if !s.hasAsk(key) { // it made room before it was there
		return false, s.o.Store.Delete(ctx, key)
	}
	return true, nil
}

// A returning is a problem that the client is told at its redirect URI.
type returning struct{ code, text string }

// authorize serves GET /oauth/authorize. Until client and redirect URI are proven, a person gets a page of text and
// nothing is redirected.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	base := s.baseOf(r)
	if base == "" {
		page(w, http.StatusBadRequest, unknownHost().text)
		return
	}
	if len(r.URL.RawQuery) > maxQuery {
		page(w, http.StatusBadRequest, "the address is too long")
		return
	}
	f, twice, err := parseForm(r.URL.RawQuery)
	if err != nil || slices.Contains(twice, "client_id") || slices.Contains(twice, "redirect_uri") {
		page(w, http.StatusBadRequest, "the address of this page cannot be read, or names two clients")
		return
	}
	c, err := s.clients.clientOf(r.Context(), r, f.get("client_id"))
	if err != nil {
		page(w, http.StatusBadRequest, line(err.Error(), 300))
		return
	}
	redirect, ok := redirectOf(c.Redirects, f.get("redirect_uri"))
	if !ok {
		page(w, http.StatusBadRequest, "the client wants the answer at an address that it has not registered "+
			"(redirect_uri). Nothing was sent there")
		return
	}
	a := askRecord{V: formatOfValues, Client: c.info(redirect), Redirect: redirect, Issuer: base,
		Created: s.o.Now().UTC().Truncate(time.Second)}
	a.Expires = a.Created.Add(AskLife)
	if bad := a.read(f, twice); bad != nil {
		s.turnBack(w, a, *bad)
		return
	}
	a.Browser = digestOf(s.browser(w, r, base))
	id := newID(26)
	switch ok, err := s.keepAsk(r.Context(), id, a, s.clientIP(r)); {
	case err != nil:
		page(w, http.StatusServiceUnavailable, s.failed("keep a sign-in", err).text)
		return
	case !ok:
		s.turnBack(w, a, returning{"temporarily_unavailable",
			"too many sign-ins wait for a person; try again in some minutes"})
		return
	}
	w.Header().Set("Location", s.prefix+pathAsk+id)
	w.WriteHeader(http.StatusSeeOther)
}

// read takes the parameters of a request whose redirect URI is proven.
func (a *askRecord) read(f form, twice []string) *returning {
	if a.State = f.get("state"); len(a.State) > maxState || slices.Contains(twice, "state") {
		a.State = ""
		return &returning{"invalid_request", "state is too long, or stands there twice"}
	}
	switch {
	case slices.Equal(twice, []string{"resource"}):
		return &returning{"invalid_target", "name one resource"}
	case len(twice) > 0:
		return &returning{"invalid_request", "a parameter stands there twice"}
	case f.get("request") != "":
		return &returning{"request_not_supported", "request objects are not supported"}
	case f.get("request_uri") != "":
		return &returning{"request_uri_not_supported", "request objects are not supported"}
	case f.get("response_type") != "code":
		return &returning{"unsupported_response_type", "response_type must be code"}
	case f.get("response_mode") != "" && f.get("response_mode") != "query":
		return &returning{"invalid_request", "response_mode must be query"}
	case f.get("code_challenge_method") != "S256":
		return &returning{"invalid_request", "code_challenge_method must be S256"}
	case len(f.get("code_challenge")) != secretSize || !isBase64URL(f.get("code_challenge")):
		return &returning{"invalid_request", "code_challenge must have 43 characters"}
	case f.get("prompt") == "none":
		return &returning{"interaction_required", "a person must approve"}
	}
	a.Challenge = f.get("code_challenge")
	var ok bool
	if a.Resource, ok = resourceOf(a.Issuer, f.get("resource")); !ok {
		return &returning{"invalid_target", "resource must be an address of this server"}
	}
	if a.Scopes, ok = scopesOf(f.get("scope")); !ok {
		return &returning{"invalid_scope", "none of the scopes is known here"}
	}
	return nil
}

// scopesOf reads scopes that a client asks for. Names of others are left out, since clients add some of their own; the
// console is for people only. Without any name the client leaves it to the person.
func scopesOf(text string) (auth.Scopes, bool) {
	if len(text) > maxScope {
		return 0, false
	}
	names := strings.Fields(text)
	if len(names) == 0 {
		names = []string{"mcp:all"}
	}
	var all auth.Scopes
	for _, name := range names {
		if one, err := auth.ParseScopes([]string{name}); err == nil {
			all |= one
		}
	}
	all &^= auth.AdminConsole
	return all, all != 0
}

// turnBack says what is wrong with a request about which no person has decided. Only a program on the person's own
// machine is told by a redirect. A stranger can register a client, or publish a document about one, whose answers go to
// the stranger's page: a link to us would then lead there at once, under our name. RFC 9700, section 4.11.2, wants that
// closed: no redirect before a person has signed in. RFC 6749, section 4.1.2.1, has the redirect for the client's sake;
// a client elsewhere learns nothing then, and the person reads here what the client has to be told.
func (s *askTable) turnBack(w http.ResponseWriter, a askRecord, bad returning) {
	if a.Client.Loopback {
		w.Header().Set("Location", a.answer(url.Values{"error": {bad.code}, "error_description": {bad.text}}))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	status := http.StatusBadRequest
	if bad.code == "temporarily_unavailable" {
		status = http.StatusServiceUnavailable
	}
	page(w, status, "the client, whose answers go to "+line(a.Client.RedirectHost, 100)+
		", asked for what cannot be done: "+bad.text+" ("+bad.code+
		"). It was not told: close this page and try again there, or tell whoever made it")
}

// answer is where the browser goes with an answer.
func (a askRecord) answer(v url.Values) string {
	v.Set("iss", a.Issuer)
	if a.State != "" {
		v.Set("state", a.State)
	}
	return answerAt(a.Redirect, v)
}

// page answers a browser with a line of text.
func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "codehand cannot sign you in: %s.\n", text) // a browser that is gone needs no answer
}

// The cookie that tells browsers apart. With https no other host can set it.
const (
	cookieName   = "codehand-browser"
	cookieSecure = "__Host-codehand-browser"
)

func cookieOf(base string) string {
	if strings.HasPrefix(base, "https:") {
		return cookieSecure
	}
	return cookieName
}

// browser returns the secret of the browser that sent r, and gives it one if it has none.
func (s *askTable) browser(w http.ResponseWriter, r *http.Request, base string) string {
	name := cookieOf(base)
	if c, err := r.Cookie(name); err == nil && len(c.Value) == secretSize && isBase64URL(c.Value) {
		return c.Value
	}
	secret := newSecret(32)
	http.SetCookie(w, &http.Cookie{Name: name, Value: secret, Path: "/", HttpOnly: true, Secure: name == cookieSecure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(24 * time.Hour / time.Second)})
	return secret
}

// SameBrowser says whether the browser that sent r is the one that began the sign-in id. A page must not let another
// one decide: an attacker may have sent the page's address to a person.
func (s *Server) SameBrowser(r *http.Request, id string) bool {
	a, _, err := s.ask(r.Context(), id)
	if err != nil {
		return false
	}
	c, err := r.Cookie(cookieOf(a.Issuer))
	return err == nil && a.Browser.is(digestOf(c.Value))
}

// ask returns a sign-in that waits.
func (s *askTable) ask(ctx context.Context, id string) (a askRecord, rev uint64, err error) {
	if !isAskID(id) {
		return a, 0, ErrNoAsk
	}
	raw, rev, err := s.o.Store.Get(ctx, askKey(id))
	if err != nil {
		return a, 0, err
	}
	if raw == nil || json.Unmarshal(raw, &a) != nil || a.V > formatOfValues || a.Done ||
		!s.o.Now().Before(a.Expires) {
		return askRecord{}, 0, ErrNoAsk
	}
	return a, rev, nil
}

// Pending returns a sign-in that waits for a decision, or ErrNoAsk.
func (s *askTable) Pending(ctx context.Context, id string) (Ask, error) {
	a, _, err := s.ask(ctx, id)
	if err != nil {
		return Ask{}, err
	}
	return Ask{ID: id, Client: a.Client, Scopes: a.Scopes, Resource: a.Resource, Created: a.Created,
		Expires: a.Expires}, nil
}

// decide makes the one decision about a sign-in the caller's: of several one gets it, the others ErrNoAsk.
func (s *askTable) decide(ctx context.Context, id string, a askRecord, rev uint64) error {
	// What is left says that it was decided, and nothing else: it stays until its time is up.
	over := askRecord{V: a.V, Created: a.Created, Expires: a.Expires, Done: true}
	ok, err := s.o.Store.Swap(ctx, askKey(id), encode(over), rev)
	if err != nil {
		return err
	}
	if !ok {
		return ErrNoAsk
	}
	s.decided(askKey(id))
	return nil
}

// check refuses a decision that gives more than the sign-in asked for, or cannot be meant.
func (d Decision) check(a askRecord) error {
	if err := auth.CheckID(d.Principal); err != nil {
		return err
	}
	if d.Scopes == 0 || d.Scopes&^a.Scopes != 0 {
		return errors.New("approve some of the scopes that the client asked for, and no others")
	}
	if d.Life != 0 && d.Life < CodeLife || d.Life > MaxLife {
		return fmt.Errorf("a grant holds for at least %s and at most %d days", CodeLife, MaxLife/(24*time.Hour))
	}
	if d.Roots != nil && len(d.Roots) == 0 {
		return errors.New("approve at least one root")
	}
	for _, r := range d.Roots {
		if !filepath.IsAbs(r) || filepath.Clean(r) != r {
			return errors.New("a root must be absolute and clean")
		}
	}
	v := auth.Values{}
	if d.Mode != "" {
		v.Mode = &d.Mode
	}
	if d.MaxMode != "" {
		v.MaxMode = &d.MaxMode
	}
	return v.Check()
}

// realRoots are directories as they are now, without links: a link that is put in the place of one later leads nowhere.
func realRoots(roots []string) []string {
	var real []string
	for _, r := range roots {
		if r = auth.Real(r); !slices.Contains(real, r) {
			real = append(real, r)
		}
	}
	return real
}

// Approve carries out what a person decided and returns where the browser goes next. An Ask is decided once: of several
// calls all but one get ErrNoAsk. Another error says what of d is wrong, and the Ask goes on waiting.
func (s *Server) Approve(ctx context.Context, id string, d Decision) (redirect string, err error) {
	a, rev, err := s.ask(ctx, id)
	if err != nil {
		return "", err
	}
	if err := d.check(a); err != nil {
		return "", err
	}
	if err := s.decide(ctx, id, a, rev); err != nil {
		return "", err
	}
	now := s.o.Now().UTC()
	g := record{V: formatOfValues, Who: d.Principal, Scopes: d.Scopes, Roots: realRoots(d.Roots), Mode: d.Mode,
		MaxMode: d.MaxMode, Client: a.Client, Resource: a.Resource, Created: now,
		Expires: now.Add(cmp.Or(d.Life, AccessLife))}
	g.Code = code{Redirect: a.Redirect, Challenge: a.Challenge, Expires: now.Add(CodeLife)}
	if d.Life > AccessLife {
		g.Refresh.Expires = now.Add(IdleLife) // a mark that there will be some
	}
	var text string
	for range maxDecideTries { // ids have 60 bits: the first one is free
		g.ID = newID(grantBytes)
		text = codePrefix + g.ID + "_" + newSecret(32)
		g.Code.Hash = digestOf(text)
		ok, err := s.o.Store.Swap(ctx, grantKey(g.ID), encode(g), 0)
		if err != nil {
			return "", err
		}
		if ok {
			return a.answer(url.Values{"code": {text}}), nil
		}
	}
	return "", errors.New("no free id for a grant")
}

// Refuse tells the client that the person does not want it, and returns where the browser goes next. It is a decision
// as in Approve.
func (s *Server) Refuse(ctx context.Context, id string) (redirect string, err error) {
	a, rev, err := s.ask(ctx, id)
	if err != nil {
		return "", err
	}
	if err := s.decide(ctx, id, a, rev); err != nil {
		return "", err
	}
	return a.answer(url.Values{"error": {"access_denied"}, "error_description": {"the person said no"}}), nil
}
