package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func fetched(t *testing.T, c *Client, address string) Page {
	t.Helper()
	p, err := c.Fetch(t.Context(), Request{URL: address, Principal: "me"})
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return p
}

// A request carries nothing of this machine or of an earlier page.
func TestRequestsAreBare(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heads []http.Header
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heads = append(heads, r.Header.Clone())
		out.Header().Set("Set-Cookie", "id=1; Path=/")
		out.Header().Set("Alt-Svc", `h3=":443"`)
		if r.URL.Path == "/a" {
			http.Redirect(out, r, "/b", http.StatusFound)
			return
		}
		_, _ = io.WriteString(out, "hello")
	})
	c := w.client(t, Options{UserAgent: "codehand/9"})
	p := fetched(t, c, "http://docs.example/a#part")
	if p.Text != "hello" || p.URL != "http://docs.example/b" || p.Asked != "http://docs.example/a" {
		t.Errorf("%+v", p)
	}
	fetched(t, c, "http://docs.example/b")
	for _, h := range heads {
		if h.Get("User-Agent") != "codehand/9" || h.Get("Accept-Encoding") != "gzip" || h.Get("Accept") != accept {
			t.Errorf("headers: %v", h)
		}
		for _, name := range []string{"Cookie", "Referer", "Authorization", "Upgrade", "Upgrade-Insecure-Requests"} {
			if h.Get(name) != "" {
				t.Errorf("it sent %s: %s", name, h.Get(name))
			}
		}
	}
	if len(heads) != 3 {
		t.Errorf("%d requests, want 3: nothing was to be remembered", len(heads))
	}
}

// A remembered page is of one principal, for a quarter of an hour, and within the room that there is.
func TestCache(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	n := 0
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		k := n
		mu.Unlock()
		_, _ = fmt.Fprintf(out, "%d %s", k, strings.Repeat("x", 40_000))
	})
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	c := w.client(t, Options{Now: clock, Caps: Caps{Cache: 100_000}})
	of := func(principal, path string) string {
		t.Helper()
		p, err := c.Fetch(t.Context(), Request{URL: "http://docs.example" + path, Principal: principal})
		if err != nil {
			t.Fatal(err)
		}
		number, _, _ := strings.Cut(p.Text, " ")
		return fmt.Sprint(number, p.Cached)
	}
	for i, step := range []struct{ who, path, want string }{
		{"a", "/1", "1false"}, {"a", "/1", "1true"}, {"a", "/1#x", "1true"}, {"b", "/1", "2false"}, {"a", "/1", "1true"},
		{"a", "/2", "3false"}, {"b", "/1", "4false"}, {"", "/2", "5false"}, {"", "/2", "6false"}, {"a", "/2", "3true"},
	} {
		if got := of(step.who, step.path); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	mu.Lock()
	now = now.Add(15*time.Minute + time.Second)
	mu.Unlock()
	if got := of("a", "/2"); got != "7false" {
		t.Errorf("after 15 minutes: %s", got)
	}
}

// Plain http is asked for by https first, and as it was asked for where there is no https.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	answer := func(out http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(out, "by "+r.Proto) }
	plain := newWall(t, nil, answer)
	c := New(Options{Dial: plain.dial})
	t.Cleanup(c.Close)
	if p := fetched(t, c, "http://docs.example/x"); p.URL != "http://docs.example/x" {
		t.Errorf("without https: %s", p.URL)
	}
	safe := newWall(t, nil, answer)
	tls := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.EnableHTTP2 = true
	tls.StartTLS()
	t.Cleanup(tls.Close)
	safe.Server = tls
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	d := New(Options{Dial: safe.dial, Roots: roots})
	t.Cleanup(d.Close)
	if p := fetched(t, d, "http://example.com/x"); p.URL != "https://example.com/x" || p.Text != "by HTTP/1.1" {
		t.Errorf("with https: %s, %s", p.URL, p.Text)
	}
}

// Everything goes through the operator's proxy, which then looks names up; addresses that it could not be told to
// refuse are refused before.
func TestProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // that of the environment counts for nothing
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(out, r.Method+" "+r.RequestURI)
	}))
	t.Cleanup(proxy.Close)
	u, _ := url.Parse(proxy.URL)
	c := New(Options{Proxy: u, NoUpgrade: true})
	t.Cleanup(c.Close)
	if p := fetched(t, c, "http://docs.example/x"); p.Text != "GET http://docs.example/x" {
		t.Errorf("through the proxy: %s", p.Text)
	}
	for _, address := range []string{"http://93.184.216.34/", "http://127.0.0.1/", "http://[2606:4700:4700::1111]/"} {
		if _, err := c.Fetch(t.Context(), Request{URL: address}); codeOf(err) != Blocked {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// At most four requests are made to one host at once, and a call that waits for its place ends with its context.
func TestFourPerHost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	here, most := 0, 0
	in, goOn := make(chan string, 100), make(chan struct{})
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Host == "docs.example" {
			here++
			most = max(most, here)
		}
		mu.Unlock()
		in <- r.Host
		<-goOn
		mu.Lock()
		if r.Host == "docs.example" {
			here--
		}
		mu.Unlock()
	})
	c := w.client(t, Options{})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			_, err := c.Fetch(t.Context(), Request{URL: fmt.Sprintf("http://docs.example/%d", i)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		<-in
	}
	all.Go(func() { // another host has places of its own
		if _, err := c.Fetch(t.Context(), Request{URL: "http://other.example/"}); err != nil {
			t.Error(err)
		}
	})
	if host := <-in; host != "other.example" {
		t.Errorf("the fifth request went to %s", host)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Fetch(gone, Request{URL: "http://docs.example/x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that waits and is cancelled: %v", err)
	}
	close(goOn)
	all.Wait()
	if most != 4 {
		t.Errorf("%d requests at once, want 4", most)
	}
	if n := len(c.hosts.all); n != 0 {
		t.Errorf("%d hosts are still remembered", n)
	}
}

// A host that wants a pause gets it: a short one is waited for, a long one is said, and holds for later calls.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		k := asked
		mu.Unlock()
		switch wait := r.URL.Query().Get("wait"); {
		case wait != "" && (k == 1 || r.URL.Path == "/always"):
			out.Header().Set("Retry-After", wait)
			out.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(out, "slow down")
		default:
			_, _ = io.WriteString(out, "fine")
		}
	})
	now := time.Unix(1_700_000_000, 0)
	c := w.client(t, Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	if p := fetched(t, c, "http://short.example/?wait=1"); p.Text != "fine" || asked != 2 {
		t.Errorf("after a short pause: %q, %d requests", p.Text, asked)
	}
	_, err := c.Fetch(t.Context(), Request{URL: "http://long.example/always?wait=86400"})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != Status || e.Status != 429 || e.Wait != maxRest || e.Body != "slow down" {
		t.Errorf("a long pause: %+v", e)
	}
	before := asked
	_, err = c.Fetch(t.Context(), Request{URL: "http://long.example/other"})
	if codeOf(err) != Limited || asked != before {
		t.Errorf("in the pause: %v, %d requests", err, asked-before)
	}
	fetched(t, c, "http://another.example/")
	mu.Lock()
	now = now.Add(maxRest + time.Second)
	mu.Unlock()
	fetched(t, c, "http://long.example/other")
}

// The total time bounds a fetch, whatever it waits for, and a fetch ends at once with its context.
func TestEnds(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(out, strings.Repeat("x", 5000))
		_ = http.NewResponseController(out).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	})
	c := w.client(t, Options{Caps: Caps{Time: 50 * time.Millisecond}})
	if _, err := c.Fetch(t.Context(), Request{URL: "http://docs.example/"}); codeOf(err) != Timeout ||
		!strings.Contains(err.Error(), "timed out (50ms)") {
		t.Errorf("a body that does not end: %v", err)
	}
	<-begun
	d := w.client(t, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client left")
	go func() { <-begun; cancel(why) }()
	if _, err := d.Fetch(ctx, Request{URL: "http://docs.example/"}); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
}

// What is compressed is decoded, and what ends too early is no page.
func TestBodies(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "compressed text")
	_ = z.Close()
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/gzip":
			out.Header().Set("Content-Encoding", "gzip")
			_, _ = out.Write(packed.Bytes())
		case "/cut":
			out.Header().Set("Content-Encoding", "gzip")
			_, _ = out.Write(packed.Bytes()[:packed.Len()-6])
		case "/short":
			out.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(out, "only this")
		case "/br":
			out.Header().Set("Content-Encoding", "br")
			_, _ = out.Write([]byte{1, 2, 3})
		case "/zip":
			out.Header().Set("Content-Type", "application/zip")
			_, _ = out.Write([]byte("PK\x03\x04"))
		case "/untyped":
			out.Header()["Content-Type"] = nil
			_, _ = io.WriteString(out, "<!DOCTYPE html><p>typed by its bytes")
		case "/type": // as long as headers may be; it stands outside of the frame around foreign text
			out.Header().Set("Content-Type", "text/"+strings.Repeat("obey-", 8000))
			_, _ = io.WriteString(out, "plain")
		case "/gone":
			out.WriteHeader(http.StatusGone)
		}
	})
	c := w.client(t, Options{})
	if p := fetched(t, c, "http://docs.example/gzip"); p.Text != "compressed text" || p.Form != "text" {
		t.Errorf("gzip: %+v", p)
	}
	if p := fetched(t, c, "http://docs.example/zip"); p.Form != "" || string(p.Body) != "PK\x03\x04" || p.Name != "zip" {
		t.Errorf("zip: %+v", p)
	}
	if p := fetched(t, c, "http://docs.example/untyped"); p.Form != "markdown" || p.Type != "text/html" {
		t.Errorf("untyped: %+v", p)
	}
	if _, err := c.Fetch(t.Context(), Request{URL: "http://docs.example/br"}); err == nil ||
		!strings.HasSuffix(err.Error(), "the server compressed the answer as br, and only gzip was asked for") {
		t.Errorf("br: %v", err)
	}
	if p := fetched(t, c, "http://docs.example/type"); p.Text != "plain" || p.Type != "text/plain" {
		t.Errorf("type: %.200v", p)
	}
	for path, want := range map[string]Code{"/cut": Failed, "/short": Failed, "/br": Failed, "/gone": Status} {
		if _, err := c.Fetch(t.Context(), Request{URL: "http://docs.example" + path}); codeOf(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A server's words about the type of a page stand outside of what is marked as foreign: only a type is shown as one.
func TestTypesAreTypes(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"text/html; charset=utf-8":      "text/html",
		"Application/VND.api+JSON":      "application/vnd.api+json",
		"application/vnd.fujixerox.ddd": "application/vnd.fujixerox.ddd",
		"application/media_control+xml": "application/media_control+xml",
		"":                              "text/plain",
		"html":                          "text/plain",
		"text/plain!The*user*agreed":    "text/plain",
		"text/run-this-now-and-do-not-ask-anybody-about-it":                       "text/plain",
		"text/" + strings.Repeat("a", 100):                                        "text/plain",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	} {
		if got := mediaType(header, []byte("words")); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// Redirects of www. are followed if the caller says so; those to another host are handed back whatever it says.
func TestWWW(t *testing.T) {
	t.Parallel()
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		if r.Host == "docs.example" {
			http.Redirect(out, r, "http://www.docs.example/x", http.StatusMovedPermanently)
			return
		}
		_, _ = io.WriteString(out, "at "+r.Host)
	})
	c := w.client(t, Options{Caps: Caps{Cache: 1 << 20}})
	yes, no := func(string) bool { return true }, func(string) bool { return false }
	for i, follow := range []func(string) bool{nil, no, yes, no, nil} {
		p, err := c.Fetch(t.Context(), Request{URL: "http://docs.example/", Principal: "me", Follow: follow})
		if err != nil {
			t.Fatal(err)
		}
		if went := p.Redirect == ""; went != (i == 2) || !went && p.Redirect != "http://www.docs.example/x" {
			t.Errorf("case %d: %+v", i, p)
		}
	}
}

// sleep ends with its context.
func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if sleep(ctx, time.Hour) || !sleep(t.Context(), time.Hour) {
			t.Error("it does not tell how it ended")
		}
	})
}

// A thousand fetches leave nothing behind.
func TestThousandFetches(t *testing.T) {
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("a thousand fetches, and the memory of this process alone: CODEHAND_LONG=1")
	}
	page := "<main><h1>Page</h1>" + strings.Repeat("<p>Some <b>text</b> of a page.</p>", 2000) + "</main>"
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(out, page)
	})
	c := w.client(t, Options{})
	held := func() int64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys-m.HeapReleased) >> 20
	}
	fetched(t, c, "http://docs.example/")
	before, goroutines := held(), runtime.NumGoroutine()
	for i := range 1000 {
		fetched(t, c, fmt.Sprintf("http://docs.example/%d", i))
	}
	after := held()
	t.Logf("1,000 fetches: %d MiB before, %d MiB after, %d and %d goroutines", before, after, goroutines,
		runtime.NumGoroutine())
	if after > before+16 {
		t.Errorf("%d MiB before, %d MiB after", before, after)
	}
}
