package signin

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/state"
)

// With the real authorization server: a client registers, a person signs in and approves, the client has its tokens,
// and the person ends it.
func TestWholeWay(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	server, err := oauth.New(t.Context(), oauth.Options{Store: state.NewMemory(state.MemoryOptions{}), Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	s.pages.o.Asks = server
	both := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/signin") {
			s.pages.ServeHTTP(w, r)
			return
		}
		server.Handler(r.URL.Path).ServeHTTP(w, r)
	}))
	t.Cleanup(both.Close)
	s.url = both.URL
	client := s.browser() // keeps nothing that matters
	made := client.send("POST", "/oauth/register", "application/json", `{"client_name":"Whole App","redirect_uris":["http://127.0.0.1/cb"]}`)
	_, id, _ := strings.Cut(made.body, `"client_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	sum := sha256.Sum256([]byte(strings.Repeat("v", 50)))
	begun := "/oauth/authorize?" + url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {"http://127.0.0.1:5555/cb"},
		"scope": {"mcp:read mcp:write"}, "state": {"st"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}.Encode()

	b := s.browser()
	at := b.get(begun).header.Get("Location")
	ask := strings.TrimPrefix(at, "/signin/ask/")
	if ask == at {
		t.Fatalf("authorize leads to %q: %s", at, made.body)
	}
	stranger := s.browser()
	stranger.login("alice", planted)
	stranger.get(at).want(t, 403, "another browser")
	form := b.get(at).want(t, 200, "Whole App")
	b.post("/signin/login", form.token(), "ask", ask, "name", "alice", "password", planted).location(t, "./ask/"+ask)
	form = b.get(at).want(t, 200, "not verified")
	answer := b.post(at, form.token(), "decision", "approve", "access", "all", "root", "/srv/ws/one", "mode", "plan", "life", "24")
	to, err := url.Parse(answer.header.Get("Location"))
	if err != nil || to.Host != "127.0.0.1:5555" || to.Query().Get("state") != "st" || to.Query().Get("code") == "" {
		t.Fatalf("status %d to %v, %v: %s", answer.status, to, err, answer.body)
	}
	b.get(at).want(t, 200, "You allowed this.")
	tokens := client.send("POST", "/oauth/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"authorization_code"},
		"client_id": {id}, "code": {to.Query().Get("code")}, "redirect_uri": {"http://127.0.0.1:5555/cb"}, "code_verifier": {strings.Repeat("v", 50)}}.Encode())
	tokens.want(t, 200, "access_token")
	home := b.get("/signin/").want(t, 200, "Whole App").want(t, 200, "Nothing: it only plans").want(t, 200, "/srv/ws/one")
	_, grant, _ := strings.Cut(home.body, `name="grant" value="`)
	grant, _, _ = strings.Cut(grant, `"`)
	_, access, _ := strings.Cut(tokens.body, `"access_token":"`)
	access, _, _ = strings.Cut(access, `"`)
	if f, ok, err := server.Find(access, s.clock()); !ok || err != nil || f.ID != "alice" || *f.Values.MaxMode != "plan" {
		t.Errorf("found %+v, %t, %v", f, ok, err)
	}
	b.post("/signin/revoke", home.token(), "grant", grant).location(t, "./")
	b.get("/signin/").want(t, 200, "No client has access")
	if _, _, err := server.Find(access, s.clock()); err == nil {
		t.Error("the token is good after its grant has ended")
	}
	if people.Owner == "" || strings.Contains(s.everywhere(), access) {
		t.Error("the token is kept")
	}
}
