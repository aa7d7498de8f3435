package blackbox

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestOAuthDocumentChanges: a document that says something else between the start of a sign-in and its end, or while a
// grant is in force, moves nothing: the code goes where the page said, once, and the new words count for what begins after
// the document was fetched again.
func TestOAuthDocumentChanges(t *testing.T) {
	t.Parallel()
	if !inNetwork(t) {
		return
	}
	const id, redirect, moved = "https://example.com/app/client.json", "http://127.0.0.1:33419/callback", "https://evil.example/cb"
	var now atomic.Pointer[http.HandlerFunc]
	var asked atomic.Int64
	say := func(h http.HandlerFunc) { now.Store(&h) }
	say(documents(redirect).ServeHTTP)
	trust := published(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Cache-Control", "no-store")
		(*now.Load())(w, r)
	}))
	d := opened(t, []string{"SSL_CERT_FILE=" + trust})
	a := &app{d: d, id: id, redirect: redirect, resource: d.s.url + "/mcp", verifier: strings.Repeat("v", 43)}
	held := a.signIn()
	changes := map[string]http.HandlerFunc{
		"the redirect removed": documents(moved).ServeHTTP,
		"gone":                 http.NotFound,
		"another client": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			// a client that left reads nothing
			_ = json.NewEncoder(w).Encode(documentOf("https://example.com/another", redirect))
		},
		"to a host inside": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1/x", http.StatusFound)
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{"))
		},
	}
	for name, h := range changes {
		x := d.besieged(t)
		say(documents(redirect).ServeHTTP)
		p, f, at := x.asked(a)
		say(h)
		done := p.send(http.MethodPost, at.url, at.url, approval(f))
		back, err := url.Parse(done.header.Get("Location"))
		must(t, err)
		if !strings.HasPrefix(back.String(), redirect+"?") || back.Query().Get("code") == "" {
			t.Errorf("%s: the code went to %q", name, back)
			continue
		}
		// If the owner of a moved document asks for the tokens with its new address, there are no tokens.
		if got := x.form("/oauth/token", changed(a.redeem(back.Query().Get("code")), "redirect_uri", moved)); got != "400 invalid_grant" {
			t.Errorf("%s: with another redirect: %s", name, got)
		}
		if got := x.form("/oauth/token", a.redeem(back.Query().Get("code"))); got != "400 invalid_grant" {
			t.Errorf("%s: then with the right one: %s", name, got)
		}
		if got := x.get(a.authorizeURL(changed(a.wish(), "redirect_uri", moved))); got != "400 page" {
			t.Errorf("%s: the new address, before the document was fetched again: %s", name, got)
		}
		if got := d.opens(held.Access); got != http.StatusOK {
			t.Errorf("%s: the owner's token: %d", name, got)
		}
		if held = a.token(a.renew(held.Refresh)); held.Status != http.StatusOK {
			t.Fatalf("%s: the owner's refresh: %d %s", name, held.Status, held.Body)
		}
	}
	// A new process knows no document. What is refused stays refused, and what holds goes on.
	say(documents(moved).ServeHTTP)
	before := asked.Load()
	d.again()
	x := d.besieged(t)
	if got := x.get(a.authorizeURL(a.wish())); got != "400 page" || asked.Load() == before {
		t.Errorf("the address that was removed: %s", got)
	}
	if g := a.token(a.renew(held.Refresh)); g.Status != http.StatusOK {
		t.Errorf("the owner's refresh: %d %s", g.Status, g.Body)
	}
	if before != 1 {
		t.Logf("the document was fetched %d times", before)
	}
}
