package auth

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/auth/limits"
)

// failuresBefore is how many failures an address has before it must wait, which is a promise to people.
const failuresBefore = 30

// A clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.Now()} }

// porter is one of mode token.
func porter(t *testing.T, f *TokenFile, change func(*Options)) *Porter {
	t.Helper()
	o := Options{Mode: "token", TokenFile: f.path, Workspaces: t.TempDir()}
	if change != nil {
		change(&o)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask is a request with a token, or with no header if it is "".
func ask(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// refused is the *Error of a request; nil: it was let in.
func refused(t *testing.T, p *Porter, r *http.Request) *Error {
	t.Helper()
	who, err := p.Authenticate(r)
	if len(r.Header.Values("Authorization")) > 0 {
		t.Error("the header is still there")
	}
	if err == nil {
		if who.ID == "" {
			t.Error("somebody without ID is let in")
		}
		return nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%v is no *Error", err)
	}
	if who.ID != "" || who.Scopes != 0 {
		t.Errorf("refused, and yet %+v", who)
	}
	return e
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	made, good := f.add(t, Token{Principal: "Ann", Values: Values{Scopes: []string{"mcp:read"}}})
	p := porter(t, f, func(o *Options) { o.Named = map[string]Values{"Ann": {Mode: new("plan")}} })
	who, err := p.Authenticate(ask(good))
	if err != nil {
		t.Fatal(err)
	}
	if who.ID != "Ann" || who.Slug != Slug("Ann") || who.Mode != "plan" || who.Scopes != Read || who.Via != "token:"+made.ID || who.Quota != limits.Resolve(nil) ||
		!slices.Equal(who.Roots, []string{filepath.Join(p.o.Workspaces, who.Slug)}) {
		t.Errorf("got %+v", who)
	}
	who.Roots[0] = "/"
	if again, err := p.Authenticate(ask(good)); err != nil || again.Roots[0] == "/" {
		t.Errorf("the roots can be changed from outside: %v (%v)", again.Roots, err)
	}
}

// Each refusal has the status, code and challenge of the documentation, and repeats nothing of the request.
func TestAuthenticateRefuses(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	at := newClock()
	_, good := f.add(t, Token{Principal: "ann"})
	_, other := f.add(t, Token{Principal: "bob"})
	_, off := f.add(t, Token{Principal: "off"})
	expired, old := f.add(t, Token{Principal: "ann", Expires: at.now()})
	revoked, gone := f.add(t, Token{Principal: "ann", Revoked: at.now()})
	p := porter(t, f, func(o *Options) {
		o.Now = at.now
		o.Named = map[string]Values{"off": {Enabled: new(false)}}
	})
	const realm, bad = `Bearer realm="codehand"`, `Bearer realm="codehand", error="invalid_token"`
	with := func(headers ...string) *http.Request {
		r := ask("")
		r.Header["Authorization"] = headers
		return r
	}
	query := func(query, token string) *http.Request {
		r := ask(token)
		r.URL.RawQuery = query
		return r
	}
	swapped := good[:len(good)-43] + other[len(other)-43:] // ann's id, bob's secret
	for name, c := range map[string]struct {
		r         *http.Request
		status    int
		code      string
		challenge string
		reason    string
	}{
		"none":          {ask(""), 401, "unauthenticated", realm, ""},
		"empty":         {with(""), 401, "unauthenticated", realm, ""},
		"other scheme":  {with("Basic " + good), 401, "unauthenticated", realm, ""},
		"no token":      {with("Bearer"), 401, "invalid_token", bad, "not one Bearer token"},
		"two headers":   {with("Bearer "+good, "Bearer "+good), 401, "invalid_token", bad, "not one Bearer token"},
		"two tokens":    {with("Bearer " + good + " " + good), 401, "invalid_token", bad, "not one Bearer token"},
		"not ours":      {ask("eyJhbGciOiJub25lIn0.e30."), 401, "invalid_token", bad, "unknown token"},
		"unknown id":    {ask("chd_aaaaaaaaaa_" + good[len(good)-43:]), 401, "invalid_token", bad, "unknown token"},
		"wrong secret":  {ask(swapped), 401, "invalid_token", bad, "unknown token"},
		"last byte":     {ask(good[:len(good)-1] + "."), 401, "invalid_token", bad, "unknown token"},
		"expired":       {ask(old), 401, "invalid_token", bad, "token " + expired.ID + " expired"},
		"revoked":       {ask(gone), 401, "invalid_token", bad, "token " + revoked.ID + " revoked"},
		"query":         {query("access_token="+good, ""), 400, "token_in_query", "", ""},
		"query, header": {query("a=b&token=x", good), 400, "token_in_query", "", ""},
		"disabled":      {ask(off), 403, "principal_disabled", "", "token " + off[4:14]},
	} {
		e := refused(t, p, c.r)
		if e == nil {
			t.Errorf("%s: is let in", name)
			continue
		}
		if e.Status != c.status || e.Code != c.code || e.Challenge != c.challenge || e.Reason != c.reason || e.RetryAfter != 0 {
			t.Errorf("%s: got %+v", name, *e)
		}
		for _, secret := range []string{good, other, off, old, gone} {
			if strings.Contains(fmt.Sprintf("%+v", *e), secret[15:]) {
				t.Errorf("%s: the error repeats a secret: %+v", name, *e)
			}
		}
	}
	// Unknown, expired, revoked: a client cannot tell them apart.
	a, b, c := refused(t, p, ask(old)), refused(t, p, ask(gone)), refused(t, p, ask(swapped))
	a.Reason, b.Reason, c.Reason = "", "", ""
	if *a != *b || *b != *c {
		t.Errorf("expired %+v, revoked %+v, unknown %+v", *a, *b, *c)
	}
	if e := refused(t, p, ask(good)); e != nil {
		t.Errorf("a good token is refused: %+v", *e)
	}
}

// One client with a wrong token behind a proxy, or in an office with one address, must not lock out the others there.
func TestTooManyFailures(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	at := newClock()
	_, good := f.add(t, Token{Principal: "ann"})
	_, off := f.add(t, Token{Principal: "off"})
	revoked, gone := f.add(t, Token{Principal: "ann", Revoked: at.now()})
	var log bytes.Buffer
	p := porter(t, f, func(o *Options) {
		o.Now = at.now
		o.Named = map[string]Values{"off": {Enabled: new(false)}}
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	})
	from := func(remote, forwarded, token string) *http.Request {
		r := ask(token)
		r.RemoteAddr = remote
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		return r
	}
	for range 2 * failuresBefore { // who asks without credentials guesses nothing
		if e := refused(t, p, from("192.0.2.1:1", "", "")); e == nil || e.Status != 401 {
			t.Fatalf("got %+v", e)
		}
	}
	for i := range failuresBefore {
		for _, r := range []*http.Request{from(fmt.Sprintf("192.0.2.1:%d", i+1), fmt.Sprintf("1.1.1.%d", i), "wrong"), from("10.0.0.1:1", "192.0.2.9", "wrong")} {
			if e := refused(t, p, r); e == nil || e.Code != "invalid_token" {
				t.Fatalf("failure %d: got %+v", i, e)
			}
		}
	}
	inQuery := from("192.0.2.1:9", "", good)
	inQuery.URL.RawQuery = "token=" + good
	for name, r := range map[string]*http.Request{
		"wrong again": from("192.0.2.1:9", "", "wrong"), "none": from("192.0.2.1:9", "", ""), "by proxy": from("10.0.0.1:1", "192.0.2.9", "wrong"),
		"revoked " + revoked.ID: from("192.0.2.1:9", "", gone), "disabled": from("192.0.2.1:9", "", off), "in the URL": inQuery,
	} {
		if e := refused(t, p, r); e == nil || e.Status != 429 || e.Code != "too_many_failures" || e.RetryAfter != time.Minute || e.Challenge != "" {
			t.Errorf("%s: got %+v", name, e)
		}
	}
	for name, r := range map[string]*http.Request{"right": from("192.0.2.1:9", "", good), "right, by proxy": from("10.0.0.1:1", "192.0.2.9", good)} {
		if e := refused(t, p, r); e != nil {
			t.Errorf("%s: a valid token is locked out: %+v", name, *e)
		}
	}
	for _, line := range []string{"ip=192.0.2.1\n", "ip=192.0.2.9\n"} {
		if n := strings.Count(log.String(), "too many wrong tokens from one address"); n != 2 || strings.Count(log.String(), line) != 1+strings.Count(log.String(), "X-Forwarded-For from "+line[3:len(line)-1]+" ") {
			t.Errorf("%d lines of lockouts, want one for each of two addresses:\n%s", n, log.String())
		}
	}
	for name, r := range map[string]*http.Request{"another address": from("192.0.2.2:1", "", good), "the proxy": from("10.0.0.1:1", "", good), "another client": from("10.0.0.1:1", "192.0.2.8", good)} {
		if e := refused(t, p, r); e != nil {
			t.Errorf("%s: got %+v", name, *e)
		}
	}
	at.move(time.Minute)
	if e := refused(t, p, from("192.0.2.1:9", "", good)); e != nil {
		t.Errorf("a minute later: got %+v", *e)
	}
}

// A proxy that nobody named makes all its clients one address: the log says so once, and what to do.
func TestForwardedByStranger(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, good := f.add(t, Token{Principal: "ann"})
	var log bytes.Buffer
	p := porter(t, f, func(o *Options) {
		o.Trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	for i := range 300 {
		for _, remote := range []string{"192.0.2.2:1", "10.0.0.1:1", fmt.Sprintf("198.51.%d.1:1", i)} {
			r := ask(good)
			r.RemoteAddr = remote
			if i > 0 || remote != "192.0.2.2:1" { // the first one has no header
				r.Header.Set("X-Forwarded-For", "203.0.113.5")
			}
			if e := refused(t, p, r); e != nil {
				t.Fatalf("%s: %+v", remote, *e)
			}
		}
		if i == 0 && strings.Contains(log.String(), "192.0.2.2") {
			t.Errorf("without the header: %s", log.String())
		}
	}
	said := log.String()
	if strings.Count(said, `X-Forwarded-For from 192.0.2.2 is ignored: if that is your proxy, add it to http.trusted_proxies`) != 1 {
		t.Errorf("the log does not say once that 192.0.2.2 is no trusted proxy:\n%.2000s", said)
	}
	if strings.Contains(said, "10.0.0.1") || strings.Count(said, "is ignored") != maxIgnored {
		t.Errorf("%d lines; the trusted proxy among them: %v", strings.Count(said, "is ignored"), strings.Contains(said, "10.0.0.1"))
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	onUnix(t)
	broken := tokenFile(t)
	broken.write(t, full+"\n{}\n")
	good := tokenFile(t)
	for want, o := range map[string]Options{
		`auth.mode: unknown mode "front"`:                {Mode: "front"},
		`auth.mode: "owner+team" is no mode`:             {Mode: "owner+team"},
		`auth.mode: "none+token" is no mode`:             {Mode: "none+token"},
		`auth.mode: unknown mode "token+token"`:          {Mode: "token+token"},
		`auth.mode: unknown mode ""`:                     {},
		`auth.local_peer: unknown value "all"`:           {Mode: "none", LocalPeer: "all"},
		`the tokens file, tokens.jsonl, must be`:         {Mode: "token", TokenFile: "tokens.jsonl"},
		`the directory of workspaces, ws, must be`:       {Mode: "token", TokenFile: good.path, Workspaces: "ws"},
		broken.path + ":2: field":                        {Mode: "token", TokenFile: broken.path},
		`principals.default: mode: unknown mode "x"`:     {Mode: "token", TokenFile: good.path, Default: Values{Mode: new("x")}},
		`principals."corp/1": scopes: unknown scope "x"`: {Mode: "token", TokenFile: good.path, Named: map[string]Values{"a": {}, "corp/1": {Scopes: []string{"x"}}}},
		`principals."": the principal has no name`:       {Mode: "token", TokenFile: good.path, Named: map[string]Values{"": {}}},
	} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann"})
	p := porter(t, f, nil)
	who, err := p.Authenticate(ask(text))
	if err != nil || !p.Valid(who) {
		t.Fatal(err)
	}
	if err := p.Configure(Values{Mode: new("x")}, nil, nil); err == nil || !p.Valid(who) {
		t.Errorf("a wrong configuration changes something (%v)", err)
	}
	if err := p.Configure(Values{Quota: map[string]string{"burst": "1"}}, nil, nil); err != nil || !p.Valid(who) {
		t.Errorf("a new quota ends what is open (%v)", err)
	}
	if err := p.Configure(Values{}, map[string]Values{"ann": {Mode: new("plan")}}, nil); err != nil || p.Valid(who) {
		t.Errorf("less rights leave what is open (%v)", err)
	}
	if again, err := p.Authenticate(ask(text)); err != nil || again.Mode != "plan" || again.Quota.Burst != 100 || !p.Valid(again) {
		t.Errorf("got %+v (%v)", again, err)
	}
	if err := p.Configure(Values{Enabled: new(false)}, nil, nil); err != nil || p.Valid(who) {
		t.Errorf("disabled, and still valid (%v)", err)
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	at := newClock()
	made, text := f.add(t, Token{Principal: "ann", Expires: at.now().Add(time.Hour)})
	p := porter(t, f, func(o *Options) { o.Now = at.now })
	who, err := p.Authenticate(ask(text))
	if err != nil || !p.Valid(who) {
		t.Fatalf("%v", err)
	}
	for name, change := range map[string]func(*Principal){
		"nobody": func(p *Principal) { *p = Principal{} }, "via none": func(p *Principal) { p.Via = "none" }, "another token": func(p *Principal) { p.Via = "token:aaaaaaaaaa" },
		"more scopes": func(p *Principal) { p.Scopes |= AdminConsole }, "another one": func(p *Principal) { p.ID = "bob" }, "no prefix": func(p *Principal) { p.Via = made.ID },
	} {
		other := who.clone()
		if change(&other); p.Valid(other) {
			t.Errorf("%s is valid", name)
		}
	}
	at.move(time.Hour)
	if p.Valid(who) {
		t.Error("expired, and still valid")
	}
	at.move(-time.Minute)
	if !p.Valid(who) {
		t.Error("not valid before its end")
	}
	if _, err := f.Revoke(func(Token) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if err := p.Reload(); err != nil || p.Valid(who) {
		t.Errorf("revoked, and still valid (%v)", err)
	}
	if e := refused(t, p, ask(text)); e == nil || e.Code != "invalid_token" {
		t.Errorf("revoked, and let in: %+v", e)
	}
}

func TestModeNoneAny(t *testing.T) {
	t.Parallel()
	local := Principal{ID: "local", Roots: []string{"/w"}, Admin: true, Scopes: everything, Quota: limits.Quota{Burst: 7}}
	p, err := New(Options{Mode: "none", LocalPeer: "any", Local: local})
	if err != nil {
		t.Fatal(err)
	}
	r := ask("whatever")
	who, err := p.Authenticate(r)
	if err != nil || who.ID != "local" || who.Slug != "local" || who.Via != "none" || !who.Admin || who.Quota.Burst != 7 || !p.Valid(who) {
		t.Errorf("got %+v (%v)", who, err)
	}
	if r.Header.Get("Authorization") != "" {
		t.Error("the header is still there")
	}
	r = ask("")
	r.URL.RawQuery = "token=x"
	if e := refused(t, p, r); e == nil || e.Status != 400 || e.Code != "token_in_query" {
		t.Errorf("got %+v", e)
	}
	if p.Valid(Principal{ID: "local"}) || len(p.lastUse()) != 0 || p.Reload() != nil {
		t.Error("mode none has tokens, or lets in who was not authenticated")
	}
}

// No secret and no header gets into the log, whatever goes wrong.
func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann"})
	var log bytes.Buffer
	p := porter(t, f, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	for _, r := range []*http.Request{ask(text), ask(text + "x"), ask(text[:20])} {
		if _, err := p.Authenticate(r); err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, err), text[15:20]) {
			t.Errorf("%+v", err)
		}
	}
	f.write(t, f.read(t)+"{broken "+text+"\n")
	p.look()
	if !strings.Contains(log.String(), ":2: ") || strings.Contains(log.String(), text[15:]) {
		t.Errorf("the log says\n%s", log.String())
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	f := OpenTokenFile(filepath.Join(b.TempDir(), "tokens.jsonl"))
	_, good, err := f.New(Token{Principal: "ann"})
	if err != nil {
		b.Fatal(err)
	}
	p, err := New(Options{Mode: "token", TokenFile: f.path, Workspaces: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"known": good, "wrong": good[:58-43] + strings.Repeat("a", 43), "unknown": "chd_aaaaaaaaaa_" + strings.Repeat("a", 43)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = p.find(text, time.Time{})
			}
		})
	}
}
