package oauth

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"codehand/server/auth"
)

// BenchmarkRefresh is one refresh, on disk as serve has it.
func BenchmarkRefresh(b *testing.B) {
	x := newRig(b).durable()
	tok := x.signIn(usual())
	for b.Loop() {
		x.pass(time.Minute)
		var a answered
		if a, tok = x.refresh(tok); a.StatusCode != http.StatusOK {
			b.Fatal(a.body)
		}
	}
}

// BenchmarkAuthenticate compares a static token and one of ours: what a call costs before it begins, and the look
// whether the token still holds.
func BenchmarkAuthenticate(b *testing.B) {
	x := newRig(b)
	tok := x.signIn(usual())
	path := b.TempDir() + "/tokens.jsonl"
	_, static, err := auth.OpenTokenFile(path).New(auth.Token{Principal: "owner"})
	must(b, err)
	p, err := auth.New(auth.Options{Mode: "owner", TokenFile: path, Sources: []auth.Source{x.s}, Workspaces: "/srv/ws",
		Named: map[string]auth.Values{"owner": {Roots: []string{"/srv/work"}}}, Metadata: x.s.Metadata, Now: x.clock})
	must(b, err)
	for name, text := range map[string]string{"static": static, "oauth": tok.access} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			at := &url.URL{Path: "/mcp"}
			for b.Loop() {
				who, err := p.Authenticate(&http.Request{Method: http.MethodPost, URL: at, RemoteAddr: "192.0.2.1:1",
					Header: http.Header{"Authorization": {"Bearer " + text}}})
				if err != nil || !p.Valid(who) {
					b.Fatal(err)
				}
			}
		})
	}
}
