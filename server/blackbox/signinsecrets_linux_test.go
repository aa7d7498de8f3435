package blackbox

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSignInSecrets: credentials stand nowhere but where they belong, also at the debug level, after mistakes, and
// after a refresh: not in the log, the audit, the metrics, a page, a URL, nor in any file of the server.
func TestSignInSecrets(t *testing.T) {
	t.Parallel()
	d := opened(t, []string{"CODEHAND_LOG_LEVEL=debug"})
	a := d.register("http://127.0.0.1:33419/callback")
	p := d.person()
	code := a.code(p)
	first := a.token(a.redeem(code))
	second := a.token(a.renew(first.Refresh))
	if first.Status != http.StatusOK || second.Status != http.StatusOK {
		t.Fatalf("%s\n%s", first.Body, second.Body)
	}
	if got := d.opens(second.Access); got != http.StatusOK {
		t.Errorf("the endpoint: %d", got)
	}
	// Mistakes that carry secrets.
	d.opens(second.Access + "x")
	d.opens(second.Refresh)
	a.token(changed(a.redeem(code), "code_verifier", "x"))
	a.token(changed(a.renew(second.Refresh), "scope", "mcp:all"))
	d.post("/mcp?access_token="+second.Access, "application/json", hello, nil)
	d.post("/oauth/token?"+a.renew(second.Refresh).Encode(), "application/x-www-form-urlencoded", "", nil)
	d.post("/signin/login?password="+url.QueryEscape(d.password), "application/x-www-form-urlencoded", "password="+url.QueryEscape(d.password), nil)
	again := newPerson(t, d.s.url, d.password+"x")
	again.send(http.MethodGet, a.authorizeURL(a.wish()), "", nil)

	secrets := map[string]string{"password": d.password, "code": code, "verifier": a.verifier, "first access token": first.Access,
		"first refresh token": first.Refresh, "access token": second.Access, "refresh token": second.Refresh}
	site, err := url.Parse(d.s.url)
	must(t, err)
	for _, c := range p.client.Jar.Cookies(site) {
		secrets["cookie "+c.Name] = c.Value
	}
	csrf := ""
	for _, at := range p.pages {
		for _, f := range formsOf(t, at.body) {
			if csrf = f.values.Get("csrf"); csrf != "" {
				secrets["CSRF token of "+at.url] = csrf
			}
		}
	}
	if csrf == "" || len(secrets) < 9 {
		t.Fatalf("there are %d secrets: %q", len(secrets), secrets)
	}
	metrics, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.s.url+"/metrics", nil)
	must(t, err)
	metrics.Header.Set("Authorization", "Bearer "+second.Access)
	places := map[string]string{"metrics": d.answer(metrics).Body, "owner's command": d.output("grants", "list", "--json")}
	for _, at := range p.pages {
		places["URL "+at.method+" "+strings.Split(at.url, "?")[0]] += at.url + "\n"
		places["page "+strings.Split(at.url, "?")[0]] += withoutTokens(t, at.body)
		if to := at.header.Get("Location"); !strings.HasPrefix(to, a.redirect) {
			places["Location of "+at.url] = to
		} else if u, err := url.Parse(to); err != nil || u.Query().Get("code") != code || u.Fragment != "" {
			t.Errorf("the client's answer is %s", to)
		}
		if strings.Contains(at.header.Get("Content-Type"), "html") && at.header.Get("Referrer-Policy") == "" {
			t.Errorf("%s has no Referrer-Policy", at.url)
		}
	}
	d.s.kill()
	places["log"] = d.s.log.String()
	must(t, filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		places["file "+strings.TrimPrefix(path, d.home)] = string(text)
		return err
	}))
	audited := false
	for place, text := range places {
		audited = audited || strings.Contains(place, "/audit/") && strings.Contains(text, "login")
		for name, secret := range secrets {
			for _, form := range []string{secret, url.QueryEscape(secret), tail(secret)} {
				if strings.Contains(text, form) {
					t.Errorf("%s shows the %s", place, name)
					break
				}
			}
		}
	}
	if !audited {
		t.Errorf("the audit has no login; there are %q", slices.Sorted(maps.Keys(places)))
	}
}

// tail is the part of a token that is the secret.
func tail(token string) string {
	if i := strings.LastIndexByte(token, '_'); strings.HasPrefix(token, "ch") && len(token)-i > 20 {
		return token[i+1:]
	}
	return token
}

// withoutTokens is a page without the hidden fields that hold its CSRF tokens, where they belong.
func withoutTokens(t *testing.T, body string) string {
	t.Helper()
	b := []byte(body)
	for _, f := range formsOf(t, body) {
		if csrf := f.values.Get("csrf"); csrf != "" {
			b = bytes.ReplaceAll(b, []byte(`name="csrf" value="`+csrf+`"`), nil)
			b = bytes.ReplaceAll(b, []byte(`data-csrf="`+csrf+`"`), nil)
		}
	}
	return string(b)
}
