package oauth

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRegister(t *testing.T) {
	x := newRig(t)
	a := x.postJSON(pathRegister, `{"client_name":"A\u202e<b>\n`+strings.Repeat("n", 200)+`","redirect_uris":["http://localhost/cb"],
		"token_endpoint_auth_method":"client_secret_basic","scope":"mcp:admin"}`)
	v := a.json(t)
	if a.StatusCode != http.StatusCreated || v["token_endpoint_auth_method"] != "none" || v["client_secret"] != nil ||
		v["scope"] != nil || strings.ContainsAny(v["client_name"].(string), "\u202e\n") || len(v["client_name"].(string)) > maxName+3 {
		t.Errorf("registered %d %v", a.StatusCode, v)
	}
	for name, body := range map[string]string{
		"no JSON": "x", "an array": "[]", "no redirect": `{}`, "none": `{"redirect_uris":[]}`, "foreign": `{"redirect_uris":["http://evil.example/"]}`,
		"one of two": `{"redirect_uris":["http://localhost/","javascript:x"]}`, "implicit": `{"redirect_uris":["http://localhost/"],"response_types":["token"]}`,
		"password": `{"redirect_uris":["http://localhost/"],"grant_types":["password"]}`, "secret": `{"redirect_uris":["http://localhost/"],"client_secret":"x"}`,
		"many": `{"redirect_uris":[` + strings.Repeat(`"http://localhost/",`, maxRedirects) + `"http://localhost/"]}`, "large": `{"x":"` + strings.Repeat("x", maxForm) + `"}`,
	} {
		if a := x.postJSON(pathRegister, body); a.StatusCode < 400 || a.StatusCode > 413 {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

// Thousands of registrations cost no more memory and disk than the limits say, and none of a client in use.
func TestManyRegistrations(t *testing.T) {
	x := newRig(t)
	tok := x.signIn(usual())
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	outcomes := map[int]int{}
	body := `{"client_name":"` + strings.Repeat("n", 500) + `","redirect_uris":["https://app.example.com/` + strings.Repeat("x", 900) + `"]}`
	many, each := 3_000, 300*time.Millisecond
	if os.Getenv("CODEHAND_LONG") != "" {
		many, each = 10_000, 100*time.Millisecond
	}
	for i := range many {
		x.from = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		outcomes[x.postJSON(pathRegister, body).StatusCode]++
		x.pass(each)
	}
	if outcomes[http.StatusCreated] < maxUnused || outcomes[http.StatusServiceUnavailable] == 0 {
		t.Errorf("the answers were %v", outcomes)
	}
	keys, err := x.store.Keys(t.Context(), "client")
	must(t, err)
	if len(keys) != maxUnused+1 || len(x.s.clients.all) != maxUnused+1 {
		t.Errorf("%d clients in the store, %d in memory", len(keys), len(x.s.clients.all))
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("they hold %d bytes", grown)
	}
	x.authorize(asks(tok.client))
	x.pass(unusedLife)
	x.s.sweep(t.Context())
	if keys, _ = x.store.Keys(t.Context(), "client"); len(keys) != 1 {
		t.Errorf("%d clients are left", len(keys))
	}
	x.again()
	x.authorize(asks(tok.client))
}

func TestRatesOfOneNetwork(t *testing.T) {
	x := newRig(t)
	for range paceRegisterMost() {
		x.register()
	}
	a := x.postJSON(pathRegister, `{"redirect_uris":["http://localhost/"]}`)
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d", a.StatusCode)
	}
	x.from = netip.MustParseAddr("2001:db8::1")
	client := x.register()
	x.authorize(asks(client))
	for a.StatusCode != http.StatusTooManyRequests {
		if a = x.post(pathToken, exchange(client, codePrefix+newID(12)+"_"+newSecret(32))); a.StatusCode == http.StatusOK {
			t.Fatal("a guess was right")
		}
	}
}

func paceRegisterMost() int { return int(paceRegister.most) }

// web is a network with one document.
type web struct {
	url   string
	body  string
	kind  string
	code  int
	more  http.Header
	asked atomic.Int64
}

func (f *web) RoundTrip(r *http.Request) (*http.Response, error) {
	f.asked.Add(1)
	if r.URL.String() != f.url {
		return nil, errors.New("no such host")
	}
	h := http.Header{"Content-Type": {f.kind}}
	for k, v := range f.more {
		h[k] = v
	}
	return &http.Response{StatusCode: f.code, Header: h, Body: io.NopCloser(strings.NewReader(f.body))}, nil
}

const docURL = "https://app.example.com/client.json"

func aDocument(redirects ...string) string {
	body, _ := json.Marshal(map[string]any{"client_id": docURL, "client_name": "App", "redirect_uris": redirects})
	return string(body)
}

func TestDocuments(t *testing.T) {
	f := &web{url: docURL, body: aDocument(back), kind: "application/json; charset=utf-8", code: 200}
	x := newRig(t, func(o *Options) { o.Fetch = f })
	v := asks(docURL)
	ask, err := x.s.Pending(t.Context(), x.authorize(v))
	must(t, err)
	if c := ask.Client; c.Host != "app.example.com" || c.Kind != Document || c.Name != "App" {
		t.Errorf("the client is %+v", c)
	}
	x.authorize(v)
	if f.asked.Load() != 1 {
		t.Errorf("fetched %d times", f.asked.Load())
	}
	f.body = aDocument("https://app.example.com/cb")
	x.authorize(v)
	x.pass(documentLife)
	if a := x.get(pathAuthorize + "?" + v.Encode()); a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" {
		t.Errorf("a redirect URI that is no more in the document: %d", a.StatusCode)
	}
	v.Set("redirect_uri", "https://app.example.com/cb")
	tok := x.tokens(docURL, x.post(pathToken, with(exchange(docURL, x.approve(x.authorize(v), usual())), "redirect_uri", "")))
	f.code = 500 // refreshing needs no document
	x.again()
	if a, _ := x.refresh(tok); a.StatusCode != http.StatusOK {
		t.Errorf("refreshed: %d %s", a.StatusCode, a.body)
	}
}

func TestBadDocuments(t *testing.T) {
	good := web{url: docURL, body: aDocument(back), kind: "application/json", code: 200}
	for name, change := range map[string]func(*web){
		"redirect":        func(f *web) { f.code, f.more = 302, http.Header{"Location": {"https://evil.example/"}} },
		"not found":       func(f *web) { f.code = 404 },
		"a page":          func(f *web) { f.kind = "text/html" },
		"no type":         func(f *web) { f.kind = "" },
		"another client":  func(f *web) { f.body = strings.ReplaceAll(f.body, "app.example.com", "other.example.com") },
		"other spelling":  func(f *web) { f.body = strings.ReplaceAll(f.body, "https://app", "https://APP") },
		"no JSON":         func(f *web) { f.body = "x" },
		"huge":            func(f *web) { f.body += strings.Repeat(" ", maxDocument) },
		"a secret":        func(f *web) { f.body = strings.Replace(f.body, "{", `{"client_secret":"x",`, 1) },
		"bad redirect":    func(f *web) { f.body = aDocument(back, "javascript:alert(1)") },
		"no redirects":    func(f *web) { f.body = aDocument() },
		"another network": func(f *web) { f.url = "https://other.example.com/" },
	} {
		f := &web{url: good.url, body: good.body, kind: good.kind, code: good.code}
		change(f)
		x := newRig(t, func(o *Options) { o.Fetch = f })
		for range 3 {
			if a := x.get(pathAuthorize + "?" + asks(docURL).Encode()); a.StatusCode != http.StatusBadRequest || strings.Contains(a.body, "evil") {
				t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
			}
		}
		if f.asked.Load() != 1 {
			t.Errorf("%s: a failure is fetched %d times", name, f.asked.Load())
		}
	}
	f := &web{url: docURL, body: aDocument(back), kind: "application/json", code: 200}
	x := newRig(t, func(o *Options) { o.Fetch = f })
	for _, id := range []string{"https://app.example.com", "https://app.example.com/", "https://app.example.com/x?y", "https://app.example.com/x#y",
		"https://app.example.com/../client.json", "https://u:p@app.example.com/client.json", "https://APP.example.com/client.json",
		"https://app.example.com:8443/client.json", "https://127.0.0.1/client.json", "https://[::1]/client.json", "https://10.0.0.1/client.json",
		"https://localhost/client.json", "https://metadata.google.internal/x", "https://0x7f.1/x", docURL + "/" + strings.Repeat("x", maxClientID)} {
		if a := x.get(pathAuthorize + "?" + asks(id).Encode()); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", id, a.StatusCode)
		}
	}
	if f.asked.Load() != 0 {
		t.Errorf("%d of them were fetched", f.asked.Load())
	}
	for i := range 40 {
		a := x.get(pathAuthorize + "?" + asks(fmt.Sprintf("https://app.example.com/%d", i)).Encode())
		if a.StatusCode != http.StatusBadRequest {
			t.Errorf("%d", a.StatusCode)
		}
	}
	if n := f.asked.Load(); n != 30 {
		t.Errorf("one network made us fetch %d documents", n)
	}
}

// The real network leads to public addresses only.
func TestDocumentsAreGuarded(t *testing.T) {
	d := newDocuments(Options{Now: time.Now})
	for _, id := range []string{"https://127.0.0.1:1/client", "https://localhost:1/client", "https://[::1]:1/client"} {
		if _, _, err := d.fetch(t.Context(), id); err == nil || !strings.Contains(err.Error(), "not public") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestLifeOf(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": documentLife, "no-store": shortestLife, "public, max-age=3600": time.Hour, "max-age=1": shortestLife, "max-age=99999999": longestLife, "max-age=x": documentLife,
	} {
		if got := lifeOf(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A page that was sent to another browser cannot be decided there.
func TestSameBrowser(t *testing.T) {
	x := newRig(t)
	client := x.register()
	a := x.get(pathAuthorize + "?" + asks(client).Encode())
	id := strings.TrimPrefix(a.Header.Get("Location"), pathAsk)
	cookie := a.Cookies()[0]
	if cookie.Name != cookieSecure || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
		t.Errorf("the cookie is %v", cookie)
	}
	r := func(value string) *http.Request {
		r, _ := http.NewRequest(http.MethodGet, site, nil)
		r.AddCookie(&http.Cookie{Name: cookieSecure, Value: value})
		return r
	}
	if !x.s.SameBrowser(r(cookie.Value), id) || x.s.SameBrowser(r(newSecret(32)), id) || x.s.SameBrowser(r(cookie.Value), newID(26)) {
		t.Error("browsers are not told apart")
	}
	empty, _ := http.NewRequest(http.MethodGet, site, nil)
	if x.s.SameBrowser(empty, id) {
		t.Error("a browser without a cookie may decide")
	}
}

func TestMetadata(t *testing.T) {
	x := newRig(t, func(o *Options) { o.PublicURL = site + "/ch" })
	for _, path := range []string{"/.well-known/oauth-authorization-server/ch", "/ch/.well-known/oauth-authorization-server",
		"/.well-known/oauth-authorization-server/ch/mcp"} {
		if v := x.get(path).json(t); v["issuer"] != site+"/ch" || v["token_endpoint"] != site+"/ch/oauth/token" {
			t.Errorf("%s: %v", path, v)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/ch/mcp", "/ch/.well-known/oauth-protected-resource/mcp"} {
		if v := x.get(path).json(t); v["resource"] != site+"/ch/mcp" || v["authorization_servers"].([]any)[0] != site+"/ch" {
			t.Errorf("%s: %v", path, v)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/ch/.well-known/oauth-protected-resource", "/oauth/token",
		"/ch/oauth/tokens", "/ch/oauth/token/", "/.well-known/openid-configuration", "/ch/.well-known/oauth-protected-resource/metrics"} {
		if x.s.Handler(path) != nil {
			t.Errorf("%s is served", path)
		}
	}
	x.o.PublicURL = ""
	x.again()
	r, _ := http.NewRequest(http.MethodGet, "/.well-known/oauth-authorization-server", nil)
	for host, want := range map[string]any{"127.0.0.1:7433": "http://127.0.0.1:7433", "localhost": "http://localhost", "[::1]:1": "http://[::1]:1",
		"tools.example.com": nil, "127.0.0.1.evil.example": nil, "localhost@evil.example": nil, "": nil} {
		r.Host = host
		if got := x.do(r).json(t)["issuer"]; got != want {
			t.Errorf("%s: the issuer is %v", host, got)
		}
	}
	r.Host, r.TLS = "localhost:7433", &tls.ConnectionState{}
	if got := x.do(r).json(t)["issuer"]; got != "https://localhost:7433" {
		t.Errorf("with TLS the issuer is %v", got)
	}
}
