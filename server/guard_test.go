package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/listen"
	"codehand/server/replaytest"
	"codehand/server/state"
	"codehand/tools/tool"
)

// A guardSite is a server on HTTP in this process whose log can be read.
type guardSite struct {
	t      *testing.T
	server *Server
	data   string
	at     string            // host:port of the listener
	tokens map[string]string // by principal
	log    replaytest.LockedBuffer
}

// guarded starts one with the tool echo and a token for each principal; without principals there is no sign-in.
func guarded(t *testing.T, settings map[string]string, principals ...auth.Token) *guardSite {
	t.Helper()
	x := &guardSite{t: t, data: filepath.Join(t.TempDir(), "data"), tokens: map[string]string{}}
	flags := map[string]string{"state-dir": x.data, "auth-local-peer": "any", "http-listen": "127.0.0.1:0"}
	if len(principals) > 0 {
		flags["auth-mode"] = "token"
	}
	for k, v := range settings {
		flags[replaytest.FlagOf(k)] = v
	}
	file := flags["config"] // "": none
	delete(flags, "config")
	work := leaktest.Dir(t)
	cfg, _, err := config.Load(config.Sources{WorkDir: work, Home: t.TempDir(), UserFile: file, Flags: flags, Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.OpenState(x.data); err != nil {
		t.Fatal(err)
	}
	tokens := auth.OpenTokenFile(cfg.TokenFile())
	for _, p := range principals {
		if _, x.tokens[p.Principal], err = tokens.New(p); err != nil {
			t.Fatal(err)
		}
	}
	echo := fixtureTool("echo", tool.Traits{ReadOnly: true, Ungated: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		return tool.Result{Text: in.Text}, nil
	})
	log := slog.New(slog.NewTextHandler(&x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	x.server, err = New(Options{Options: engines.Options{Proven: limitsOnly, Config: cfg, Tools: only(echo), Version: "test", Log: log, Serve: true, StoreTime: replaytest.HangAfter}})
	if err != nil {
		t.Fatal(err)
	}
	ls, err := listen.Open(t.Context(), cfg, listen.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	x.at = ls[0].Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- x.server.HTTP(ctx, ls) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("HTTP: %v", err)
			}
		case <-time.After(replaytest.HangAfter):
			t.Error("HTTP does not return")
		}
		if err := x.server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return x
}

// token is one of a principal without quotas, so that a table of requests runs into none.
func token(principal string) auth.Token {
	off := map[string]string{}
	for _, key := range []string{"calls_per_minute", "bytes_in_per_minute", "bytes_out_per_minute", "requests_per_minute", "streams", "connections"} {
		off[key] = "0"
	}
	return auth.Token{Principal: principal, Values: auth.Values{Quota: off}}
}

// A try is one request and what it must get.
type try struct {
	name string
	line string // method and path; "": POST /mcp
	head string // header lines, in place of those of the same name that a good request has; "-Name" takes one out
	body string // without one: initialize, for POST
	half bool   // the client ends its side after what it sent
	want string // status, and the code or kind of the body; see verdict
	has  string // header lines of the answer, or "-Name" for one that must not be there
}

// hello is the body of a good request.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}`

// request makes the bytes of a try.
func (x *guardSite) request(p try, base []string) []byte {
	if p.line == "" {
		p.line = "POST /mcp"
	}
	if p.body == "" && strings.HasPrefix(p.line, "POST") {
		p.body = hello
	}
	if p.body == "none" {
		p.body = ""
	}
	head := append([]string{"Host: " + x.at, "Accept: application/json, text/event-stream"}, base...)
	if p.body != "" {
		head = append(head, "Content-Type: application/json", "Content-Length: "+strconv.Itoa(len(p.body)))
	}
	var own []string
	if p.head != "" {
		own = strings.Split(p.head, "\n")
	}
	for _, l := range own {
		name, _, _ := strings.Cut(strings.TrimPrefix(l, "-"), ":")
		head = slices.DeleteFunc(head, func(h string) bool { return strings.HasPrefix(h, name+":") })
	}
	for _, l := range own {
		if !strings.HasPrefix(l, "-") {
			head = append(head, l)
		}
	}
	return []byte(p.line + " HTTP/1.1\r\n" + strings.Join(head, "\r\n") + "\r\n\r\n" + p.body)
}

// send writes bytes on a connection of their own and reads the answer. The body of an event stream is not read.
func (x *guardSite) send(t *testing.T, method string, raw []byte, half bool) (*http.Response, []byte) {
	t.Helper()
	c, err := net.Dial("tcp", x.at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(replaytest.HangAfter))
	go func() {
		_, _ = c.Write(raw) // a server that refuses need not read to the end
		if half {
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return r, nil // Close of its Body would read to its end
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("the answer breaks off: %v", err)
	}
	return r, body
}

// verdict says in short what an answer is: the status, and the code of its error; "ok" for a result, the code of a tool
// result that is an error, "stream", "text", or "-" for no body.
func verdict(r *http.Response, body []byte) string {
	kind := r.Header.Get("Content-Type")
	var m struct {
		Error *struct {
			Code json.RawMessage
			Data struct{ Code string }
		}
		Result *struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	what := "text"
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		what = "stream"
	case len(bytes.TrimSpace(body)) == 0:
		what = "-"
	case json.Unmarshal(body, &m) != nil:
	case m.Error != nil && m.Error.Data.Code != "":
		what = m.Error.Data.Code
	case m.Error != nil:
		what = strings.Trim(string(m.Error.Code), `"`)
	case m.Result != nil && m.Result.IsError:
		what, _, _ = strings.Cut(m.Result.Content[0].Text, ":")
	case m.Result != nil:
		what = "ok"
	}
	return strconv.Itoa(r.StatusCode) + " " + what
}

// canary stands in what hostile requests hold. No refusal of the guard repeats it.
const canary = "CANARY"

// run sends them one after the other, with base in the header of each.
func (x *guardSite) run(tries []try, base ...string) {
	for _, p := range tries {
		name := p.name
		if name == "" {
			name = strings.TrimSpace(p.line + " " + strings.ReplaceAll(p.head, "\n", ", "))
		}
		x.t.Run(name, func(t *testing.T) {
			method, _, _ := strings.Cut(p.line, " ")
			r, body := x.send(t, method, x.request(p, base), p.half)
			got := verdict(r, body)
			if got != p.want {
				t.Errorf("got %s, want %s\n%.300s", got, p.want, body)
			}
			if p.has != "" {
				for _, l := range strings.Split(p.has, "\n") {
					name, value, ok := strings.Cut(l, ": ")
					if !ok {
						if name = strings.TrimPrefix(l, "-"); r.Header.Values(name) != nil {
							t.Errorf("the answer has %s: %s", name, r.Header.Get(name))
						}
					} else if got := r.Header.Get(name); got != value {
						t.Errorf("%s: %q, want %q", name, got, value)
					}
				}
			}
			if r.StatusCode < 400 {
				return
			}
			if _, code, _ := strings.Cut(p.want, " "); strings.Trim(code, "-0123456789") != "" && bytes.Contains(body, []byte(canary)) {
				t.Errorf("the answer repeats the request: %s", body)
			}
			for who, token := range x.tokens {
				if bytes.Contains(body, []byte(token[16:])) {
					t.Errorf("the answer holds %s's token: %s", who, body)
				}
			}
			if cache := r.Header.Get("Cache-Control"); strings.Contains(got, "_") && cache != "no-store" {
				t.Errorf("Cache-Control: %q", cache)
			}
		})
	}
	x.t.Logf("%d tries", len(tries))
}

// routes are all that a client may ask for, for checks that come before routes are told apart.
var routes = []string{
	"POST /mcp", "GET /mcp", "DELETE /mcp", "OPTIONS /mcp", "POST /mcp/s/handle-1", "GET /sse", "POST /message?sessionId=x", "GET /metrics", "GET /nothing",
}

// TestGuardHost: a request for another host is refused, wherever it goes.
func TestGuardHost(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil)
	_, port, err := net.SplitHostPort(x.at)
	if err != nil {
		t.Fatal(err)
	}
	var tries []try
	for _, host := range []string{
		"localhost", "127.0.0.1", "[::1]", "localhost:" + port, "LOCALHOST:" + port, "[::1]:" + port, // and a forward at another port
		"127.0.0.1:1", "localhost:8080", "[::1]:65535",
	} {
		tries = append(tries, try{head: "Host: " + host, want: "200 ok"})
	}
	for _, host := range []string{
		"evil.example", "evil.example:" + port, "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1.evil.example", "127.0.0.1.evil.example:" + port,
		"localhost.evil.example:" + port, "localhost.", "0.0.0.0:" + port, "127.1:" + port, "2130706433:" + port,
		"[::ffff:127.0.0.1]:" + port, "::1", "localhost:" + port + ":" + port, "",
	} {
		tries = append(tries, try{name: "Host " + host, head: "Host: " + host, want: "403 forbidden_host"})
	}
	for _, route := range routes {
		tries = append(tries, try{line: route, head: "Host: rebound.example:" + port, want: "403 forbidden_host"})
	}
	tries = append(tries,
		try{line: "HEAD /mcp", head: "Host: evil.example", want: "403 -"},
		try{name: "host in the line", line: "POST http://evil.example/mcp", want: "403 forbidden_host"},
		try{name: "no Host", head: "-Host", want: "400 text"},
		try{name: "a user before the host", head: "Host: user@" + x.at, want: "400 text"},
		try{name: "metrics with a header that proves nothing", line: "GET /metrics", head: "Host: rebound.example:" + port + "\nAuthorization: Bearer " + canary, want: "403 forbidden_host"},
		try{name: "two Hosts", head: "Host: " + x.at + "\nHost: " + x.at, want: "400 text"},
		try{name: "forwarded host is nothing", head: "Host: evil.example\nX-Forwarded-Host: " + x.at + "\nForwarded: host=" + x.at, want: "403 forbidden_host"},
		try{line: "GET /healthz", head: "Host: 10.1.2.3:8080", want: "200 text"},
		try{line: "HEAD /healthz", head: "Host: 10.1.2.3:8080", want: "200 -"},
		try{line: "GET /readyz", head: "Host: 10.1.2.3:8080", want: "200 text"},
		try{line: "OPTIONS *", head: "Host: evil.example", want: "403 forbidden_host"},
	)
	x.run(tries)
}

// TestGuardProxied: a request through a tunnel had the rights of the person who ran serve: it looked like one of this
// machine. On a server without sign-in, a forwarding header or a Host of elsewhere is refused, and the refusal says
// what to do.
func TestGuardProxied(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"http.public_url": "https://tools.example.com", "http.allowed_hosts": "other.example,box.localhost"})
	_, port, _ := net.SplitHostPort(x.at)
	var tries []try
	for _, head := range []string{
		"Forwarded: for=203.0.113.7", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-Host: tools.example.com", "X-Forwarded-Proto: https",
		"X-Forwarded-Port: 443", "X-Forwarded-Server: a", "x-forwarded-for: ", "X-Real-IP: 203.0.113.7", "Via: 1.1 proxy", "CF-Connecting-IP: 203.0.113.7",
		"CF-Ray: 1", "CDN-Loop: cloudflare", "Tailscale-User-Login: a@example.com", "Tailscale-Headers-Info: x", "True-Client-IP: 203.0.113.7",
		"ngrok-trace-id: 1", "X-Client-IP: 203.0.113.7", "X-Original-Forwarded-For: 203.0.113.7", "X-Envoy-External-Address: 203.0.113.7",
		"Host: tools.example.com", "Host: other.example",
		// `ssh -R` adds no header, but the name is that of elsewhere; a foreign header beside our own Host is no excuse
		"Host: localhost:" + port + "\nX-Forwarded-For: 127.0.0.1",
	} {
		tries = append(tries, try{head: head, want: "403 through_proxy"})
	}
	for _, line := range []string{"GET /mcp", "DELETE /mcp", "POST /mcp/s/a", "GET /sse", "POST /message", "GET /readyz", "GET /metrics"} {
		body := ""
		if strings.HasPrefix(line, "POST") {
			body = hello
		}
		tries = append(tries, try{line: line, head: "X-Forwarded-For: 203.0.113.7", body: body, want: "403 through_proxy"})
	}
	tries = append(tries,
		try{line: "GET /healthz", head: "X-Forwarded-For: 203.0.113.7", want: "200 text"},
		try{name: "a forward of ssh", head: "Host: localhost:8080", want: "200 ok"},
		try{name: "a name of this machine", head: "Host: box.localhost", want: "200 ok"},
		try{name: "as always", want: "200 ok"},
	)
	x.run(tries)
	_, body := x.send(t, "POST", x.request(try{head: "Via: 1.1 proxy"}, nil), false)
	if !strings.Contains(string(body), "codehand owner new") || !strings.Contains(string(body), "--public URL --auth-mode owner") {
		t.Errorf("the refusal names no remedy: %s", body)
	}
	_, body = x.send(t, "POST", x.request(try{head: "Host: abc.trycloudflare.com"}, nil), false)
	if !strings.Contains(string(body), "codehand owner new") || strings.Contains(string(body), "allowed_hosts") {
		t.Errorf("the refusal of a foreign Host: %s", body)
	}
}

// TestGuardProxiedToken: with tokens a proxy is what everybody has in front, and its requests tell no more than any
// other from outside.
func TestGuardProxiedToken(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"http.public_url": "https://tools.example.com"}, token("alice"))
	bearer := "Authorization: Bearer " + x.tokens["alice"]
	x.run([]try{{head: "X-Forwarded-For: 203.0.113.7", want: "200 ok"}, {head: "Host: tools.example.com\nCF-Ray: 1", want: "200 ok"}}, bearer)
	for head, full := range map[string]bool{"": true, "CF-Ray: 1": false, "Host: tools.example.com": false, "X-Real-Ip: 127.0.0.1": false} {
		_, body := x.send(t, "GET", x.request(try{line: "GET /readyz", head: head}, nil), false)
		if strings.Contains(string(body), `"checks"`) != full {
			t.Errorf("/readyz with %q tells %s", head, body)
		}
	}
}

// TestGuardNamesHost: "this Host is not served here" left the operator of a proxy to guess which host and which setting.
// The refusal says both, and the log does once for each host.
func TestGuardNamesHost(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"http.public_url": "https://tools.example.com:8443"}, token("alice"))
	ask := func(host string) string {
		_, body := x.send(t, "POST", x.request(try{head: "Host: " + host}, nil), false)
		return string(body)
	}
	for range 3 {
		const want = `this Host is not served here: other.example.com:8443. The operator can add \"other.example.com:8443\" to ` +
			`http.allowed_hosts (--http-allowed-hosts other.example.com:8443)`
		if got := ask("Other.example.com:8443"); !strings.Contains(got, want) {
			t.Errorf("got %s", got)
		}
	}
	if n := strings.Count(x.log.String(), "host=other.example.com:8443"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, x.log.String())
	}
	for _, host := range []string{"a%20b", strings.Repeat("a", 300)} { // no setting takes them
		if got := ask(host); !strings.Contains(got, `"message":"this Host is not served here"`) {
			t.Errorf("Host %.20s: %s", host, got)
		}
	}
	x.run([]try{ // what proxies send for the public name
		{head: "Host: tools.example.com:8443", want: "200 ok"},
		{head: "Host: tools.example.com", want: "200 ok"},
		{head: "Host: tools.example.com:443", want: "403 forbidden_host"},
	}, "Authorization: Bearer "+x.tokens["alice"])
}

// TestGuardOrigin: a page of another origin reads nothing, one that is listed is told so.
func TestGuardOrigin(t *testing.T) {
	t.Parallel()
	x := guarded(t, map[string]string{"http.allowed_origins": "https://app.example"})
	var tries []try
	for _, origin := range []string{
		"https://app.example", "http://localhost", "http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:9",
	} {
		tries = append(tries, try{head: "Origin: " + origin, want: "200 ok",
			has: "Access-Control-Allow-Origin: " + origin + "\nVary: Origin\nAccess-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate\n-Access-Control-Allow-Credentials"})
	}
	for _, origin := range []string{
		"https://" + canary + ".example", "null", "", "https://app.example:444", "http://app.example", "https://APP.example", "https://app.example/",
		"https://app.example.evil.example", "http://localhost.evil.example", "http://evil.example#localhost", "http://localhost@evil.example",
		"http://user@localhost", "http://localhost/", "http://localhost?x", "http://localhost#x", "ftp://localhost", "file://", "localhost", "*",
		"http://127.0.0.2", "http://0.0.0.0", "http://[::1", "chrome-extension://abc", "https://app.example https://evil.example",
	} {
		tries = append(tries, try{name: "Origin " + origin, head: "Origin: " + origin, want: "403 forbidden_origin", has: "-Access-Control-Allow-Origin"})
	}
	for _, route := range routes {
		tries = append(tries, try{line: route, head: "Origin: https://evil.example", want: "403 forbidden_origin", has: "-Access-Control-Allow-Origin"})
	}
	const two = "Origin: https://app.example\nOrigin: https://app.example"
	asks := "Origin: https://app.example\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: "
	allowed := "Access-Control-Allow-Headers: Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name"
	x.run(append(tries,
		try{name: "two origins", head: two, want: "403 forbidden_origin"},
		try{name: "two origins, one empty", head: "Origin: https://app.example\nOrigin: ", want: "403 forbidden_origin"},
		try{name: "evil host and good origin", head: "Origin: https://app.example\nHost: evil.example", want: "403 forbidden_host"},
		try{name: "no origin", want: "200 ok", has: "-Access-Control-Allow-Origin"},
		try{name: "preflight", line: "OPTIONS /mcp", head: asks + "authorization", want: "204 -",
			has: "Access-Control-Allow-Origin: https://app.example\nAccess-Control-Allow-Methods: GET, POST, DELETE\nAccess-Control-Max-Age: 600\n" + allowed},
		try{name: "preflight for a parameter", line: "OPTIONS /mcp/s/handle-1", head: asks + "mcp-param-city, x-evil, mcp-param-\u00e9", want: "204 -",
			has: allowed + ", mcp-param-city"},
		try{name: "OPTIONS without origin", line: "OPTIONS /mcp", want: "405 method_not_allowed", has: "Allow: GET, POST, DELETE"},
		try{name: "preflight of null", line: "OPTIONS /mcp", head: "Origin: null", want: "403 forbidden_origin"},
		try{line: "GET /healthz", head: "Origin: https://evil.example", want: "200 text", has: "-Access-Control-Allow-Origin"},
	))
}

// TestGuardRoutes: what is not served, and methods that a route does not take.
func TestGuardRoutes(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil)
	var tries []try
	for _, path := range []string{
		"/", "/" + canary, "//mcp", "/mcp/", "/MCP", "/mcp/s", "/mcp/s/", "/mcp/s/a/b", "/mcp/s/a%2fb", "/mcp/s//handle-1", "/mcp;x", "/mcp%00",
		"/x/../mcp", "/mcp/%2e%2e/mcp", "/sse/", "/message/x", "/t/mcp", "/healthz/", "/metrics/x", "/debug/pprof/", "/.well-known/oauth-protected-resource",
		"/.well-known/oauth-authorization-server", "/admin", "/api/v1/sessions",
	} {
		tries = append(tries, try{line: "POST " + path, want: "404 not_found"}, try{line: "GET " + path, want: "404 not_found"})
	}
	for _, method := range []string{"PUT", "PATCH", "TRACE", "PROPFIND", "get", "post", "OPTIONS"} {
		tries = append(tries, try{line: method + " /mcp", want: "405 method_not_allowed", has: "Allow: GET, POST, DELETE"})
	}
	for route, allow := range map[string]string{"/sse": "GET", "/message": "POST", "/metrics": "GET", "/mcp/s/handle-1": "GET, POST, DELETE"} {
		tries = append(tries,
			try{line: "PUT " + route, want: "405 method_not_allowed", has: "Allow: " + allow},
			try{line: "HEAD " + route, want: "405 -", has: "Allow: " + allow},
		)
	}
	x.run(append(tries,
		try{line: "POST /sse", want: "405 method_not_allowed", has: "Allow: GET"},
		try{line: "DELETE /sse", want: "405 method_not_allowed", has: "Allow: GET"},
		try{line: "GET /message", want: "405 method_not_allowed", has: "Allow: POST"},
		try{line: "DELETE /message", want: "405 method_not_allowed", has: "Allow: POST"},
		try{line: "POST /metrics", want: "405 method_not_allowed", has: "Allow: GET"},
		try{line: "POST /healthz", want: "405 -", has: "Allow: GET, HEAD"},
		try{line: "DELETE /readyz", want: "405 -", has: "Allow: GET, HEAD"},
		try{line: "GET /metrics", want: "200 text"},
		try{line: "HEAD /readyz", want: "200 -"},
		try{line: "CONNECT " + x.at, want: "404 not_found"},
		try{name: "percent-encoded letters are letters", line: "POST /%6dc%70", want: "200 ok"},
		try{name: "a query is no matter", line: "POST /mcp?x=1", want: "200 ok"},
		try{name: "line too long", line: "POST /mcp/s/" + strings.Repeat("a", 80<<10), want: "431 text"},
		try{name: "header too long", head: "X-Long: " + strings.Repeat("a", 80<<10), want: "431 text"},
		try{name: "many headers", head: strings.Repeat("X-Many: a\n", 9000) + "X-Last: a", want: "431 text"},
		try{name: "space in a header's name", head: "Host : " + x.at, want: "400 text"},
		try{name: "an expectation that there is not", head: "Expect: " + canary, want: "417 -"},
	))
	x.t.Run("no SSE", func(t *testing.T) {
		x := guarded(t, map[string]string{"http.sse": "false"})
		x.run([]try{{line: "GET /sse", want: "404 not_found"}, {line: "POST /message?sessionId=x", want: "404 not_found"}})
	})
	x.t.Run("prefix", func(t *testing.T) {
		x := guarded(t, map[string]string{"http.public_url": "https://tools.example.com/team/a"}, token("alice"))
		at := "Authorization: Bearer " + x.tokens["alice"] + "\nHost: tools.example.com"
		x.run([]try{
			{name: "with it", line: "POST /team/a/mcp", head: at, want: "200 ok"},
			{name: "a proxy may strip it", line: "POST /mcp", head: at, want: "200 ok"},
			{name: "with the default port", line: "POST /team/a/mcp", head: at + ":443", want: "200 ok"},
			{name: "with another port", line: "POST /team/a/mcp", head: at + ":80", want: "403 forbidden_host"},
			{name: "twice", line: "POST /team/a/team/a/mcp", head: at, want: "404 not_found"},
			{name: "no whole component", line: "POST /team/amcp", head: at, want: "404 not_found"},
			{name: "handle", line: "POST /team/a/mcp/s/handle-1", head: at, want: "200 ok"},
		})
		if id := x.stream(t, "Authorization: Bearer "+x.tokens["alice"]); id == "" {
			t.Error("SSE has no id")
		}
	})
}

// TestGuardAuth: exactly one good bearer token lets in, and a bad one is bad in the same way whatever is wrong with it.
func TestGuardAuth(t *testing.T) {
	t.Parallel()
	expired, revoked := token("erin"), token("rob")
	expired.Expires = time.Now().Add(-time.Minute)
	revoked.Revoked = time.Now().Add(-time.Minute)
	x := guarded(t, nil, token("alice"), token("dan"), expired, revoked)
	off := false
	if err := x.server.team.Porter.Configure(auth.Values{}, map[string]auth.Values{"dan": {Enabled: &off}}, nil); err != nil {
		t.Fatal(err)
	}
	alice := x.tokens["alice"]
	bearer := func(token string) string { return "Authorization: Bearer " + token }
	const (
		none = `WWW-Authenticate: Bearer realm="codehand"`
		bad  = none + `, error="invalid_token"`
	)
	other := strings.Replace(alice, alice[20:24], "AAAA", 1)
	tries := []try{
		{name: "good", head: bearer(alice), want: "200 ok"},
		{name: "scheme in lower case", head: "Authorization: bearer " + alice, want: "200 ok"},
		{name: "disabled", head: bearer(x.tokens["dan"]), want: "403 principal_disabled"},
		{name: "no token", want: "401 unauthenticated", has: none},
		{name: "Basic", head: "Authorization: Basic " + canary, want: "401 unauthenticated", has: none},
		{name: "the token alone", head: "Authorization: " + alice, want: "401 unauthenticated", has: none},
		{name: "two good headers", head: bearer(alice) + "\n" + bearer(alice), want: "401 invalid_token", has: bad},
		{name: "nothing after Bearer", head: "Authorization: Bearer", want: "401 invalid_token", has: bad},
		{name: "two tokens", head: bearer(alice + " " + alice), want: "401 invalid_token", has: bad},
		{name: "two tokens with a comma", head: bearer(alice + ",Bearer " + alice), want: "401 invalid_token", has: bad},
		{name: "right id, wrong secret", head: bearer(other), want: "401 invalid_token", has: bad},
		{name: "cut", head: bearer(alice[:len(alice)-1]), want: "401 invalid_token", has: bad},
		{name: "longer", head: bearer(alice + "A"), want: "401 invalid_token", has: bad},
		{name: "in capitals", head: bearer(strings.ToUpper(alice)), want: "401 invalid_token", has: bad},
		{name: "unknown", head: bearer("chd_aaaaaaaaaa_" + strings.Repeat("A", 43)), want: "401 invalid_token", has: bad},
		{name: "expired", head: bearer(x.tokens["erin"]), want: "401 invalid_token", has: bad},
		{name: "revoked", head: bearer(x.tokens["rob"]), want: "401 invalid_token", has: bad},
		{name: "in the body", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"access_token":"` + alice + `"}}`, want: "401 unauthenticated", has: none},
		{name: "in a form", head: "Content-Type: application/x-www-form-urlencoded", body: "access_token=" + alice, want: "401 unauthenticated", has: none},
		{name: "in a cookie", head: "Cookie: token=" + alice, want: "401 unauthenticated", has: none},
		{name: "for a proxy", head: "Proxy-Authorization: Bearer " + alice, want: "401 unauthenticated", has: none},
		{name: "as a key", head: "X-Api-Key: " + alice, want: "401 unauthenticated", has: none},
	}
	for _, query := range []string{
		"access_token=" + alice, "token=" + alice, "x=1&token=" + alice, "ACCESS_TOKEN=" + alice, "%74oken=" + alice, "x;token=" + alice, "token", "access_token=",
	} {
		tries = append(tries, try{name: "query " + strings.ReplaceAll(query, alice, "TOKEN"), line: "POST /mcp?" + query, want: "400 token_in_query"})
	}
	tries = append(tries,
		try{name: "query and header", line: "POST /mcp?token=" + alice, head: bearer(alice), want: "400 token_in_query"},
		try{name: "query of SSE", line: "GET /sse?access_token=" + alice, head: bearer(alice), want: "400 token_in_query"},
		try{name: "query of a message", line: "POST /message?sessionId=x&token=" + alice, head: bearer(alice), want: "400 token_in_query"},
		try{name: "query of the metrics", line: "GET /metrics?token=" + alice, want: "400 token_in_query"},
	)
	for _, route := range routes {
		want := map[string]string{"OPTIONS /mcp": "405 method_not_allowed", "GET /nothing": "404 not_found"}[route]
		if want == "" {
			want = "401 unauthenticated"
		}
		tries = append(tries, try{line: route, want: want})
	}
	x.run(append(tries,
		try{line: "GET /metrics", head: bearer(alice), want: "403 insufficient_scope"},
		try{line: "GET /healthz", want: "200 text"},
		try{line: "GET /readyz", head: bearer(canary), want: "200 text"},
	))
	var bodies []string
	for _, who := range []string{"erin", "rob"} {
		_, body := x.send(t, "POST", x.request(try{head: bearer(x.tokens[who])}, nil), false)
		bodies = append(bodies, string(body))
	}
	_, body := x.send(t, "POST", x.request(try{head: bearer(other)}, nil), false)
	if bodies[0] != string(body) || bodies[1] != string(body) {
		t.Errorf("bad tokens can be told apart:\n%s%s%s", bodies[0], bodies[1], body)
	}
	x.clean()
}

// clean looks for the secrets of tokens in whatever the server wrote.
func (x *guardSite) clean() {
	x.t.Helper()
	wrote := map[string]string{"the log": x.log.String()}
	err := filepath.WalkDir(x.data, func(path string, d os.DirEntry, err error) error {
		var b []byte
		if err == nil && d.Type().IsRegular() {
			b, err = os.ReadFile(path)
			wrote[path] = string(b)
		}
		if errors.Is(err, fs.ErrNotExist) { // it took the place of another meanwhile
			return nil
		}
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	if len(wrote) < 3 {
		x.t.Errorf("only %d places are looked at", len(wrote))
	}
	for place, text := range wrote {
		for who, token := range x.tokens {
			if secret := token[len("chd_aaaaaaaaaa_"):]; strings.Contains(text, secret) {
				x.t.Errorf("%s's token is in %s", who, place)
			}
		}
		if strings.Contains(place, "audit") && strings.Contains(text, canary) {
			x.t.Errorf("the audit repeats a request: %s", text)
		}
	}
	if strings.Contains(wrote["the log"], "panic") {
		x.t.Errorf("the log tells of a panic:\n%s", wrote["the log"])
	}
}

// TestGuardFailures: an address that fails 30 times in a minute is let in with a good token only.
func TestGuardFailures(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"))
	bad := try{head: "Authorization: Bearer chd_aaaaaaaaaa_" + strings.Repeat("A", 43), want: "401 invalid_token"}
	good := try{head: "Authorization: Bearer " + x.tokens["alice"], want: "200 ok"}
	for range 40 { // asking without credentials is no guess
		if r, body := x.send(t, "POST", x.request(try{}, nil), false); verdict(r, body) != "401 unauthenticated" {
			t.Fatal(verdict(r, body))
		}
	}
	for range 30 {
		if r, body := x.send(t, "POST", x.request(bad, nil), false); verdict(r, body) != bad.want {
			t.Fatal(verdict(r, body))
		}
	}
	x.run([]try{good})
	for _, p := range []try{bad, {line: "GET /sse"}} {
		r, body := x.send(t, "POST", x.request(p, nil), false)
		after, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if got := verdict(r, body); got != "429 too_many_failures" || err != nil || after < 1 || after > 60 {
			t.Errorf("got %s, Retry-After %q", got, r.Header.Get("Retry-After"))
		}
	}
	x.run([]try{good, {line: "GET /healthz", want: "200 text"}})
	if said := x.log.String(); strings.Count(said, "too many wrong tokens from one address") != 1 {
		t.Errorf("the log does not tell of it once:\n%s", said)
	}
}

// TestGuardBody: what a body may be.
func TestGuardBody(t *testing.T) {
	t.Parallel()
	const most = 4 << 20
	x := guarded(t, nil, token("alice"))
	padded := func(n int) string { return hello + strings.Repeat(" ", n-len(hello)) }
	chunked := func(body string) string {
		var b strings.Builder
		for len(body) > 0 {
			n := min(len(body), 100_000)
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		return b.String() + "0\r\n\r\n"
	}
	const chunks = "-Content-Length\nTransfer-Encoding: chunked"
	var tries []try
	for _, kind := range []string{
		"", "text/plain", "text/plain; x=application/json", "application/jsonx", "application/json, text/plain", "application", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=" + canary,
	} {
		tries = append(tries, try{name: "Content-Type " + kind, head: "Content-Type: " + kind, want: "415 unsupported_media_type"})
	}
	for _, kind := range []string{"application/json; charset=utf-8", "Application/JSON", "application/json;charset=utf-16"} {
		tries = append(tries, try{head: "Content-Type: " + kind, want: "200 ok"})
	}
	for _, coding := range []string{"gzip", "identity", "deflate, br", ""} {
		tries = append(tries, try{name: "Content-Encoding " + coding, head: "Content-Encoding: " + coding, want: "415 unsupported_media_type"})
	}
	for _, route := range []string{"POST /mcp", "POST /mcp/s/handle-1"} {
		tries = append(tries,
			try{name: route + " at the limit", line: route, body: padded(most), want: "200 ok"},
			try{name: route + " over it", line: route, body: padded(most + 1), want: "413 body_too_large"},
			try{name: route + " at the limit, chunked", line: route, head: chunks, body: chunked(padded(most)), want: "200 ok"},
			try{name: route + " over it, chunked", line: route, head: chunks, body: chunked(padded(most + 1)), want: "413 body_too_large"},
		)
	}
	tries = append(tries,
		try{name: "no Content-Type", head: "-Content-Type", want: "415 unsupported_media_type"},
		try{name: "two types", head: "Content-Type: application/json\nContent-Type: text/plain", want: "415 unsupported_media_type"},
		try{name: "two codings, the first empty", head: "Content-Encoding: \nContent-Encoding: gzip", want: "415 unsupported_media_type"},
		try{name: "300 MiB announced", head: "Content-Length: 314572800", body: "{", want: "413 body_too_large"},
		try{name: "an exabyte announced", head: "Content-Length: 1152921504606846976", body: "{", want: "413 body_too_large"},
		try{name: "300 MiB, if we like", head: "Content-Length: 314572800\nExpect: 100-continue", body: " ", want: "413 body_too_large"},
		try{name: "no body", body: "none", head: "Content-Type: application/json\nContent-Length: 0", want: "400 -32700"},
		try{name: "neither length nor chunks", body: "none", head: "Content-Type: application/json", want: "400 -32700"},
		try{name: "negative length", head: "Content-Length: -1", want: "400 text"},
		try{name: "no number", head: "Content-Length: " + canary, want: "400 text"},
		try{name: "two lengths", head: "Content-Length: 10\nContent-Length: 20", want: "400 text"},
		try{name: "less than announced", head: "Content-Length: 1000", half: true, want: "400 body_broken"},
		try{name: "more than announced", head: "Content-Length: 10", want: "400 -32700"},
		try{name: "chunks that end early", head: chunks, body: "10\r\n{", half: true, want: "400 body_broken"},
		try{name: "no chunks", head: chunks, body: "{}", half: true, want: "400 body_broken"},
		try{name: "a whole message, but not a whole body", head: chunks, body: strings.TrimSuffix(chunked(hello), "0\r\n\r\n"), half: true, want: "400 body_broken"},
		try{name: "chunks of a wrong size", head: chunks, body: "zz\r\n{}\r\n0\r\n\r\n", want: "400 body_broken"},
		try{name: "another transfer coding", head: "-Content-Length\nTransfer-Encoding: gzip, chunked", want: "501 text"},
	)
	x.run(tries, "Authorization: Bearer "+x.tokens["alice"])
	x.clean()
}

// begin begins a legacy session.
func (x *guardSite) begin(t *testing.T, who string) string {
	t.Helper()
	r, body := x.send(t, "POST", x.request(try{}, []string{"Authorization: Bearer " + x.tokens[who]}), false)
	if id := r.Header.Get("Mcp-Session-Id"); r.StatusCode == http.StatusOK && id != "" {
		return id
	}
	t.Fatalf("initialize: %s %s", r.Status, body)
	return ""
}

// TestGuardEnvelope: a message that two parsers may read in two ways is refused.
func TestGuardEnvelope(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"))
	id := x.begin(t, "alice")
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	wide := func(big bool, text string) string {
		var b []byte
		for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...) {
			if big {
				b = append(b, byte(u>>8), byte(u))
			} else {
				b = append(b, byte(u), byte(u>>8))
			}
		}
		return string(b)
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	call := func(args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":` + args + `}}`
	}
	const refused, broken, invalid = "400 -32600", "400 -32700", "200 INPUT_INVALID"
	tries := []try{
		{name: "good", body: ping, want: "200 ok"},
		{name: "good call", body: call(`{"text":"x"}`), want: "200 ok"},
		{name: "Method beside method", body: `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"echo"}}`, want: refused},
		{name: "Method alone", body: `{"jsonrpc":"2.0","id":1,"Method":"ping"}`, want: refused},
		{name: "METHOD", body: `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, want: refused},
		{name: "method twice", body: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, want: refused},
		{name: "method in escapes", body: `{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`, want: refused},
		{name: "method with a long s", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"param\u017f\":{}}", want: refused},
		{name: "ID beside id", body: `{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}`, want: refused},
		{name: "Params", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"echo"}}`, want: refused},
		{name: "Name beside name", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"x","arguments":{}}}`, want: refused},
		{name: "Arguments", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Arguments":{}}}`, want: refused},
		{name: "a key of _meta twice", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":1,"x":2}}}`, want: refused},
		{name: "deep key twice", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":[{"c":1,"c":2}]}}}`, want: refused},
		{name: "65 levels", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + deep(63) + `}}`, want: refused},
		{name: "64 levels", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + deep(62) + `}}`, want: "200 ok"},
		{name: "200,000 levels", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + deep(200_000) + `}}`, want: refused},
		{name: "200,000 levels and nothing else", body: deep(200_000), want: refused},
		{name: "200,000 open levels", body: strings.Repeat("[", 200_000), want: broken},
		{name: "200,000 open objects", body: strings.Repeat(`{"a":`, 200_000), want: broken},
		{name: "batch", body: "[" + ping + "," + ping + "]", want: refused},
		{name: "batch of one", body: "[" + ping + "]", want: refused},
		{name: "empty batch", body: "[]", want: refused},
		{name: "a string", body: `"ping"`, want: refused},
		{name: "a number", body: `1`, want: refused},
		{name: "null", body: `null`, want: refused},
		{name: "empty object", body: `{}`, want: refused},
		{name: "UTF-16, little", body: wide(false, ping), want: broken},
		{name: "UTF-16, big", body: wide(true, ping), want: broken},
		{name: "byte order mark", body: "\ufeff" + ping, want: broken},
		{name: "not UTF-8", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}", want: broken},
		{name: "overlong UTF-8", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xc0\xaf\"}}", want: broken},
		{name: "NUL", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\x00", want: broken},
		{name: "something after it", body: ping + ping, want: broken},
		{name: "half a message", body: ping[:20], want: broken},
		{name: "a comment", body: `/*x*/` + ping, want: broken},
		{name: "a trailing comma", body: `{"jsonrpc":"2.0","id":1,"method":"ping",}`, want: broken},
		{name: "NaN", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}`, want: broken},
		{name: "jsonrpc 1.0", body: `{"jsonrpc":"1.0","id":1,"method":"ping"}`, want: refused},
		{name: "jsonrpc is a number", body: `{"jsonrpc":2.0,"id":1,"method":"ping"}`, want: refused},
		{name: "no jsonrpc", body: `{"id":1,"method":"ping"}`, want: refused},
		{name: "no method", body: `{"jsonrpc":"2.0","id":1}`, want: refused},
		{name: "method is a number", body: `{"jsonrpc":"2.0","id":1,"method":5}`, want: refused},
		{name: "method and result", body: `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, want: refused},
		{name: "surrogate in a method", body: `{"jsonrpc":"2.0","id":1,"method":"ping\ud800"}`, want: refused},
		{name: "surrogate in a key", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\udc00":1}}`, want: refused},
		{name: "surrogate in arguments", body: call(`{"text":"a\ud800b"}`), want: invalid},
		{name: "a key of the arguments twice", body: call(`{"text":"a","text":"b"}`), want: invalid},
		{name: "deep arguments", body: call(`{"text":` + deep(200) + `}`), want: invalid},
		{name: "arguments are a list", body: call(`["x"]`), want: invalid},
		{name: "unknown argument", body: call(`{"Text":"x"}`), want: invalid},
		{name: "surrogate in arguments, and Method", body: `{"jsonrpc":"2.0","id":1,"Method":"x","method":"tools/call","params":{"name":"echo","arguments":{"text":"\ud800"}}}`, want: refused},
		{name: "an answer to nothing", body: `{"jsonrpc":"2.0","id":"s-1","result":{}}`, want: "202 -"},
		{name: "unknown method", body: `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, want: "200 -32601"},
		{name: "unknown tool", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ekko"}}`, want: "200 UNKNOWN_TOOL"},
		{name: "notification", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, want: "202 -"},
		{name: "unknown notification", body: `{"jsonrpc":"2.0","method":"no/such"}`, want: "202 -"},
	}
	for _, id := range []string{"null", "1.0", "1e3", "true", "{}", "[]", "-", "01", "+1", `"\ud800"`} {
		want := refused
		if id == "-" || id == "01" || id == "+1" {
			want = broken
		}
		tries = append(tries, try{name: "id " + id, body: `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`, want: want})
	}
	x.run(tries, "Authorization: Bearer "+x.tokens["alice"], "Mcp-Session-Id: "+id)

	for _, good := range []string{"9007199254740993", "-1", `"1"`, `""`, `"` + strings.Repeat("é", 32<<10) + `"`, "123456789012345678901234567890"} {
		r, body := x.send(t, "POST", x.request(try{body: `{"method":"ping","jsonrpc":"2.0","id":` + good + `}`}, []string{"Authorization: Bearer " + x.tokens["alice"], "Mcp-Session-Id: " + id}), false)
		if want := `{"jsonrpc":"2.0","id":` + good + `,"result":{}}`; strings.TrimSpace(string(body)) != want {
			t.Errorf("%s %.100s, want %.100s", r.Status, body, want)
		}
	}
	_, body := x.send(t, "POST", x.request(try{body: `{"jsonrpc":"2.0","method":"notifications/x","Method":"y"}`}, []string{"Authorization: Bearer " + x.tokens["alice"], "Mcp-Session-Id: " + id}), false)
	if bytes.Contains(body, []byte(`"id"`)) || !bytes.Contains(body, []byte(`-32600`)) {
		t.Errorf("a bad notification is answered with an id: %s", body)
	}
	x.clean()
}

// signer returns what makes ids of transport sessions as the server does. Clients keep them over a restart, also into a
// later version.
func (x *guardSite) signer(t *testing.T) func(label, principal string, issued time.Time) string {
	t.Helper()
	key, _, err := x.server.engines.Store.Get(t.Context(), state.Key(state.Keyring, "session"))
	must(t, err)
	text := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	return func(label, principal string, issued time.Time) string {
		at, random := strconv.FormatInt(issued.Unix(), 36), strings.ToLower(rand.Text())
		h := hmac.New(sha256.New, key)
		h.Write([]byte(label + principal + "|" + at + "|" + random))
		return "ch1." + at + "." + random + "." + text.EncodeToString(h.Sum(nil)[:16])
	}
}

// TestGuardSessions: an id that is not this principal's is an unknown one, on every method.
func TestGuardSessions(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"), token("bob"))
	mine, hers := x.begin(t, "bob"), x.begin(t, "alice")
	deleted := x.begin(t, "bob")
	bob := "Authorization: Bearer " + x.tokens["bob"]
	r, body := x.send(t, "DELETE", x.request(try{line: "DELETE /mcp"}, []string{bob, "Mcp-Session-Id: " + deleted}), false)
	if got := verdict(r, body); got != "200 -" {
		t.Fatalf("DELETE: %s", got)
	}
	sign := x.signer(t)
	old := time.Now().Add(-31 * 24 * time.Hour)
	swap := func(id string, at int) string {
		parts := strings.Split(id, ".")
		parts[at] = map[bool]string{true: "b", false: "a"}[parts[at][0] == 'a'] + parts[at][1:]
		return strings.Join(parts, ".")
	}
	sse := x.stream(t, bob)
	hersSSE := x.stream(t, "Authorization: Bearer "+x.tokens["alice"])
	strangers := map[string]string{
		"stolen": hers, "deleted": deleted, "expired": sign("mcp-session|1|", "bob", old), "forged": swap(mine, 3), "other random": swap(mine, 2),
		"other time": swap(mine, 1), "other version": "ch2" + mine[3:], "cut": mine[:len(mine)-1], "longer": mine + "a", "in capitals": strings.ToUpper(mine),
		"nonsense": canary, "very long": strings.Repeat("a", 10_000), "of SSE": sse, "alice's of SSE": hersSSE, "two with a comma": mine + "," + mine, "quoted": `"` + mine + `"`,
	}
	var tries []try
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, id := range strangers {
		for _, line := range []string{"POST /mcp", "GET /mcp", "DELETE /mcp", "POST /mcp/s/handle-1"} {
			p := try{name: line + " " + name, line: line, head: "Mcp-Session-Id: " + id, want: "404 not_found"}
			if strings.HasPrefix(line, "POST") {
				p.body = list
			}
			tries = append(tries, p)
		}
	}
	for name, id := range map[string]string{
		"stolen": hersSSE, "expired": sign("sse-session|1|", "bob", old), "forged": swap(sse, 3), "of HTTP": mine, "no stream": sign("sse-session|1|", "bob", time.Now()), "nonsense": canary, "empty": "",
	} {
		tries = append(tries, try{name: "message " + name, line: "POST /message?sessionId=" + id, body: list, want: "404 not_found"})
	}
	for _, line := range []string{"POST /mcp", "GET /mcp", "DELETE /mcp"} {
		b := map[bool]string{true: list}[line == "POST /mcp"]
		tries = append(tries,
			try{name: line + " without", line: line, body: b, want: "400 session_required"},
			try{name: line + " empty", line: line, head: "Mcp-Session-Id: ", body: b, want: "400 session_required"},
			try{name: line + " two", line: line, head: "Mcp-Session-Id: " + mine + "\nMcp-Session-Id: " + mine, body: b, want: "400 session_required"},
		)
	}
	x.run(append(tries,
		try{name: "a notification needs one, too", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, want: "400 session_required"},
		try{name: "an answer needs one, too", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, want: "400 session_required"},
		try{name: "message without", line: "POST /message", body: list, want: "404 not_found"},
		try{name: "message with two", line: "POST /message?sessionId=" + sse + "&sessionId=" + sse, body: list, want: "404 not_found"},
		try{name: "message with its own", line: "POST /message?sessionId=" + sse, body: list, want: "202 -"},
		try{name: "its own of a process that has ended", head: "Mcp-Session-Id: " + sign("mcp-session|1|", "bob", time.Now()), body: list, want: "200 ok"},
		try{name: "its own", head: "Mcp-Session-Id: " + mine, body: list, want: "200 ok"},
		try{name: "initialize ignores one", head: "Mcp-Session-Id: " + hers, want: "200 ok"},
		try{name: "stream of its own", line: "GET /mcp", head: "Mcp-Session-Id: " + mine, want: "200 stream"},
		try{name: "stream for who takes none", line: "GET /mcp", head: "Accept: application/json\nMcp-Session-Id: " + mine, want: "406 not_acceptable"},
		try{name: "a second DELETE", line: "DELETE /mcp", head: "Mcp-Session-Id: " + deleted, want: "404 not_found"},
	), bob)
	same := map[string]bool{}
	for _, id := range strangers {
		_, body := x.send(t, "POST", x.request(try{head: "Mcp-Session-Id: " + id, body: list}, []string{bob}), false)
		same[string(body)] = true
	}
	if len(same) != 1 {
		t.Errorf("ids that are not bob's are told apart: %v", same)
	}
	if got, body := x.send(t, "POST", x.request(try{head: "Mcp-Session-Id: " + hers, body: list}, []string{"Authorization: Bearer " + x.tokens["alice"]}), false); verdict(got, body) != "200 ok" {
		t.Errorf("alice's session is gone: %s", body)
	}
	x.clean()
}

// stream opens an SSE stream until the end of the test and returns its id.
func (x *guardSite) stream(t *testing.T, authorization string) string {
	t.Helper()
	c, err := net.Dial("tcp", x.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(x.request(try{line: "GET /sse"}, []string{authorization})); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(replaytest.HangAfter))
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			_, id, _ := strings.Cut(path, "/message?sessionId=")
			return id
		}
	}
	t.Fatal("no endpoint event")
	return ""
}

// TestGuardVersions: what a request says of its version in header and body must agree.
func TestGuardVersions(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"))
	id := x.begin(t, "alice")
	const (
		modern  = "Mcp-Protocol-Version: 2026-07-28"
		list    = modern + "\nMcp-Method: tools/list"
		echo    = modern + "\nMcp-Method: tools/call\nMcp-Name: echo"
		full    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
		listing = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	)
	m := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + full + `}}}`
	}
	call := `"name":"echo","arguments":{"text":"x"},`
	session := "\nMcp-Session-Id: " + id
	x.run([]try{
		{name: "legacy with its version", head: "Mcp-Protocol-Version: 2025-11-25" + session, body: listing, want: "200 ok"},
		{name: "legacy with an older one", head: "Mcp-Protocol-Version: 2025-03-26" + session, body: listing, want: "200 ok"},
		{name: "legacy with one that there never was", head: "Mcp-Protocol-Version: 1999-" + canary + session, body: listing, want: "400 -32600"},
		{name: "GET with one that there never was", line: "GET /mcp", head: "Mcp-Protocol-Version: 1999-01-01" + session, want: "400 -32600"},
		{name: "initialize with any", head: "Mcp-Protocol-Version: 1999-01-01", want: "200 ok"},

		{name: "modern", head: list, body: m("tools/list", ""), want: "200 ok"},
		{name: "modern call", head: echo, body: m("tools/call", call), want: "200 ok"},
		{name: "modern call with spaces in Mcp-Name", head: modern + "\nMcp-Method: tools/call\nMcp-Name:   echo  ", body: m("tools/call", call), want: "200 ok"},
		{name: "modern with a session id is without one", head: list + "\nMcp-Session-Id: " + canary, body: m("tools/list", ""), want: "200 ok"},
		{name: "modern body, no header", head: "Mcp-Method: tools/list", body: m("tools/list", ""), want: "400 -32020"},
		{name: "modern body, legacy header", head: "Mcp-Protocol-Version: 2025-11-25\nMcp-Method: tools/list", body: m("tools/list", ""), want: "400 -32020"},
		{name: "modern body, legacy header, a session", head: "Mcp-Protocol-Version: 2025-11-25\nMcp-Method: tools/list" + session, body: m("tools/list", ""), want: "400 -32020"},
		{name: "modern header, legacy body", head: list, body: listing, want: "400 -32602"},
		{name: "modern header, legacy body, a session", head: list + session, body: listing, want: "400 -32602"},
		{name: "no Mcp-Method", head: modern, body: m("tools/list", ""), want: "400 -32020"},
		{name: "another Mcp-Method", head: modern + "\nMcp-Method: tools/call", body: m("tools/list", ""), want: "400 -32020"},
		{name: "Mcp-Method in capitals", head: modern + "\nMcp-Method: TOOLS/LIST", body: m("tools/list", ""), want: "400 -32020"},
		{name: "no Mcp-Name", head: modern + "\nMcp-Method: tools/call", body: m("tools/call", call), want: "400 -32020"},
		{name: "another Mcp-Name", head: modern + "\nMcp-Method: tools/call\nMcp-Name: read_file", body: m("tools/call", call), want: "400 -32020"},
		{name: "a version that does not exist", head: "Mcp-Protocol-Version: v999.0.0\nMcp-Method: tools/list", body: strings.Replace(m("tools/list", ""), "2026-07-28", "v999.0.0", 1), want: "400 -32022"},
		{name: "a later version in the body", head: list, body: strings.Replace(m("tools/list", ""), "2026-07-28", "2027-01-01", 1), want: "400 -32020"},
		{name: "a later version in both", head: "Mcp-Protocol-Version: 2027-01-01\nMcp-Method: tools/list", body: strings.Replace(m("tools/list", ""), "2026-07-28", "2027-01-01", 1), want: "400 -32022"},
		{name: "no clientCapabilities", head: list, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, want: "400 -32602"},
		{name: "modern initialize", head: modern + "\nMcp-Method: initialize", body: m("initialize", ""), want: "404 -32601"},
		{name: "modern ping", head: modern + "\nMcp-Method: ping", body: m("ping", ""), want: "404 -32601"},
		{name: "modern unknown method", head: modern + "\nMcp-Method: no/such", body: m("no/such", ""), want: "404 -32601"},
		{name: "modern unknown tool", head: modern + "\nMcp-Method: tools/call\nMcp-Name: ekko", body: m("tools/call", `"name":"ekko",`), want: "200 UNKNOWN_TOOL"},
		{name: "modern answer", head: modern, body: `{"jsonrpc":"2.0","id":"s-1","result":{"x":1}}`, want: "400 -32600"},
		{name: "modern notification", head: modern + "\nMcp-Method: notifications/cancelled", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,` + full + `}}}`, want: "202 -"},
		{name: "modern GET", line: "GET /mcp", head: modern + session, want: "405 method_not_allowed", has: "Allow: POST"},
		{name: "modern DELETE", line: "DELETE /mcp", head: modern + session, want: "405 method_not_allowed", has: "Allow: POST"},
		{name: "modern batch", head: list, body: "[" + m("tools/list", "") + "]", want: "400 -32600"},
		{name: "modern with Method", head: list, body: strings.Replace(m("tools/list", ""), `"method"`, `"Method":"x","method"`, 1), want: "400 -32600"},
		{name: "modern surrogate in arguments", head: echo, body: m("tools/call", `"name":"echo","arguments":{"text":"\ud800"},`), want: "200 INPUT_INVALID"},
		{name: "server/discover in the legacy era", head: "Mcp-Session-Id: " + id, body: `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, want: "200 -32601"},
		{name: "the session outlives all that", head: "Mcp-Session-Id: " + id, body: listing, want: "200 ok"},
	}, "Authorization: Bearer "+x.tokens["alice"])
	x.clean()
}

// TestGuardHandles: a handle that is none is refused, and one in the URL must be that of the message.
func TestGuardHandles(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"))
	id := x.begin(t, "alice")
	call := func(meta string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{` + meta + `}}}`
	}
	tries := []try{
		{name: "good", line: "POST /mcp/s/handle-1", body: call(""), want: "200 ok"},
		{name: "64 long", line: "POST /mcp/s/" + strings.Repeat("a", 64), body: call(""), want: "200 ok"},
		{name: "in _meta", body: call(`"codehand/session":"handle-1"`), want: "200 ok"},
		{name: "the same twice", line: "POST /mcp/s/handle-1", body: call(`"codehand/session":"handle-1"`), want: "200 ok"},
		{name: "percent-encoded", line: "POST /mcp/s/handle%2d1", body: call(`"codehand/session":"handle-1"`), want: "200 ok"},
		{name: "two that differ", line: "POST /mcp/s/handle-1", body: call(`"codehand/session":"handle-2"`), want: "200 -32602"},
		{name: "a thread id that is none is none", body: call(`"threadId":"` + strings.Repeat("x", 200) + `"`), want: "200 ok"},
	}
	for _, handle := range []string{"short", "%2e%2e", "..%5c..%5cxxxxxx", strings.Repeat("a", 65), "handle%20one", "handle%00one", "handle%0d%0aone", "h%C3%A4ndle-one", "handle:one", strings.Repeat("a", 60<<10)} {
		name := "URL " + handle[:min(len(handle), 20)]
		tries = append(tries,
			try{name: name, line: "POST /mcp/s/" + handle, body: call(""), want: "200 -32602"},
			try{name: name + ", another method", line: "POST /mcp/s/" + handle, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, want: "200 -32602"},
			try{name: name + ", a method without a session", line: "POST /mcp/s/" + handle, body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, want: "200 -32602"},
		)
	}
	for _, handle := range []string{"", "short", "../../..", strings.Repeat("a", 65), "handle one"} {
		tries = append(tries, try{name: "_meta " + handle, body: call(`"codehand/session":"` + handle + `"`), want: "200 -32602"})
	}
	tries = append(tries, try{name: "_meta number", body: call(`"codehand/session":12345678`), want: "200 -32602"})
	x.run(tries, "Authorization: Bearer "+x.tokens["alice"], "Mcp-Session-Id: "+id)
	modern := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	x.run([]try{
		{name: "modern", line: "POST /mcp/s/handle-1", body: call(modern), want: "200 ok"},
		{name: "modern malformed", line: "POST /mcp/s/short", body: call(modern), want: "400 -32602"},
		{name: "modern malformed before its headers", line: "POST /mcp/s/short", body: strings.Replace(call(modern), "echo", "ekko", 1), want: "400 -32602"},
		{name: "modern malformed, another method", line: "POST /mcp/s/short", head: "Mcp-Method: ping", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{` + modern + `}}}`, want: "400 -32602"},
		{name: "modern that differ", line: "POST /mcp/s/handle-1", body: call(modern + `,"codehand/session":"handle-2"`), want: "400 -32602"},
	}, "Authorization: Bearer "+x.tokens["alice"], "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo")
}

// TestGuardQuotas: each quota of requests has its answer, which says when to come back.
func TestGuardQuotas(t *testing.T) {
	t.Parallel()
	limited := func(key, value string) auth.Token {
		tok := token(key)
		tok.Values.Quota[key] = value
		return tok
	}
	x := guarded(t, map[string]string{"session.max_per_principal": "3"},
		limited("requests_per_minute", "2"), limited("bytes_in_per_minute", "1000"), limited("streams", "2"), limited("connections", "2"), token("sessions"), auth.Token{Principal: "chunks"})
	as := func(who string) []string { return []string{"Authorization: Bearer " + x.tokens[who]} }
	check := func(t *testing.T, r *http.Response, body []byte, want string) {
		t.Helper()
		after, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if got := verdict(r, body); got != want || err != nil || after < 1 || after > 60 {
			t.Errorf("got %s, Retry-After %q; want %s\n%s", got, r.Header.Get("Retry-After"), want, body)
		}
	}
	t.Run("requests", func(t *testing.T) {
		for range 2 {
			if r, body := x.send(t, "POST", x.request(try{}, as("requests_per_minute")), false); verdict(r, body) != "200 ok" {
				t.Fatalf("%s", body)
			}
		}
		r, body := x.send(t, "POST", x.request(try{}, as("requests_per_minute")), false)
		check(t, r, body, "429 rate_limited")
	})
	t.Run("bytes", func(t *testing.T) {
		long := hello + strings.Repeat(" ", 900)
		if r, body := x.send(t, "POST", x.request(try{body: long}, as("bytes_in_per_minute")), false); verdict(r, body) != "200 ok" {
			t.Fatalf("%s", body)
		}
		r, body := x.send(t, "POST", x.request(try{body: long}, as("bytes_in_per_minute")), false)
		check(t, r, body, "429 rate_limited")
	})
	t.Run("bytes in chunks", func(t *testing.T) { // they cost what came, not what might have come
		small := try{head: "-Content-Length\nTransfer-Encoding: chunked", body: "2\r\n{}\r\n0\r\n\r\n"}
		for i := range 20 {
			if r, body := x.send(t, "POST", x.request(small, as("chunks")), false); verdict(r, body) != "400 -32600" {
				t.Fatalf("body %d of 2 bytes: %s", i+1, body)
			}
		}
	})
	t.Run("streams", func(t *testing.T) {
		for range 2 {
			x.stream(t, as("streams")[0])
		}
		r, body := x.send(t, "GET", x.request(try{line: "GET /sse"}, as("streams")), false)
		check(t, r, body, "429 rate_limited")
		id := x.begin(t, "streams")
		r, body = x.send(t, "GET", x.request(try{line: "GET /mcp", head: "Mcp-Session-Id: " + id}, as("streams")), false)
		check(t, r, body, "429 rate_limited")
		listen := try{
			head: "Mcp-Protocol-Version: 2026-07-28\nMcp-Method: subscriptions/listen",
			body: `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		}
		r, body = x.send(t, "POST", x.request(listen, as("streams")), false)
		check(t, r, body, "429 rate_limited")
	})
	t.Run("connections", func(t *testing.T) {
		for range 2 {
			x.stream(t, as("connections")[0])
		}
		r, body := x.send(t, "POST", x.request(try{}, as("connections")), false)
		check(t, r, body, "429 rate_limited")
	})
	t.Run("sessions", func(t *testing.T) {
		before := open(x.server)["sessions"]
		for range 5 { // what fails takes no room
			bad := try{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`}
			if r, body := x.send(t, "POST", x.request(bad, as("sessions")), false); verdict(r, body) != "200 -32602" {
				t.Errorf("initialize with a number as version: %s %s", verdict(r, body), body)
			}
		}
		if got := open(x.server)["sessions"]; got != before {
			t.Errorf("%d sessions that did not begin take room", got-before)
		}
		var last string
		for range 3 {
			last = x.begin(t, "sessions")
		}
		r, body := x.send(t, "POST", x.request(try{}, as("sessions")), false)
		check(t, r, body, "503 too_many_sessions")
		if r, body := x.send(t, "DELETE", x.request(try{line: "DELETE /mcp", head: "Mcp-Session-Id: " + last}, as("sessions")), false); verdict(r, body) != "200 -" {
			t.Fatal(verdict(r, body))
		}
		x.begin(t, "sessions")
	})
}

// TestKeepAlive sends a request after every kind of answer on one connection, pipelined: none may break it, or be taken for
// another one's.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"))
	base := []string{"Authorization: Bearer " + x.tokens["alice"], "Mcp-Session-Id: " + x.begin(t, "alice")}
	tries := []try{
		{body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, want: "200 ok"},
		{line: "GET /nothing", want: "404 not_found"},
		{head: "Content-Type: text/plain", body: "xx", want: "415 unsupported_media_type"},
		{body: replaytest.CallLine(2, "echo", `{"text":"x"}`, `"progressToken":1`), want: "200 ok"},
		{head: "-Authorization", want: "401 unauthenticated"},
		{body: `{"jsonrpc":"2.0","method":"notifications/x"}`, want: "202 -"},
		{body: "[", want: "400 -32700"},
		{line: "HEAD /mcp", want: "405 -"},
		{line: "OPTIONS /mcp", head: "Origin: http://localhost", want: "204 -"},
		{head: "Mcp-Session-Id: x", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, want: "404 not_found"},
		{line: "GET /healthz", want: "200 text"},
		{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, want: "200 ok"},
	}
	var all []byte
	for _, p := range tries {
		all = append(all, x.request(p, base)...)
	}
	c, err := net.Dial("tcp", x.at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(replaytest.HangAfter))
	if _, err := c.Write(all); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for i, p := range tries {
		method, _, _ := strings.Cut(p.line, " ")
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		body, err := io.ReadAll(r.Body)
		if got := verdict(r, body); err != nil || got != p.want {
			t.Errorf("answer %d: %s, %v; want %s", i+1, got, err, p.want)
		}
		_ = r.Body.Close()
	}
}

// TestExpectContinue: a client that asks first is told to go on, or refused before it sends anything.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	x := guarded(t, nil, token("alice"))
	for auth, want := range map[string]string{"Authorization: Bearer " + x.tokens["alice"]: "100 -", "-Authorization": "401 unauthenticated"} {
		c, err := net.Dial("tcp", x.at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(replaytest.HangAfter))
		raw := x.request(try{head: "Expect: 100-continue\n" + auth}, nil)
		if _, err := c.Write(bytes.TrimSuffix(raw, []byte(hello))); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		r, err := http.ReadResponse(in, &http.Request{Method: "POST"})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if got := verdict(r, body); err != nil || got != want {
			t.Errorf("before the body: %s, %v; want %s", got, err, want)
		}
		if r.StatusCode != http.StatusContinue {
			continue
		}
		if _, err := io.WriteString(c, hello); err != nil {
			t.Fatal(err)
		}
		if r, err = http.ReadResponse(in, &http.Request{Method: "POST"}); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("after the body: %v %v", r, err)
		}
	}
}

// TestHTTP2 sends what differs over HTTP/2: many requests at once on one connection, refused and half-sent bodies beside
// them, a stream that its client leaves.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	ca, dir := replaytest.NewAuthority(t), t.TempDir()
	cert, key := ca.Issue(t, "server")
	replaytest.WriteFile(t, dir+"/cert", cert)
	replaytest.WriteFile(t, dir+"/key", key)
	x := guarded(t, map[string]string{"http.tls_cert": dir + "/cert", "http.tls_key": dir + "/key"}, token("alice"))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: replaytest.HangAfter}
	session := ""
	send := func(ctx context.Context, line string, body io.Reader, token string) *http.Response {
		t.Helper()
		method, path, _ := strings.Cut(line, " ")
		q, err := http.NewRequestWithContext(ctx, method, "https://"+x.at+path, body)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
		if session != "" {
			q.Header.Set("Mcp-Session-Id", session)
		}
		r, err := client.Do(q)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			return nil
		}
		if r.ProtoMajor != 2 {
			t.Errorf("%s over %s", line, r.Proto)
		}
		return r
	}
	check := func(line, body, token, want string) *http.Response {
		t.Helper()
		r := send(t.Context(), line, strings.NewReader(body), token)
		if r == nil {
			return nil
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if got := verdict(r, text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", line, got, err, want)
		}
		return r
	}
	alice := x.tokens["alice"]
	if r := check("POST /mcp", hello, alice, "200 ok"); r != nil {
		session = r.Header.Get("Mcp-Session-Id")
	}
	half, more := io.Pipe()
	defer more.Close()
	waits := make(chan string, 1)
	go func() {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+x.at+"/mcp", half)
		r, err := client.Do(q)
		if err != nil {
			waits <- err.Error()
			return
		}
		defer r.Body.Close()
		waits <- r.Status
	}()
	go func() { _, _ = io.WriteString(more, "{") }() // the answer may come before it
	if got := <-waits; got != "401 Unauthorized" {
		t.Errorf("half a body without a token: %s", got)
	}
	var wg sync.WaitGroup
	for i := range 150 { // more than fit at once
		wg.Go(func() {
			r := send(t.Context(), "POST /mcp", strings.NewReader(replaytest.CallLine(i, "echo", fmt.Sprintf(`{"text":"mark %d."}`, i), "")), alice)
			if r == nil {
				return
			}
			defer r.Body.Close()
			if text, err := io.ReadAll(r.Body); err != nil || !bytes.Contains(text, fmt.Appendf(nil, "mark %d.", i)) {
				t.Errorf("call %d: %v %s", i, err, text)
			}
		})
	}
	check("POST /mcp", strings.Repeat(" ", 5<<20), alice, "413 body_too_large")
	check("POST /nothing", hello, alice, "404 not_found")
	check("HEAD /mcp", "", alice, "405 -")
	check("POST /mcp", "[", alice, "400 -32700")
	wg.Wait()

	ctx, cancel := context.WithCancel(t.Context())
	r := send(ctx, "GET /sse", nil, alice)
	if r == nil {
		t.FailNow()
	}
	if line, err := bufio.NewReader(r.Body).ReadString('\n'); line != "event: endpoint\n" {
		t.Errorf("the stream begins with %q, %v", line, err)
	}
	cancel()
	_ = r.Body.Close()
	for limit := time.Now().Add(replaytest.HangAfter); open(x.server)["sse"] > 0; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatal("a stream that its client has left goes on")
		}
	}
	check("POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, alice, "200 ok")
	x.clean()
}
