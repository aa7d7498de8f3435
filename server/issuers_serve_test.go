package server

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codehand/server/config"
	"codehand/server/replaytest"
)

// A provider is an identity provider on loopback.
type provider struct {
	t    *testing.T
	key  *rsa.PrivateKey
	url  string
	down atomic.Bool
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	p := &provider{t: t, key: key}
	site := httptest.NewServer(p)
	t.Cleanup(site.Close)
	p.url = site.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	encode := base64.RawURLEncoding.EncodeToString
	var doc any
	switch {
	case p.down.Load():
	case r.URL.Path == "/.well-known/openid-configuration":
		doc = map[string]any{"issuer": p.url, "jwks_uri": p.url + "/keys"}
	case r.URL.Path == "/keys":
		doc = map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig",
			"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes())}}}
	}
	if doc == nil {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc)
}

// token is one for alice that holds for an hour, but for change.
func (p *provider) token(change map[string]any) string {
	p.t.Helper()
	claims := map[string]any{"iss": p.url, "aud": "https://tools.example.com/mcp", "sub": "alice", "scope": "mcp:read mcp:write",
		"exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, change)
	body, err := json.Marshal(claims)
	must(p.t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	must(p.t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// file is a configuration with the provider, in a file.
func (p *provider) file(more string) string {
	name := filepath.Join(p.t.TempDir(), "config.toml")
	must(p.t, os.WriteFile(name, []byte("[[auth.oidc]]\nname = 'corp'\nissuer = '"+p.url+"'\n"+more), 0o600))
	return name
}

// reached waits until the issuer was reached so many times: serve does it in the background.
func (x *guardSite) reached(t *testing.T, name string, times int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), replaytest.HangAfter)
	defer stop()
	must(t, x.log.Await(ctx, `msg="reached the issuer" issuer=`+name+"\n", times))
}

// Tokens of an issuer and static ones are good side by side, and only challenges where people can sign in name OAuth.
func TestIssuerBesideTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	x := guarded(t, map[string]string{"auth.mode": "token+oidc", "http.public_url": "https://tools.example.com", "config": p.file(
		"[principals.'corp/mallory']\nenabled = false\n[principals.groups.readers]\nscopes = ['mcp:web']\n")}, token("bob"))
	x.reached(t, "corp", 1)
	const bare = `WWW-Authenticate: Bearer realm="codehand"`
	const meta = `, resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	const offer = bare + meta + `, scope="mcp:read mcp:write"`
	const badOffer = offer + `, error="invalid_token", error_description="token not accepted"`
	jwt := func(change map[string]any) string { return "Authorization: Bearer " + p.token(change) }
	bob := "Authorization: Bearer " + x.tokens["bob"]
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	modern := "\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: echo"
	x.run([]try{
		{name: "token of the issuer", head: jwt(nil), want: "200 ok"},
		{name: "static token", head: bob, want: "200 ok"},
		{name: "static token below /t", line: "POST /t/mcp", head: bob, want: "200 ok"},
		{name: "no token", want: "401 unauthenticated", has: offer},
		{name: "no token below /t", line: "POST /t/mcp", want: "401 unauthenticated", has: bare},
		{name: "token of the issuer below /t", line: "POST /t/mcp", head: jwt(nil), want: "401 invalid_token", has: bare + `, error="invalid_token"`},
		{name: "wrong token below /t", line: "POST /t/mcp", head: "Authorization: Bearer x", want: "401 invalid_token", has: bare + `, error="invalid_token"`},
		{name: "wrong token", head: "Authorization: Bearer x", want: "401 invalid_token", has: badOffer},
		{name: "another audience", head: jwt(map[string]any{"aud": "x"}), want: "401 invalid_token", has: badOffer},
		{name: "expired", head: jwt(map[string]any{"exp": 1}), want: "401 invalid_token", has: badOffer},
		{name: "a disabled principal", head: jwt(map[string]any{"sub": "mallory"}), want: "403 principal_disabled"},
		{name: "two headers", head: jwt(nil) + "\n" + jwt(nil), want: "401 invalid_token"},
		{name: "in the URL", line: "POST /mcp?access_token=" + p.token(nil), want: "400 token_in_query"},
		{name: "a call", head: jwt(map[string]any{"scope": "mcp:all"}) + modern, body: call, want: "200 ok"},
		{name: "a call without the scope", head: jwt(map[string]any{"scope": "mcp:web"}) + modern, body: call, want: "403 insufficient_scope",
			has: bare + `, error="insufficient_scope", scope="mcp:read mcp:write mcp:shell mcp:web"` + meta},
		{name: "a call that the operator allows nobody of the group", head: jwt(map[string]any{"scope": "mcp:all", "groups": "readers"}) + modern, body: call, want: "200 SCOPE_MISSING"},
	})
	x.metadata(t, p.url)
	// whatever was tried, no part of a token is in the log
	if text := x.log.String(); strings.Contains(text, p.token(nil)[:60]) {
		t.Error("a token is in the log")
	}
}

// metadata checks what clients find of the sign-in.
func (x *guardSite) metadata(t *testing.T, issuer string) {
	t.Helper()
	get := func(path string) (*http.Response, []byte) {
		return x.send(t, "GET", x.request(try{line: "GET " + path, body: "none"}, nil), false)
	}
	r, body := get("/.well-known/oauth-protected-resource/mcp")
	var doc struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	must(t, json.Unmarshal(body, &doc))
	if r.StatusCode != http.StatusOK || doc.Resource != "https://tools.example.com/mcp" || len(doc.Servers) != 1 || doc.Servers[0] != issuer ||
		strings.Contains(string(body), "offline_access") {
		t.Errorf("%d %s", r.StatusCode, body)
	}
	for _, path := range []string{"", "/t/mcp", "/x"} {
		if r, body := get("/.well-known/oauth-protected-resource" + path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth/authorize", "/oauth/token"} {
		if r, body := get(path); r.StatusCode != http.StatusNotFound && r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}
}

// An issuer that cannot be reached stops neither the start nor the others, and readiness tells of it.
func TestIssuerDownAtStart(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.down.Store(true)
	x := guarded(t, map[string]string{"auth.mode": "oidc", "http.public_url": "https://tools.example.com", "config": p.file("")})
	jwt := "Authorization: Bearer " + p.token(nil)
	x.run([]try{
		{name: "its token", head: jwt, want: "503 auth_unavailable", has: "Retry-After: 10"},
		{name: "ready", line: "GET /readyz", want: "503 text"},
		{name: "the paths of tokens", line: "POST /t/mcp", want: "404 not_found"},
	})
	_, body := x.send(t, "GET", x.request(try{line: "GET /readyz", body: "none"}, nil), false)
	if !strings.Contains(string(body), `"oidc:corp":"failed: `) && !strings.Contains(string(body), `"oidc:corp":"degraded: `) {
		t.Errorf("%s", body)
	}
}

// SIGHUP takes issuers away at once, with the streams that they opened.
func TestIssuersReload(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	x := guarded(t, map[string]string{"auth.mode": "token+oidc", "http.public_url": "https://tools.example.com", "config": p.file("")}, token("bob"))
	x.reached(t, "corp", 1)
	jwt := "Authorization: Bearer " + p.token(nil)
	x.run([]try{{name: "before", head: jwt, want: "200 ok"}})
	must(t, x.server.ReloadIssuers(nil))
	x.run([]try{{name: "gone", head: jwt, want: "401 invalid_token"}})
	if err := x.server.ReloadIssuers([]config.Issuer{{Name: "corp"}}); err == nil {
		t.Error("took an issuer without audience")
	}
	must(t, x.server.ReloadIssuers(x.server.cfg.Auth.Issuers))
	x.reached(t, "corp", 2)
	x.run([]try{{name: "back", head: jwt, want: "200 ok"}})
}
