package engines

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"codehand/server/config"
)

// Tokens go with the requests of the principal whose they are, and of nobody else.
func TestTokensOfPrincipals(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	e := &Set{Dir: t.TempDir()}
	m := config.Mount{Name: "web", At: config.MountAddress{URL: server.URL, OAuth: "login"}}
	keep := func(principal, token string) {
		g, err := Grant(m, e.Dir, principal)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(g.Store), 0o700)
		}
		if err == nil {
			err = os.WriteFile(g.Store, fmt.Appendf(nil, `{"url":%q,"client_id":"x","token":{"access_token":%q}}`, m.At.URL, token), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep("", "of-local")
	keep("alice", "of-alice")
	for principal, want := range map[string]string{"": "Bearer of-local", "local": "Bearer of-local", "alice": "Bearer of-alice", "bob": "none", "../alice": "none"} {
		through, err := signed(e, m, principal)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if through != nil {
			resp, err := (&http.Client{Transport: through}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got = string(raw)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", principal, got, want)
		}
	}
}
