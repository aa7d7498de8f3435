package signin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"codehand/server/oauth"
	"codehand/server/people"
)

// account shows what the person allowed, or the form to sign in.
func (p *Pages) account(v *visit) {
	next := v.r.URL.Query().Get("for")
	if next != forApprovals {
		next = ""
	}
	if v.who == nil {
		v.showLogin(loginForm{Ask: next})
		return
	}
	if next != "" {
		v.goTo(nextPath(next))
		return
	}
	person, err := p.o.People.Find(v.who.Principal)
	if err != nil {
		v.broken(err)
		return
	}
	grants, err := p.grantsOf(v.r.Context(), person.ID)
	if err != nil {
		v.broken(err)
		return
	}
	v.withScript()
	v.show("What you allowed", accountPage{Grants: grants, Keys: person.Passkeys, Fresh: v.fresh()})
}

// allowed is what links to the account say.
const allowed = "See everything that you allowed"

type accountPage struct {
	Grants []grantRow
	Keys   []people.Passkey
	Fresh  bool // a passkey can be added
}

// A grantRow is a grant in words.
type grantRow struct {
	oauth.Grant
	Client string
	Can    []string
}

func (p *Pages) grantsOf(ctx context.Context, principal string) ([]grantRow, error) {
	all, err := p.o.Asks.Grants(ctx)
	if err != nil {
		return nil, err
	}
	var rows []grantRow
	for _, g := range all {
		if g.Principal == principal {
			rows = append(rows, grantRow{g, clientName(g.Client), Can(g.Scopes)})
		}
	}
	return rows, nil
}

// clientName is what to call a client.
func clientName(c oauth.ClientInfo) string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Host != "":
		return c.Host
	}
	return "A client without a name"
}

// fresh says whether the person proved a short time ago who it is.
func (v *visit) fresh() bool { return v.who != nil && v.p.o.Now().Sub(v.who.Created) < freshLife }

// withScript lets the page use the script for passkeys.
func (v *visit) withScript() {
	v.w.Header().Set("Content-Security-Policy", policy(v.relyingParty() != "", ""))
}

// A loginForm is the page to sign in.
type loginForm struct {
	Ask    string // what the person signs in for, as nextPath has it; "": nothing waits
	Client string // who began it, where it is a sign-in
	Name   string // as typed before
	Wrong  bool
	Again  bool // a person has signed in before, which over plain http is not enough
}

func (v *visit) showLogin(form loginForm) {
	_, err := v.r.Cookie(v.cookieName(markCookie)) // of whom does not matter
	form.Again = err == nil && !v.secure()
	v.withScript()
	v.show("Sign in", form)
}

// ask shows who wants what.
func (p *Pages) ask(v *visit) {
	ask, ok := v.pending()
	if !ok {
		return
	}
	if v.who == nil {
		v.showLogin(loginForm{Ask: ask.ID, Client: clientName(ask.Client)})
		return
	}
	v.showAsk(ask, "")
}

// pending returns the sign-in that the path names. If ok is false, the request was answered.
func (v *visit) pending() (ask oauth.Ask, ok bool) {
	id := v.r.PathValue("id")
	ask, err := v.p.o.Asks.Pending(v.r.Context(), id)
	switch {
	case errors.Is(err, oauth.ErrNoAsk):
		v.over(id)
		return ask, false
	case err != nil:
		v.broken(err)
		return ask, false
	case !v.p.o.Asks.SameBrowser(v.r, id):
		v.fail(http.StatusForbidden, "Begun elsewhere", "This sign-in was begun in another browser. If somebody "+
			"sent you this link, do not go on. Otherwise start again in the app that you want to connect.")
		return ask, false
	}
	return ask, true
}

// over says what became of a sign-in.
func (v *visit) over(id string) {
	switch v.p.decided.of(id) {
	case "approved":
		v.show("Done", message{Text: "You allowed this. Go back to the app; you can close this page.", Link: allowed})
	case "refused":
		v.show("Refused", message{Text: "You refused this. The app got no access; you can close this page.",
			Link: allowed})
	default:
		v.fail(http.StatusGone, "This is over", "This sign-in has expired, or was decided already. Start again in the "+
			"app that you want to connect.")
	}
}

// decide carries out what the person chose.
func (p *Pages) decide(v *visit) {
	ask, ok := v.pending()
	if !ok {
		return
	}
	if v.who == nil { // the session ended while the page was open
		v.showLogin(loginForm{Ask: ask.ID, Client: clientName(ask.Client)})
		return
	}
	var to, how string
	var err error
	switch v.r.PostForm.Get("decision") {
	case "approve":
		d, wrong := decisionOf(v, ask)
		if wrong != "" {
			v.status = http.StatusUnprocessableEntity
			v.showAsk(ask, wrong)
			return
		}
		how = "approved"
		to, err = p.o.Asks.Approve(v.r.Context(), ask.ID, d)
	case "refuse":
		how = "refused"
		to, err = p.o.Asks.Refuse(v.r.Context(), ask.ID)
	default:
		v.fail(http.StatusBadRequest, "Not understood", "This form cannot be read.")
		return
	}
	switch {
	case errors.Is(err, oauth.ErrNoAsk):
		v.over(ask.ID)
		return
	case err != nil:
		v.broken(err)
		return
	}
	p.decided.note(ask.ID, how)
	v.w.Header().Set("Location", to)
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	v.w.WriteHeader(http.StatusSeeOther)
}

// login checks a name and a password.
func (p *Pages) login(v *visit) {
	form := v.r.PostForm
	name := form.Get("name")
	if p.o.Alone {
		name = people.Owner
	}
	if len(name) > 200 {
		name = "" // no person has it
	}
	ctx := v.r.Context()
	person, err := p.o.People.Find(name)
	if err != nil && !errors.Is(err, people.ErrUnknown) {
		v.broken(err)
		return
	}
	keys := limitKeysOf(v, name, person)
	if wait := p.limits.reserve(keys, p.o.Now()); wait > 0 {
		v.later(wait)
		return
	}
	password := form.Get("password")
	right, stale, err := p.hasher.Check(ctx, person.Password, password) // also for those who do not exist
	switch {
	case errors.Is(err, people.ErrBusy):
		v.later(time.Second)
		return
	case err != nil:
		v.broken(err)
		return
	}
	if _, enabled := p.o.Rights(name); !right || !enabled || !p.admits(person.ID) {
		p.event(v, "signin.failed", map[string]any{"way": "password"})
		v.status = http.StatusUnauthorized
		v.showLogin(loginForm{Ask: form.Get("ask"), Client: waitingFor(v, form.Get("ask")), Name: name, Wrong: true})
		return
	}
	p.limits.succeeded(keys)
	if stale {
		p.rehash(ctx, person, password)
	}
	if err := v.begin(ctx, person, "password"); err != nil {
		v.broken(err)
		return
	}
	v.goTo(nextPath(form.Get("ask")))
}

// waitingFor is the name of the client whose sign-in waits; "": there is none for this browser.
func waitingFor(v *visit, id string) string {
	if nextPath(id) == "" || !v.p.o.Asks.SameBrowser(v.r, id) {
		return ""
	}
	ask, err := v.p.o.Asks.Pending(v.r.Context(), id)
	if err != nil {
		return "" // the next page says so
	}
	return clientName(ask.Client)
}

// rehash keeps a password under the cost of today. It works without, too.
func (p *Pages) rehash(ctx context.Context, person people.Person, password string) {
	hash, err := p.hasher.Hash(ctx, password)
	if err == nil {
		err = p.o.People.Rehash(person.ID, person.Password, hash)
	}
	if err != nil {
		p.o.Log.Warn("cannot hash a password anew", "err", err)
	}
}

// logout forgets the browser.
func (p *Pages) logout(v *visit) {
	if err := p.o.Store.Delete(v.r.Context(), v.sessionKey()); err != nil {
		v.broken(err)
		return
	}
	if v.who != nil {
		p.event(v, "signin.logout", map[string]any{"p": v.who.Principal})
	}
	v.who, v.ticket = nil, ""
	v.renew()
	v.show("Signed out", message{Text: "You are signed out of this browser. What you allowed goes on: sign in " +
		"again to end it.", Link: allowed})
}

// revoke ends a grant of the person.
func (p *Pages) revoke(v *visit) {
	if v.who == nil {
		v.showLogin(loginForm{})
		return
	}
	id := v.r.PostForm.Get("grant")
	mine, err := p.grantsOf(v.r.Context(), v.who.Principal)
	if err != nil {
		v.broken(err)
		return
	}
	if !slices.ContainsFunc(mine, func(g grantRow) bool { return g.ID == id }) {
		v.fail(http.StatusNotFound, "Not found", "This is not allowed any more.")
		return
	}
	if err := p.o.Asks.RevokeGrant(v.r.Context(), id); err != nil && !errors.Is(err, oauth.ErrNoGrant) {
		v.broken(err)
		return
	}
	v.goTo("")
}
