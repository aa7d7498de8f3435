package issuer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"codehand/server/auth"
	"codehand/server/config"
)

// An entry is one issuer. It is safe for concurrent use.
type entry struct {
	c      config.Issuer
	mark   string // fingerprint of c
	client *http.Client
	now    func() time.Time

	mu     sync.Mutex // covers what follows
	keys   *keys      // nil: the issuer was not discovered yet
	failed error      // why; nil: it was not tried yet
}

func newEntry(c config.Issuer, mark string, client *http.Client, now func() time.Time) *entry {
	e := &entry{c: c, mark: mark, client: client, now: now}
	if c.JWKSURI != "" {
		e.keys = newKeys(c.JWKSURI, client, now)
	}
	return e
}

// discover reads the issuer's discovery document, once. tried is false if that was done before.
func (e *entry) discover(ctx context.Context) (tried bool, err error) {
	if k, _ := e.ready(); k != nil {
		return false, nil
	}
	uri, err := discover(ctx, e.c.Issuer, e.client)
	if err != nil {
		return true, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys, e.failed = newKeys(uri, e.client, e.now), nil
	return true, nil
}

// discover returns the address of an issuer's keys.
func discover(ctx context.Context, issuer string, client *http.Client) (uri string, err error) {
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return "", short(err)
	}
	var doc struct {
		JWKSURI string `json:"jwks_uri"`
	}
	if err := p.Claims(&doc); err != nil {
		return "", short(err)
	}
	u, err := url.Parse(doc.JWKSURI)
	if err != nil || u.Host == "" {
		return "", errors.New("the discovery document names no jwks_uri")
	}
	return doc.JWKSURI, secure(u)
}

// maxCause is how much of an error is logged: go-oidc puts whole documents into its errors.
const maxCause = 300

// short cuts the text of an error.
func short(err error) error {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) <= maxCause {
		return err
	}
	return &shortened{err, strings.ToValidUTF8(text[:maxCause], "") + "…"}
}

// A shortened error says less.
type shortened struct {
	error
	text string
}

func (e *shortened) Error() string { return e.text }
func (e *shortened) Unwrap() error { return e.error }

func (e *entry) ready() (*keys, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys, e.failed
}

// failedAnew notes why the issuer cannot be reached, and says whether that is not what it was before.
func (e *entry) failedAnew(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	anew := e.failed == nil || e.failed.Error() != err.Error()
	e.failed = err
	return anew
}

// status says why tokens of the issuer cannot be verified now; nil: they can.
func (e *entry) status() error {
	k, err := e.ready()
	switch {
	case k != nil:
		return k.status()
	case err != nil:
		return err
	}
	return errors.New("not reached yet")
}

// verify checks a token of this issuer, in the order in which a failure is cheapest, and says when it ends. The error
// is an *auth.Error.
func (e *entry) verify(j jwt, now time.Time) (f auth.Found, ends time.Time, err error) {
	alg, _ := j.header.text("alg")
	if !slices.Contains(e.c.Algorithms, alg) {
		return f, ends, refuse("the algorithm is not allowed")
	}
	if reason := e.typed(j.header); reason != "" {
		return f, ends, refuse(reason)
	}
	if j.header.has("crit") {
		return f, ends, refuse("the token needs an extension")
	}
	if err := e.signed(j, now); err != nil {
		return f, ends, err
	}
	if reason := e.means(j.claims, now); reason != "" {
		return f, ends, refuse(reason)
	}
	id, reason := e.principal(j.claims)
	if reason != "" {
		return f, ends, refuse(reason)
	}
	ends, _ = j.claims.moment("exp") // means has seen it
	f = auth.Found{
		ID: id, Values: auth.Values{Scopes: e.scopes(j.claims)}, Groups: e.groups(j.claims),
		Via: via + e.c.Name + ":" + e.mark + ":" + strconv.FormatInt(ends.Unix(), 10),
	}
	return f, ends, nil
}

// typed checks the header typ: what a token is for.
func (e *entry) typed(header claims) (reason string) {
	typ, ok := header.text("typ")
	if !ok && header.has("typ") {
		return "the header typ is not a text"
	}
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if !slices.Contains(e.c.Types, typ) {
		return "the header typ is not allowed"
	}
	return ""
}

// signed checks signature, issuer and expiry.
func (e *entry) signed(j jwt, now time.Time) error {
	k, failed := e.ready()
	if k == nil {
		if failed == nil {
			failed = errors.New("not reached yet")
		}
		return unavailable(e.c.Name, failed)
	}
	kid, ok := j.header.text("kid")
	if !ok && j.header.has("kid") {
		return refuse("the header kid is not a text")
	}
	if len(kid) > maxKeyID {
		return refuse("the header kid is too long")
	}
	if k.isMissing(kid, now) {
		return refuse("the key is not known")
	}
	a := attempt{keys: k}
	_, err := oidc.NewVerifier(e.c.Issuer, &a, &oidc.Config{
		SkipClientIDCheck: true, SupportedSigningAlgs: e.c.Algorithms, Now: func() time.Time { return now },
	}).Verify(context.Background(), j.text) // the client that fetches keys has a time limit
	switch {
	case err == nil:
		return nil
	case errors.Is(a.err, errUnreachable) && !k.has(kid), k.unreadable(a.err):
		return unavailable(e.c.Name, k.status())
	case a.fetched: // else the key may be one that the issuer has had only since it was asked
		k.noteMissing(kid, now)
	}
	return refuse("signature, issuer or expiry: " + short(err).Error())
}

// means checks the claims of a token whose signature is right.
func (e *entry) means(c claims, now time.Time) (reason string) {
	if exp, ok := c.moment("exp"); !ok || !now.Before(exp) {
		return "the token has no end or has expired"
	}
	audience, ok := c.texts(e.c.AudienceClaim)
	if !ok || !slices.ContainsFunc(audience, func(a string) bool { return slices.Contains(e.c.Audience, a) }) {
		return "the token is for another audience"
	}
	for _, name := range []string{"nbf", "iat"} {
		if !c.has(name) {
			continue
		}
		if at, ok := c.moment(name); !ok || at.After(now.Add(e.c.ClockSkew)) {
			return "the claim " + name + " is in the future or no time"
		}
	}
	if typ, _ := c.text("typ"); strings.EqualFold(typ, "ID") || c.has("nonce") || c.has("at_hash") {
		return "this is an ID token"
	}
	return ""
}

// principal says who the token is about.
func (e *entry) principal(c claims) (id, reason string) {
	name, ok := c.text(e.c.PrincipalClaim)
	if !ok || name == "" {
		return "", fmt.Sprintf("the claim %s is missing or no text", e.c.PrincipalClaim)
	}
	if e.c.PrincipalClaim == "email" && string(c["email_verified"]) != "true" {
		return "", "the address is not verified"
	}
	id = e.c.PrincipalPrefix + name
	if err := auth.CheckID(id); err != nil {
		return "", err.Error()
	}
	return id, ""
}

// scopes are those of ours that the token carries; it is never nil: a token without any is good for nothing.
func (e *entry) scopes(c claims) []string {
	found := []string{}
	for _, claim := range e.c.Scopes.Claims {
		list, _ := c.texts(claim)
		for _, text := range list {
			for name := range strings.FieldsSeq(text) {
				if ours, ok := e.c.Scopes.Map[name]; ok {
					name = ours
				}
				if _, err := auth.ParseScopes([]string{name}); err == nil && !slices.Contains(found, name) {
					found = append(found, name)
				}
			}
		}
	}
	if len(found) == 0 {
		return append(found, e.c.Scopes.Default...)
	}
	return found
}

// ask names the scopes that a client has to ask this issuer for; "": it has none for some of want.
func (e *entry) ask(want auth.Scopes) string {
	var names []string
	for ours := range strings.FieldsSeq(want.String()) {
		theirs := ours
		if len(e.c.Scopes.Map) > 0 {
			theirs = ""
			for _, name := range slices.Sorted(maps.Keys(e.c.Scopes.Map)) {
				if e.c.Scopes.Map[name] == ours {
					theirs = name
					break
				}
			}
		}
		if theirs == "" {
			return ""
		}
		names = append(names, theirs)
	}
	return strings.Join(names, " ")
}

// groups are those of the principal, as the issuer names them.
func (e *entry) groups(c claims) []string {
	if e.c.GroupsClaim == "" {
		return nil
	}
	list, _ := c.texts(e.c.GroupsClaim)
	return list
}
