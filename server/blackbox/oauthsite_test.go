package blackbox

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A door is a built server that people sign in to, and the password of its owner.
type door struct {
	*deployment
	password string
	s        *daemon
}

// opened starts a server with auth.mode owner. set is more of its environment, flags more of its command line.
func opened(t *testing.T, set []string, flags ...string) *door {
	t.Helper()
	usual := []string{"CODEHAND_PLAN_APPROVAL_FALLBACK=auto", "CODEHAND_SANDBOX_POLICY=off"}
	d := &door{deployment: &deployment{t: t, program: replaytest.Program(t), home: t.TempDir(), address: replaytest.Reserved(t), set: append(usual, set...)}}
	d.work = leaktest.Dir(t)
	d.password = d.output("owner", "new")
	d.start(flags...)
	return d
}

// output is what a command of the program prints on stdout.
func (d *door) output(args ...string) string {
	d.t.Helper()
	cmd := d.codehand(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("codehand %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// start starts the server, each time at the same address.
func (d *door) start(flags ...string) {
	d.t.Helper()
	d.s = startDaemon(d.t, d.codehand(append([]string{"serve", d.work, "--listen", d.address, "--auth-mode", "owner"}, flags...)...))
	d.address = strings.TrimPrefix(d.s.url, "http://")
}

// again kills the server and starts it.
func (d *door) again(flags ...string) {
	d.t.Helper()
	d.s.kill()
	d.start(flags...)
}

// person is the owner in front of a new browser.
func (d *door) person() *person { return newPerson(d.t, d.s.url, d.password) }

// revokeAll ends all grants, as the owner does in a terminal.
func (d *door) revokeAll() {
	d.t.Helper()
	var ids []string
	var all []struct{ ID string }
	must(d.t, json.Unmarshal([]byte(d.output("grants", "list", "--json")), &all))
	for _, g := range all {
		ids = append(ids, g.ID)
	}
	if len(ids) == 0 {
		d.t.Fatal("there are no grants")
	}
	d.output(append([]string{"grants", "revoke"}, ids...)...)
}

// An app is a client of ours, which does what it is told and not what it should.
type app struct {
	d        *door
	id       string
	redirect string
	resource string
	verifier string
}

// A grantReply is what the token endpoint answers.
type grantReply struct {
	Status  int    `json:"-"`
	Body    string `json:"-"`
	Error   string `json:"error"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
	ID      string `json:"client_id"`
}

// register registers a client with this redirect URI.
func (d *door) register(redirect string) *app {
	d.t.Helper()
	body, err := json.Marshal(map[string]any{"client_name": "test app", "redirect_uris": []string{redirect},
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none"})
	must(d.t, err)
	r := d.post("/oauth/register", "application/json", string(body), nil)
	if r.Status != http.StatusCreated || r.ID == "" {
		d.t.Fatalf("register: %d %s", r.Status, r.Body)
	}
	return &app{d: d, id: r.ID, redirect: redirect, resource: d.s.url + "/mcp", verifier: rand.Text() + rand.Text()}
}

// post sends a body to the server.
func (d *door) post(path, kind, body string, header map[string]string) grantReply {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.s.url+path, strings.NewReader(body))
	must(d.t, err)
	r.Header.Set("Content-Type", kind)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	return d.answer(r)
}

// answer sends a request and does not follow redirects.
func (d *door) answer(r *http.Request) grantReply {
	d.t.Helper()
	return answered(d.t, plainly, r)
}

// answered sends a request and reads the answer as one of the token endpoint, as far as it is one.
func answered(t testing.TB, via *http.Client, r *http.Request) grantReply {
	t.Helper()
	resp, err := via.Do(r)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	must(t, err)
	g := grantReply{Status: resp.StatusCode, Body: string(text)}
	_ = json.Unmarshal(text, &g) // a page is none
	return g
}

// plainly follows no redirect and keeps no connection.
var plainly = &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// wish is the query of a good authorization request.
func (a *app) wish() url.Values {
	sum := sha256.Sum256([]byte(a.verifier))
	return url.Values{"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {a.redirect}, "state": {"st-" + a.verifier[:8]},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"scope": {"mcp:read mcp:write"}, "resource": {a.resource}}
}

// authorizeURL is where a browser is sent with this query.
func (a *app) authorizeURL(q url.Values) string { return a.d.s.url + "/oauth/authorize?" + q.Encode() }

// code signs the owner in and returns the code that the client gets.
func (a *app) code(p *person) string {
	a.d.t.Helper()
	back := p.walk(a.authorizeURL(a.wish()))
	u, err := url.Parse(back)
	must(a.d.t, err)
	if !strings.HasPrefix(back, a.redirect) || u.Query().Get("code") == "" || u.Query().Get("state") != a.wish().Get("state") || u.Query().Get("iss") == "" {
		a.d.t.Fatalf("the browser was sent to %s", back)
	}
	return u.Query().Get("code")
}

// token asks the token endpoint.
func (a *app) token(values url.Values) grantReply {
	a.d.t.Helper()
	return a.d.post("/oauth/token", "application/x-www-form-urlencoded", values.Encode(), nil)
}

// redeem are the values with which a code becomes tokens.
func (a *app) redeem(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirect}, "client_id": {a.id},
		"code_verifier": {a.verifier}, "resource": {a.resource}}
}

// renew are the values with which a refresh token becomes new tokens.
func (a *app) renew(refresh string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {a.id}, "resource": {a.resource}}
}

// signIn is the whole way to tokens.
func (a *app) signIn() grantReply {
	a.d.t.Helper()
	g := a.token(a.redeem(a.code(a.d.person())))
	if g.Status != http.StatusOK || g.Access == "" || g.Refresh == "" {
		a.d.t.Fatalf("no tokens: %d %s", g.Status, g.Body)
	}
	return g
}

// opens says which status a token gets at the endpoint.
func (d *door) opens(token string) int {
	d.t.Helper()
	return d.post("/mcp", "application/json", hello, map[string]string{"Authorization": "Bearer " + token,
		"Accept": "application/json, text/event-stream"}).Status
}
