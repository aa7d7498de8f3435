package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
)

// What a client may do again with a refresh token that it has used: the answer may not have arrived. After that, the
// token is in two hands.
const (
	repeatTime = 30 * time.Second // since its first use
	maxRepeats = 5
)

// badGrant is the one answer to all codes and refresh tokens that are not good.
func badGrant() *problem {
	return wrong("invalid_grant", "the code or refresh token is not valid; sign in again")
}

// An issuing makes tokens of codes and of refresh tokens.
type issuing struct {
	*shared
	*grants
	clients *registry
}

// token serves POST /oauth/token.
func (s *issuing) token(w http.ResponseWriter, r *http.Request) {
	answer, err := s.issue(w, r)
	if err != nil {
		s.failed("issue a token", s.guessedWrong(r, err)).write(w)
		return
	}
	w.Header().Set("Pragma", "no-cache")
	writeJSON(w, http.StatusOK, answer)
}

// guessedWrong is what is answered instead of err. Only what failed is counted, and slowed down: others behind the same
// address, as all are behind a tunnel, must not keep a client from its tokens.
func (s *issuing) guessedWrong(r *http.Request, err error) error {
	if p, ok := errors.AsType[*problem](err); !ok || p.status >= http.StatusInternalServerError {
		return err // the fault is ours
	}
	if wait := s.rates.take(paceFailed, s.clientIP(r)); wait > 0 {
		return tooMany(wait)
	}
	return err
}

// An answer is what a client gets.
type answer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"` // seconds
	Refresh string `json:"refresh_token,omitempty"`
	Scope   string `json:"scope"`
}

// clientForm reads what a client posts. No client has a secret here, so one that shows a secret is wrong about who it
// talks to. Some libraries try a header first, and then the body: nothing has been used up by then.
func clientForm(w http.ResponseWriter, r *http.Request) (form, error) {
	if len(r.Header["Authorization"]) > 0 {
		w.Header().Set("WWW-Authenticate", `Basic realm="codehand"`)
		return nil, &problem{status: http.StatusUnauthorized, code: "invalid_client",
			text: "clients have no secret here: send client_id in the body and no Authorization header"}
	}
	body, p := readBody(w, r, "application/x-www-form-urlencoded")
	if p != nil {
		return nil, p
	}
	f, twice, err := parseForm(string(body))
	switch {
	case err != nil:
		return nil, wrong("invalid_request", err.Error())
	case slices.Equal(twice, []string{"resource"}):
		return nil, wrong("invalid_target", "name one resource")
	case len(twice) > 0:
		return nil, wrong("invalid_request", "a parameter stands there twice")
	case f.get("client_secret") != "":
		return nil, &problem{status: http.StatusUnauthorized, code: "invalid_client",
			text: "clients have no secret here"}
	case f.get("client_id") == "":
		return nil, wrong("invalid_request", "client_id is missing")
	}
	return f, nil
}

func (s *issuing) issue(w http.ResponseWriter, r *http.Request) (*answer, error) {
	f, err := clientForm(w, r)
	if err != nil {
		return nil, err
	}
	if text := f.get("resource"); text != "" {
		base := s.baseOf(r)
		if _, ok := resourceOf(base, text); base == "" || !ok {
			return nil, wrong("invalid_target", "resource must be an address of this server")
		}
	}
	switch f.get("grant_type") {
	case "authorization_code":
		return s.exchange(r, f)
	case "refresh_token":
		return s.refresh(r, f)
	case "":
		return nil, wrong("invalid_request", "grant_type is missing")
	}
	return nil, wrong("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
}

// isResource says whether a request for tokens names the resource that was approved, or none.
func (g *record) isResource(text string) bool {
	if text == "" {
		return true
	}
	base := strings.TrimSuffix(strings.TrimSuffix(g.Resource, "/mcp"), "/sse")
	is, ok := resourceOf(base, text)
	return ok && is == g.Resource
}

// exchange turns a code into tokens, once. A code that comes again, or with anything else than what it was made for, is
// in wrong hands: it ends the grant, with the tokens that were made from it.
func (s *issuing) exchange(r *http.Request, f form) (*answer, error) {
	text, verifier := f.get("code"), f.get("code_verifier")
	if text == "" || verifier == "" {
		return nil, wrong("invalid_request", "code and code_verifier are needed")
	}
	id, _, ok := cut(text, codePrefix, secretSize)
	if !ok {
		return nil, badGrant()
	}
	var out *answer
	var made record
	err := s.change(r.Context(), id, func(g *record) error {
		out = nil
		if !g.Code.Hash.is(digestOf(text)) {
			return badGrant()
		}
		now := s.o.Now().UTC()
		switch {
		case g.Code.Used:
			return &ending{"its code was used twice", badGrant()}
		case !isVerifier(verifier) || !matches(verifier, g.Code.Challenge):
			return &ending{"its code came with a wrong verifier", badGrant()}
		case f.get("client_id") != g.Client.ID:
			return &ending{"its code came from another client", badGrant()}
		case f.get("redirect_uri") != "" && f.get("redirect_uri") != g.Code.Redirect:
			return &ending{"its code came with another redirect URI", badGrant()}
		case !g.isResource(f.get("resource")):
			return &ending{"its code came with another resource", otherResource()}
		}
		g.Code.Used, g.Code.Redirect, g.Code.Challenge = true, "", ""
		out = g.newAccess(now, g.Scopes)
		if !g.Refresh.Expires.IsZero() {
			t := refreshToken{g.ID, newSecret(16), newSecret(32)}
			g.Refresh.Family, g.Refresh.Current = digestOf(t.family), digestOf(t.String())
			g.Refresh.Expires = now.Add(IdleLife)
			out.Refresh = t.String()
		}
		made = *g
		return nil
	})
	if err != nil {
		return nil, orBadGrant(err)
	}
	if err := s.clients.useClient(r.Context(), made.Client.ID); err != nil {
		s.o.Log.Warn("cannot note that a client was used", "err", err)
	}
	s.event("login", made, map[string]any{"scopes": made.Scopes.String(), "ip": s.clientIP(r).String(),
		"until": made.Expires.Format(time.RFC3339)})
	return out, nil
}

func otherResource() *problem { return wrong("invalid_target", "another resource was approved") }

func orBadGrant(err error) error {
	if errors.Is(err, errUnknown) {
		return badGrant()
	}
	return err
}

// isVerifier checks the form of a code_verifier: RFC 7636, section 4.1.
func isVerifier(text string) bool {
	return len(text) >= 43 && len(text) <= 128 && isBase64URL(strings.NewReplacer(".", "-", "~", "-").Replace(text))
}

func matches(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	text := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(text), []byte(challenge)) == 1
}

// newAccess adds an access token to a grant, which ends no later than the grant.
func (g *record) newAccess(now time.Time, scopes auth.Scopes) *answer {
	text := accessPrefix + g.ID + "_" + newSecret(32)
	ends := now.Add(AccessLife)
	if g.Expires.Before(ends) {
		ends = g.Expires
	}
	g.Access = slices.DeleteFunc(slices.Clone(g.Access), func(a access) bool { return !now.Before(a.Expires) })
	g.Access = append(g.Access, access{digestOf(text), ends, scopes})
	g.Access = g.Access[max(0, len(g.Access)-maxAccess):]
	return &answer{Access: text, Type: "Bearer", Expires: int(ends.Sub(now) / time.Second), Scope: scopes.String()}
}

// refresh turns a refresh token into new tokens. The token is good once. Used again within repeatTime, as long as
// nothing made from it was used to refresh, it makes others in the place of the refresh token that may not have
// arrived, which is in wrong hands from then on. A repeat of any other token of the family ends the grant: two parties
// have it, and the server cannot tell the thief.
func (s *issuing) refresh(r *http.Request, f form) (*answer, error) {
	text := f.get("refresh_token")
	if text == "" {
		return nil, wrong("invalid_request", "refresh_token is missing")
	}
	t, ok := parseRefresh(text)
	if !ok {
		return nil, badGrant()
	}
	var out *answer
	var made record
	err := s.change(r.Context(), t.grant, func(g *record) error {
		out = nil
		if !g.Refresh.Family.is(digestOf(t.family)) {
			return badGrant() // an invented token
		}
		now, sum := s.o.Now().UTC(), digestOf(text)
		repeat := g.Refresh.Previous.is(sum) && now.Sub(g.Refresh.Rotated).Abs() < repeatTime &&
			g.Refresh.Repeats < maxRepeats
		switch {
		case !g.Refresh.Current.is(sum) && !repeat:
			return &ending{"a refresh token was used twice: it may have been stolen", badGrant()}
		case f.get("client_id") != g.Client.ID || !now.Before(g.Refresh.Expires):
			return badGrant()
		case !g.isResource(f.get("resource")):
			return otherResource()
		}
		scopes := g.Scopes
		if names := f.get("scope"); names != "" {
			asked, ok := scopesOf(names)
			if !ok || asked&^g.Scopes != 0 {
				return wrong("invalid_scope", "these scopes were not approved; sign in again")
			}
			scopes = asked
		}
		next := refreshToken{g.ID, t.family, newSecret(32)}
		if repeat {
			g.Refresh.Repeats++
		} else {
			g.Refresh.Previous, g.Refresh.Rotated, g.Refresh.Repeats = sum, now, 0
		}
		g.Refresh.Current, g.Refresh.Expires = digestOf(next.String()), now.Add(IdleLife)
		out = g.newAccess(now, scopes)
		out.Refresh = next.String()
		made = *g
		return nil
	})
	if err != nil {
		return nil, orBadGrant(err)
	}
	s.event("refresh", made, map[string]any{"ip": s.clientIP(r).String()})
	return out, nil
}

// revoke serves POST /oauth/revoke: RFC 7009. A refresh token ends its grant, an access token only itself, each with
// what it opened. Whatever is unknown is answered like what is known.
func (s *issuing) revoke(w http.ResponseWriter, r *http.Request) {
	f, err := clientForm(w, r)
	if err == nil && f.get("token") == "" {
		err = wrong("invalid_request", "token is missing")
	}
	if err == nil {
		err = s.revokeToken(r, f)
	}
	if errors.Is(err, errUnknown) {
		err = nil
		if wait := s.rates.take(paceFailed, s.clientIP(r)); wait > 0 {
			err = tooMany(wait)
		}
	}
	if err != nil {
		s.failed("revoke a token", err).write(w)
		return
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

func (s *issuing) revokeToken(r *http.Request, f form) error {
	text := f.get("token")
	if t, ok := parseRefresh(text); ok {
		err := s.change(r.Context(), t.grant, func(g *record) error {
			if !g.Refresh.Family.is(digestOf(t.family)) || f.get("client_id") != g.Client.ID {
				return errUnknown
			}
			return &ending{reason: "revoked by the client"}
		})
		return err
	}
	id, _, ok := cut(text, accessPrefix, secretSize)
	if !ok {
		return errUnknown
	}
	err := s.change(r.Context(), id, func(g *record) error {
		sum := digestOf(text)
		at := slices.IndexFunc(g.Access, func(a access) bool { return a.Hash.is(sum) })
		if at < 0 || f.get("client_id") != g.Client.ID {
			return errUnknown
		}
		g.Access = slices.Delete(slices.Clone(g.Access), at, at+1)
		g.Revoked = append(slices.Clone(g.Revoked), sum.mark())
		g.Revoked = g.Revoked[max(0, len(g.Revoked)-maxAccess):]
		return nil
	})
	if err == nil {
		s.o.Revoked()
	}
	return err
}
