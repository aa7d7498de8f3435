package oauth

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
)

// with is v with one parameter changed, or taken away by "".
func with(v url.Values, key, value string) url.Values {
	v = maps.Clone(v)
	if value == "" {
		v.Del(key)
	} else {
		v.Set(key, value)
	}
	return v
}

func TestRedirectURIs(t *testing.T) {
	for text, good := range map[string]bool{
		"https://app.example.com/cb":        true,
		"https://app.example.com:8443/cb?x": true,
		"http://127.0.0.1/cb":               true,
		"http://localhost:3000/":            true,
		"http://[::1]:3000/cb":              true,
		"cursor://anysphere.cursor/cb":      true,
		"com.example.app:/cb":               true,
		"vscode://vscode.git/cb":            true,

		"":                                  false,
		"/cb":                               false,
		"//evil.example/cb":                 false,
		"http://app.example.com/cb":         false,
		"http://127.0.0.1.evil.example/cb":  false,
		"http://127.0.0.2/cb":               false,
		"http://localhost.evil.example/cb":  false,
		"http://127.1/cb":                   false,
		"http://2130706433/cb":              false,
		"http://[::ffff:127.0.0.1]/cb":      false,
		"http:///cb":                        false,
		"https:///cb":                       false,
		"https:cb":                          false,
		"https://app.example.com/cb#":       false,
		"https://app.example.com/cb#x":      false,
		"https://u@app.example.com/cb":      false,
		"https://u:p@app.example.com/cb":    false,
		"https://*.example.com/cb":          false,
		"https://app.example.com/*":         false,
		"https://app.example.com/ cb":       false,
		"https://app.example.com\\@evil/cb": false,
		"https://app.example.com/cb\r\nX:1": false,
		"https://äpp.example.com/cb":        false,
		"https://app.example.com/?code=1":   false,
		"https://app.example.com/?State=1":  false,
		"https://app.example.com/?iss=x":    false,
		"https://app.example.com:/cb":       false,
		"HTTPS://app.example.com/cb":        false,
		"javascript:alert(1)":               false,
		"data:text/html,x":                  false,
		"file:///etc/passwd":                false,
		"vbscript:x":                        false,
		"blob:https://x/y":                  false,
		"x:/cb":                             false,
		"claude://x/y":                      true,
		"vscode-insiders://x/y":             true,
		"com.raycast:/oauth":                true,
		"search-ms:query=x&crumb=y":         false,
		"search:query=x":                    false,
		"ms-msdt:/id":                       false,
		"ms-settings:x":                     false,
		"ms-word:ofe|u|x":                   false,
		"ms-appinstaller:?source=x":         false,
		"shell:startup":                     false,
		"shell://x/y":                       false,
		"callto:x":                          false,
		"hcp://x/y":                         false,
		"help:x":                            false,
		"mk:@MSITStore:x":                   false,
		"about:blank":                       false,
		"view-source:https://x/y":           false,
		"chrome://settings/x":               false,
		"ws://app.example.com/cb":           false,
		"evil://app.example.com/cb":         false,
		"z39.50r://x/y":                     false,
		"soap.beep://x/y":                   false,
		"iris.xpc://x/y":                    false,
		"ms-settings.x:/y":                  false,
		"com.:/cb":                          false,
		"com..x:/cb":                        false,
		".com:/cb":                          false,
		"https://app.example.com/" + strings.Repeat("a", maxRedirect): false,
	} {
		if err := checkRedirect(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRedirectOf(t *testing.T) {
	loop := []string{"http://127.0.0.1:7777/callback"}
	page := []string{"https://app.example.com/cb"}
	for _, c := range []struct {
		registered []string
		asked      string
		ok         bool
	}{
		{loop, "http://127.0.0.1:7777/callback", true},
		{loop, "http://127.0.0.1:1/callback", true},
		{loop, "http://127.0.0.1/callback", true},
		{loop, "", true},
		{append(loop, page...), "", false},
		{page, "https://app.example.com/cb", true},
		// twenty spellings of what was registered
		{loop, "http://localhost:7777/callback", false},
		{loop, "http://[::1]:7777/callback", false},
		{loop, "http://127.0.0.1:7777/callback/", false},
		{loop, "http://127.0.0.1:7777/Callback", false},
		{loop, "http://127.0.0.1:7777/callback?x=1", false},
		{loop, "http://127.0.0.1:7777/./callback", false},
		{loop, "http://127.0.0.1:7777//callback", false},
		{loop, "http://127.0.0.1:7777/%63allback", false},
		{loop, "https://127.0.0.1:7777/callback", false},
		{loop, "HTTP://127.0.0.1:7777/callback", false},
		{loop, "http://127.0.0.1:777777/callback", false},
		{loop, "http://127.0.0.1:/callback", false},
		{loop, "http://127.0.0.1:7777@evil.example/callback", false},
		{loop, "http://evil.example/callback", false},
		{page, "https://app.example.com/cb/", false},
		{page, "https://app.example.com:443/cb", false},
		{page, "https://APP.example.com/cb", false},
		{page, "https://app.example.com/cb?x", false},
		{page, "https://app.example.com/cb/../cb", false},
		{page, "https://app.example.com.evil.example/cb", false},
		{page, "https://app.example.com/cb%00", false},
		{page, "http://app.example.com/cb", false},
		{page, "https://app.example.com:8443/cb", false},
	} {
		if got, ok := redirectOf(c.registered, c.asked); ok != c.ok || ok && c.asked != "" && got != c.asked {
			t.Errorf("%q of %q: %q, %v", c.asked, c.registered, got, ok)
		}
	}
}

// Nothing is sent to an address that is not the client's, or that a stranger could have chosen.
func TestAuthorizeRefuses(t *testing.T) {
	x := newRig(t)
	client := x.register()
	foreign := x.register("https://app.example.com/cb")
	good := asks(client)
	for name, c := range map[string]struct {
		query string
		to    string // error at the redirect URI; "": a page
	}{
		"no client":         {with(good, "client_id", "").Encode(), ""},
		"unknown client":    {with(good, "client_id", "client-aaaaaaaaaaaaaaaaaaaaaaaaaa").Encode(), ""},
		"two clients":       {good.Encode() + "&client_id=" + foreign, ""},
		"two redirects":     {good.Encode() + "&redirect_uri=https://evil.example", ""},
		"foreign redirect":  {with(good, "redirect_uri", "https://evil.example/").Encode(), ""},
		"redirect of other": {with(good, "redirect_uri", "https://app.example.com/cb").Encode(), ""},
		"broken query":      {"client_id=%zz", ""},
		"long query":        {good.Encode() + "&x=" + strings.Repeat("x", maxQuery), ""},
		"client inside":     {with(good, "client_id", "https://127.0.0.1/client").Encode(), ""},
		"client by IP":      {with(good, "client_id", "https://169.254.169.254/client").Encode(), ""},
		"client over http":  {with(good, "client_id", "http://app.example.com/client").Encode(), ""},
		// a stranger's page is told nothing before a person decided
		"open redirect": {with(with(with(good, "client_id", foreign), "redirect_uri", "https://app.example.com/cb"), "response_type", "token").Encode(), ""},

		"token":                {with(good, "response_type", "token").Encode(), "unsupported_response_type"},
		"no response type":     {with(good, "response_type", "").Encode(), "unsupported_response_type"},
		"fragment":             {with(good, "response_mode", "fragment").Encode(), "invalid_request"},
		"no PKCE":              {with(with(good, "code_challenge", ""), "code_challenge_method", "").Encode(), "invalid_request"},
		"no challenge":         {with(good, "code_challenge", "").Encode(), "invalid_request"},
		"plain PKCE":           {with(good, "code_challenge_method", "plain").Encode(), "invalid_request"},
		"PKCE without method":  {with(good, "code_challenge_method", "").Encode(), "invalid_request"},
		"short challenge":      {with(good, "code_challenge", "abc").Encode(), "invalid_request"},
		"challenge of others":  {with(good, "code_challenge", strings.Repeat("=", 43)).Encode(), "invalid_request"},
		"state twice":          {good.Encode() + "&state=b", "invalid_request"},
		"long state":           {with(good, "state", strings.Repeat("s", maxState+1)).Encode(), "invalid_request"},
		"resource twice":       {good.Encode() + "&resource=" + site + "&resource=" + site, "invalid_target"},
		"foreign resource":     {with(good, "resource", "https://other.example.com/mcp").Encode(), "invalid_target"},
		"resource, prefix":     {with(good, "resource", site+".evil.example/mcp").Encode(), "invalid_target"},
		"resource, other path": {with(good, "resource", site+"/metrics").Encode(), "invalid_target"},
		"resource, fragment":   {with(good, "resource", site+"/mcp#x").Encode(), "invalid_target"},
		"resource, http":       {with(good, "resource", "http://tools.example.com/mcp").Encode(), "invalid_target"},
		"unknown scopes":       {with(good, "scope", "openid email").Encode(), "invalid_scope"},
		"console":              {with(good, "scope", "mcp:admin").Encode(), "invalid_scope"},
		"request object":       {with(good, "request", "eyJ").Encode(), "request_not_supported"},
		"request URI":          {with(good, "request_uri", "https://evil.example/").Encode(), "request_uri_not_supported"},
		"silent":               {with(good, "prompt", "none").Encode(), "interaction_required"},
	} {
		a := x.get(pathAuthorize + "?" + c.query)
		to := a.Header.Get("Location")
		if c.to == "" {
			if a.StatusCode != http.StatusBadRequest || to != "" || strings.Contains(a.body, "evil") {
				t.Errorf("%s: %d %q %s", name, a.StatusCode, to, a.body)
			}
			continue
		}
		u, err := url.Parse(to)
		if err != nil || a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, back+"?") ||
			u.Query().Get("error") != c.to || u.Query().Get("iss") != site || u.Query().Get("code") != "" {
			t.Errorf("%s: %d %q %s", name, a.StatusCode, to, a.body)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodOptions, http.MethodPut} {
		if a := x.do(httptest.NewRequest(method, pathAuthorize+"?"+good.Encode(), nil)); a.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, a.StatusCode)
		}
	}
}

func TestScopesAsked(t *testing.T) {
	for text, want := range map[string]auth.Scopes{
		"":                                 auth.Read | auth.Write | auth.Shell | auth.Web,
		"mcp:read":                         auth.Read,
		"mcp:read offline_access":          auth.Read,
		"mcp:shell mcp:admin":              auth.Read | auth.Write | auth.Shell,
		"offline_access":                   0,
		strings.Repeat("mcp:read ", 1_000): 0,
	} {
		if got, ok := scopesOf(text); got != want || ok != (want != 0) {
			t.Errorf("%.20q: %v, %v", text, got, ok)
		}
	}
}

// A code that comes with anything else than what it was made for is worth nothing afterwards, and says nothing.
func TestTokenRefuses(t *testing.T) {
	x := newRig(t)
	for name, c := range map[string]struct {
		change func(v url.Values) url.Values
		want   string
		burnt  bool
	}{
		"wrong verifier":    {func(v url.Values) url.Values { return with(v, "code_verifier", strings.Repeat("x", 43)) }, "invalid_grant", true},
		"short verifier":    {func(v url.Values) url.Values { return with(v, "code_verifier", "x") }, "invalid_grant", true},
		"challenge itself":  {func(v url.Values) url.Values { return with(v, "code_verifier", challengeOf(verifier)) }, "invalid_grant", true},
		"another client":    {func(v url.Values) url.Values { return with(v, "client_id", "client-x") }, "invalid_grant", true},
		"another redirect":  {func(v url.Values) url.Values { return with(v, "redirect_uri", "http://127.0.0.1:1/callback") }, "invalid_grant", true},
		"other resource":    {func(v url.Values) url.Values { return with(v, "resource", site+"/sse") }, "invalid_target", true},
		"foreign resource":  {func(v url.Values) url.Values { return with(v, "resource", "https://evil.example/mcp") }, "invalid_target", false},
		"no verifier":       {func(v url.Values) url.Values { return with(v, "code_verifier", "") }, "invalid_request", false},
		"no client":         {func(v url.Values) url.Values { return with(v, "client_id", "") }, "invalid_request", false},
		"no grant type":     {func(v url.Values) url.Values { return with(v, "grant_type", "") }, "invalid_request", false},
		"password":          {func(v url.Values) url.Values { return with(v, "grant_type", "password") }, "unsupported_grant_type", false},
		"client's own":      {func(v url.Values) url.Values { return with(v, "grant_type", "client_credentials") }, "unsupported_grant_type", false},
		"a secret":          {func(v url.Values) url.Values { return with(v, "client_secret", "x") }, "invalid_client", false},
		"no code":           {func(v url.Values) url.Values { return with(v, "code", "") }, "invalid_request", false},
		"made-up code":      {func(v url.Values) url.Values { return with(v, "code", codePrefix+newID(12)+"_"+newSecret(32)) }, "invalid_grant", false},
		"code of its grant": {func(v url.Values) url.Values { return with(v, "code", v.Get("code")[:17]+newSecret(32)) }, "invalid_grant", false},
		"twice": {func(v url.Values) url.Values {
			v = maps.Clone(v)
			v["code"] = []string{v.Get("code"), "x"}
			return v
		}, "invalid_request", false},
	} {
		client := x.register()
		v := exchange(client, x.approve(x.authorize(asks(client)), usual()))
		a := x.post(pathToken, c.change(v))
		if a.problem() != c.want || a.StatusCode != http.StatusBadRequest && a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
		if strings.Contains(a.body, v.Get("code")) || strings.Contains(a.body, verifier) {
			t.Errorf("%s: the answer repeats a secret", name)
		}
		if after := x.post(pathToken, v); (after.StatusCode == http.StatusOK) == c.burnt {
			t.Errorf("%s: the code is then worth %d", name, after.StatusCode)
		}
		x.pass(time.Minute) // attempts are counted
	}
}

func TestTokenTransport(t *testing.T) {
	x := newRig(t)
	client := x.register()
	v := exchange(client, x.approve(x.authorize(asks(client)), usual()))
	send := func(change func(*http.Request)) answered {
		r := httptest.NewRequest(http.MethodPost, pathToken, strings.NewReader(v.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		return x.do(r)
	}
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"in the URL": {func(r *http.Request) { r.URL.RawQuery = v.Encode() }, 400},
		"basic":      {func(r *http.Request) { r.SetBasicAuth(client, "") }, 401},
		"bearer":     {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		"JSON":       {func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, 415},
		"no type":    {func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"two types":  {func(r *http.Request) { r.Header.Add("Content-Type", "application/x-www-form-urlencoded") }, 415},
		"gzip":       {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, 415},
		"GET":        {func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"preflight":  {func(r *http.Request) { r.Method = http.MethodOptions }, 204},
		"large": {func(r *http.Request) {
			r.Body = http.NoBody
			*r = *httptest.NewRequest("POST", pathToken, strings.NewReader(strings.Repeat("x", maxForm+1)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, 413},
		"not a client": {func(r *http.Request) {}, 200},
	} {
		if name == "not a client" {
			continue
		}
		if a := send(c.change); a.StatusCode != c.want {
			t.Errorf("%s: %d %s, want %d", name, a.StatusCode, a.body, c.want)
		}
	}
	if a := send(func(*http.Request) {}); a.StatusCode != http.StatusOK {
		t.Errorf("after all that the code is worth %d %s", a.StatusCode, a.body)
	}
}

// A code that is used again ends what was made from it: one of the two who have it stole it.
func TestCodeReplay(t *testing.T) {
	x := newRig(t)
	client := x.register()
	v := exchange(client, x.approve(x.authorize(asks(client)), usual()))
	tok := x.tokens(client, x.post(pathToken, v))
	if a := x.post(pathToken, v); a.problem() != "invalid_grant" {
		t.Errorf("the code again: %d %s", a.StatusCode, a.body)
	}
	if x.works(tok.access) {
		t.Error("the access token outlives the replay of its code")
	}
	if a, _ := x.refresh(tok); a.problem() != "invalid_grant" {
		t.Errorf("the refresh token outlives it: %d", a.StatusCode)
	}
	late := exchange(client, x.approve(x.authorize(asks(client)), usual()))
	x.pass(CodeLife)
	if a := x.post(pathToken, late); a.problem() != "invalid_grant" {
		t.Errorf("a code after a minute: %d %s", a.StatusCode, a.body)
	}
}

func TestDecisions(t *testing.T) {
	x := newRig(t)
	client := x.register()
	id := x.authorize(with(asks(client), "scope", "mcp:read mcp:write"))
	for name, change := range map[string]func(*Decision){
		"more scopes":     func(d *Decision) { d.Scopes |= auth.Shell },
		"the console":     func(d *Decision) { d.Scopes |= auth.AdminConsole },
		"no scopes":       func(d *Decision) { d.Scopes = 0 },
		"nobody":          func(d *Decision) { d.Principal = "" },
		"long life":       func(d *Decision) { d.Life = MaxLife + 1 },
		"negative life":   func(d *Decision) { d.Life = -1 },
		"no roots":        func(d *Decision) { d.Roots = []string{} },
		"a relative root": func(d *Decision) { d.Roots = []string{"x"} },
		"a root with ..":  func(d *Decision) { d.Roots = []string{"/a/../b"} },
		"unknown mode":    func(d *Decision) { d.Mode = "root" },
		"unknown highest": func(d *Decision) { d.MaxMode = "root" },
	} {
		d := usual()
		change(&d)
		if to, err := x.s.Approve(t.Context(), id, d); err == nil {
			t.Errorf("%s: approved, %s", name, to)
		}
	}
	d := usual()
	d.Scopes, d.Life, d.Roots, d.MaxMode = auth.Read, 0, []string{"/srv/a"}, "plan"
	tok := x.tokens(client, x.post(pathToken, exchange(client, x.approve(id, d))))
	if tok.refresh != "" {
		t.Error("a sign-in for an hour has a refresh token")
	}
	f, _, err := x.s.Find(tok.access, x.clock())
	must(t, err)
	if v := f.Values; v.Scopes[0] != "mcp:read" || len(v.Scopes) != 1 || v.Roots[0] != "/srv/a" || *v.MaxMode != "plan" {
		t.Errorf("the token stands for %+v", v)
	}
	for _, again := range []string{id, "", "x", newID(26), strings.ToUpper(id)} {
		if _, err := x.s.Approve(t.Context(), again, usual()); err != ErrNoAsk {
			t.Errorf("%q: %v", again, err)
		}
		if _, err := x.s.Refuse(t.Context(), again); err != ErrNoAsk {
			t.Errorf("refuse %q: %v", again, err)
		}
	}
	late := x.authorize(asks(client))
	x.pass(AskLife)
	if _, err := x.s.Pending(t.Context(), late); err != ErrNoAsk {
		t.Errorf("after ten minutes: %v", err)
	}
	no := x.authorize(asks(client))
	to, err := x.s.Refuse(t.Context(), no)
	must(t, err)
	if u, _ := url.Parse(to); u.Query().Get("error") != "access_denied" || u.Query().Get("iss") != site {
		t.Errorf("refused: %s", to)
	}
	x.pass(time.Hour)
	if x.works(tok.access) {
		t.Error("a sign-in for an hour lasts longer")
	}
}

func TestRefreshNarrows(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	less := x.tokens(tok.client, x.post(pathToken, with(refreshing(tok), "scope", "mcp:read")))
	f, _, err := x.s.Find(less.access, x.clock())
	must(t, err)
	if strings.Join(f.Values.Scopes, " ") != "mcp:read" {
		t.Errorf("narrowed to %v", f.Values.Scopes)
	}
	for name, v := range map[string]url.Values{
		"more":             with(refreshing(less), "scope", "mcp:shell"),
		"unknown":          with(refreshing(less), "scope", "x"),
		"another resource": with(refreshing(less), "resource", site+"/sse"),
		"foreign resource": with(refreshing(less), "resource", "https://evil.example/"),
		"another client":   with(refreshing(less), "client_id", "client-x"),
		"made up":          with(refreshing(less), "refresh_token", less.refresh[:17]+newSecret(16)+newSecret(32)),
		"an access token":  with(refreshing(less), "refresh_token", less.access),
	} {
		if a := x.post(pathToken, v); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	if a, again := x.refresh(less); a.StatusCode != http.StatusOK || !x.works(again.access) {
		t.Errorf("then the token itself: %d %s", a.StatusCode, a.body) // with all scopes that were approved
	}
}

// Access tokens of other addresses and other kinds open nothing.
func TestFindRefuses(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	for name, text := range map[string]string{
		"refresh": tok.refresh, "code": codePrefix + newID(12) + "_" + newSecret(32), "cut": tok.access[:len(tok.access)-1],
		"long": tok.access + "x", "another secret": tok.access[:17] + newSecret(32), "another grant": accessPrefix + newID(12) + tok.access[16:],
		"upper case": strings.ToUpper(tok.access), "prefix": accessPrefix,
	} {
		_, mine, err := x.s.Find(text, x.clock())
		if mine == strings.HasPrefix(text, "CHA") || mine && err == nil {
			t.Errorf("%s: %v, %v", name, mine, err)
		}
	}
	if _, mine, _ := x.s.Find("chd_aaaaaaaaaa_"+newSecret(32), x.clock()); mine {
		t.Error("a static token is taken for ours")
	}
	x.o.PublicURL = "https://elsewhere.example.com"
	x.again()
	if x.works(tok.access) {
		t.Error("a token works at another address than it is for")
	}
}

func TestRevoke(t *testing.T) {
	x := newRig(t)
	one, two := x.signIn(usual()), x.signIn(usual())
	revoke := func(client, token string) answered {
		return x.post(pathRevoke, url.Values{"client_id": {client}, "token": {token}})
	}
	for _, text := range []string{"x", one.access[:17] + newSecret(32), one.refresh[:20] + newSecret(48), newSecret(32)} {
		if a := revoke(one.client, text); a.StatusCode != http.StatusOK {
			t.Errorf("unknown: %d %s", a.StatusCode, a.body)
		}
	}
	if revoke(two.client, one.refresh); !x.works(one.access) {
		t.Error("a client revoked what is another's")
	}
	if revoke(one.client, one.access); x.works(one.access) {
		t.Error("a revoked access token works")
	}
	if a, next := x.refresh(one); a.StatusCode != http.StatusOK || !x.works(next.access) {
		t.Error("a revoked access token took its refresh token along")
	} else if revoke(one.client, next.refresh); x.works(next.access) {
		t.Error("a revoked refresh token left its access token")
	}
	if !x.works(two.access) {
		t.Error("the other grant is gone, too")
	}
	if a := x.post(pathRevoke, url.Values{"client_id": {two.client}}); a.problem() != "invalid_request" {
		t.Errorf("nothing to revoke: %d", a.StatusCode)
	}
}
