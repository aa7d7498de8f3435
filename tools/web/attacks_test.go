package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"codehand/tools/web/guard"
)

// A wall is a network of the test's own: names lead to addresses, and an address that the client accepts leads to one
// server on loopback, so that a test sees what would have been reached.
type wall struct {
	*httptest.Server
	mu      sync.Mutex
	names   map[string][][]string // answers of a name server, each for one look-up; the last one stays
	reached []string              // addresses that were accepted
	asked   []string              // host and path of each request
}

const publicAddress = "93.184.216.34"

func newWall(t *testing.T, names map[string][][]string, answer http.HandlerFunc) *wall {
	t.Helper()
	w := &wall{names: names}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.Host+r.URL.Path)
		w.mu.Unlock()
		answer(out, r)
	}))
	w.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.Start()
	t.Cleanup(w.Close)
	return w
}

// dial is Options.Dial: it looks up, has each address checked, and goes on with the first that is accepted.
func (w *wall) dial(ctx context.Context, network, address string, check Check) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		w.mu.Lock()
		answers := w.names[strings.TrimSuffix(host, ".")]
		if len(answers) > 1 {
			w.names[host] = answers[1:]
		}
		w.mu.Unlock()
		if addresses = []string{publicAddress}; len(answers) > 0 {
			addresses = answers[0]
		}
	}
	var last error
	for _, a := range addresses {
		kind := "tcp4"
		if strings.Contains(a, ":") {
			kind = "tcp6"
		}
		if last = check(kind, net.JoinHostPort(a, port), nil); last != nil {
			continue
		}
		w.mu.Lock()
		w.reached = append(w.reached, a)
		w.mu.Unlock()
		var d net.Dialer
		return d.DialContext(ctx, "tcp", w.Listener.Addr().String())
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: last}
}

func (w *wall) seen() (reached, asked string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.reached, " "), strings.Join(w.asked, " ")
}

func (w *wall) client(t *testing.T, o Options) *Client {
	t.Helper()
	o.Dial, o.NoUpgrade = w.dial, true
	if o.Caps.Cache == 0 {
		o.Caps.Cache = -1
	}
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

func codeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// privateAddresses are addresses that no default opens.
var privateAddresses = strings.Fields(`
0.0.0.0 0.1.2.3 10.0.0.1 10.96.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.0.0.11 127.0.0.53 127.1.2.3
127.255.255.255 168.63.129.16 169.254.0.23 169.254.42.42 169.254.169.123 169.254.169.254 169.254.170.2 169.254.170.23 172.16.0.1 172.17.0.1
172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.122.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1
203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1
64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::a00:1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 2002:a9fe:a9fe::1 3fff::1
fc00::1 fd00::1 fd00:c1::a9fe:a9fe fd00:ec2::23 fd00:ec2::254 fd00:42::42 fd20:ce::254 fe80::1 fe80::a9fe:a9fe fec0::1 ff02::1`)

// No private address is connected to, as a literal in a URL or behind a name, alone or beside others, and through the
// real dialer with a name server of the test's own, too (SEC-30).
func TestSEC30Client(t *testing.T) {
	t.Parallel()
	if len(privateAddresses) < 60 {
		t.Errorf("%d addresses, want at least 60", len(privateAddresses))
	}
	names := map[string][][]string{"all.example.com": {privateAddresses}}
	for i, a := range privateAddresses {
		names[fmt.Sprintf("n%d.example.com", i)] = [][]string{{a}}
	}
	w := newWall(t, names, func(http.ResponseWriter, *http.Request) {})
	c := w.client(t, Options{})
	real := New(Options{NoUpgrade: true, Resolver: resolver(t, names)})
	t.Cleanup(real.Close)
	urls := []string{"http://all.example.com/", "https://all.example.com/"}
	for i, a := range privateAddresses {
		urls = append(urls, fmt.Sprintf("http://n%d.example.com/", i), fmt.Sprintf("https://n%d.example.com/", i))
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		urls = append(urls, "http://"+a+"/", "https://"+a+"/latest/meta-data/")
	}
	for _, u := range urls {
		for name, c := range map[string]*Client{"wall": c, "real": real} {
			if _, err := c.Fetch(t.Context(), Request{URL: u}); codeOf(err) != Blocked {
				t.Errorf("%s: %s: %v, want %s", name, u, err, Blocked)
			}
		}
	}
	if reached, asked := w.seen(); reached+asked != "" {
		t.Errorf("reached %q, asked %q", reached, asked)
	}
}

// resolver asks a name server on loopback.
func resolver(t *testing.T, names map[string][][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		b := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			q := m.Questions[0]
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			for _, text := range names[strings.TrimSuffix(q.Name.String(), ".")][0] {
				switch a, err := netip.ParseAddr(text); {
				case err != nil:
				case q.Type == dnsmessage.TypeA && a.Is4():
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
				case q.Type == dnsmessage.TypeAAAA && a.Is6():
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
				}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); served.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

// No URL of these is asked for: each is refused before a look-up (SEC-30).
func TestSEC30ClientURLs(t *testing.T) {
	t.Parallel()
	w := newWall(t, nil, func(http.ResponseWriter, *http.Request) {})
	c := w.client(t, Options{})
	urls := []string{
		"http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7F.1/", "http://127.1/", "http://127.0.1/", "http://0177.0.0.1/",
		"http://127.0.0.1./", "http://127.0.0.1../", "http://127.0.0.01/", "http://127.0.0.1:80/", "https://127.0.0.1:443/", "http://①②⑦.⓪.⓪.①/", "http://１２７.０.０.１/",
		"http://127。0。0。1/", "http://१२७.०.०.१/", "http://١٢٧.٠.٠.١/", "http://[::1]:80/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
		"http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://[fe80::1%25eth0]/", "http://[::1%25lo]/", "http://[127.0.0.1]/", "http://::1/",
		"http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://localhost.localdomain/", "http://ip6-localhost/", "http://printer.local/", "http://metadata.google.internal/",
		"http://kubernetes.default.svc.cluster.local/", "http://intranet/", "http://ｌｏｃａｌｈｏｓｔ/", "http://user:pw@example.com/", "http://example.com@127.0.0.1/", "http://@example.com/",
		"http://127.0.0.1\\@example.com/", "http://example.com:22/", "http://example.com:6379/", "http://example.com:0/", "http://example.com:/", "http://%31%32%37.0.0.1/", "http://127.0.0.1%00.example.com/",
		"http://127.0.0.1%2f.example.com/", "http://exa mple.com/", "http://example.com/\r\nX: y", "http://example..com/", "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_x",
		"javascript:alert(1)", "data:text/html,x", "unix:///run/docker.sock", "//example.com/", "example.com", "", "http://", "http:///etc/passwd", "http://example.com/" + strings.Repeat("a", 2000),
	}
	if len(urls) < 40 {
		t.Errorf("%d URLs, want at least 40", len(urls))
	}
	for _, u := range urls {
		if _, err := c.Fetch(t.Context(), Request{URL: u}); codeOf(err) != Invalid && codeOf(err) != Blocked {
			t.Errorf("%q: %v", u, err)
		}
	}
	if reached, asked := w.seen(); reached+asked != "" {
		t.Errorf("reached %q, asked %q", reached, asked)
	}
	t.Logf("%d addresses, %d URLs: 0 connections", len(privateAddresses), len(urls))
}

// A name that leads to a public address first and to a private one later, or to both at once, gains nothing, and neither
// does a server that names another one in Alt-Svc (SEC-30).
func TestSEC30ClientRebinding(t *testing.T) {
	t.Parallel()
	w := newWall(t, map[string][][]string{
		"rebind.example.com": {{publicAddress}, {"127.0.0.1"}, {"169.254.169.254"}, {"::ffff:10.0.0.1"}},
		"mixed.example.com":  {{"127.0.0.1", "10.0.0.1", publicAddress}},
	}, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Alt-Svc", `h2="127.0.0.1:443"; ma=3600, h3=":443"`)
		fmt.Fprint(out, "page")
	})
	c := w.client(t, Options{})
	for i, want := range []Code{"", Blocked, Blocked, Blocked} {
		if p, err := c.Fetch(t.Context(), Request{URL: "http://rebind.example.com/"}); codeOf(err) != want || err == nil && p.Text != "page" {
			t.Errorf("fetch %d: %q, %v; want %q", i, p.Text, err, want)
		}
	}
	for range 2 {
		if _, err := c.Fetch(t.Context(), Request{URL: "http://mixed.example.com/"}); err != nil {
			t.Error(err)
		}
	}
	if reached, _ := w.seen(); reached != strings.TrimSpace(strings.Repeat(publicAddress+" ", 3)) {
		t.Errorf("reached %s", reached)
	}
}

// A chain of redirects leads to no private place: what is refused as a URL is refused as a hop, and another host is
// handed back without a look-up (SEC-30, SEC-32).
func TestSEC30Redirects(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]Code{
		"http://127.0.0.1/": Blocked, "http://169.254.169.254/latest/meta-data/": Blocked, "http://[::1]/": Blocked, "http://[::ffff:169.254.169.254]/": Blocked,
		"http://localhost/": Blocked, "http://metadata.google.internal/": Blocked, "//127.0.0.1/": Blocked, "https://10.0.0.1/": Blocked, "http://[fd00:ec2::254]/": Blocked,
		"http://2130706433/": Failed, "http://0x7f.1/": Failed, "http://u:p@example.com/": Failed, "http://example.com:22/": Failed, "file:///etc/passwd": Failed,
		"gopher://example.com/": Failed, "javascript:alert(1)": Failed, "http://१२७.०.०.१/": Failed, "http://[fe80::1%25eth0]/": Failed, "http:///x": Failed, "http://\x01/": Failed,
		"http://other.example.net/": "", "https://evil-example.com/": "", "http://example.com.evil.net/": "", "http://www.example.com/": "", "http://private.example.net/": "",
	} {
		for _, hops := range []int{0, 4} {
			w := newWall(t, map[string][][]string{"private.example.net": {{"127.0.0.1"}}}, func(out http.ResponseWriter, r *http.Request) {
				next := to
				if n := len(strings.Trim(r.URL.Path, "/")); n < hops {
					next = "/" + strings.Repeat("x", n+1)
				}
				out.Header()["Location"] = []string{next}
				out.WriteHeader(http.StatusFound)
			})
			p, err := w.client(t, Options{}).Fetch(t.Context(), Request{URL: "http://example.com/"})
			if codeOf(err) != want || want == "" && (p.Redirect == "" || p.Text != "") {
				t.Errorf("%d hops to %q: %+v, %v; want %q", hops, to, p, err, want)
			}
			reached, asked := w.seen()
			if strings.ReplaceAll(reached, publicAddress, "") != strings.Repeat(" ", strings.Count(reached, " ")) || strings.Count(asked, "example.com/") != hops+1 || strings.Contains(asked, "evil") {
				t.Errorf("%d hops to %q: reached %q, asked %q", hops, to, reached, asked)
			}
		}
	}
}

// brotliBomb is the letter a 64 Mi times.
const brotliBomb = "\xcf\xff\xff\x7f\xf8\x25\xc2\xe2\xb1\x40\x20\xf7\xfe\x9f\xff\xff\xff\xf0\x4b\x00\xc4\x61\x01\x80\xee" +
	"\xfd\x3f\xff\xff\xff\xe1\x97\x00\x88\xc3\x22\x00\xdd\xfb\xff\xfc\xff\xff\xc7\x2f\x01\x10\x87\x05\x00\xba\xf7\xff"

// gzipped writes zeros by the thousand to one.
func gzipped(out http.ResponseWriter, megabytes int) {
	out.Header().Set("Content-Encoding", "gzip")
	out.Header().Set("Content-Type", "text/plain")
	z, _ := gzip.NewWriterLevel(out, gzip.BestSpeed)
	part := bytes.Repeat([]byte{'a'}, 1<<20)
	for range megabytes {
		if _, err := z.Write(part); err != nil {
			return
		}
	}
	_ = z.Close()
}

// What a server can do to hold us or to fill us up ends within its cap, with its code (SEC-31).
func TestSEC31Client(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	stream := func(kind, text string) http.HandlerFunc {
		return func(out http.ResponseWriter, r *http.Request) {
			out.Header().Set("Content-Type", kind)
			part := bytes.Repeat([]byte(text), 64*kib/len(text))
			for r.Context().Err() == nil {
				if _, err := out.Write(part); err != nil {
					return
				}
			}
		}
	}
	begun := func(text string) http.HandlerFunc { // and never goes on
		return func(out http.ResponseWriter, r *http.Request) {
			fmt.Fprint(out, text)
			_ = http.NewResponseController(out).Flush()
			<-r.Context().Done()
		}
	}
	raw := func(text string) http.HandlerFunc { // instead of an answer of HTTP
		return func(out http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(out).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   Code
	}{
		"gzip bomb":          {func(out http.ResponseWriter, _ *http.Request) { gzipped(out, 64) }, TooLarge},
		"endless text":       {stream("text/plain", "word "), TooLarge},
		"endless HTML":       {stream("text/html", "<p><b>"), TooLarge},
		"endless bytes":      {stream("application/octet-stream", "\x00\x01"), TooLarge},
		"endless JSON":       {stream("application/json", "["), TooLarge},
		"a length too large": {func(out http.ResponseWriter, _ *http.Request) { out.Header().Set("Content-Length", "1000000000000") }, TooLarge},
		"silent":             {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Timeout},
		"drip":               {begun("a"), Timeout},
		"drip in gzip": {func(out http.ResponseWriter, r *http.Request) {
			out.Header().Set("Content-Encoding", "gzip")
			begun("\x1f\x8b\x08")(out, r)
		}, Timeout},
		"drip of an error": {func(out http.ResponseWriter, r *http.Request) { out.WriteHeader(500); begun("a")(out, r) }, Timeout},
		"redirects for ever": {func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, r.URL.Path+"x", http.StatusFound)
		}, Failed},
		"to itself": {func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, Failed},
		"64 KiB of headers": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("X-Large", strings.Repeat("a", 64*kib))
		}, Failed},
		"1 MiB of headers": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("X-Large", strings.Repeat("a", 1<<20))
		}, Failed},
		"broken gzip": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(out, "no gzip")
		}, Failed},
		"cut gzip": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(out, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
		}, Failed},
		"brotli bomb, not asked": {func(out http.ResponseWriter, _ *http.Request) { // 64 MiB
			out.Header().Set("Content-Encoding", "br")
			fmt.Fprint(out, brotliBomb)
		}, Failed},
		"endless brotli, not asked": {func(out http.ResponseWriter, r *http.Request) {
			out.Header().Set("Content-Encoding", "br")
			stream("text/html", brotliBomb)(out, r)
		}, Failed},
		"brotli bomb as an error": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "br")
			out.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(out, brotliBomb)
		}, Status},
		"deflate, not asked": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "deflate")
			fmt.Fprint(out, "\x78\x9c\x4b\x4c\x1c\x05\xa3\x60\x14\x0c\x77\x00\x00\xf9\x87\xd8\x7a\xf8")
		}, Failed},
		"zstd, not asked": {func(out http.ResponseWriter, _ *http.Request) { out.Header().Set("Content-Encoding", "zstd") }, Failed},
		"gzip in gzip":    {func(out http.ResponseWriter, _ *http.Request) { out.Header().Set("Content-Encoding", "gzip, gzip") }, Failed},
		"no HTTP":         {raw("SSH-2.0-OpenSSH_9.9\r\n"), Failed},
		"nothing":         {raw(""), Failed},
		"a cut body":      {raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Failed},
		"cut chunks":      {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nhalf"), Failed},
		"two lengths":     {raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), Failed},
		"interim answers": {raw(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 5000)), Failed},
		"an error that floods": {func(out http.ResponseWriter, r *http.Request) {
			out.WriteHeader(http.StatusNotFound)
			stream("text/plain", "a")(out, r)
		}, Status},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			w := newWall(t, nil, c.answer)
			caps := Caps{Body: 256 * kib, Cache: -1}
			if c.want == Timeout {
				caps.Time = 50 * time.Millisecond
			}
			p, err := w.client(t, Options{Caps: caps}).Fetch(t.Context(), Request{URL: "http://example.com/", Principal: "p"})
			if codeOf(err) != c.want {
				t.Errorf("%d characters, %v; want %s", len(p.Text), err, c.want)
			}
			if _, asked := w.seen(); strings.Count(asked, "example.com/") > maxRedirects+1 {
				t.Errorf("asked %s", asked)
			}
		})
	}
}

// Empty members of gzip are bytes that say nothing: they count, too.
func TestSEC31EmptyMembers(t *testing.T) {
	t.Parallel()
	var member bytes.Buffer
	_ = gzip.NewWriter(&member).Close()
	w := newWall(t, nil, func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Encoding", "gzip")
		part := bytes.Repeat(member.Bytes(), 1000)
		for r.Context().Err() == nil {
			if _, err := out.Write(part); err != nil {
				return
			}
		}
	})
	_, err := w.client(t, Options{Caps: Caps{Body: 64 << 10}}).Fetch(t.Context(), Request{URL: "http://example.com/"})
	if code := codeOf(err); code != TooLarge && code != Failed {
		t.Errorf("%v", err)
	}
}

// A certificate that does not fit, or that no authority signed, is no way to a page, and http is not tried behind
// https.
func TestSEC31Certificates(t *testing.T) {
	t.Parallel()
	w := &wall{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "page") }))
	w.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.StartTLS() // for example.com and 127.0.0.1
	t.Cleanup(w.Close)
	roots := w.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, c := range map[string]struct {
		o    Options
		url  string
		want Code
	}{
		"good":             {Options{Roots: roots}, "https://example.com/", ""},
		"of another host":  {Options{Roots: roots}, "https://example.net/", Failed},
		"of an address":    {Options{Roots: roots}, "https://" + publicAddress + "/", Failed},
		"signed by nobody": {Options{}, "https://example.com/", Failed},
		"plain on its port": {Options{Roots: roots, Ports: []uint16{8443}, Guard: guard.New(guard.Options{Ports: []uint16{8443}})},
			"http://example.com:8443/", Status},
	} {
		p, err := w.client(t, c.o).Fetch(t.Context(), Request{URL: c.url})
		if codeOf(err) != c.want || err == nil && p.Text != "page" {
			t.Errorf("%s: %q, %v; want %q", name, p.Text, err, c.want)
		}
	}
}

// A server that speaks no TLS, or none to the end, ends with the time for it.
func TestSEC31SilentTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	held.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held.Go(func() { _, _ = io.Copy(io.Discard, conn); conn.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); held.Wait() })
	c := New(Options{Caps: Caps{Connect: 20 * time.Millisecond}, Dial: func(ctx context.Context, _, _ string, _ Check) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}})
	t.Cleanup(c.Close)
	if _, err := c.Fetch(t.Context(), Request{URL: "https://example.com/"}); codeOf(err) != Failed {
		t.Errorf("%v", err)
	}
}
