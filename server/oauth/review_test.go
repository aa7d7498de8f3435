package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/state"
)

// Before a person has decided, a browser is sent to a program on its own machine at most: the publisher of a document
// about a client could send people to any page by a link to us.
func TestNobodyIsSentAway(t *testing.T) {
	f := &web{url: docURL, body: aDocument(back, "https://app.example.com/cb"), kind: "application/json", code: 200}
	x := newRig(t, func(o *Options) { o.Fetch = f })
	for client, to := range map[string]string{
		docURL: "https://app.example.com/cb", x.register("https://evil.example/cb"): "https://evil.example/cb",
		x.register("cursor://anysphere.cursor-mcp/oauth/callback"): "cursor://anysphere.cursor-mcp/oauth/callback",
	} {
		good := with(asks(client), "redirect_uri", to)
		for name, query := range map[string]string{
			"response_type": with(good, "response_type", "x").Encode(), "prompt": with(good, "prompt", "none").Encode(),
			"scope": with(good, "scope", "x").Encode(), "resource": with(good, "resource", "https://evil.example/mcp").Encode(),
			"code_challenge": with(good, "code_challenge", "").Encode(), "twice": good.Encode() + "&x=1&x=2",
			"response_mode": with(good, "response_mode", "form_post").Encode(), "request": with(good, "request", "x").Encode(),
		} {
			a := x.get(pathAuthorize + "?" + query)
			host, _ := whereTo(to)
			if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" || a.Header.Get("Refresh") != "" ||
				!strings.Contains(a.body, host) || !strings.Contains(a.body, "(") {
				t.Errorf("%s, %s: %d to %q: %s", to, name, a.StatusCode, a.Header.Get("Location"), a.body)
			}
		}
		id := x.authorize(good) // once a person has said something, the client is told
		if got, err := x.s.Refuse(t.Context(), id); err != nil || !strings.HasPrefix(got, to+"?error=access_denied") {
			t.Errorf("refused: %q, %v", got, err)
		}
	}
	own := with(asks(docURL), "response_type", "x")
	if a := x.get(pathAuthorize + "?" + own.Encode()); !strings.HasPrefix(a.Header.Get("Location"), back+"?error=unsupported_response_type") {
		t.Errorf("a program on this machine: %d %s", a.StatusCode, a.body)
	}
}

// Behind a tunnel everybody is one network: who begins sign-ins without end must not lock others out for ten minutes.
func TestAsksMakeRoom(t *testing.T) {
	x := newRig(t)
	client := x.register()
	x.from = netip.MustParseAddr("2001:db8::1")
	first := x.authorize(asks(client))
	x.s.HoldAsk(first) // a person looks at it
	x.pass(time.Second)
	second := x.authorize(asks(client))
	for i := range 3 * maxAsksOfOne {
		x.pass(time.Second)
		x.from = netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1)) // one network
		x.authorize(asks(client))
	}
	last := x.authorize(asks(client))
	if _, err := x.s.Pending(t.Context(), second); err != ErrNoAsk {
		t.Errorf("the oldest: %v", err)
	}
	for _, id := range []string{first, last} {
		if _, err := x.s.Pending(t.Context(), id); err != nil {
			t.Errorf("a sign-in that had to stay is gone: %v", err)
		}
	}
	keys, err := x.store.Keys(t.Context(), state.SignIn)
	must(t, err)
	if len(keys) != maxAsksOfOne || len(x.s.waits) != maxAsksOfOne {
		t.Errorf("%d in the store, %d counted", len(keys), len(x.s.waits))
	}
	for i := range maxAsks {
		x.from = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		x.authorize(asks(client))
	}
	if keys, err = x.store.Keys(t.Context(), state.SignIn); err != nil || len(keys) != maxAsks || len(x.s.waits) != maxAsks {
		t.Errorf("in all %d in the store, %d counted, %v", len(keys), len(x.s.waits), err)
	}
	if _, err := x.s.Pending(t.Context(), first); err != nil {
		t.Errorf("the one that somebody looks at: %v", err)
	}
	for key, a := range x.s.waits {
		a.held = true
		x.s.waits[key] = a
	}
	x.from = netip.MustParseAddr("192.0.2.99")
	a := x.get(pathAuthorize + "?" + asks(client).Encode())
	if !strings.Contains(a.Header.Get("Location"), "error=temporarily_unavailable") {
		t.Errorf("when none can make room: %d %s", a.StatusCode, a.Header.Get("Location"))
	}
	x.pass(AskLife)
	x.authorize(asks(client))
}

// Guesses of others behind the same address, and their registrations, do not block valid tokens.
func TestFailuresOfOthers(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	client := x.register()
	code := x.approve(x.authorize(asks(client)), usual())
	guess := tokens{client: "client-x", refresh: refreshPrefix + newID(grantBytes) + "_" + newSecret(16) + newSecret(32)}
	refused := 0
	for range 200 {
		if a, _ := x.refresh(guess); a.StatusCode == http.StatusTooManyRequests && a.Header.Get("Retry-After") != "" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("guesses are not slowed down")
	}
	a, next := x.refresh(tok)
	if a.StatusCode != http.StatusOK || !x.works(next.access) {
		t.Errorf("a good refresh token: %d %s", a.StatusCode, a.body)
	}
	if a := x.post(pathToken, exchange(client, code)); a.StatusCode != http.StatusOK {
		t.Errorf("a good code: %d %s", a.StatusCode, a.body)
	}
	x.register()
	for a.StatusCode != http.StatusTooManyRequests {
		a = x.postJSON(pathRegister, `{"redirect_uris":["http://localhost/"]}`)
	}
	if a, next = x.refresh(next); a.StatusCode != http.StatusOK {
		t.Errorf("after many registrations: %d %s", a.StatusCode, a.body)
	}
	if a := x.post(pathRevoke, url.Values{"client_id": {tok.client}, "token": {next.refresh}}); a.StatusCode != http.StatusOK || x.works(next.access) {
		t.Errorf("revoked: %d %s", a.StatusCode, a.body)
	}
}

// What was opened with an access token ends when that is revoked, also after a restart; what was opened with another
// one of the grant goes on.
func TestRevokedAccessToken(t *testing.T) {
	x := newRig(t).durable()
	one := x.signIn(usual())
	_, two := x.refresh(one)
	p, err := auth.New(auth.Options{Mode: "owner", TokenFile: t.TempDir() + "/tokens.jsonl", Sources: []auth.Source{again{x}}, Workspaces: "/srv/ws", Now: x.clock})
	must(t, err)
	who := func(access string) auth.Principal {
		t.Helper()
		who, err := p.Authenticate(&http.Request{Method: "POST", URL: &url.URL{Path: "/mcp"}, RemoteAddr: "192.0.2.1:1", Header: http.Header{"Authorization": {"Bearer " + access}}})
		must(t, err)
		return who
	}
	first, second := who(one.access), who(two.access)
	if first.Via != second.Via || first.Token() == second.Token() || strings.Contains(one.access, first.Token()) {
		t.Errorf("they are %q %q and %q %q", first.Via, first.Token(), second.Via, second.Token())
	}
	if a := x.post(pathRevoke, url.Values{"client_id": {one.client}, "token": {one.access}}); a.StatusCode != http.StatusOK || x.ended != 1 {
		t.Errorf("%d, ended %d times", a.StatusCode, x.ended)
	}
	for range 2 {
		if p.Valid(first) || !p.Ended(first) {
			t.Error("a stream outlives its token")
		}
		if !p.Valid(second) || p.Ended(second) {
			t.Error("the other token's stream has ended, too")
		}
		x.again()
	}
	x.pass(AccessLife)
	if !p.Valid(second) {
		t.Error("a stream ends when the time of its token is up")
	}
	must(t, x.s.RevokeGrant(t.Context(), strings.TrimPrefix(second.Via, via)))
	if p.Valid(second) || !p.Ended(second) || x.ended != 2 {
		t.Error("a stream outlives its grant")
	}
}

// again asks whatever server a rig has now.
type again struct{ x *rig }

func (a again) Find(text string, now time.Time) (auth.Found, bool, error) {
	return a.x.s.Find(text, now)
}
func (a again) Valid(who auth.Principal) (valid, mine bool) { return a.x.s.Valid(who) }

// A directory is approved as it is; a link that takes its place later leads nowhere.
func TestRootsAreReal(t *testing.T) {
	x := newRig(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(dir, "real", "sub"), 0o700))
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	d := usual()
	d.Roots = []string{filepath.Join(dir, "link", "sub"), filepath.Join(dir, "real", "sub"), filepath.Join(dir, "link", "new")}
	f, _, err := x.s.Find(x.signIn(d).access, x.clock())
	must(t, err)
	if want := []string{filepath.Join(dir, "real", "sub"), filepath.Join(dir, "real", "new")}; !slices.Equal(f.Values.Roots, want) {
		t.Errorf("the roots are %q", f.Values.Roots)
	}
}

// A grant holds as long as was chosen, also if that is less than an access token usually has.
func TestShortLives(t *testing.T) {
	x := newRig(t)
	d := usual()
	for life, want := range map[time.Duration]float64{10 * time.Minute: 600, CodeLife: 60, AccessLife: 3600, 0: 3600} {
		d.Life = life
		client := x.register()
		a := x.post(pathToken, exchange(client, x.approve(x.authorize(asks(client)), d)))
		if v := a.json(t); v["expires_in"] != want || v["refresh_token"] != nil {
			t.Errorf("%s: %v", life, v)
		}
		tok := x.tokens(client, a)
		x.pass(time.Duration(want)*time.Second - 1)
		if !x.works(tok.access) {
			t.Errorf("%s: it ended too early", life)
		}
		if x.pass(1); x.works(tok.access) {
			t.Errorf("%s: it lasts longer", life)
		}
	}
	d.Life = CodeLife - 1
	if to, err := x.s.Approve(t.Context(), x.authorize(asks(x.register())), d); err == nil {
		t.Errorf("a life that is over before it begins: %s", to)
	}
}

// A parameter that stands there twice is refused, whichever it is: who checks might read another one than who uses.
func TestRepeatedParameters(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	client := x.register()
	ask := with(with(with(asks(client), "resource", site+"/mcp"), "scope", "mcp:read"), "prompt", "consent")
	for key := range ask {
		for name, query := range map[string]string{
			"alone": ask.Encode() + "&" + key + "=" + url.QueryEscape(ask.Get(key)), "other": ask.Encode() + "&" + key + "=x",
			"with another": ask.Encode() + "&" + key + "=x&a=1&a=1&zz=1&zz=1", "encoded": ask.Encode() + "&" + strings.ReplaceAll(key, "e", "%65") + "=x",
		} {
			a := x.get(pathAuthorize + "?" + query)
			if strings.HasPrefix(a.Header.Get("Location"), pathAsk) || a.StatusCode == http.StatusOK {
				t.Errorf("authorize, %s, %s: %d", key, name, a.StatusCode)
			}
			if (key == "client_id" || key == "redirect_uri") && a.Header.Get("Location") != "" {
				t.Errorf("authorize, %s, %s: goes to %s", key, name, a.Header.Get("Location"))
			}
		}
	}
	send := func(path, body string) answered {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return x.do(r)
	}
	for path, v := range map[string]url.Values{
		pathToken: with(with(refreshing(tok), "resource", site+"/mcp"), "scope", "mcp:read"), pathRevoke: {"client_id": {tok.client}, "token": {tok.refresh}, "token_type_hint": {"refresh_token"}},
	} {
		for key := range v {
			if a := send(path, v.Encode()+"&"+key+"="+url.QueryEscape(v.Get(key))); a.StatusCode != http.StatusBadRequest {
				t.Errorf("%s, %s: %d %s", path, key, a.StatusCode, a.body)
			}
		}
	}
	if !x.works(tok.access) {
		t.Error("something was revoked")
	}
	for _, body := range []string{
		`{"redirect_uris":["http://localhost/"],"redirect_uris":["http://localhost/"]}`, `{"redirect_uris":["http://localhost/"],"Redirect_URIs":["https://evil.example/"]}`,
		`{"redirect_uris":["http://localhost/"],"redirect_ur\u0069s":["https://evil.example/"]}`, `{"redirect_uris":["http://localhost/"],"redirect_uri\u017f":["https://evil.example/"]}`,
		`{"redirect_uris":["http://localhost/"]} {}`, `{"redirect_uris":["http://localhost/"]`, `{"redirect_uris":["http://localhost/"],"x":1,"x":2}`,
	} {
		if a := x.postJSON(pathRegister, body); a.problem() != "invalid_client_metadata" {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
}

// What clients of today need: claude.ai on the web asks at the root of the host, whatever the metadata say; Claude Code
// takes no null in the answer to a registration; ChatGPT wants iss, and that the metadata promise it.
func TestWhatClientsNeed(t *testing.T) {
	for _, prefix := range []string{"", "/ch"} {
		x := newRig(t, func(o *Options) { o.PublicURL = site + prefix })
		for _, root := range slices.Compact([]string{"", prefix}) {
			body := `{"redirect_uris":["` + back + `"],"client_name":null,"scope":null,"grant_types":null,"response_types":null,"logo_uri":null}`
			made := x.postJSON(root+"/register", body)
			if made.StatusCode != http.StatusCreated || strings.Contains(made.body, "null") || strings.Contains(made.body, `""`) {
				t.Errorf("registered: %d %s", made.StatusCode, made.body)
			}
			client := made.json(t)["client_id"].(string)
			a := x.get(root + "/authorize?" + asks(client).Encode())
			id, ok := strings.CutPrefix(a.Header.Get("Location"), prefix+pathAsk)
			if !ok {
				t.Fatalf("%s/authorize: %d %s", root, a.StatusCode, a.body)
			}
			to, err := x.s.Approve(t.Context(), id, usual())
			must(t, err)
			u, err := url.Parse(to)
			must(t, err)
			if u.Query().Get("iss") != site+prefix {
				t.Errorf("the answer is %s", to)
			}
			if a := x.post(root+"/token", exchange(client, u.Query().Get("code"))); a.StatusCode != http.StatusOK || strings.Contains(a.body, "null") {
				t.Errorf("%s/token: %d %s", root, a.StatusCode, a.body)
			}
		}
		a := x.get("/.well-known/oauth-authorization-server" + prefix)
		v := a.json(t)
		if v["authorization_response_iss_parameter_supported"] != true || v["issuer"] != site+prefix || strings.Contains(a.body, "null") ||
			v["authorization_endpoint"] != site+prefix+pathAuthorize || v["token_endpoint"] != site+prefix+pathToken {
			t.Errorf("the metadata are %s", a.body)
		}
		for _, path := range []string{"/revoke", "/Authorize", "/authorize/", "/token/x"} {
			if x.s.Handler(path) != nil {
				t.Errorf("%s is served", path)
			}
		}
	}
	x := newRig(t, func(o *Options) { o.Alone = true })
	if a := x.get("/.well-known/oauth-protected-resource/mcp"); strings.Contains(a.body, "null") {
		t.Errorf("the metadata of a resource are %s", a.body)
	}
	for _, path := range []string{"/authorize", "/token", "/register"} {
		if x.s.Handler(path) != nil {
			t.Errorf("%s is served where nobody signs in", path)
		}
	}
}
