package issuer

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"codehand/server/auth"
)

// BenchmarkAuthenticate compares what a request costs with a static token and with one of an issuer that was accepted
// before, with everything that the porter does about either.
func BenchmarkAuthenticate(b *testing.B) {
	r := newRig(b)
	theirs := token(b, map[string]any{"groups": []string{"devs", "ops"}})
	name := filepath.Join(b.TempDir(), "tokens.jsonl")
	_, ours, err := auth.OpenTokenFile(name).New(auth.Token{Principal: "alice"})
	if err != nil {
		b.Fatal(err)
	}
	p, err := auth.New(auth.Options{Mode: "token+oidc", TokenFile: name, Workspaces: b.TempDir(), Now: r.clock,
		Sources: []auth.Source{r.s}, Groups: []auth.Group{{Name: "devs", Values: auth.Values{Scopes: []string{"mcp:read"}}}}})
	if err != nil {
		b.Fatal(err)
	}
	at := httptest.NewRequest(http.MethodPost, "/mcp", nil).URL
	for _, c := range []struct{ name, token string }{{"static", ours}, {"accepted", theirs}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := &http.Request{Method: http.MethodPost, URL: at, RemoteAddr: "127.0.0.1:1",
					Header: http.Header{"Authorization": {"Bearer " + c.token}}}
				who, err := p.Authenticate(req)
				if err != nil || !p.Valid(who) {
					b.Fatal(err)
				}
			}
		})
	}
}
