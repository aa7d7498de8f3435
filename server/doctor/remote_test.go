package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/public"
)

// An endpoint is what a Remote looks at, with the faults that one can have. The zero value has none, and wants the token
// sesame.
type endpoint struct {
	open, unready, pageless, anyOrigin, anyHost, streamless, broken, dateless, rude, dead bool

	token  string            // "": sesame
	login  bool              // OAuth is on
	pages  map[string]string // documents
	ahead  time.Duration     // of its clock
	status int               // of all messages; 0: as usual
	host   string            // that it is called by
	prover *public.Prover    // nil: none
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case e.dateless:
		w.Header()["Date"] = nil
	case e.ahead != 0:
		w.Header().Set("Date", time.Now().Add(e.ahead).UTC().Format(http.TimeFormat))
	}
	if page, ok := e.pages[r.URL.Path]; ok {
		_, _ = io.WriteString(w, page)
		return
	}
	if nonce, ok := strings.CutPrefix(r.URL.Path, public.Path); ok {
		if e.prover == nil {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"code":"not_found"}}`)
			return
		}
		proof, _ := e.prover.Answer(nonce)
		_, _ = w.Write(proof)
		return
	}
	switch {
	case r.URL.Path == "/healthz" && !e.pageless:
	case r.URL.Path == "/readyz" && e.unready:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"ready":false,"checks":{"store":"degraded: disk full"}}`)
	case r.URL.Path == "/readyz" && !e.pageless:
	case r.URL.Path == "/mcp":
		e.message(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (e *endpoint) message(w http.ResponseWriter, r *http.Request) {
	token := e.token
	if token == "" {
		token = "sesame"
	}
	switch {
	case e.dead, e.rude && r.Header.Get("Origin") != "":
		panic(http.ErrAbortHandler)
	case e.status != 0:
		w.WriteHeader(e.status)
		return
	case !e.anyHost && r.Host != e.host, !e.anyOrigin && r.Header.Get("Origin") != "":
		w.WriteHeader(http.StatusForbidden)
		return
	case !e.open && r.Header.Get("Authorization") != "Bearer "+token:
		if e.login {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="x"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.Method == http.MethodDelete:
		return
	case r.Method == http.MethodGet && e.streamless:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch text := string(body); {
	case e.broken:
		_, _ = io.WriteString(w, "<html>")
	case strings.Contains(text, `"initialize"`):
		w.Header().Set("Mcp-Session-Id", "s1")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	case strings.Contains(text, `"server/discover"`):
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	case strings.Contains(text, `"tools/list"`):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": beat\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{}]}}\n\n")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// A site is an endpoint that is served with TLS under an address of documentation.
type site struct {
	*testing.T
	endpoint endpoint
	remote   Remote
	server   *httptest.Server
}

const farAway = "192.0.2.7" // RFC 5737: no host has it

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t}
	s.endpoint.prover = public.NewProver("https://" + farAway)
	s.serve(farAway, time.Now().Add(100*24*time.Hour))
	s.remote.Token = func() string { return "sesame" }
	return s
}

// serve serves it anew, with a certificate for host that is good until end.
func (s *site) serve(host string, end time.Time) {
	s.Helper()
	if s.server != nil {
		s.server.Close()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		IPAddresses: []net.IP{net.ParseIP(host)}, NotBefore: time.Now().Add(-1000 * time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		s.Fatal(err)
	}
	s.endpoint.host = farAway
	s.server = httptest.NewUnstartedServer(&s.endpoint)
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.server.StartTLS()
	s.Cleanup(s.server.Close)
	s.remote.URL, s.remote.CAs = "https://"+farAway+"/mcp", x509.NewCertPool()
	s.remote.CAs.AddCert(certificate)
	s.remote.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.server.Listener.Addr().String())
	}
}

// find runs the checks of an id.
func (s *site) find(id string) []Finding {
	var checks []Check
	for _, c := range s.remote.Checks() {
		if c.Limit = time.Minute; c.ID == id { // on a machine that has no time for it
			checks = append(checks, c)
		}
	}
	return Run(s.Context(), checks)
}

// TestRemoteRemedies: each failure of an endpoint is found, and gone when what doctor says is done.
func TestRemoteRemedies(t *testing.T) {
	t.Parallel()
	const resource = `{"authorization_servers":["https://` + farAway + `/issuer"]}`
	never := func(s *site) { s.remote.Token = nil }
	for _, c := range []struct {
		id, name string
		broken   func(*site)
		level    Level
		says     string
		fix      string
		follow   func(*site)
	}{
		{"url", "no URL", func(s *site) { s.remote.URL = "tools.example.com" }, Fail, "not the URL of an endpoint",
			"that serve prints", func(s *site) { s.remote.URL = "https://" + farAway + "/mcp" }},
		{"url", "not a URL", func(s *site) { s.remote.URL = "https://[" }, Fail, "not a URL", "that serve prints",
			func(s *site) { s.remote.URL = "https://" + farAway + "/mcp" }},
		{"url", "nobody there", func(s *site) { s.server.Close() }, Fail, "refused", "whether codehand serve runs",
			func(s *site) { s.serve(farAway, time.Now().Add(1000*time.Hour)) }},
		{"url", "no answer", func(s *site) {
			s.remote.dial = func(context.Context, string, string) (net.Conn, error) { return nil, context.DeadlineExceeded }
		}, Fail, "it does not answer", "firewall", func(s *site) { s.serve(farAway, time.Now().Add(1000*time.Hour)) }},
		{"url", "not encrypted", func(s *site) { s.remote.URL = "http://" + farAway + "/mcp" }, Fail, "not encrypted",
			"http.tls_cert", func(s *site) { s.remote.URL = "https://" + farAway + "/mcp" }},
		{"url", "expired", func(s *site) { s.serve(farAway, time.Now().Add(-time.Hour)) }, Fail, "not valid now",
			"renew it", func(s *site) { s.serve(farAway, time.Now().Add(1000*time.Hour)) }},
		{"url", "expires soon", func(s *site) { s.serve(farAway, time.Now().Add(100*time.Hour)) }, Warn,
			"4 days from now", "renew it", func(s *site) { s.serve(farAway, time.Now().Add(1000*time.Hour)) }},
		{"url", "unknown authority", func(s *site) { s.remote.CAs = nil }, Fail, "signed by nobody", "--ca-file",
			func(s *site) { s.serve(farAway, time.Now().Add(1000*time.Hour)) }},
		{"url", "another name", func(s *site) { s.serve("192.0.2.8", time.Now().Add(1000*time.Hour)) }, Fail,
			"certificate is valid for 192.0.2.8", "a name that is in the certificate",
			func(s *site) { s.serve(farAway, time.Now().Add(1000*time.Hour)) }},
		{"url", "not ready", func(s *site) { s.endpoint.unready = true }, Fail, "disk full", "read the server's log",
			func(s *site) { s.endpoint.unready = false }},
		{"url", "no pages", func(s *site) { s.endpoint.pageless = true }, Warn, "nothing is there", "let the proxy pass on",
			func(s *site) { s.endpoint.pageless = false }},
		{"url", "open to all", func(s *site) { s.endpoint.open = true }, Fail, "Everybody who reaches it",
			"--auth-mode token", func(s *site) { s.endpoint.open = false }},
		{"url", "something else answers", func(s *site) { s.endpoint.status = 500 }, Warn, "HTTP 500", "ends in /mcp",
			func(s *site) { s.endpoint.status = 0 }},
		{"url", "foreign pages", func(s *site) { s.endpoint.anyOrigin = true }, Fail, "a foreign Origin: HTTP 200",
			"http.allowed_origins", func(s *site) { s.endpoint.anyOrigin = false }},
		{"url", "foreign pages get no answer", func(s *site) { s.endpoint.rude = true }, Warn, "a foreign Origin: no answer",
			"answers such requests with 403", func(s *site) { s.endpoint.rude = false }},
		{"url", "no answer to messages", func(s *site) { s.endpoint.dead = true }, Fail, "no answer to initialize",
			"read the server's log", func(s *site) { s.endpoint.dead = false }},
		{"url", "foreign names", func(s *site) { s.endpoint.anyHost = true }, Fail, "a foreign Host: HTTP 200",
			"let the proxy refuse names", func(s *site) { s.endpoint.anyHost = false }},
		{"url", "no token given", never, Note, "a token is needed", "--token-env",
			func(s *site) { s.remote.Token = func() string { return "sesame" } }},
		{"url", "wrong token", func(s *site) { s.endpoint.token = "other" }, Fail, "the token is not accepted",
			"codehand token new", func(s *site) { s.endpoint.token = "" }},
		{"url", "no stream", func(s *site) { s.endpoint.streamless = true }, Fail, "stream of events does not open",
			"streams of events", func(s *site) { s.endpoint.streamless = false }},
		{"url", "no MCP", func(s *site) { s.endpoint.broken = true }, Fail, "not JSON-RPC", "read the server's log",
			func(s *site) { s.endpoint.broken = false }},
		{"oauth", "a document with tokens only", func(s *site) {
			s.endpoint.pages = map[string]string{wellKnownServer: `{}`}
		}, Fail, "takes tokens only", "remove that document", func(s *site) { s.endpoint.pages = nil }},
		{"oauth", "no document", func(s *site) { s.endpoint.login = true }, Fail, "no client finds the login",
			"pass on /.well-known/", func(s *site) {
				s.endpoint.pages = map[string]string{wellKnownResource + "/mcp": resource, "/issuer" + wellKnownServer: "{}"}
			}},
		{"oauth", "no issuer", func(s *site) {
			s.endpoint.login = true
			s.endpoint.pages = map[string]string{wellKnownResource: `{}`}
		}, Fail, "names no issuer", "set the issuer", func(s *site) {
			s.endpoint.pages = map[string]string{wellKnownResource: resource, "/issuer" + wellKnownServer: "{}"}
		}},
		{"oauth", "issuer gone", func(s *site) {
			s.endpoint.login = true
			s.endpoint.pages = map[string]string{wellKnownResource: resource}
		}, Fail, "cannot be reached: HTTP 404", "correct the issuer", func(s *site) {
			s.endpoint.pages["/issuer/.well-known/openid-configuration"] = "{}"
		}},
		{"public", "no public URL", func(s *site) { s.endpoint.prover = nil }, Note, "no public URL",
			"codehand serve --public https://" + farAway, func(s *site) { s.endpoint.prover = public.NewProver("https://" + farAway) }},
		{"public", "another URL", func(s *site) { s.endpoint.prover = public.NewProver("https://192.0.2.8") }, Fail,
			"takes itself for https://192.0.2.8", "--public https://" + farAway, func(s *site) {
				s.endpoint.prover = public.NewProver("https://" + farAway)
			}},
		{"clock", "behind", func(s *site) { s.endpoint.ahead = time.Hour }, Warn, "behind the endpoint's", "NTP",
			func(s *site) { s.endpoint.ahead = 0 }},
		{"clock", "ahead", func(s *site) { s.endpoint.ahead = -time.Hour }, Warn, "ahead of the endpoint's", "NTP",
			func(s *site) { s.endpoint.ahead = 0 }},
		{"clock", "no date", func(s *site) { s.endpoint.dateless = true }, Note, "does not say what time", "pass on Date",
			func(s *site) { s.endpoint.dateless = false }},
	} {
		t.Run(c.id+"/"+strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if found := s.find(c.id); !green(found) || len(found) == 0 {
				t.Fatalf("before anything is broken: %+v", found)
			}
			c.broken(s)
			found := s.find(c.id)
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.ID == c.id && f.Level == c.level && strings.Contains(f.Text, c.says) &&
					strings.Contains(f.Fix, c.fix)
			}) {
				t.Fatalf("broken: no %s %q with fix %q in %+v", c.level, c.says, c.fix, found)
			}
			c.follow(s)
			found = s.find(c.id)
			if !green(found) || slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.Text, c.says) }) {
				t.Errorf("after %q: %+v", c.fix, found)
			}
		})
	}
}

// TestNoTokenInTheClear: a token is not sent over http:// to another machine, and not to where a redirect leads.
func TestNoTokenInTheClear(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sent = append(sent, r.Header.Get("Authorization"))
		mu.Unlock()
		w.Header().Set("Location", "http://"+farAway+"/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	r := Remote{URL: "http://" + farAway + "/mcp", Token: func() string { return "sesame" }, Slow: true,
		dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		}}
	Run(t.Context(), r.Checks())
	mu.Lock()
	defer mu.Unlock()
	if len(sent) == 0 || strings.Join(sent, "") != "" {
		t.Errorf("sent %q", sent)
	}
}

// TestEntryOfAnEndpoint: an entry with a URL is asked as its client would ask.
func TestEntryOfAnEndpoint(t *testing.T) {
	t.Parallel()
	e := &endpoint{}
	s := httptest.NewServer(e)
	defer s.Close()
	e.host = s.Listener.Addr().String()
	r := newRig(t)
	at := func() (level []Level, fixes string) {
		r.write("home/.cursor/mcp.json", fmt.Sprintf(`{"mcpServers": {"codehand": {"url": "%s/mcp"}}}`, s.URL))
		for _, f := range r.find("handshake") {
			if strings.Contains(f.Text, "cursor") {
				level, fixes = append(level, f.Level), fixes+f.Fix
			}
		}
		return level, fixes
	}
	if level, fixes := at(); !slices.Equal(level, []Level{Note, Note}) || !strings.Contains(fixes, "--token-env NAME") {
		t.Errorf("with a token wanted: %v, %s", level, fixes)
	}
	e.status = http.StatusInternalServerError
	if level, fixes := at(); !slices.Equal(level, []Level{Fail, Fail}) || !strings.Contains(fixes, "codehand doctor --url") {
		t.Errorf("broken: %v, %s", level, fixes)
	}
	e.status, e.open = 0, true
	if level, _ := at(); !slices.Equal(level, []Level{OK, OK}) {
		t.Errorf("open: %v", level)
	}
	s.Close()
	if level, fixes := at(); !slices.Equal(level, []Level{Fail, Fail}) || !strings.Contains(fixes, "whether codehand serve runs") {
		t.Errorf("gone: %v, %s", level, fixes)
	}
}

// pipes is a listener of connections in memory, so that time in the test is not real.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 80} }

// TestProxy: what a proxy does to a call of 25 s is told apart, and is gone when the proxy is set as doctor says.
func TestProxy(t *testing.T) {
	t.Parallel()
	const answer = `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`
	streamed := func(w http.ResponseWriter, beats int) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range beats {
			_, _ = io.WriteString(w, ": beat\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(8 * time.Second)
		}
	}
	good := func(w http.ResponseWriter) {
		streamed(w, 3)
		_, _ = io.WriteString(w, "data: "+answer+"\n\n")
	}
	for _, c := range []struct {
		name  string
		proxy func(http.ResponseWriter)
		level Level
		says  string
		fix   string
	}{
		{"good", good, OK, "nothing was held back for more than 9 s", ""},
		{"buffered", func(w http.ResponseWriter) {
			time.Sleep(25 * time.Second)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": beat\n\n: beat\n\ndata: "+answer+"\n\n")
		}, Fail, "nothing came for 25 s", "proxy_buffering off"},
		{"buffered as JSON", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}, Fail, "at its end only", "proxy_buffering off"},
		{"cut", func(w http.ResponseWriter) {
			streamed(w, 1)
			panic(http.ErrAbortHandler)
		}, Fail, "was cut", "proxy_read_timeout"},
		{"ended early", func(w http.ResponseWriter) { streamed(w, 1) }, Fail, "was cut", "proxy_read_timeout"},
		{"gateway timeout", func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) }, Fail, "was cut: HTTP 504",
			"proxy_read_timeout"},
		{"no token", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, Note, "not tried: HTTP 401",
			"--token-env"},
		{"refused", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":3,"result":{"isError":true}}`)
		}, Note, "not tried: the call was refused", "may call run_readonly"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				behave := c.proxy
				p := pipes{make(chan net.Conn), make(chan struct{})}
				server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(
					func(w http.ResponseWriter, _ *http.Request) { behave(w) })}
				served := make(chan error)
				go func() { served <- server.Serve(p) }()
				r := Remote{URL: "http://127.0.0.1/mcp", Slow: true,
					dial: func(context.Context, string, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						p.conns <- theirs
						return ours, nil
					}}
				look := func() []Finding { return Run(t.Context(), []Check{{ID: "proxy", Limit: proxyLimit, Run: r.proxy}}) }
				found := look()
				if len(found) != 1 || found[0].Level != c.level || !strings.Contains(found[0].Text, c.says) ||
					!strings.Contains(found[0].Fix, c.fix) {
					t.Errorf("%+v", found)
				}
				behave = good
				if found := look(); len(found) != 1 || found[0].Level != OK {
					t.Errorf("after %q: %+v", c.fix, found)
				}
				close(p.done)
				_ = server.Close() // what it says is about the listener
				<-served
			})
		})
	}
}
