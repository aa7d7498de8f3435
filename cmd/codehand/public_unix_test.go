//go:build unix

package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
)

// A front is a tunnel or proxy with TLS on this machine. Until it is told where serve listens it answers as one does
// that cannot reach it.
type front struct {
	*httptest.Server
	to   atomic.Pointer[httputil.ReverseProxy]
	page atomic.Pointer[http.HandlerFunc] // in place of the backend; nil: none
	ca   string                           // file of its authority
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, to := f.page.Load(), f.to.Load()
		switch {
		case page != nil:
			(*page)(w, r)
		case to != nil:
			to.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(f.Close)
	f.ca = filepath.Join(leaktest.Dir(t), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	if err := os.WriteFile(f.ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// lead makes it pass requests on.
func (f *front) lead(t *testing.T, backend string) {
	t.Helper()
	at, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	f.to.Store(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: &http.Transport{DisableKeepAlives: true}, ErrorLog: log.New(io.Discard, "", 0),
	})
}

// publicly starts serve --public behind f, with tokens.
func publicly(t *testing.T, f *front, args ...string) *served {
	t.Helper()
	env := append([]string{"SSL_CERT_FILE=" + f.ca}, environment(t)...)
	if out, err := program(t, env, "token", "new", "alice").CombinedOutput(); err != nil {
		t.Fatalf("token new: %v\n%s", err, out)
	}
	return start(t, env, append([]string{"--listen", "127.0.0.1:0", "--public", f.URL}, args...)...)
}

// client calls through f as one from outside does.
func (f *front) get(t *testing.T, path string) int {
	t.Helper()
	status, _ := get(t, f.Client(), f.URL+path)
	return status
}

// TestServePublic: serve waits for its tunnel, serves nothing until it has found itself at the URL, and says so then.
func TestServePublic(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	s := publicly(t, f)
	s.line("^codehand: checking that https://127.0.0.1:")
	s.line("^codehand: not yet: .* HTTP 502: the tunnel or proxy is there")
	for _, path := range []string{"/mcp", "/readyz"} {
		if status, body := get(t, http.DefaultClient, s.url+path); status != http.StatusServiceUnavailable || !strings.Contains(body, "not_ready") {
			t.Errorf("before the check, %s: %d %s", path, status, body)
		}
	}
	alive(t, http.DefaultClient, s.url)
	f.lead(t, s.url)
	s.line("^codehand: ready: " + f.URL + " reaches this process ")
	s.line("^codehand: (COMMANDS DO NOT RUN: |commands run at sandbox level 3)")
	s.line("^codehand: warning: tokens are the only sign-in, and chats on the web cannot send them")
	if status := f.get(t, "/mcp"); status != http.StatusUnauthorized {
		t.Errorf("after the check: %d", status)
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, strings.Join(s.seen, "\n"))
	}
}

// TestServePublicOwner: with a sign-in it says where to paste the URL.
func TestServePublicOwner(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	env := append([]string{"SSL_CERT_FILE=" + f.ca}, environment(t)...)
	if out, err := program(t, env, "owner", "new").CombinedOutput(); err != nil {
		t.Fatalf("owner new: %v\n%s", err, out)
	}
	s := start(t, env, "--listen", "127.0.0.1:0", "--public", f.URL+"/", "--auth-mode", "owner", "--snippets")
	f.lead(t, s.url)
	s.line("^codehand: ready: ")
	s.line("^Paste " + f.URL + "/mcp into your chat")
	s.line("^  claude.ai +Settings > Connectors")
	if all := strings.Join(s.seen, "\n"); strings.Contains(all, "warning: tokens are the only") || strings.Contains(all, "CODEHAND_TOKEN") {
		t.Errorf("it speaks of tokens:\n%s", all)
	}
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// TestServePublicRefuses: what is not this process, or not safe, ends serve with what to do.
func TestServePublicRefuses(t *testing.T) {
	t.Parallel()
	html := func(status int, body string, header ...string) *http.HandlerFunc {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		return &h
	}
	for name, c := range map[string]struct {
		set  func(t *testing.T, f *front)
		says string
	}{
		"dead":         {func(_ *testing.T, f *front) { f.Close() }, "nothing listens there"},
		"unreachable":  {func(*testing.T, *front) {}, "HTTP 502: the tunnel or proxy is there"},
		"interstitial": {func(_ *testing.T, f *front) { f.page.Store(html(200, "<html>ngrok: you are about to visit")) }, "a page of ngrok"},
		"login":        {func(_ *testing.T, f *front) { f.page.Store(html(200, "<html>log in")) }, "answers with a web page"},
		"redirect":     {func(_ *testing.T, f *front) { f.page.Store(html(302, "", "Location", "https://example.com/login")) }, "redirects to https://example.com"},
		"self-signed":  {func(t *testing.T, f *front) { must(t, os.WriteFile(f.ca, nil, 0o600)) }, "signed by nobody"},
		"another": {func(t *testing.T, f *front) {
			other := publicly(t, f, "--public-wait", "10m")
			f.lead(t, other.url)
			other.line("^codehand: ready: ")
		}, "reaches another codehand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t)
			c.set(t, f)
			s := publicly(t, f, "--public-wait", "0s")
			code := s.exit()
			said := strings.Join(s.seen, "\n")
			if code != exitFailed || !strings.Contains(said, "codehand: nothing was served: ") || !strings.Contains(said, c.says) ||
				!strings.Contains(said, "\nhint: ") || strings.Contains(said, "codehand: ready: ") {
				t.Errorf("exit code %d, want %q in\n%s", code, c.says, said)
			}
		})
	}
}

// TestServePublicArguments: what cannot be published is refused before anything listens.
func TestServePublicArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no TLS":       {[]string{"--public", "http://tools.example.com"}, exitUsage, "is not encrypted"},
		"no URL":       {[]string{"--public", "tools.example.com"}, exitUsage, "needs the URL"},
		"a flag":       {[]string{"--public", "--check"}, exitUsage, "needs the URL"},
		"two URLs":     {[]string{"--public", "https://a.example.com", "--http-public-url", "https://b.example.com"}, exitUsage, "name two URLs"},
		"no sign-in":   {[]string{"--public", "https://tools.example.com"}, exitConfig, "codehand owner new"},
		"no sandbox":   {[]string{"--public", "https://tools.example.com", "--auth-mode", "token", "--sandbox-policy", "off"}, exitConfig, "sandbox.policy is off"},
		"nothing else": {[]string{"--listen", "127.0.0.1:8123", "--public"}, exitDone, "cloudflared tunnel --url http://127.0.0.1:8123"},
		"check":        {[]string{"--public", "https://tools.example.com/", "--auth-mode", "token", "--check"}, exitDone, "clients connect to https://tools.example.com\n"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			cmd := program(t, environment(t), append([]string{"serve"}, c.args...)...)
			out, _ := cmd.CombinedOutput() // the exit code says it
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("exit code %d, want %d and %q in\n%s", code, c.code, c.says, out)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
