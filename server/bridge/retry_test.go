package bridge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/jsonrpc"
)

// TestBackoff: waits double up to a limit, the last one ends with the time that there is, and what the endpoint asks
// for is respected or is a reason to give up.
func TestBackoff(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for _, c := range []struct {
		name         string
		after, total time.Duration
		want         []time.Duration // 0: given up
	}{
		{"all", 0, retryFor, []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms,
			16000 * ms, 12250 * ms, 0}},
		{"short", 0, reachFor, []time.Duration{250 * ms, 500 * ms, 750 * ms, 0}},
		{"asked for", 5 * time.Second, retryFor, []time.Duration{5000 * ms, 5000 * ms, 5000 * ms, 5000 * ms, 5000 * ms,
			8000 * ms, 16000 * ms, 11000 * ms, 0}},
		{"too much asked for", time.Hour, retryFor, []time.Duration{0}},
		{"for ever", 0, 0, []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms,
			16000 * ms, 16000 * ms, 16000 * ms}},
		{"for ever, asked for", time.Hour, 0, []time.Duration{retryFor, retryFor}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var b backoff
			for i, want := range c.want {
				got, ok := b.next(c.after, c.total)
				if got != want || ok != (want > 0) {
					t.Fatalf("%s: wait %d is %s, want %s", c.name, i, got, want)
				}
				time.Sleep(got)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for v, want := range map[string]time.Duration{
			"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "soon": 0,
			"99999999999": 1 << 20 * time.Second,
			time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat): 90 * time.Second,
			time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat):       0,
		} {
			if got := retryAfter(http.Header{"Retry-After": {v}}); got != want {
				t.Errorf("%q: %s, want %s", v, got, want)
			}
		}
	})
}

// away are the ways in which an endpoint can be away before it answers.
var away = map[string]func(w http.ResponseWriter){
	"reset": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	"502":   func(w http.ResponseWriter) { w.WriteHeader(502) },
	"503":   func(w http.ResponseWriter) { w.WriteHeader(503) },
	"504":   func(w http.ResponseWriter) { w.WriteHeader(504) },
}

// TestRetries: what may be repeated is, after 0.25, 0.75 and 1.75 s; a call only if the endpoint said that it
// answers a repeated one with what the first did, and then with the same key each time.
func TestRetries(t *testing.T) {
	t.Parallel()
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","arguments":{}}}`
	for _, c := range []struct {
		name, hello, msg string
		repeated         bool
	}{
		{"list", welcome, `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, true},
		{"call", welcome, call, false},
		{"kept call", keeps, call, true},
	} {
		for how, fail := range away {
			t.Run(c.name+" "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					n := 0
					b := startBridge(t, Options{}, legacy(c.hello, func(w http.ResponseWriter, m posted) {
						if n++; n <= 3 {
							fail(w)
							return
						}
						echo(w, m)
					}))
					b.open(c.hello)
					began := time.Now()
					b.send(c.msg)
					got := b.receive()
					took := time.Since(began)
					b.done()
					var calls []posted
					for _, p := range b.all() {
						if string(p.ID) == "5" {
							calls = append(calls, p)
						}
					}
					if !c.repeated {
						if !strings.Contains(got, `"code":-32603`) || len(calls) != 1 || took != 0 {
							t.Errorf("%d attempts in %s: %s", len(calls), took, got)
						}
						if how == "reset" && !strings.Contains(got, "may have been done") {
							t.Errorf("nothing is said about what was done: %s", got)
						}
						return
					}
					if got != pong("5") || len(calls) != 4 || took != 1750*time.Millisecond {
						t.Errorf("%d attempts in %s: %s", len(calls), took, got)
					}
					for _, p := range calls[1:] {
						if p.body != calls[0].body {
							t.Errorf("repeated as %s, not %s", p.body, calls[0].body)
						}
					}
					env, bad := jsonrpc.Scan([]byte(calls[0].body))
					if bad != nil || env.HasCall != (c.name == "kept call") || env.HasCall && len(env.Call) != 26 {
						t.Errorf("key %q: %s", env.Call, calls[0].body)
					}
				})
			})
		}
	}
}

// TestKeepsTheClientsKey: a call that has a key of its own is sent as it is.
func TestKeepsTheClientsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, legacy(keeps, echo))
		b.open(keeps)
		call := callLine(5, "a", "{}", `"codehand/call":"mine-1"`)
		b.send(call)
		b.want(pong("5"))
		b.done()
		if got := b.only("tools/call")[0].body; got != call {
			t.Errorf("it became %s", got)
		}
	})
}

// TestGivesUp: after 60 s in all the request is answered; Retry-After is waited for, unless it is too long.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, after string
		took        time.Duration
		attempts    int
	}{
		{"away", "", 60 * time.Second, 10},
		{"asked to wait", "20", 60 * time.Second, 4},
		{"asked to wait too long", "61", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := startBridge(t, Options{}, legacy(welcome, func(w http.ResponseWriter, _ posted) {
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(503)
				}))
				b.open(welcome)
				began := time.Now()
				b.send(ping("5"))
				b.want(`{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"127.0.0.1:7433 answered 503 Service Unavailable"}}`)
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				b.done()
				if n := len(b.only("ping")); n != c.attempts {
					t.Errorf("%d attempts, want %d", n, c.attempts)
				}
			})
		})
	}
}

// TestUnreachable: an endpoint that was never there is given 1.5 s, and one that comes in this time is used.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{URL: "http://127.0.0.1:7433/mcp?key=hidden"}, legacy(welcome, echo))
		b.refuse(-1)
		b.send(helloLine)
		b.want(`{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"cannot reach http://127.0.0.1:7433/mcp/s/conversation: dial tcp: connection refused"}}`)
		if took := time.Since(b.dials[0]); took != reachFor {
			t.Errorf("it took %s", took)
		}
		b.refuse(2)
		b.open(welcome)
		// a restart later
		b.refuse(5)
		b.drop()
		began := time.Now()
		b.send(ping("1"))
		b.want(pong("1"))
		if took := time.Since(began); took != 7750*time.Millisecond {
			t.Errorf("after the restart it took %s", took)
		}
		b.done()
		if p := b.only("ping")[0]; p.path != "/mcp/s/conversation?key=hidden" {
			t.Errorf("the query was lost: %s", p.path)
		}
		if strings.Contains(b.log.String(), "hidden") {
			t.Error("the query is in the log")
		}
	})
}

// TestDenied: the client hears that it may not, and the operator with which token, once, and without the token.
func TestDenied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		token  string
		log    string
	}{
		{401, "secret", `token="the variable TEAM_TOKEN"`},
		{403, "secret", `token="the variable TEAM_TOKEN"`},
		{401, "", `token="none was given: use --token-env or --token-file"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := startBridge(t, Options{Token: func() string { return c.token }, TokenFrom: "the variable TEAM_TOKEN"},
				func(w http.ResponseWriter, _ posted) { http.Error(w, "go away", c.status) })
			for range 2 {
				b.send(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`)
				b.want(`{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"not authorised at 127.0.0.1:7433"}}`)
			}
			b.done()
			if n := len(b.all()); n != 2 {
				t.Errorf("%d attempts", n)
			}
			if text := b.log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, c.log) ||
				strings.Contains(text, "secret") {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}

// TestBrokenCall: a stream that breaks in mid-call is taken up again if the endpoint keeps calls, and otherwise
// the client hears that the call may have been done.
func TestBrokenCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hello, want string
		calls       int
	}{
		{keeps, pong("5"), 2},
		{welcome, "may have been done", 1},
	} {
		for _, clean := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				b := startBridge(t, Options{}, legacy(c.hello, func(w http.ResponseWriter, m posted) {
					write := answerStream(w)
					write(": keep-alive\n\n")
					if n++; n > 1 {
						write("data: " + pong("5") + "\n\n")
						return
					}
					write(`data: {"jsonrpc":"2.0","method":"notifications/x"}`+"\n\n", `data: {"jsonrpc":"2.0","id":5,`)
					if !clean {
						panic(http.ErrAbortHandler)
					}
				}))
				b.open(c.hello)
				b.send(callLine(5, "a", "{}", ""))
				b.want(`{"jsonrpc":"2.0","method":"notifications/x"}`)
				if got := b.receive(); !strings.Contains(got, c.want) {
					t.Errorf("got %s", got)
				}
				b.done()
				calls := b.only("tools/call")
				if len(calls) != c.calls || calls[0].body != calls[len(calls)-1].body {
					t.Errorf("%d calls: %+v", len(calls), calls)
				}
			})
		}
	}
}

// TestSilence: a stream of an endpoint that sends comments, on which nothing comes for a minute, is broken if the
// request may be repeated. A call that may not waits as long as it takes, and so does everything where no comments
// come.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, hello, method, comment string
		took                         time.Duration
		attempts                     int
	}{
		{"kept call", keeps, "tools/call", ": \n\n", 60*time.Second + 250*time.Millisecond, 2},
		{"list", welcome, "tools/list", ": \n\n", 60*time.Second + 250*time.Millisecond, 2},
		{"call", welcome, "tools/call", ": \n\n", time.Hour, 1},
		{"no comments", keeps, "tools/call", "", time.Hour, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				b := startBridge(t, Options{}, legacy(c.hello, func(w http.ResponseWriter, m posted) {
					write := answerStream(w)
					write(c.comment)
					if n++; n == 1 {
						select {
						case <-time.After(time.Hour):
						case <-m.ctx.Done():
							return
						}
					}
					write("data: " + pong("5") + "\n\n")
				}))
				b.open(c.hello)
				began := time.Now()
				b.send(`{"jsonrpc":"2.0","id":5,"method":"` + c.method + `","params":{"name":"a"}}`)
				b.want(pong("5"))
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				b.done()
				if got := len(b.only(c.method)); got != c.attempts {
					t.Errorf("%d attempts, want %d", got, c.attempts)
				}
			})
		})
	}
}

// TestAlive: comments keep a long call alive on the connection that it has.
func TestAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBridge(t, Options{}, legacy(keeps, func(w http.ResponseWriter, m posted) {
			write := answerStream(w)
			for range 180 {
				write(": keep-alive\n\n")
				time.Sleep(10 * time.Second)
			}
			write("data: " + pong("5") + "\n\n")
		}))
		b.open(keeps)
		b.send(callLine(5, "a", "{}", ""))
		b.want(pong("5"))
		b.done()
		if n := len(b.only("tools/call")); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

// remoteBridge runs a bridge on a real connection for one message, and returns its answer and what was logged.
func remoteBridge(t *testing.T, o Options, msg string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangAfter)
	defer cancel()
	in, out := io.Pipe()
	var lines strings.Builder
	ended := make(chan error, 1)
	o.EOFGrace = hangAfter
	go func() { ended <- Run(ctx, o, in, &lines) }()
	go func() {
		_, _ = io.WriteString(out, msg+"\n")
		_ = out.Close()
	}()
	err := <-ended
	_ = in.Close()
	return lines.String(), err
}

// TestRedirect: a redirect is followed on the same host, as the request that it was, and the token goes nowhere
// else.
func TestRedirect(t *testing.T) {
	t.Parallel()
	var foreign []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		foreign = append(foreign, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusOK)
	}))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			body, _ := io.ReadAll(r.Body)
			answerJSON(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":["%s","%s",%d]}`, r.Method,
				r.Header.Get("Authorization"), len(body)))
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), int(r.URL.Query().Get("code")[2]-'0')+300)
	}))
	defer s.Close()
	msg := ping("1")
	for _, c := range []struct{ to, code, want string }{
		{"/there", "307", fmt.Sprintf(`"result":["POST","Bearer secret",%d]`, len(msg))},
		{"/there", "308", `"result":["POST","Bearer secret"`},
		{"/there", "302", "redirected to another host or to a GET"},
		{"/there", "303", "redirected to another host or to a GET"},
		{other.URL, "307", "redirected to another host or to a GET"},
	} {
		got, err := remoteBridge(t, Options{URL: s.URL + "/here?code=" + c.code + "&to=" + c.to,
			Token: func() string { return "secret" }}, msg)
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s to %s: %s (%v)", c.code, c.to, got, err)
		}
	}
	if foreign != nil {
		t.Errorf("the other host was asked with %q", foreign)
	}
}

// TestTLS: a certificate of an unknown authority is refused at once, and --ca-file makes the authority known.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		answerJSON(w, 200, pong("1"))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	o := Options{URL: s.URL + "/mcp", Token: func() string { return "secret" }}
	if got, err := remoteBridge(t, o, ping("1")); err != nil || !strings.Contains(got, "cannot reach "+s.URL) ||
		!strings.Contains(got, "certificate") {
		t.Errorf("unknown authority: %s (%v)", got, err)
	}
	o.CAs = x509.NewCertPool()
	if !o.CAs.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})) {
		t.Fatal("no certificate")
	}
	if got, err := remoteBridge(t, o, ping("1")); err != nil || got != pong("1")+"\n" {
		t.Errorf("known authority: %s (%v)", got, err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	o.URL = strings.Replace(plain.URL, "http:", "https:", 1) + "/mcp"
	if got, err := remoteBridge(t, o, ping("1")); err != nil || !strings.Contains(got, "cannot reach ") {
		t.Errorf("no TLS: %s (%v)", got, err)
	}
	if v := newTransport(nil).TLSClientConfig.MinVersion; v < tls.VersionTLS12 {
		t.Errorf("TLS %x", v)
	}
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, want string }{
		{"https://h/mcp", "https://h/mcp/s/conversation"},
		{"https://h/mcp/", "https://h/mcp/s/conversation"},
		{"https://h/team/mcp?x=1#f", "https://h/team/mcp/s/conversation?x=1"},
		{"https://h/", "https://h/"},
		{"https://h/mcp/s/mine-mine", "https://h/mcp/s/mine-mine"},
		{"https://h/xmcp", "https://h/xmcp"},
		{"http://[::1]:7433/mcp", "http://[::1]:7433/mcp/s/conversation"},
		{"ftp://h/mcp", ""}, {"h/mcp", ""}, {"https:///mcp", ""}, {"https:h", ""}, {"https://h:x/", ""}, {"", ""}, {"http://user:pass@h/mcp", ""}, {"http://user:pass@h:x/mcp", ""},
	} {
		u, err := endpoint(c.raw, "conversation")
		if c.want == "" {
			if err == nil || strings.Contains(err.Error(), "pass@") {
				t.Errorf("%s: %v %v", c.raw, u, err)
			}
		} else if err != nil || u.String() != c.want {
			t.Errorf("%s: %v %v, want %s", c.raw, u, err, c.want)
		}
	}
	if _, err := endpoint("https://h/mcp", "short"); err == nil {
		t.Error("a handle that is none is taken")
	}
}

// TestClearToken: a token is not sent in clear to another machine.
func TestClearToken(t *testing.T) {
	t.Parallel()
	token := func() string { return "secret" }
	for _, c := range []struct {
		url      string
		insecure bool
		token    func() string
		err      error
	}{
		{"http://h.invalid/mcp", false, token, errClearToken},
		{"http://10.0.0.1/mcp", false, token, errClearToken},
		{"http://localhost.invalid/mcp", false, token, errClearToken},
		{"http://h.invalid/mcp", true, token, nil},
		{"http://h.invalid/mcp", false, nil, nil},
		{"https://h.invalid/mcp", false, token, nil},
		{"http://127.0.0.1/mcp", false, token, nil},
		{"http://127.8.8.8/mcp", false, token, nil},
		{"http://[::1]/mcp", false, token, nil},
		{"http://[::ffff:127.0.0.1]/mcp", false, token, nil},
		{"http://LocalHost:1/mcp", false, token, nil},
	} {
		err := Run(t.Context(), Options{URL: c.url, Insecure: c.insecure, Token: c.token}, strings.NewReader(""),
			io.Discard)
		if !errors.Is(err, c.err) {
			t.Errorf("%s, insecure %t: %v, want %v", c.url, c.insecure, err, c.err)
		}
	}
	// a token that comes later
	late := ""
	p, err := newRemote(Options{URL: "http://h.invalid/mcp", Session: "conversation", Token: func() string { return late },
		Base: roundTrip(func(*http.Request) (*http.Response, error) {
			t.Error("it was sent")
			return nil,
				errors.ErrUnsupported
		})})
	if err != nil {
		t.Fatal(err)
	}
	late = "secret"
	if resp, err := p.send(t.Context(), http.MethodPost, http.Header{}, nil); !errors.Is(err, errClearToken) {
		_ = resp.Body.Close()
		t.Errorf("got %v", err)
	}
}

// A roundTrip is a RoundTripper made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHostPort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"http://h/a", "http://h/b", true}, {"http://h/a", "https://h/a", true}, {"http://H:80/a", "https://h:443/a", true},
		{"https://h/a", "http://h/a", false}, {"https://h/a", "https://h:8443/a", false}, {"https://h/a", "https://i/a", false},
		{"http://h:7433/a", "http://h/a", false}, {"https://[::1]/a", "https://[::1]:443/b", true},
	} {
		from, err := http.NewRequest(http.MethodPost, c.from, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, err := http.NewRequest(http.MethodPost, c.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkRedirect(to, []*http.Request{from}); (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	many, _ := http.NewRequest(http.MethodPost, "http://h/a", nil)
	if checkRedirect(many, slices.Repeat([]*http.Request{many}, 5)) == nil {
		t.Error("no end to redirects")
	}
}
