package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/state"
)

const (
	sessionLife = 12 * time.Hour
	freshLife   = 15 * time.Minute // after a sign-in, a passkey may be added
	maxForm     = 64 << 10         // bytes
)

// An asked is a request as its browser sees it: where our pages are for it.
type asked struct {
	r  *http.Request
	at *url.URL // of http.public_url; nil: none
}

// A visit is one request of a browser.
type visit struct {
	asked
	p      *Pages
	w      http.ResponseWriter
	cookie string         // names the browser; it is there in each visit
	ticket string         // what the page has besides, over plain http; "": none, or https
	who    *session       // nil: no person has signed in
	rights auth.Principal // of who
	status int            // of the page
	posted posted         // by our script
}

// A session is what is kept of a browser in which a person signed in.
type session struct {
	Principal string    `json:"principal"`
	Epoch     int       `json:"epoch"` // of the person, when the session began
	Created   time.Time `json:"created"`
}

// sessionKey is where the Store has what belongs to the visit's browser.
func (v *visit) sessionKey() string {
	name := v.cookie
	if v.ticket != "" {
		name += "." + v.ticket
	}
	sum := sha256.Sum256([]byte(name))
	return state.Key(state.Browser, hex.EncodeToString(sum[:]))
}

// serve finds out whose browser sent r, and refuses forms that are not of ours.
func (p *Pages) serve(w http.ResponseWriter, r *http.Request, handle func(*visit)) {
	v := &visit{asked: asked{r, p.public}, p: p, w: w, status: http.StatusOK}
	if c, err := r.Cookie(v.cookieName(browserCookie)); err == nil && len(c.Value) == 43 {
		v.cookie = c.Value
	}
	if r.Method == http.MethodPost && !v.sameOrigin() {
		v.fail(http.StatusForbidden, "Not from here", "This form was sent by another site, so nothing was done.")
		return
	}
	if v.cookie == "" {
		v.renew()
	}
	if r.Method == http.MethodPost {
		if !v.readForm() {
			return
		}
	} else if !v.secure() {
		v.ticket = r.URL.Query().Get(ticketName)
	}
	if err := v.recall(); err != nil {
		v.broken(err)
		return
	}
	handle(v)
}

// readForm reads what was posted, and holds its token against the browser. If it is false, the request was answered.
func (v *visit) readForm() bool {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	api := v.r.Pattern == patternBegin || v.r.Pattern == patternFinish
	if api != v.isJSON() {
		v.fail(http.StatusUnsupportedMediaType, "Not understood", "This form cannot be read.")
		return false
	}
	var token string
	var err error
	if api {
		var body []byte
		if body, err = io.ReadAll(v.r.Body); err == nil {
			err = oauth.ReadObject(body, &v.posted)
		}
		token = v.posted.CSRF
	} else if err = v.r.ParseForm(); err == nil {
		token, err = v.r.PostForm.Get("csrf"), unrepeated(v.r.PostForm)
	}
	query := v.r.URL.RawQuery // a page whose form names no other is sent its own
	if err != nil || query != "" && (v.secure() || query != inQuery(v.r.URL.Query().Get(ticketName))) {
		v.fail(http.StatusBadRequest, "Not understood", "This form cannot be read.")
		return false
	}
	if !v.genuine(token) {
		v.ticket = ""
		v.fail(http.StatusForbidden, "Out of date", "This page was open for too long, or cookies are blocked. "+
			"Go back, reload it and try again.")
		return false
	}
	return true
}

// unrepeated refuses a form in which a field stands twice, apart from the directories: the one that is checked and the
// one that is used might differ.
func unrepeated(form url.Values) error {
	for name, all := range form {
		if len(all) > 1 && name != "root" {
			return errors.New("a field stands there twice")
		}
	}
	return nil
}

func (a asked) isJSON() bool {
	kind, _, _ := strings.Cut(a.r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(kind) == "application/json"
}

// sameOrigin says whether a page of ours sent the request, as far as the browser says. The token of the form counts
// besides.
func (a asked) sameOrigin() bool {
	if site := a.r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	all := a.r.Header["Origin"]
	if len(all) != 1 {
		return len(all) == 0
	}
	// A proxy may have put its own name in the place of the public one.
	return all[0] == a.origin() || a.at != nil && all[0] == originOf(a.at)
}

// origin is the one of the page, as the browser has it.
func (a asked) origin() string {
	if a.public() {
		return originOf(a.at)
	}
	if a.r.TLS != nil {
		return "https://" + a.r.Host
	}
	return "http://" + a.r.Host
}

// originOf is the origin of a URL as browsers write it: without the usual port.
func originOf(u *url.URL) string {
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), usualPorts[u.Scheme])
}

var usualPorts = map[string]string{"https": ":443", "http": ":80"}

// public says whether the browser came by http.public_url. Its proxy may name the host without the port.
func (a asked) public() bool {
	at := a.at
	if at == nil {
		return false
	}
	host := strings.ToLower(a.r.Host)
	return host == strings.ToLower(at.Host) || host == strings.ToLower(at.Hostname()) ||
		host == strings.ToLower(at.Hostname())+usualPorts[at.Scheme]
}

func (a asked) secure() bool { return strings.HasPrefix(a.origin(), "https:") }

// The cookies.
const (
	browserCookie = "codehand-signin" // names the browser
	inviteCookie  = "codehand-invite" // the code of an invitation, so that it leaves the address bar
	markCookie    = "codehand-known"  // a browser in which this person has signed in before
)

// cookieName has the prefix that keeps other hosts and plain connections from setting the cookie.
func (a asked) cookieName(name string) string {
	if a.secure() {
		return "__Host-" + name
	}
	return name
}

func (v *visit) setCookie(name, value string, life time.Duration) {
	c := &http.Cookie{Name: v.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: v.secure(),
		SameSite: http.SameSiteLaxMode, // Strict would not be sent when a client's site opens the approval page
		MaxAge:   int(life / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

func random() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// renew gives the browser a new name.
func (v *visit) renew() {
	v.cookie = random()
	v.setCookie(browserCookie, v.cookie, sessionLife)
}

// recall finds who signed in. A session ends with its time, with a new password, and when the operator shuts a
// principal out.
func (v *visit) recall() error {
	if v.ticket == "" && !v.secure() {
		return nil
	}
	raw, _, err := v.p.o.Store.Get(v.r.Context(), v.sessionKey())
	if err != nil || raw == nil {
		return err
	}
	var s session
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if age := v.p.o.Now().Sub(s.Created); age < 0 || age >= sessionLife {
		return nil
	}
	person, err := v.p.o.People.Find(s.Principal)
	if errors.Is(err, people.ErrUnknown) {
		return nil
	} else if err != nil {
		return err
	}
	rights, ok := v.p.o.Rights(s.Principal)
	if person.Epoch == s.Epoch && ok && v.p.admits(s.Principal) {
		v.who, v.rights = &s, rights
	}
	return nil
}

// admits says whether a principal may sign in here: where the owner is alone, no other may.
func (p *Pages) admits(id string) bool { return !p.o.Alone || id == people.Owner }

// begin signs a person in. The browser gets a new name, so one that an attacker planted is worth nothing.
func (v *visit) begin(ctx context.Context, person people.Person, way string) error {
	_ = v.p.o.Store.Delete(ctx, v.sessionKey()) // it ends by itself otherwise
	v.renew()
	if !v.secure() {
		v.ticket = random()
	}
	s := session{Principal: person.ID, Epoch: person.Epoch, Created: v.p.o.Now()}
	raw, err := json.Marshal(s)
	if err == nil {
		err = v.p.o.Store.Set(ctx, v.sessionKey(), raw)
	}
	if err != nil {
		return err
	}
	v.who = &s
	mark(v, person)
	v.p.event(v, "signin.login", map[string]any{"p": person.ID, "way": way})
	return nil
}

// token is the CSRF token of the browser's forms.
func (v *visit) token() string {
	if v.secure() {
		return v.p.sign("csrf", v.cookie)
	}
	return v.ticket + "." + v.p.sign("csrf", v.cookie, v.ticket)
}

// genuine says whether this browser has a form with the token, and notes the ticket of it.
func (v *visit) genuine(token string) bool {
	v.ticket = v.ticketOf(token)
	return subtle.ConstantTimeCompare([]byte(token), []byte(v.token())) == 1
}

// event notes something for the audit.
func (p *Pages) event(v *visit, name string, fields map[string]any) {
	if ip := p.o.ClientIP(v.r); ip.IsValid() {
		fields["ip"] = ip.String()
	}
	p.o.Event(name, fields)
}

// base leads from the page to /signin/. Links are relative, since only the browser knows what stands before.
func (a asked) base() string {
	if n := strings.Count(strings.TrimPrefix(a.r.URL.Path, "/signin/"), "/"); n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// goTo redirects to a page of ours, which is given relative to /signin/.
func (v *visit) goTo(page string) {
	v.w.Header().Set("Location", v.base()+page+queried(v.ticket))
	v.w.WriteHeader(http.StatusSeeOther)
}

// A shower is what a page says below its title.
type shower interface{ show(view) node }

// show writes a page.
func (v *visit) show(title string, what shower) {
	look := view{title: title, base: v.base(), query: queried(v.ticket), token: v.token(),
		alone: v.p.o.Alone, who: v.name(),
		passkeys: v.relyingParty() != ""}
	body := look.page(what.show(look))
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	v.w.WriteHeader(v.status)
	_, _ = io.WriteString(v.w, body) // a browser that is gone needs no answer
}

func (v *visit) name() string {
	if v.who == nil {
		return ""
	}
	return v.who.Principal
}

// fail shows a page that says why nothing was done.
func (v *visit) fail(status int, title, text string) {
	if v.isJSON() && v.r.Method == http.MethodPost {
		v.answerJSON(status, map[string]string{"error": text})
		return
	}
	v.status = status
	v.show(title, message{Text: text})
}

// A message is a page with one paragraph.
type message struct {
	Text string
	Link string // what the link to what was allowed says; "": there is none
}

// broken is an error of ours. What it says stays in the log.
func (v *visit) broken(err error) {
	v.p.o.Log.Error("sign-in page", "path", v.r.Pattern, "err", err)
	v.fail(http.StatusServiceUnavailable, "Not possible now", "The server cannot do this at the moment. Try again in "+
		"a minute; its operator finds the reason in the log.")
}

// later refuses an attempt that came too early.
func (v *visit) later(wait time.Duration) {
	n := max(1, int((wait+time.Second-1)/time.Second))
	v.w.Header().Set("Retry-After", strconv.Itoa(n))
	v.p.event(v, "signin.limited", map[string]any{})
	unit := " seconds"
	if n == 1 {
		unit = " second"
	}
	v.fail(http.StatusTooManyRequests, "Too many attempts", "There were too many failed attempts to sign in. "+
		"Try again in "+strconv.Itoa(n)+unit+", or use a passkey.")
}

func (v *visit) answerJSON(status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		v.p.o.Log.Error("sign-in page", "err", err)
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(body)
}

// forApprovals is what a person signs in for who was on the page of another room.
const forApprovals = "approvals"

// nextPath is the page that a person signs in for, relative to /signin/: that of the sign-in id, which waits, or that
// of what waits for an approval; "" if id cannot be one.
func nextPath(id string) string {
	if id == forApprovals {
		return "../"
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if id == "" || len(id) > 200 || strings.Trim(id, letters) != "" {
		return ""
	}
	return "ask/" + url.PathEscape(id)
}
