package server

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/control"
	"codehand/server/people"
	"codehand/server/state"
)

// The owner signs in to a server as it is run, and what guesses at the password is counted in the audit, not listed.
func TestOwnerSignsIn(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"auth.mode": "owner"})
	const password = "planted pass phrase of the owner"
	hash, err := people.NewHasher(people.Cost{Memory: 64, Passes: 1, Threads: 1}).Hash(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	if err := people.Open(x.data, nil).SetPassword(people.Owner, hash, false); err != nil { // as another process does
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil)
	client := http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	base := "http://" + x.at + "/signin/"
	read := func(r *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	get := func() (int, string) { return read(client.Get(base)) }
	login := func(password string) (int, string) {
		t.Helper()
		_, page := get()
		m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)
		if m == nil {
			t.Fatal("no form: " + page)
		}
		return read(client.PostForm(base+"login", url.Values{"csrf": {m[1]}, "password": {password}}))
	}
	for range 8 { // the last of them are refused unheard
		if status, _ := login("a wrong password"); status != 401 && status != 429 {
			t.Fatalf("status %d", status)
		}
	}
	hash, _ = people.NewHasher(people.Cost{Memory: 64, Passes: 1, Threads: 1}).Hash(t.Context(), password)
	if err := people.Open(x.data, nil).SetPassword(people.Owner, hash, false); err != nil { // forgets the guesses
		t.Fatal(err)
	}
	if status, page := login(password); status != 200 || !strings.Contains(page, "What you allowed") {
		t.Fatalf("status %d: %s", status, page)
	}
	// Over plain http the cookie alone is worth nothing.
	if status, page := read(client.Get("http://" + x.at + "/signin")); status != 200 || !strings.Contains(page, "<h1>Sign in</h1>") {
		t.Errorf("without a slash: status %d: %s", status, page)
	}
	audits, err := filepath.Glob(filepath.Join(x.data, "audit", "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, name := range audits {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	if n := strings.Count(all, "signin.failed"); n != 1 {
		t.Errorf("%d lines about guesses: %s", n, all)
	}
	if !strings.Contains(all, `"signin.login"`) || strings.Contains(all+x.log.String(), password) {
		t.Errorf("audit %s", all)
	}
}

// While the server runs, its socket answers; it is for a server that people sign in to.
func TestControlSocket(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"auth.mode": "team"})
	if status, _ := http.Get("http://" + x.at + "/healthz"); status != nil { // it serves
		_ = status.Body.Close()
	}
	var rows []control.Row
	for {
		desk, err := control.Open(context.Background(), x.data, state.OnDisk, state.Options{})
		if err != nil && strings.Contains(err.Error(), "auth.mode") { // it does not listen yet
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		rows, err = desk.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ended, err := desk.Revoke(t.Context(), control.Wish{All: true}); err != nil || len(ended) != 0 {
			t.Errorf("%v, %v", ended, err)
		}
		if err := desk.Close(); err != nil {
			t.Error(err)
		}
		break
	}
	if len(rows) != 0 {
		t.Errorf("%v", rows)
	}
}
