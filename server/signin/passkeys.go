package signin

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"codehand/server/people"
)

const (
	patternBegin  = "POST /signin/passkey/begin"
	patternFinish = "POST /signin/passkey/finish"
)

// A posted is what our script sends.
type posted struct {
	CSRF       string          `json:"csrf"`
	Kind       string          `json:"kind"` // one of those below
	Name       string          `json:"name"` // of the passkey
	Ask        string          `json:"ask"`  // that waits, as nextPath has it; "": none
	Credential json.RawMessage `json:"credential"`
}

// What a passkey is asked for.
const (
	toLogin    = "login"
	toRegister = "register" // one more, for the person who is signed in
	toAccept   = "invite"   // the first one, with an invitation
)

// A ceremony is what the server must remember while an authenticator is asked.
type ceremony struct {
	kind    string
	session webauthn.SessionData
	handle  []byte // of whom a new passkey is for
	ends    time.Time
}

const (
	ceremonyLife  = 5 * time.Minute
	maxCeremonies = 1000 // the oldest ones are forgotten
)

// ceremonies are kept by browser, one for each. It is safe for concurrent use.
type ceremonies struct {
	mu  sync.Mutex
	by  map[string]ceremony
	all []string // browsers, in order
}

func (c *ceremonies) put(browser string, one ceremony) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]ceremony{}
	}
	if _, twice := c.by[browser]; !twice {
		c.all = append(c.all, browser)
	}
	c.by[browser] = one
	for len(c.all) > maxCeremonies {
		delete(c.by, c.all[0])
		c.all = c.all[1:]
	}
}

// take returns the ceremony of a browser once.
func (c *ceremonies) take(browser string, now time.Time) (ceremony, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.by[browser]
	if ok {
		c.by[browser] = ceremony{} // its place in the order stays
	}
	return one, ok && one.kind != "" && now.Before(one.ends)
}

// relyingParty is the host that passkeys are for: that of http.public_url, or localhost; "": an address cannot have
// any.
func (a asked) relyingParty() string {
	if a.public() && a.secure() {
		host := a.at.Hostname()
		if _, err := netip.ParseAddr(host); err == nil {
			return ""
		}
		return strings.ToLower(host)
	}
	if host, _, _ := strings.Cut(a.r.Host, ":"); strings.EqualFold(host, "localhost") {
		return "localhost"
	}
	return ""
}

// authnOf is the library's part, set up for the page's origin.
func authnOf(v *visit) (*webauthn.WebAuthn, error) {
	host := v.relyingParty()
	if host == "" {
		return nil, errors.New("passkeys need a host name")
	}
	return webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "codehand", RPOrigins: []string{v.origin()},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
	})
}

// A user is a person as the library wants one.
type user struct {
	handle      []byte
	name        string
	credentials []webauthn.Credential
}

func (u user) WebAuthnID() []byte                         { return u.handle }
func (u user) WebAuthnName() string                       { return u.name }
func (u user) WebAuthnDisplayName() string                { return u.name }
func (u user) WebAuthnCredentials() []webauthn.Credential { return u.credentials }

// beginPasskey answers with what the browser passes to an authenticator.
func (p *Pages) beginPasskey(v *visit) {
	authn, err := authnOf(v)
	if err != nil {
		v.fail(http.StatusConflict, "No passkeys",
			"Passkeys need a host name; open this page under one, such as localhost.")
		return
	}
	one := ceremony{kind: v.posted.Kind, ends: p.o.Now().Add(ceremonyLife)}
	var options any
	var session *webauthn.SessionData
	if one.kind == toLogin {
		verified := webauthn.WithUserVerification(protocol.VerificationRequired)
		options, session, err = authn.BeginDiscoverableLogin(verified)
	} else {
		who, ok := registrantOf(v)
		if !ok {
			return
		}
		one.handle = who.handle
		var not []protocol.CredentialDescriptor
		for _, c := range who.credentials {
			not = append(not, c.Descriptor())
		}
		options, session, err = authn.BeginRegistration(who, webauthn.WithExclusions(not))
	}
	if err != nil {
		v.broken(err)
		return
	}
	one.session = *session
	one.session.Expires = time.Time{} // ends says it, by our clock
	p.ceremonies.put(v.sessionKey(), one)
	v.answerJSON(http.StatusOK, options)
}

// registrantOf is whom a new passkey is for. If ok is false, the request was answered.
func registrantOf(v *visit) (u user, ok bool) {
	switch v.posted.Kind {
	case toRegister:
		if !v.fresh() {
			v.fail(http.StatusForbidden, "Sign in again", "To add a passkey, sign out and in again first.")
			return u, false
		}
		person, err := v.p.o.People.Find(v.who.Principal)
		if err != nil {
			v.broken(err)
			return u, false
		}
		return asUser(person), true
	case toAccept:
		i, err := v.p.o.People.Invited(v.code())
		if err != nil {
			v.inviteOver(err)
			return u, false
		}
		handle := make([]byte, 32)
		_, _ = rand.Read(handle) // never fails
		return user{handle: handle, name: i.Principal}, true
	}
	v.fail(http.StatusBadRequest, "Not understood", "This form cannot be read.")
	return u, false
}

func asUser(person people.Person) user {
	u := user{handle: person.Handle, name: person.ID}
	for _, k := range person.Passkeys {
		var c webauthn.Credential
		if json.Unmarshal(k.Record, &c) == nil { // a broken one signs no person in
			u.credentials = append(u.credentials, c)
		}
	}
	return u
}

// finishPasskey takes what an authenticator answered.
func (p *Pages) finishPasskey(v *visit) {
	authn, err := authnOf(v)
	one, ok := p.ceremonies.take(v.sessionKey(), p.o.Now())
	if err != nil || !ok || one.kind != v.posted.Kind {
		v.fail(http.StatusConflict, "Out of date", "This took too long. Try again.")
		return
	}
	if one.kind == toLogin {
		p.passkeyLogin(v, authn, one)
		return
	}
	who, ok := registrantOf(v)
	if !ok {
		return
	}
	who.handle = one.handle
	parsed, err := protocol.ParseCredentialCreationResponseBytes(v.posted.Credential)
	var made *webauthn.Credential
	if err == nil {
		made, err = authn.CreateCredential(who, one.session, parsed)
	}
	if err != nil {
		v.notAccepted(err)
		return
	}
	record, err := json.Marshal(made)
	if err != nil {
		v.broken(err)
		return
	}
	key := people.Passkey{ID: base64.RawURLEncoding.EncodeToString(made.ID), Name: v.posted.Name,
		Host: authn.Config.RPID, Record: record}
	if one.kind == toAccept {
		p.join(v, "", &key, one.handle)
		return
	}
	if err := p.o.People.AddPasskey(v.who.Principal, key); err != nil {
		v.fail(http.StatusConflict, "Not added", sentence(err))
		return
	}
	p.event(v, "signin.passkey_added", map[string]any{"p": v.who.Principal})
	v.answerJSON(http.StatusOK, map[string]string{"next": queried(v.ticket)})
}

// passkeyLogin signs in whose passkey it is. The counter is checked and kept in one step.
func (p *Pages) passkeyLogin(v *visit, authn *webauthn.WebAuthn, one ceremony) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(v.posted.Credential)
	if err != nil {
		v.notAccepted(err)
		return
	}
	person, err := p.o.People.ByHandle(parsed.Response.UserHandle)
	if err == nil && !p.admits(person.ID) {
		err = people.ErrUnknown
	}
	if err == nil {
		id := base64.RawURLEncoding.EncodeToString(parsed.RawID)
		err = p.o.People.UsePasskey(person.ID, id, func(record json.RawMessage) (json.RawMessage, error) {
			return verify(authn, person, record, one.session, parsed)
		})
	}
	if _, enabled := p.o.Rights(person.ID); err == nil && !enabled {
		err = errors.New("the principal is disabled")
	}
	if err != nil {
		v.notAccepted(err)
		return
	}
	if err := v.begin(v.r.Context(), person, "passkey"); err != nil {
		v.broken(err)
		return
	}
	v.answerJSON(http.StatusOK, map[string]string{"next": nextPath(v.posted.Ask) + queried(v.ticket)})
}

// verify holds an answer against what is kept of a passkey, and returns what is kept from now on.
func verify(authn *webauthn.WebAuthn, person people.Person, record json.RawMessage, session webauthn.SessionData,
	parsed *protocol.ParsedCredentialAssertionData) (json.RawMessage, error) {
	var kept webauthn.Credential
	if err := json.Unmarshal(record, &kept); err != nil {
		return nil, err
	}
	who := user{handle: person.Handle, name: person.ID, credentials: []webauthn.Credential{kept}}
	found := func(_, _ []byte) (webauthn.User, error) { return who, nil }
	_, now, err := authn.ValidatePasskeyLogin(found, session, parsed)
	switch {
	case err != nil:
		return nil, err
	case now.Authenticator.CloneWarning:
		return nil, errors.New("the counter of the passkey went back: it may have been copied")
	}
	return json.Marshal(now)
}

// notAccepted refuses what an authenticator answered, always with the same words.
func (v *visit) notAccepted(err error) {
	reason := err.Error()
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		reason = e.Details
	}
	v.p.o.Log.Info("passkey not accepted", "kind", v.posted.Kind, "reason", reason)
	v.p.event(v, "signin.failed", map[string]any{"way": "passkey"})
	v.fail(http.StatusUnauthorized, "Not accepted", "This passkey was not accepted.")
}

// removePasskey takes one of the person's passkeys away.
func (p *Pages) removePasskey(v *visit) {
	if v.who == nil {
		v.showLogin(loginForm{})
		return
	}
	if err := p.o.People.RemovePasskey(v.who.Principal, v.r.PostForm.Get("key")); err != nil {
		v.fail(http.StatusConflict, "Not removed", sentence(err))
		return
	}
	p.event(v, "signin.passkey_removed", map[string]any{"p": v.who.Principal})
	v.goTo("")
}

// sentence is an error of people for a page.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
