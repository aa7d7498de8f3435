package issuer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"codehand/server/auth"
	"codehand/server/config"
)

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	claims := encoded(t, good(nil))
	for name, text := range map[string]string{
		"RS256":          token(t, nil),
		"PS256":          oidctest.SignIDToken(testKeys()["rsa"], "", "PS256", claims),
		"ES256":          oidctest.SignIDToken(testKeys()["ec"], "ec", "ES256", claims),
		"EdDSA":          oidctest.SignIDToken(testKeys()["ed"], "ed", "EdDSA", claims),
		"no kid":         signed(t, `{"alg":"RS256"}`, claims, "rsa"),
		"at+jwt":         signed(t, `{"alg":"RS256","kid":"rsa","typ":"at+jwt"}`, claims, "rsa"),
		"media type":     signed(t, `{"alg":"RS256","kid":"rsa","typ":"application/AT+JWT"}`, claims, "rsa"),
		"several aud":    token(t, map[string]any{"aud": []string{"account", us}}),
		"skewed clock":   token(t, map[string]any{"nbf": start.Add(59 * time.Second).Unix(), "iat": start.Add(59 * time.Second).Unix()}),
		"parts of a s":   token(t, map[string]any{"exp": float64(start.Add(time.Minute).Unix()) + 0.5}),
		"typ Bearer":     token(t, map[string]any{"typ": "Bearer"}),
		"without an iat": token(t, map[string]any{"iat": nil}),
	} {
		r := newRig(t)
		f, err := r.find(text)
		if err != nil || f.ID != "corp/1234" || !strings.HasPrefix(f.Via, "oidc:corp:") {
			t.Errorf("%s: %+v %+v", name, f, err)
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	mapped := corp()
	mapped.Scopes.Map = map[string]string{"api.write": "mcp:write", "mcp:shell": "mcp:read"}
	mapped.Scopes.Default = []string{"mcp:read"}
	for _, c := range []struct {
		of     config.Issuer
		claims map[string]any
		want   string
	}{
		{corp(), nil, "mcp:read"},
		{corp(), map[string]any{"scope": nil}, ""},
		{corp(), map[string]any{"scope": "openid profile"}, ""},
		{corp(), map[string]any{"scope": "mcp:write mcp:web mcp:write"}, "mcp:write mcp:web"},
		{corp(), map[string]any{"scope": nil, "scp": []string{"mcp:read", "mcp:shell"}}, "mcp:read mcp:shell"},
		{corp(), map[string]any{"scope": []string{"mcp:read mcp:web"}}, "mcp:read mcp:web"},
		{corp(), map[string]any{"scope": 7}, ""},
		{corp(), map[string]any{"scope": "MCP:READ"}, ""},
		{mapped, map[string]any{"scope": "api.write"}, "mcp:write"},
		{mapped, map[string]any{"scope": "mcp:shell"}, "mcp:read"}, // the map wins, also over our own names
		{mapped, map[string]any{"scope": "openid"}, "mcp:read"},
		{mapped, map[string]any{"scope": nil}, "mcp:read"},
	} {
		f := newRig(t, c.of).accepted(token(t, c.claims))
		if got := strings.Join(f.Values.Scopes, " "); got != c.want || f.Values.Scopes == nil {
			t.Errorf("%v: %q, want %q", c.claims, got, c.want)
		}
	}
}

func TestPrincipalAndGroups(t *testing.T) {
	t.Parallel()
	mail := corp()
	mail.PrincipalClaim = "email"
	f := newRig(t, mail).accepted(token(t, map[string]any{"email": "a@example.com", "email_verified": true,
		"groups": []string{"devs", "ops"}}))
	if f.ID != "corp/a@example.com" || !slices.Equal(f.Groups, []string{"devs", "ops"}) {
		t.Errorf("%+v", f)
	}
	if f := newRig(t).accepted(token(t, map[string]any{"groups": "devs"})); !slices.Equal(f.Groups, []string{"devs"}) {
		t.Errorf("%+v", f)
	}
	none := corp()
	none.GroupsClaim = ""
	for _, r := range []*rig{newRig(t), newRig(t, none)} {
		if f := r.accepted(token(t, map[string]any{"groups": map[string]any{"devs": true}})); f.Groups != nil {
			t.Errorf("%+v", f)
		}
	}
}

// Two issuers have the same kids and the same subjects, and are never taken for each other.
func TestTwoIssuers(t *testing.T) {
	t.Parallel()
	other := corp()
	other.Name, other.Issuer, other.PrincipalPrefix = "other", otherURL, "other/"
	r := newRig(t, corp(), other)
	theirs := encoded(t, good(map[string]any{"iss": otherURL}))
	if f := r.accepted(oidctest.SignIDToken(testKeys()["rsa2"], "rsa2", "RS256", theirs)); f.ID != "other/1234" {
		t.Errorf("%+v", f)
	}
	if f := r.accepted(token(t, nil)); f.ID != "corp/1234" {
		t.Errorf("%+v", f)
	}
	r.refused(oidctest.SignIDToken(testKeys()["rsa"], "rsa", "RS256", theirs), http.StatusUnauthorized)
	if urls := r.s.URLs(); !slices.Equal(urls, []string{issuerURL, otherURL}) {
		t.Errorf("%v", urls)
	}
}

// An accepted token is not verified again for a minute, and never longer than it holds.
func TestAcceptedAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		long, brief := token(t, nil), token(t, map[string]any{"exp": start.Add(30 * time.Second).Unix()})
		r.accepted(long)
		r.accepted(brief)
		r.set(func() { r.idps["login.example.com"] = provider(issuerURL, "rsa2") })
		r.pass(29 * time.Second)
		r.accepted(long)
		r.accepted(brief)
		r.pass(time.Second)
		r.refused(brief, http.StatusUnauthorized)
		r.accepted(long)
		r.pass(31 * time.Second)
		r.accepted(long) // verified again, with the keys that are known
	})
}

func TestAcceptedAreFew(t *testing.T) {
	t.Parallel()
	var a accepted
	sum := func(i int) (s [32]byte) { copy(s[:], fmt.Sprint(i)); return s }
	for i := range 3 * maxAccepted {
		a.put(sum(i), auth.Found{ID: "x"}, start, start.Add(time.Hour))
		if len(a.known) > maxAccepted {
			t.Fatalf("%d tokens", len(a.known))
		}
		if _, ok := a.get(sum(i), start); !ok {
			t.Fatal("the newest is forgotten")
		}
	}
}

// A new key of the issuer counts as soon as a token comes with it.
func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.accepted(token(t, nil))
		r.set(func() { r.idps["login.example.com"] = provider(issuerURL, "rsa2") })
		renewed := oidctest.SignIDToken(testKeys()["rsa2"], "rsa2", "RS256", encoded(t, good(nil)))
		r.refused(renewed, http.StatusUnauthorized) // the keys were fetched a moment ago
		r.pass(retryEvery)
		r.accepted(renewed)
		r.pass(retryEvery)
		r.refused(token(t, map[string]any{"jti": "2"}), http.StatusUnauthorized) // the old key is gone
		if n := r.fetches("/keys"); n != 3 {
			t.Errorf("%d fetches", n)
		}
	})
}

// A key that came while the keys were being fetched is not taken for one that the issuer does not have.
func TestKeyComesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		hold := make(chan struct{})
		r.set(func() { r.hold = hold })
		var both sync.WaitGroup
		var known, unknown *auth.Error
		both.Go(func() { _, known = r.find(token(t, nil)) })
		synctest.Wait() // the issuer has answered with the old keys
		r.set(func() { r.idps["login.example.com"], r.hold = provider(issuerURL, "rsa2"), nil })
		renewed := oidctest.SignIDToken(testKeys()["rsa2"], "rsa2", "RS256", encoded(t, good(nil)))
		both.Go(func() { _, unknown = r.find(renewed) })
		synctest.Wait()
		close(hold)
		both.Wait()
		if known != nil || unknown == nil {
			t.Fatalf("%+v, %+v", known, unknown)
		}
		r.pass(retryEvery)
		r.accepted(renewed)
	})
}

// Tokens with unknown keys do not make the server ask the issuer for each.
func TestUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.accepted(token(t, nil))
		claims := encoded(t, good(nil))
		bad := part(`{"alg":"RS256","kid":"%KID"}`) + "." + part(claims) + "." + strings.Repeat("A", 342)
		for round := range 3 {
			before := r.fetches("/keys")
			for i := range 1000 {
				r.refused(part(fmt.Sprintf(`{"alg":"RS256","kid":"k%d"}`, i))+bad[strings.Index(bad, "."):], http.StatusUnauthorized)
			}
			if n := r.fetches("/keys") - before; n > 1 {
				t.Errorf("round %d: %d fetches within 10 s", round, n)
			}
			r.accepted(token(t, map[string]any{"jti": fmt.Sprint(round)}))
			r.pass(retryEvery)
		}
		k, _ := r.s.entries()[0].ready()
		for i := range 3 * maxMissing {
			k.noteMissing(fmt.Sprint("m", i), r.clock())
		}
		if len(k.missing) > maxMissing {
			t.Errorf("%d ids are remembered", len(k.missing))
		}
	})
}

// A key that was missing is looked for again after a minute.
func TestMissingKeyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.accepted(token(t, nil))
		renewed := oidctest.SignIDToken(testKeys()["rsa2"], "rsa2", "RS256", encoded(t, good(nil)))
		r.pass(retryEvery)
		r.refused(renewed, http.StatusUnauthorized)
		r.set(func() { r.idps["login.example.com"] = provider(issuerURL, "rsa", "rsa2") })
		r.pass(missingFor - time.Second)
		r.refused(renewed, http.StatusUnauthorized)
		if n := r.fetches("/keys"); n != 2 {
			t.Errorf("%d fetches", n)
		}
		r.pass(time.Second)
		r.accepted(renewed)
	})
}

// While an issuer cannot be reached, its tokens are neither accepted nor called wrong, and the others work.
func TestIssuerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := corp()
		other.Name, other.Issuer, other.PrincipalPrefix = "other", otherURL, "other/"
		r.set(func() { r.down = true })
		if err := r.s.Reload([]config.Issuer{corp(), other}); err != nil {
			t.Fatal(err)
		}
		r.discover()
		theirs := oidctest.SignIDToken(testKeys()["rsa2"], "rsa2", "RS256", encoded(t, good(map[string]any{"iss": otherURL})))
		if err := r.refused(theirs, http.StatusServiceUnavailable); err.Code != "auth_unavailable" || err.RetryAfter != retryEvery {
			t.Errorf("%+v", err)
		}
		// corp was discovered; its keys were never fetched
		r.refused(token(t, nil), http.StatusServiceUnavailable)
		status := r.s.Status()
		if status["corp"] == nil || status["other"] == nil {
			t.Errorf("%v", status)
		}
		r.set(func() { r.down = false })
		r.refused(token(t, nil), http.StatusServiceUnavailable) // it was tried a moment ago
		r.pass(retryEvery)
		r.discover()
		r.accepted(theirs)
		r.accepted(token(t, nil))
		for name, err := range r.s.Status() {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		// down again: keys that are known go on, and garbage does not become a failure of the issuer
		r.set(func() { r.down = true })
		r.pass(retryEvery)
		r.accepted(token(t, map[string]any{"jti": "2"}))
		r.refused(oidctest.SignIDToken(testKeys()["stranger"], "rsa", "RS256", encoded(t, good(nil))), http.StatusUnauthorized)
		r.refused(oidctest.SignIDToken(testKeys()["stranger"], "new", "RS256", encoded(t, good(nil))), http.StatusServiceUnavailable)
	})
}

// Streams end with the token that opened them: Watch tells when one has expired.
func TestExpiryIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		told := 0
		s, err := New(Options{Issuers: []config.Issuer{corp()}, Transport: r, Now: r.clock, Ended: func() { told++ }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Watch(ctx) }()
		synctest.Wait()
		f, _, err := s.Find(token(t, map[string]any{"exp": start.Add(time.Minute).Unix()}), start)
		if err != nil {
			t.Fatal(err)
		}
		r.pass(time.Minute - time.Second)
		time.Sleep(2 * endsEvery)
		synctest.Wait()
		if told != 0 {
			t.Error("told too early")
		}
		r.pass(time.Second)
		time.Sleep(2 * endsEvery)
		synctest.Wait()
		if valid, _ := s.Valid(auth.Principal{Via: f.Via}); told != 1 || valid {
			t.Errorf("told %d times, valid %v", told, valid)
		}
		cancel()
		<-done
	})
}

// An issuer whose keys cannot be read is not there, however well it answers.
func TestKeysThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.answer = func(req *http.Request) *http.Response {
			if !strings.HasSuffix(req.URL.Path, "/keys") {
				return nil
			}
			return &http.Response{StatusCode: 200, Status: "200 OK", Request: req, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(`{"keys":[{"kty":"RSA","kid":"rsa","n":"!","e":"AQAB"}]}`))}
		}
		for range 2 {
			r.refused(token(t, nil), http.StatusServiceUnavailable)
			if err := r.s.Status()["corp"]; err == nil {
				t.Error("its status is good")
			}
		}
		r.set(func() { r.answer = nil })
		r.pass(retryEvery)
		r.accepted(token(t, nil))
	})
}

// Watch tries again every 10 s, at once for new issuers, and ends with its context.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(func() { r.down, r.fetched = true, map[string]int{} })
		s, err := New(Options{Issuers: []config.Issuer{corp()}, Transport: r, Now: r.clock})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Watch(ctx) }()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := r.fetches("/.well-known/openid-configuration"); n < 4 || n > 6 {
			t.Errorf("%d attempts in 35 s", n)
		}
		r.set(func() { r.down = false })
		time.Sleep(retryEvery)
		synctest.Wait()
		if _, _, err := s.Find(token(t, nil), start); err != nil {
			t.Error(err)
		}
		other := corp()
		other.Name, other.Issuer, other.PrincipalPrefix = "other", otherURL, "other/"
		if err := s.Reload([]config.Issuer{corp(), other}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.Status()["other"]; err != nil {
			t.Error(err)
		}
		cancel()
		<-done
	})
}

// What an issuer sends is limited, and where it sends us, too.
func TestDocuments(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string, header ...string) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			if !strings.HasSuffix(r.URL.Path, "openid-configuration") {
				return nil
			}
			h := http.Header{"Content-Type": {"application/json"}}
			for i := 0; i < len(header); i += 2 {
				h.Set(header[i], header[i+1])
			}
			return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h, Request: r,
				Body: io.NopCloser(bytes.NewReader([]byte(body)))}
		}
	}
	for name, c := range map[string]struct {
		answer func(*http.Request) *http.Response
		want   string
	}{
		"another issuer":       {answer(200, `{"issuer":"https://evil.example.com","jwks_uri":"https://evil.example.com/keys"}`), "did not match"},
		"no keys":              {answer(200, `{"issuer":"`+issuerURL+`"}`), "jwks_uri"},
		"keys in clear":        {answer(200, `{"issuer":"`+issuerURL+`","jwks_uri":"http://login.example.com/keys"}`), "not https"},
		"keys in a file":       {answer(200, `{"issuer":"`+issuerURL+`","jwks_uri":"file:///etc/passwd"}`), "jwks_uri"},
		"too large":            {answer(200, strings.Repeat(" ", maxDocument+1)), "larger than 1 MiB"},
		"no JSON":              {answer(200, strings.Repeat("x", 100_000)), "unmarshal"},
		"a long 500":           {answer(500, strings.Repeat("x", 100_000)), "…"},
		"500":                  {answer(500, "no"), "500"},
		"to another host":      {answer(302, "", "Location", "https://other.example.com/x"), "another host"},
		"to this machine":      {answer(302, "", "Location", "http://127.0.0.1/x"), "another host"},
		"to the host in clear": {answer(302, "", "Location", "http://login.example.com/x"), "another host"},
		"in a circle":          {answer(302, "", "Location", issuerURL+"/.well-known/openid-configuration"), "too many redirects"},
	} {
		r := newRig(t)
		r.answer = c.answer
		_, err := discover(t.Context(), issuerURL, r.s.client)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > maxCause+10 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Valid holds as long as the token, and as long as the issuer is what it was.
func TestValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		who := auth.Principal{Via: r.accepted(token(t, nil)).Via}
		check := func(valid, mine bool) {
			t.Helper()
			if v, m := r.s.Valid(who); v != valid || m != mine {
				t.Errorf("%s: %v %v", who.Via, v, m)
			}
		}
		check(true, true)
		reload := func(list ...config.Issuer) {
			t.Helper()
			if err := r.s.Reload(list); err != nil {
				t.Fatal(err)
			}
		}
		reload(corp())
		check(true, true)
		changed := corp()
		changed.Audience = []string{"https://elsewhere.example.com"}
		reload(changed)
		check(false, true)
		r.discover()
		r.refused(token(t, nil), http.StatusUnauthorized) // and it is not remembered as accepted
		reload()
		check(false, true)
		r.refused(token(t, nil), http.StatusUnauthorized)
		reload(corp())
		check(true, true)
		bad := corp()
		bad.Audience = nil
		if err := r.s.Reload([]config.Issuer{bad}); err == nil {
			t.Error("took an issuer without audience")
		}
		check(true, true)
		r.pass(time.Hour - time.Second)
		check(true, true)
		r.pass(time.Second)
		check(false, true)
		for _, via := range []string{"oidc:corp", "oidc:corp:x:9999999999", "oidc:", "oidc:corp:::", "oidc:corp:" + r.s.all[0].mark + ":x"} {
			who.Via = via
			check(false, true)
		}
		for _, via := range []string{"", "none", "token:x", "oauth:x"} {
			who.Via = via
			check(false, false)
		}
	})
}

// A restart asks for nothing: the next token brings the keys.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := r.accepted(token(t, nil))
	again, err := New(Options{Issuers: []config.Issuer{corp()}, Transport: r, Now: r.clock})
	if err != nil {
		t.Fatal(err)
	}
	if v, mine := again.Valid(auth.Principal{Via: f.Via}); !v || !mine {
		t.Error("not valid after a restart")
	}
	if _, _, err := again.Find(token(t, nil), start); err == nil {
		t.Error("accepted before it was discovered")
	}
	again.reach(t.Context(), again.all[0])
	if g, _, err := again.Find(token(t, nil), start); err != nil || g.Via != f.Via {
		t.Errorf("%+v %v", g, err)
	}
}

// jwks_uri needs no discovery.
func TestKeysWithoutDiscovery(t *testing.T) {
	t.Parallel()
	c := corp()
	c.JWKSURI = issuerURL + "/keys"
	r := newRig(t, c)
	r.accepted(token(t, nil))
	if n := r.fetches("/.well-known/openid-configuration"); n != 0 {
		t.Errorf("%d discoveries", n)
	}
}

func BenchmarkAccepted(b *testing.B) {
	r := newRig(b)
	text := token(b, map[string]any{"groups": []string{"devs", "ops"}})
	r.accepted(text)
	for b.Loop() {
		if _, _, err := r.s.Find(text, start); err != nil {
			b.Fatal(err)
		}
	}
}

// What a client has to ask for is named as its issuer names it.
func TestAsk(t *testing.T) {
	t.Parallel()
	mapped, closed := corp(), corp()
	mapped.Name, mapped.Issuer, mapped.PrincipalPrefix = "mapped", otherURL, "mapped/"
	mapped.Scopes.Map = map[string]string{"api.read": "mcp:read", "api.write": "mcp:write", "api.all": "mcp:all"}
	mapped.Scopes.Initial = []string{"api.read", "openid"}
	closed.Name, closed.Issuer, closed.PrincipalPrefix, closed.Scopes.StepUp = "closed", "https://c.example.com", "c/", false
	r := newRig(t, corp(), mapped, closed)
	at := func(i int) auth.Principal {
		return auth.Principal{Via: via + r.s.all[i].c.Name + ":" + r.s.all[i].mark + ":9999999999"}
	}
	for _, c := range []struct {
		who  auth.Principal
		want auth.Scopes
		ask  string
		mine bool
	}{
		{at(0), auth.Read | auth.Shell, "mcp:read mcp:shell", true},
		{at(1), auth.Read | auth.Write, "api.read api.write", true},
		{at(1), auth.Read | auth.Shell, "", true},
		{at(2), auth.Read, "", true},
		{auth.Principal{Via: via + "gone:x:9"}, auth.Read, "", true},
		{auth.Principal{Via: "oauth:x"}, auth.Read, "", false},
	} {
		if ask, mine := r.s.Ask(c.who, c.want); ask != c.ask || mine != c.mine {
			t.Errorf("%s: %q %v, want %q %v", c.who.Via, ask, mine, c.ask, c.mine)
		}
	}
	if got := r.s.Initial(); got != "api.read openid" {
		t.Errorf("initial %q", got)
	}
}
