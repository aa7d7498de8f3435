package upstream

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// An authority is an authorization server with an MCP server that wants its tokens. Its tokens are good for one hour,
// and a refresh token works once.
type authority struct {
	*httptest.Server
	mu        sync.Mutex
	challenge string
	good      string // the access token that counts
	refresh   string
	expires   int
	noRegs    bool
	asked     []string // grants that were asked for
}

func newAuthority(t *testing.T) *authority {
	a := &authority{expires: 3600}
	s := mcpserver.NewMCPServer("guarded", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("hello"), nil
	})
	guarded := mcpserver.NewStreamableHTTPServer(s)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		ok := a.good != "" && r.Header.Get("Authorization") == "Bearer "+a.good
		a.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/elsewhere/prm"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		guarded.ServeHTTP(w, r)
	})
	show := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/elsewhere/prm", func(w http.ResponseWriter, _ *http.Request) {
		show(w, map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		meta := map[string]any{"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}}
		if !a.noRegs {
			meta["registration_endpoint"] = a.URL + "/register"
		}
		show(w, meta)
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		show(w, map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		kind := r.FormValue("grant_type")
		a.asked = append(a.asked, kind)
		user, secret, _ := r.BasicAuth()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		ok := r.FormValue("resource") == a.URL+"/mcp"
		switch kind {
		case "authorization_code":
			ok = ok && r.FormValue("code") == "the-code" && base64.RawURLEncoding.EncodeToString(sum[:]) == a.challenge
		case "refresh_token":
			ok = ok && r.FormValue("refresh_token") == a.refresh
		case "client_credentials":
			ok = ok && user == "me" && secret == "s3cret"
		default:
			ok = false
		}
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			show(w, map[string]any{"error": "invalid_grant", "error_description": "you sent s3cret"})
			return
		}
		a.good, a.refresh = rand.Text(), rand.Text()
		show(w, map[string]any{"access_token": a.good, "token_type": "bearer", "expires_in": a.expires, "refresh_token": a.refresh})
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// visit does what a browser does with the address that a person opens.
func (a *authority) visit(t *testing.T, address, more string) {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, a.URL+"/authorize?") {
		t.Errorf("the address %q: %v", address, err)
		return
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("resource") != a.URL+"/mcp" || q.Get("scope") != "read write" {
		t.Errorf("asked for %v", q)
	}
	a.mu.Lock()
	a.challenge = q.Get("code_challenge")
	a.mu.Unlock()
	for _, answer := range []string{"code=another&state=forged", more + "&state=" + url.QueryEscape(q.Get("state"))} {
		resp, err := http.Get(q.Get("redirect_uri") + "?" + answer)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
	}
}

func dialed(t *testing.T, g Grant) error {
	c, err := Dial(t.Context(), Options{URL: g.URL, Only: true, HTTP: g.Transport()})
	if err != nil {
		return err
	}
	defer c.Close()
	a, err := c.Call(t.Context(), "echo", json.RawMessage(`{}`), nil)
	if err == nil && (len(a.Blocks) != 1 || a.Blocks[0].Text != "hello") {
		err = fmt.Errorf("got %+v", a)
	}
	return err
}

// A person signs in once: the server is described by what it says itself, this program is registered, the token is kept
// in a file that nobody else reads, and made new when it is too old. Nothing is sent to another address.
func TestSignIn(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "configured"} {
		a := newAuthority(t)
		a.noRegs = id != ""
		g := Grant{URL: a.URL + "/mcp", ID: id, Scopes: []string{"read", "write"}, Store: filepath.Join(t.TempDir(), "tokens", "a.json")}
		if err := dialed(t, g); !errors.Is(err, ErrUnauthorized) || Signed(g.Store, g.URL) {
			t.Fatalf("without a token: %v", err)
		}
		var visits sync.WaitGroup
		show := func(more string) func(string) {
			return func(address string) { visits.Go(func() { a.visit(t, address, more) }) }
		}
		if err := g.SignIn(t.Context(), show("error=access_denied")); err == nil || !strings.Contains(err.Error(), "access_denied") || Signed(g.Store, g.URL) {
			t.Errorf("refused: %v", err)
		}
		if err := g.SignIn(t.Context(), show("code=the-code")); err != nil {
			t.Fatal(err)
		}
		visits.Wait()
		if info, err := os.Stat(g.Store); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		if err := dialed(t, g); err != nil {
			t.Fatal(err)
		}
		// The same file for a server at another address is no token.
		other := g
		other.URL += "/"
		if err := dialed(t, other); !errors.Is(err, ErrUnauthorized) || Signed(g.Store, other.URL) {
			t.Errorf("another address: %v", err)
		}
		// One that is too old is made new, also by a process that has just started.
		kept, err := readSigned(g.Store)
		if err != nil {
			t.Fatal(err)
		}
		kept.Token.ExpiresAt = kept.Token.ExpiresAt.AddDate(-1, 0, 0)
		raw, _ := json.Marshal(kept)
		if err := os.WriteFile(g.Store, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		locked := 0
		g.Lock = func(context.Context, string) (func(), error) { locked++; return func() {}, nil }
		if err := dialed(t, g); err != nil || locked < 1 || strings.Join(a.asked, " ") != "authorization_code refresh_token" {
			t.Errorf("%v, locked %d times, %v", err, locked, a.asked)
		}
		if again, err := readSigned(g.Store); err != nil || again.Token.AccessToken != a.good || again.ID != kept.ID {
			t.Errorf("%+v %v", again, err)
		}
		// A token that the server takes back is made new, too, once at the most; where that fails there is none.
		a.mu.Lock()
		a.good = "another"
		a.mu.Unlock()
		if err := dialed(t, g); err != nil {
			t.Errorf("made new: %v", err)
		}
		a.mu.Lock()
		a.good, a.refresh = "another", ""
		a.mu.Unlock()
		if err := dialed(t, g); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("taken back: %v", err)
		}
	}
}

// Where a program cannot be registered, the person learns what is needed; a sign-in that nobody ends ends with its time.
func TestSignInFails(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.noRegs = true
	g := Grant{URL: a.URL + "/mcp", Store: filepath.Join(t.TempDir(), "a.json")}
	if err := g.SignIn(t.Context(), func(string) {}); err == nil || !strings.Contains(err.Error(), "oauth_client_id") {
		t.Error(err)
	}
	g.ID = "x"
	ctx, cancel := context.WithCancel(t.Context())
	if err := g.SignIn(ctx, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Tokens of the client itself are had with its secret, which no error repeats, and again when they are too old.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	g := Grant{URL: a.URL + "/mcp", ID: "me", Secret: "s3cret", Client: true}
	if err := dialed(t, g); err != nil || len(a.asked) != 1 {
		t.Errorf("%v %v", err, a.asked)
	}
	a.expires = 1
	a.asked = nil
	if err := dialed(t, g); err != nil || len(a.asked) < 2 {
		t.Errorf("%v %v", err, a.asked)
	}
	g.Secret = "wrong"
	if err := dialed(t, g); !errors.Is(err, ErrUnauthorized) || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "invalid_grant") {
		t.Error(err)
	}
}
