package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/people"
)

// A signer is a client of a site that signs in.
type signer struct {
	t      *testing.T
	x      *guardSite
	client string
	grant  oauth.Decision
}

const signVerifier = "verifier-verifier-verifier-verifier-verifier"

func (s *signer) post(path string, v url.Values) map[string]any {
	s.t.Helper()
	r, err := http.PostForm("http://"+s.x.at+path, v)
	must(s.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	must(s.t, err)
	var out map[string]any
	if len(body) > 0 {
		must(s.t, json.Unmarshal(body, &out))
	}
	out = map[string]any{"status": r.StatusCode, "body": out}
	return out
}

// in signs in with scopes and returns the tokens.
func (s *signer) in(scopes auth.Scopes) (access, refresh string) {
	s.t.Helper()
	t := s.t
	if s.client == "" {
		r, err := http.Post("http://"+s.x.at+"/oauth/register", "application/json", strings.NewReader(`{"client_name":"Probe","redirect_uris":["http://127.0.0.1/cb"]}`))
		must(t, err)
		defer r.Body.Close()
		var made struct {
			ID string `json:"client_id"`
		}
		must(t, json.NewDecoder(r.Body).Decode(&made))
		s.client = made.ID
	}
	sum := sha256.Sum256([]byte(signVerifier))
	ask := url.Values{"client_id": {s.client}, "redirect_uri": {"http://127.0.0.1:9/cb"}, "response_type": {"code"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "resource": {"http://" + s.x.at + "/mcp"}}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := stay.Get("http://" + s.x.at + "/oauth/authorize?" + ask.Encode())
	must(t, err)
	_ = r.Body.Close()
	id, ok := strings.CutPrefix(r.Header.Get("Location"), "/signin/ask/")
	if !ok {
		t.Fatalf("authorize: %d %s", r.StatusCode, r.Header.Get("Location"))
	}
	d := s.grant
	d.Principal, d.Scopes, d.Life = people.Owner, scopes, oauth.DefaultLife
	to, err := s.x.server.team.signing.oauth.Approve(t.Context(), id, d)
	must(t, err)
	u, err := url.Parse(to)
	must(t, err)
	got := s.post("/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {s.client}, "code": {u.Query().Get("code")}, "code_verifier": {signVerifier}})
	body, _ := got["body"].(map[string]any)
	if got["status"] != 200 {
		t.Fatalf("token: %v", got)
	}
	return body["access_token"].(string), body["refresh_token"].(string)
}

// A client that signed in calls tools in the owner's directory until its grant is revoked; then its streams end, too.
func TestSignedIn(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"auth.mode": "owner"}, token("robot"))
	s := &signer{t: t, x: x}
	access, _ := s.in(auth.Read | auth.Write | auth.Shell | auth.Web)
	meta := `resource_metadata="http://` + x.at + `/.well-known/oauth-protected-resource/mcp"`
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`
	bearer := "Authorization: Bearer " + access
	x.run([]try{
		{name: "signed in", head: bearer, want: "200 ok"},
		{name: "a static token beside it", head: "Authorization: Bearer " + x.tokens["robot"], want: "200 ok"},
		{name: "nobody", head: "-Authorization", want: "401 unauthenticated", has: `WWW-Authenticate: Bearer realm="codehand", ` + meta + `, scope="mcp:read mcp:write mcp:shell mcp:web"`},
		{name: "wrong", head: bearer + "x", want: "401 invalid_token"},
		{name: "in the URL", line: "POST /mcp?access_token=" + access, want: "400 token_in_query"},
		{name: "tokens only", line: "POST /t/mcp", head: bearer, want: "401 invalid_token", has: `WWW-Authenticate: Bearer realm="codehand", error="invalid_token"`},
		{name: "tokens only, static", line: "POST /t/mcp", head: "Authorization: Bearer " + x.tokens["robot"], want: "200 ok"},
	})
	reading, _ := s.in(auth.Read)
	x.run([]try{{name: "a call that was not approved", head: "Authorization: Bearer " + reading, body: call, want: "403 insufficient_scope",
		has: `WWW-Authenticate: Bearer realm="codehand", error="insufficient_scope", scope="mcp:read mcp:write mcp:shell mcp:web", ` + meta}})

	stream, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+x.at+"/sse", nil)
	must(t, err)
	stream.Header.Set("Authorization", "Bearer "+access)
	open, err := http.DefaultClient.Do(stream)
	must(t, err)
	defer open.Body.Close()
	who, err := x.server.team.porter.Authenticate(&http.Request{Method: "POST", URL: &url.URL{Path: "/mcp"}, Host: x.at, Header: http.Header{"Authorization": {"Bearer " + access}}})
	must(t, err)
	if len(who.Roots) != 1 || who.Roots[0] != x.server.cfg.Roots[0] || who.ID != people.Owner {
		t.Errorf("the owner is %+v", who)
	}
	must(t, x.server.team.signing.oauth.RevokeGrant(t.Context(), strings.TrimPrefix(who.Via, "oauth:")))
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, open.Body)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("a stream outlives its grant")
	}
	x.run([]try{{name: "revoked", head: bearer, want: "401 invalid_token"}})
	if text := x.log.String(); strings.Contains(text, access) || strings.Contains(text, signVerifier) {
		t.Error("the log has a secret")
	}
	http.DefaultClient.CloseIdleConnections()
}
