package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"codehand/server/auth"
	"codehand/server/config"
)

const (
	issuerURL = "https://login.example.com/realms/corp"
	otherURL  = "https://other.example.com/realms/corp" // its provider has the same paths
	us        = "https://tools.example.com/mcp"
)

// start is when tests begin. It is a whole second, as tokens have.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// testKeys are made once: RSA keys take long.
var testKeys = sync.OnceValue(func() map[string]crypto.Signer {
	must := func(k crypto.Signer, err error) crypto.Signer {
		if err != nil {
			panic(err)
		}
		return k
	}
	keys := map[string]crypto.Signer{}
	for _, name := range []string{"rsa", "rsa2", "stranger"} {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		keys[name] = must(k, err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	keys["ec"] = must(ec, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	keys["ed"] = must(ed, err)
	return keys
})

// A rig is Issuers with identity providers in this process. It has a clock of its own.
type rig struct {
	t  testing.TB
	s  *Issuers
	mu sync.Mutex // covers what follows

	now     time.Time
	down    bool
	idps    map[string]*oidctest.Server // by host
	fetched map[string]int              // requests by path
	answer  func(*http.Request) *http.Response
	hold    chan struct{} // answers are made, but come when this is closed; nil: at once
}

func (r *rig) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, hold, err := r.respond(req)
	if hold != nil {
		<-hold
	}
	return resp, err
}

func (r *rig) respond(req *http.Request) (resp *http.Response, hold chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetched[req.URL.Path]++
	if r.down {
		return nil, nil, errors.New("connection refused")
	}
	if r.answer != nil {
		if resp := r.answer(req); resp != nil {
			return resp, nil, nil
		}
	}
	idp := r.idps[req.URL.Host]
	if idp == nil {
		return nil, nil, errors.New("no such host")
	}
	w := httptest.NewRecorder()
	inner := req.Clone(req.Context())
	inner.URL.Path = inner.URL.Path[len("/realms/corp"):]
	idp.ServeHTTP(w, inner)
	resp = w.Result()
	resp.Request = req
	return resp, r.hold, nil
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// pass moves the clock. It waits until what was fetched before is kept, which go-oidc does a moment after it has
// answered with it; so the test is in a bubble.
func (r *rig) pass(d time.Duration) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *rig) fetches(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fetched["/realms/corp"+path]
}

func provider(url string, keys ...string) *oidctest.Server {
	p := &oidctest.Server{Algorithms: []string{"RS256", "ES256", "EdDSA"}}
	algorithms := map[string]string{"ec": "ES256", "ed": "EdDSA"}
	for _, k := range keys {
		alg := algorithms[k]
		if alg == "" {
			alg = "RS256"
		}
		p.PublicKeys = append(p.PublicKeys, oidctest.PublicKey{PublicKey: testKeys()[k].Public(), KeyID: k, Algorithm: alg})
	}
	p.SetIssuer(url)
	return p
}

// corp is an issuer as a file would give it.
func corp() config.Issuer {
	return config.Issuer{
		Name: "corp", Issuer: issuerURL, Audience: []string{us}, AudienceClaim: "aud",
		Algorithms: []string{"RS256", "ES256", "PS256", "EdDSA"}, Types: []string{"at+jwt", "jwt", ""},
		PrincipalClaim: "sub", PrincipalPrefix: "corp/", GroupsClaim: "groups", ClockSkew: time.Minute,
		Scopes: config.IssuerScopes{Claims: []string{"scope", "scp"}, StepUp: true},
	}
}

// newRig has one issuer, or those that are given, which are discovered.
func newRig(t testing.TB, issuers ...config.Issuer) *rig {
	t.Helper()
	r := &rig{t: t, now: start, fetched: map[string]int{}, idps: map[string]*oidctest.Server{
		"login.example.com": provider(issuerURL, "rsa", "ec", "ed"), "other.example.com": provider(otherURL, "rsa2"),
	}}
	if len(issuers) == 0 {
		issuers = []config.Issuer{corp()}
	}
	var err error
	if r.s, err = New(Options{Issuers: issuers, Transport: r, Now: r.clock}); err != nil {
		t.Fatal(err)
	}
	r.discover()
	return r
}

func (r *rig) discover() {
	for _, e := range r.s.entries() {
		r.s.reach(r.t.Context(), e)
	}
}

// good are the claims of a token that is accepted; change replaces some, and takes those away that are nil.
func good(change map[string]any) map[string]any {
	c := map[string]any{"iss": issuerURL, "aud": us, "sub": "1234", "exp": start.Add(time.Hour).Unix(),
		"iat": start.Unix(), "scope": "openid mcp:read"}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func encoded(t testing.TB, c map[string]any) string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// token is one of oidctest's, with the good claims but for change.
func token(t testing.TB, change map[string]any) string {
	t.Helper()
	return oidctest.SignIDToken(testKeys()["rsa"], "rsa", "RS256", encoded(t, good(change)))
}

// signed is a token with any header over any payload, signed with an RSA key.
func signed(t testing.TB, header, payload, key string) string {
	t.Helper()
	text := part(header) + "." + part(payload)
	sum := sha256.Sum256([]byte(text))
	sig, err := testKeys()[key].Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// shared is a token that is signed with a shared secret.
func shared(header, payload string, secret []byte) string {
	text := part(header) + "." + part(payload)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func part(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// find is Find now, with its *auth.Error.
func (r *rig) find(text string) (auth.Found, *auth.Error) {
	r.t.Helper()
	f, ok, err := r.s.Find(text, r.clock())
	if !ok {
		r.t.Fatalf("the token is not taken for one of an issuer: %.100s", text)
	}
	if err == nil {
		return f, nil
	}
	bad, is := errors.AsType[*auth.Error](err)
	if !is {
		r.t.Fatalf("not an *auth.Error: %v", err)
	}
	return f, bad
}

// refused checks the status of the answer, and that it tells nothing.
func (r *rig) refused(text string, status int) *auth.Error {
	r.t.Helper()
	f, err := r.find(text)
	if err == nil || err.Status != status || f.ID != "" {
		r.t.Fatalf("got %+v, %+v; want status %d", f, err, status)
	}
	if status == http.StatusUnauthorized && (err.Code != "invalid_token" || err.Message != "token not accepted" || err.Reason == "") {
		r.t.Fatalf("got %+v", err)
	}
	return err
}

func (r *rig) accepted(text string) auth.Found {
	r.t.Helper()
	f, err := r.find(text)
	if err != nil {
		r.t.Fatalf("refused: %+v", err)
	}
	return f
}
