package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whatever a query says: an answer goes nowhere but to a redirect URI of the client, or to the page of an Ask that has
// PKCE and a resource of ours; and a redirect URI that is accepted is one for browsers, too.
func FuzzAuthorize(f *testing.F) {
	x := newRig(f)
	client := x.register(back, "https://app.example.com/cb")
	f.Add(asks(client).Encode())
	f.Add("client_id=" + client + "&redirect_uri=http://127.0.0.1:1/callback&response_type=code&resource=" + site + "/sse")
	f.Add("client_id=" + client + "&redirect_uri=https://app.example.com/cb&state=%0d%0a")
	f.Add("client_id=https://app.example.com/x")
	f.Fuzz(func(t *testing.T, query string) {
		x.t = t
		x.pass(AskLife)
		r := httptest.NewRequest(http.MethodGet, pathAuthorize, nil)
		r.URL.RawQuery = query
		a := x.do(r)
		to := a.Header.Get("Location")
		if to == "" {
			if a.StatusCode < 400 || a.StatusCode > 503 {
				t.Fatalf("%d without a place to go to", a.StatusCode)
			}
			return
		}
		if strings.ContainsAny(to, "\r\n\x00") {
			t.Fatalf("goes to %q", to)
		}
		if id, ok := strings.CutPrefix(to, pathAsk); ok {
			ask, err := x.s.Pending(t.Context(), id)
			if err != nil || !strings.HasPrefix(ask.Resource, site) || ask.Scopes == 0 {
				t.Fatalf("the ask is %+v, %v", ask, err)
			}
			if _, err := x.s.Refuse(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			return
		}
		u, err := url.Parse(to)
		if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.Path != "/callback" || u.Query().Get("iss") != site {
			t.Fatalf("goes to %q", to)
		}
	})
}

func FuzzRedirect(f *testing.F) {
	for _, text := range []string{back, "https://app.example.com/cb", "cursor://x/y", "http://localhost:1@evil/", "http://[::1]/", "com.x:/y"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkRedirect(text) != nil {
			return
		}
		got, ok := redirectOf([]string{text}, text)
		if !ok || got != text {
			t.Fatalf("%q is not equal to itself", text)
		}
		to := answerAt(text, url.Values{"code": {"c"}, "iss": {site}})
		before, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		after, err := url.Parse(to)
		if err != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.Path != before.Path ||
			after.Query()["code"][0] != "c" || len(after.Query()["code"]) != 1 {
			t.Fatalf("%q became %q: %v", text, to, err)
		}
		if host, loopback := whereTo(text); host == "" != loopback {
			t.Fatalf("%q leads to %q, %v", text, host, loopback)
		}
	})
}

// Whatever a body says: no tokens come of it, nothing of others ends, and the answer repeats nothing of it.
func FuzzToken(f *testing.F) {
	x := newRig(f)
	tok := x.signIn(usual())
	client := x.register()
	code := x.approve(x.authorize(asks(client)), usual())
	for _, v := range []url.Values{refreshing(tok), exchange(client, code), {"client_id": {"x"}, "token": {tok.access}}} {
		text := v.Encode()
		f.Add(strings.NewReplacer(tok.refresh, "R", tok.access, "A", code, "C", url.QueryEscape(code), "C").Replace(text))
	}
	f.Add("grant_type=refresh_token&grant_type=refresh_token&refresh_token=chr_aaaaaaaaaaaa_%41")
	f.Fuzz(func(t *testing.T, body string) {
		x.t = t
		x.pass(time.Millisecond) // nearly stands still: the grant must hold all the time
		for _, path := range []string{pathToken, pathRevoke} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			a := x.do(r)
			if a.StatusCode == http.StatusOK && (path == pathToken || a.body != "") || a.StatusCode >= http.StatusInternalServerError {
				t.Fatalf("%s: %d %s", path, a.StatusCode, a.body)
			}
			if a.StatusCode != http.StatusOK && a.problem() == "" {
				t.Fatalf("%s: %d %s", path, a.StatusCode, a.body)
			}
		}
		if _, err := x.s.Grants(t.Context()); err != nil || x.ended != 0 {
			t.Fatalf("something ended: %v", err)
		}
	})
}

// Whatever registers: what is kept has redirect URIs that are allowed, as often as the body has them, and one meaning.
func FuzzRegister(f *testing.F) {
	f.Add(`{"client_name":"A","redirect_uris":["http://localhost/cb"],"grant_types":["authorization_code"]}`)
	f.Add(`{"redirect_uris":["http://localhost/cb"],"Redirect_uris":["https://evil.example/"]}`)
	f.Add(`{"redirect_uris":["cursor://x/y"],"client_name":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		x := newRig(t)
		a := x.postJSON(pathRegister, body)
		if a.StatusCode != http.StatusCreated {
			if a.problem() == "" || len(x.s.clients.all) != 0 {
				t.Fatalf("%d %s, %d kept", a.StatusCode, a.body, len(x.s.clients.all))
			}
			return
		}
		for _, c := range x.s.clients.all {
			for _, r := range c.Redirects {
				if err := checkRedirect(r); err != nil {
					t.Fatalf("%q: %v", r, err)
				}
			}
			if len(c.Redirects) == 0 || len([]rune(c.Name)) > maxName+1 || strings.ContainsAny(c.Name, "\r\n\x00") {
				t.Fatalf("%+v", c)
			}
		}
		for _, v := range a.json(t) {
			if v == nil {
				t.Fatal(a.body)
			}
		}
	})
}
