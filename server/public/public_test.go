package public

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// far is the URL of the tests. No request leaves them.
const far = "https://tools.example.com/a"

// A world is what stands at a URL, as the client of a Check meets it.
type world func(*http.Request) (*http.Response, error)

func (w world) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w(r)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

// page is an answer.
func page(status int, kind, body string, header ...string) world {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {kind}}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func fails(err error) world {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// served is what the process of p answers.
func served(p *Prover) world {
	return func(r *http.Request) (*http.Response, error) {
		nonce, ok := strings.CutPrefix(r.URL.Path, "/a"+Path)
		if !ok {
			return page(http.StatusNotFound, "application/json", "{}")(r)
		}
		body, _ := p.Answer(nonce)
		return page(http.StatusOK, "application/json", string(body))(r)
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }
func (endless) Close() error               { return nil }

// TestCheckFailures: whatever else stands at the URL is told apart from this process, with something to do.
func TestCheckFailures(t *testing.T) {
	t.Parallel()
	const html = "text/html; charset=utf-8"
	mine, other := NewProver(far), NewProver(far)
	stale, _ := mine.Answer(NewNonce())
	for name, c := range map[string]struct {
		world     world
		says, fix string
	}{
		"another codehand": {served(other), "reaches another codehand (instance " + other.Instance(), "end the other one"},
		"a cache":          {page(200, "application/json", string(stale)), "without a proof for this challenge", "cache"},
		"not JSON":         {page(200, "text/plain", "ok"), "without a proof", "point it at this process"},
		"forged": {func(r *http.Request) (*http.Response, error) {
			body, _ := other.Answer(strings.TrimPrefix(r.URL.Path, "/a"+Path))
			var w wireProof
			_ = json.Unmarshal(body, &w)
			var own wireProof
			_ = json.Unmarshal(stale, &own)
			w.Key = own.Key // ours, and a signature by another key
			body, _ = json.Marshal(w)
			return page(200, "application/json", string(body))(r)
		}, "without a proof", "point it at this process"},
		"ngrok's warning": {page(200, html, "<html>You are about to visit x.ngrok-free.app"), "a page of ngrok", "another tunnel"},
		"ngrok's error":   {page(404, html, "<html>", "Ngrok-Error-Code", "ERR_NGROK_3200"), "HTTP 404", "pass everything on"},
		"a login page":    {page(200, html, "<html>Log in"), "answers with a web page", "turn it off"},
		"huge": {func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: endless{}}, nil
		}, "more than a proof has", "compare the URL"},
		"redirect":            {page(302, html, "", "Location", "https://login.example.net/x?secret=1"), "redirects to https://login.example.net; clients", "Cloudflare Access"},
		"redirect to nowhere": {page(307, html, ""), "redirects elsewhere", "give the URL that answers"},
		"another name":        {page(403, "application/json", `{"error":{"code":"forbidden_host"}}`), "does not serve this name", "Host header"},
		"a login":             {page(401, html, ""), "a login of its own", "turn that login off"},
		"bad gateway":         {page(502, html, ""), "does not reach this process", "point it at the address"},
		"Cloudflare 1033":     {page(530, html, "error code: 1033"), "does not reach this process", "point it at the address"},
		"not found":           {page(404, html, ""), "HTTP 404, so something else", "/.well-known/"},
		"refused":             {fails(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), "nothing listens there", "start the tunnel"},
		"no name":             {fails(&net.DNSError{IsNotFound: true}), "there is no such name", "takes a minute"},
		"self-signed":         {fails(x509.UnknownAuthorityError{}), "signed by nobody", "public authority"},
		"expired":             {fails(x509.CertificateInvalidError{Reason: x509.Expired}), "not valid now", "renew it"},
		"of another name":     {fails(x509.HostnameError{Certificate: &x509.Certificate{}}), "for another name", "get a certificate"},
		"broken":              {fails(errors.New("tls: handshake failure")), "handshake failure", "start the tunnel"},
		"slow": {func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, "no answer within 10s", "start the tunnel"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, told := time.Now(), 0
				err := Check{URL: far, Prover: mine, Wait: 30 * time.Second, transport: c.world,
					Trying: func(error) { told++ }}.Run(t.Context())
				f, ok := errors.AsType[*Failure](err)
				if !ok || !strings.Contains(f.Text, c.says) || !strings.Contains(f.Fix, c.fix) {
					t.Errorf("got %+v", err)
				}
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("it repeats what a stranger sent: %v", err)
				}
				if d := time.Since(begun); d < 30*time.Second || d > 30*time.Second+tryTime || told != 1 {
					t.Errorf("ended after %s, told %d times", d, told)
				}
			})
		})
	}
}

// TestCheckWaits: a tunnel takes a while.
func TestCheckWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, begun := NewProver(far), time.Now()
		var at world = func(r *http.Request) (*http.Response, error) {
			if time.Since(begun) < 12*time.Second {
				return page(http.StatusBadGateway, "text/html", "")(r)
			}
			return served(p)(r)
		}
		if err := (Check{URL: far, Prover: p, Wait: time.Minute, transport: at}).Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCheckEnds: it does not outlive its context.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := Check{URL: far, Prover: NewProver(far), Wait: time.Hour, transport: page(502, "text/html", "")}.Run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestUsable(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"https://tools.example.com": true, "https://tools.example.com/a": true, "http://localhost:7433": true, "http://127.0.0.1:1": true,
		"http://[::1]:1": true, "http://a.localhost": true, "http://tools.example.com": false, "http://localhost.example.com": false,
		"http://192.168.0.7": false, "tools.example.com": false, "ftp://a": false, "": false, "--listen": false, "https://": false,
		"http://0.0.0.0:1": false,
	} {
		if err := Usable(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestAnswer: only a nonce is signed, and a proof is good for its own nonce and text alone.
func TestAnswer(t *testing.T) {
	t.Parallel()
	p := NewProver(far)
	for _, nonce := range []string{"", "a", NewNonce() + "A", NewNonce()[1:], NewNonce() + "=", strings.Repeat("/", 43), "../" + NewNonce()} {
		if _, ok := p.Answer(nonce); ok {
			t.Errorf("%q was signed", nonce)
		}
	}
	nonce := NewNonce()
	body, ok := p.Answer(nonce)
	proof, err := Verify(body, nonce)
	if !ok || err != nil || proof != (Proof{URL: far, Instance: p.Instance()}) {
		t.Fatalf("%v %v %s", proof, err, body)
	}
	for _, bad := range [][]byte{
		bytes.Replace(body, []byte("tools"), []byte("evils"), 1), []byte("{}"), nil, []byte("[]"), bytes.Replace(body, []byte(`"key":"`), []byte(`"key":"A`), 1),
	} {
		if _, err := Verify(bad, nonce); err == nil {
			t.Errorf("accepted %s", bad)
		}
	}
	if _, err := Verify(body, NewNonce()); err == nil {
		t.Error("a proof is good for another nonce")
	}
}

// FuzzVerify: whatever stands at the URL, it is no proof, and no panic.
func FuzzVerify(f *testing.F) {
	p, nonce := NewProver(far), NewNonce()
	body, _ := p.Answer(nonce)
	f.Add(body)
	f.Add([]byte(`{"key":"","signature":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if proof, err := Verify(text, nonce); err == nil && proof != (Proof{far, p.Instance()}) {
			t.Errorf("%s proves %v", text, proof)
		}
	})
}

// TestCheckReal: over a connection, and not through a redirect.
func TestCheckReal(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := (&url.URL{Scheme: "http", Host: l.Addr().String()}).String()
	p := NewProver(at)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := p.Answer(strings.TrimPrefix(r.URL.Path, Path))
		if !ok || r.UserAgent() != "codehand test" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(body)
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() { _ = s.Close(); <-done }()
	if err := (Check{URL: at, Prover: p, Agent: "codehand test"}).Run(t.Context()); err != nil {
		t.Error(err)
	}
}
