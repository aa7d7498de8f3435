package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/replaytest"
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
	to, err := s.x.server.team.Signing.OAuth.Approve(t.Context(), id, d)
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
	who, err := x.server.team.Porter.Authenticate(&http.Request{Method: "POST", URL: &url.URL{Path: "/mcp"}, Host: x.at, Header: http.Header{"Authorization": {"Bearer " + access}}})
	must(t, err)
	if len(who.Roots) != 1 || who.Roots[0] != x.server.cfg.Roots[0] || who.ID != people.Owner {
		t.Errorf("the owner is %+v", who)
	}
	must(t, x.server.team.Signing.OAuth.RevokeGrant(t.Context(), strings.TrimPrefix(who.Via, "oauth:")))
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

// What a revoked access token opened ends at once: its stream, and the session in which it was used last. Another token
// of the same grant goes on.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"auth.mode": "owner"})
	s := &signer{t: t, x: x}
	first, refresh := s.in(auth.Read)
	got := s.post("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {s.client}, "refresh_token": {refresh}}) // as claude.ai does
	second, _ := got["body"].(map[string]any)["access_token"].(string)
	hello := func(access string) string {
		t.Helper()
		r, body := x.send(t, "POST", x.request(try{}, []string{"Authorization: Bearer " + access}), false)
		id := r.Header.Get("Mcp-Session-Id")
		if id == "" {
			t.Fatalf("initialize: %s %s", r.Status, body)
		}
		return id
	}
	mine, other := hello(first), hello(second)
	ended := func(path, access, session string) <-chan struct{} {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+x.at+path, nil)
		must(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + access}, "Accept": {"text/event-stream"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		open, err := http.DefaultClient.Do(r)
		must(t, err)
		if open.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, open.Status)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer open.Body.Close()
			_, _ = io.Copy(io.Discard, open.Body)
		}()
		return done
	}
	over := map[string]<-chan struct{}{"SSE": ended("/sse", first, ""), "the stream of a session": ended("/mcp", first, mine)}
	stays := ended("/mcp", second, other)
	if got := s.post("/oauth/revoke", url.Values{"client_id": {s.client}, "token": {first}}); got["status"] != 200 {
		t.Fatal(got)
	}
	for what, done := range over {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Errorf("%s outlives its token", what)
		}
	}
	// The audit says when the session has ended: a request with the other token would take it over before.
	replaytest.Until(t, "the session of the token ends", func() bool {
		files, err := filepath.Glob(filepath.Join(x.data, "audit", "*.jsonl"))
		must(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			must(t, err)
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, `"ev":"session.end"`) && strings.Contains(line, mine) {
					return true
				}
			}
		}
		return false
	})
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	head := func(session string) string {
		return "Authorization: Bearer " + second + "\nMcp-Session-Id: " + session
	}
	x.run([]try{{name: "the session of the token", head: head(mine), body: ping, want: "404 not_found"}})
	select {
	case <-stays:
		t.Error("the stream of another token has ended")
	default:
	}
	x.run([]try{{name: "the other session", head: head(other), body: ping, want: "200 ok"}})
	http.DefaultClient.CloseIdleConnections()
}

// A call that needs a scope which the person did not approve is answered as clients understand it, under each name of
// the tool and in each era; what lists do not show can be called all the same. Where no header reaches the client, in a
// call through another tool, the model learns what to tell the user.
func TestStepUp(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"auth.mode": "owner"}, token("robot"))
	s := &signer{t: t, x: x}
	reading, _ := s.in(auth.Read)
	meta := `resource_metadata="http://` + x.at + `/.well-known/oauth-protected-resource/mcp"`
	challenge := `WWW-Authenticate: Bearer realm="codehand", error="insufficient_scope", scope="mcp:read mcp:write mcp:shell mcp:web", ` + meta
	call := func(name string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + name + `","arguments":{"text":"x"}}}`
	}
	bearer := "Authorization: Bearer " + reading
	r, body := x.send(t, "POST", x.request(try{}, []string{bearer}), false)
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("initialize: %s %s", r.Status, body)
	}
	session := bearer + "\nMcp-Session-Id: " + id
	x.run([]try{
		{name: "without a session", head: bearer, body: call("echo"), want: "403 insufficient_scope", has: challenge},
		{name: "in a session", head: session, body: call("echo"), want: "403 insufficient_scope", has: challenge},
		{name: "2026-07-28", head: bearer + "\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: echo", body: call("echo"), want: "403 insufficient_scope", has: challenge},
		{name: "nobody", head: "-Authorization", body: call("echo"), want: "401 unauthenticated",
			has: `WWW-Authenticate: Bearer realm="codehand", ` + meta + `, scope="mcp:read mcp:write mcp:shell mcp:web"`}, // without an error: nothing was shown
	})
}
