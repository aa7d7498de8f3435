package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/web/guard"
)

// A network is what a Proxy of a test reaches: names with their addresses, at one host on loopback.
type network struct {
	mu     sync.Mutex
	names  map[string][]string // with the final dot
	host   map[string]string   // port to the real address on loopback
	dialed []string            // name:port
}

// connect looks a name up, asks the guard about each of its addresses as net.Dialer does, and connects to the host.
func (n *network) connect(ctx context.Context, d *net.Dialer, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, ok := n.names[name]
	if !ok {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: name, Server: "10.0.0.2:53", IsNotFound: true}}
	}
	for _, a := range addresses {
		kind := "tcp4"
		if netip.MustParseAddr(a).Is6() {
			kind = "tcp6"
		}
		if err = d.Control(kind, net.JoinHostPort(a, port), nil); err == nil {
			return (&net.Dialer{}).DialContext(ctx, "tcp", n.host[port])
		}
	}
	return nil, err
}

func domains(t testing.TB, texts ...string) (list []guard.Domain) {
	t.Helper()
	for _, text := range texts {
		d, err := guard.ParseDomain(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

// start serves a Proxy until the end of the test, and returns it with its address.
func start(t *testing.T, n *network, list ...string) (*Proxy, string) {
	t.Helper()
	p := New(domains(t, list...), guard.Options{})
	p.connect = n.connect
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := p.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() { stop(); served.Wait() })
	return p, l.Addr().String()
}

// example is a host with TLS and without.
func example(t *testing.T) (n *network, trust *tls.Config) {
	t.Helper()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = ""
		head, _ := httputil.DumpRequest(r, false)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s%s", head, body)
	})
	secure, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	trust = secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	return &network{
		names: map[string][]string{
			"example.com.": {"93.184.216.34"}, "a.example.com.": {"93.184.216.34"}, "private.example.com.": {"10.1.2.3"},
			"rebound.example.com.": {"127.0.0.1", "169.254.169.254", "::1"}, "mixed.example.com.": {"127.0.0.1", "93.184.216.34"},
		},
		host: map[string]string{
			"443": secure.Listener.Addr().String(), "8443": secure.Listener.Addr().String(), "80": plain.Listener.Addr().String(),
		},
	}, trust
}

// browse returns a client that goes through a proxy, http:// or socks5h://.
func browse(t *testing.T, proxy string, trust *tls.Config) *http.Client {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: trust, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// What the list opens is reached in each way that programs know, as if there were no proxy.
func TestReached(t *testing.T) {
	t.Parallel()
	n, trust := example(t)
	p, address := start(t, n, "example.com", "*.example.com", "example.com:8443")
	for _, c := range [][2]string{
		{"http", "https://example.com/x"}, {"http", "http://example.com/x"}, {"http", "https://EXAMPLE.com:8443/x"}, {"http", "https://a.example.com/x"},
		{"socks5", "https://example.com/x"}, {"socks5h", "http://example.com/x"}, {"socks5h", "https://example.com:8443/x"}, {"http", "http://mixed.example.com/x"},
	} {
		request, err := http.NewRequest(http.MethodPost, c[1], strings.NewReader("sent"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := browse(t, c[0]+"://"+address, trust).Do(request)
		if err != nil {
			t.Errorf("%s by %s: %v", c[1], c[0], err)
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.HasPrefix(string(body), "POST /x HTTP/1.1") || !strings.HasSuffix(string(body), "\r\n\r\nsent") {
			t.Errorf("%s by %s: %q, %v", c[1], c[0], body, err)
		}
	}
	if r := p.Refused(); len(r) != 0 {
		t.Errorf("refused %v", r)
	}
}

// raw sends bytes to a proxy and returns all that it answers.
func raw(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("%q: %v after %q", text, err, answer)
	}
	return string(answer)
}

// A request that is forwarded is the program's own: what concerns the proxy stays here, and nothing is added.
func TestForwarded(t *testing.T) {
	t.Parallel()
	n, _ := example(t)
	p, address := start(t, n, "example.com")
	for _, c := range []struct{ sent, head, body string }{
		{"GET http://user:pw@example.com/a?b HTTP/1.1\r\nHost: evil.example.net\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nX-Kept: 1\r\n\r\n",
			"HTTP/1.1 200 OK", "GET /a?b HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nX-Kept: 1\r\n\r\n"},
		{"POST http://example.com:80/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nUser-Agent: u\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", "\r\n\r\nabc"},
		{"GET http://example.com/ HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK", "GET / HTTP/1.1\r\n"},
		{"HEAD http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 OK", ""},
		{"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 400 Bad Request", "this is a proxy"},
		{"CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 400 Bad Request", "HOST:PORT"},
		{"rubbish\r\n\r\n", "HTTP/1.1 400 Bad Request", "this is a proxy"},
		{"GET http://example.com/ HTTP/1.1\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", "HTTP/1.1 431 Request Header Fields Too Large", "16384"},
	} {
		head, body, _ := strings.Cut(raw(t, address, c.sent), "\r\n\r\n")
		if strings.HasPrefix(head, "HTTP/1.1 100") {
			more, rest, _ := strings.Cut(body, "\r\n\r\n")
			head, body = head+"\r\n\r\n"+more, rest
		}
		if !strings.HasPrefix(head, c.head) || !strings.Contains(body, c.body) {
			t.Errorf("%.200q:\n%q\n%q\nwant\n%q\n%q", c.sent, head, body, c.head, c.body)
		}
	}
	if r := p.Refused(); len(r) != 0 {
		t.Errorf("refused %v", r)
	}
}

// socksTo is what a SOCKS5 client sends to reach host:port.
func socksTo(host string, port uint16) string {
	kind, b := byte(socksName), append([]byte{byte(len(host))}, host...)
	if a, err := netip.ParseAddr(host); err == nil {
		kind, b = socksIPv4, a.AsSlice()
		if a.Is6() {
			kind = socksIPv6
		}
	}
	return string(slices.Concat([]byte{5, 2, 2, 0, 5, socksConnect, 0, kind}, b, []byte{byte(port >> 8), byte(port)}))
}

// What the list does not open is not reached in any way, no packet leaves, and the result of the command can say what
// was refused and why (SEC-30, SEC-32).
func TestSEC32Refused(t *testing.T) {
	t.Parallel()
	const (
		unlisted = "it is not in sandbox.domains"
		literal  = "only host names can be reached, and no addresses"
	)
	for _, c := range []struct {
		host string
		port uint16
		want Refusal
	}{
		{"evil-example.com", 443, Refusal{"evil-example.com", 443, unlisted}},
		{"example.com.evil.net", 443, Refusal{"example.com.evil.net", 443, unlisted}},
		{"b.a.example.com", 443, Refusal{"b.a.example.com", 443, unlisted}},
		{"EXAMPLE.org.", 80, Refusal{"example.org", 80, unlisted}},
		{"example.com", 22, Refusal{"example.com", 22, "sandbox.domains does not open port 22 of it"}},
		{"example.com", 0, Refusal{"example.com", 0, "sandbox.domains does not open port 0 of it"}},
		{"ssh.example.com", 443, Refusal{"ssh.example.com", 443, "sandbox.domains does not open port 443 of it"}},
		{"93.184.216.34", 443, Refusal{"93.184.216.34", 443, literal}},
		{"127.0.0.1", 80, Refusal{"127.0.0.1", 80, literal}},
		{"169.254.169.254", 80, Refusal{"169.254.169.254", 80, literal}},
		{"::1", 443, Refusal{"::1", 443, literal}},
		{"2606:4700:4700::1111", 443, Refusal{"2606:4700:4700::1111", 443, literal}},
		{"2130706433", 80, Refusal{`"2130706433"`, 80, "it is not a host name"}},
		{"0x7f.1", 80, Refusal{`"0x7f.1"`, 80, "it is not a host name"}},
		{"localhost", 80, Refusal{"localhost", 80, unlisted}},
		{"metadata.google.internal", 80, Refusal{"metadata.google.internal", 80, unlisted}},
		{"private.example.com", 443, Refusal{"private.example.com", 443, "10.1.2.3 is a private or reserved address"}},
		{"rebound.example.com", 443, Refusal{"rebound.example.com", 443, "127.0.0.1 is an address of this machine, of its link or of its cloud's own services"}},
	} {
		n, _ := example(t)
		p, address := start(t, n, "example.com", "private.example.com", "rebound.example.com", "ssh.example.com:22")
		name := c.host
		if strings.Contains(name, ":") {
			name = "[" + name + "]"
		}
		answers := []string{
			raw(t, address, fmt.Sprintf("CONNECT %s:%d HTTP/1.1\r\nHost: example.com\r\n\r\n", name, c.port)),
			raw(t, address, socksTo(c.host, c.port)),
		}
		if c.port == 80 || c.port == 443 {
			answers = append(answers, raw(t, address, fmt.Sprintf("CONNECT %s:%d HTTP/1.0\r\n\r\n", name, c.port)))
		}
		if c.port == 80 {
			answers = append(answers, raw(t, address, fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: example.com\r\n\r\n", name)))
		}
		for i, a := range answers {
			reason := strings.HasPrefix(a, "HTTP/1.1 403 Forbidden by codehand: "+c.want.Why+"\r\n") && strings.Contains(a, "no connection to ")
			if i == 1 {
				reason = a == "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"
			}
			if !reason {
				t.Errorf("%s:%d, way %d: %q", c.host, c.port, i, a)
			}
		}
		if got := p.Refused(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s:%d: refused %+v, want %+v", c.host, c.port, got, c.want)
		}
		for _, d := range n.dialed {
			if !strings.HasPrefix(d, "private.example.com.:") && !strings.HasPrefix(d, "rebound.example.com.:") {
				t.Errorf("%s:%d: looked up %s", c.host, c.port, d)
			}
		}
	}
}

// A failure without a rule behind it is no refusal, and names its cause.
func TestFailed(t *testing.T) {
	t.Parallel()
	n, _ := example(t)
	p, address := start(t, n, "*.example.com")
	if a := raw(t, address, "CONNECT none.example.com:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(a, "HTTP/1.1 502 Bad Gateway") ||
		!strings.Contains(a, "no such host") || strings.Contains(a, "10.0.0.2") {
		t.Errorf("%q", a)
	}
	for sent, want := range map[string]string{
		socksTo("none.example.com", 443):                    "\x05\x00\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00",
		"\x05\x01\x02":                                      "\x05\xff",                                         // only with a password
		"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00P": "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00", // BIND
		"\x05\x01\x00\x05\x01\x00\x09":                      "\x05\x00\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00",
		"\x05\x01\x00\x05\x01":                              "\x05\x00",
		"":                                                  "",
	} {
		if got := raw(t, address, sent); got != want {
			t.Errorf("%q: %q, want %q", sent, got, want)
		}
	}
	if r := p.Refused(); len(r) != 0 {
		t.Errorf("refused %v", r)
	}
	raw(t, address, "GET https://a.example.com/ HTTP/1.1\r\n\r\n")
	raw(t, address, "GET http://a.example.com:8080/ HTTP/1.1\r\n\r\n")
	const why = "only http:// and port 80 are forwarded; CONNECT is for others"
	if r := p.Refused(); !slices.Equal(r, []Refusal{{"a.example.com", 0, why}, {"a.example.com", 8080, why}}) {
		t.Errorf("refused %v", r)
	}
}

// However often and whatever a command asks for, what is remembered stays small, and nothing in it begins a line or
// hides text.
func TestRefusedBounded(t *testing.T) {
	t.Parallel()
	p := New(nil, guard.Options{})
	for i := range 3 * maxRefused {
		for range 2 {
			_, err := p.dial(t.Context(), fmt.Sprintf("h%d.example.com", i), 443)
			if _, ok := errors.AsType[*Refusal](err); !ok {
				t.Fatal(err)
			}
		}
	}
	if r := p.Refused(); len(r) != maxRefused || r[0].Host != "h0.example.com" || r[1].Host != "h1.example.com" {
		t.Errorf("%d refusals: %v", len(r), r[:2])
	}
	p = New(nil, guard.Options{})
	const hidden = "a\n<system-reminder>\x1b[2J\u202e\xff"
	_, _ = p.dial(t.Context(), hidden+strings.Repeat("x", 300), 443) // refused
	shown := strings.TrimSuffix(strconv.QuoteToASCII(hidden), `"`)
	if r := p.Refused(); len(r) != 1 || len(r[0].Host) > 200 || !strings.HasPrefix(r[0].Host, shown) {
		t.Errorf("%v", r)
	}
}

// The end of a command ends what it left open, whatever it waits for, and Serve returns when nothing runs any more.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	n := &network{names: map[string][]string{"example.com.": {"93.184.216.34"}}, host: map[string]string{"443": silent.Addr().String(), "80": silent.Addr().String()}}
	p := New(domains(t, "example.com"), guard.Options{})
	p.connect = n.connect
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, l) }()
	var conns []net.Conn
	for _, sent := range []string{
		"", "\x05", "\x05\x01\x00", "GET http://exa", "GET http://example.com/ HTTP/1.1\r\n\r\n", "POST http://example.com/ HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\n\r\nhello", socksTo("example.com", 443) + "hello",
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for range 4 { // those of the requests that are whole
		c, err := silent.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for i, c := range conns {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, net.ErrClosed) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it listens still")
	}
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken.Close()
	if err := p.Serve(t.Context(), broken); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve of a closed listener: %v", err)
	}
}

// Above the limit connections wait for one to end, and are served then.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	_, address := start(t, &network{}, "example.com")
	var conns []net.Conn
	for range maxConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte{5, 1, 0}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil { // it is served
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	waiting, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if _, err := waiting.Write([]byte{5, 1, 0}); err != nil {
		t.Fatal(err)
	}
	conns[7].Close()
	if _, err := io.ReadFull(waiting, make([]byte, 2)); err != nil {
		t.Error(err)
	}
}

// A connection lives as long as anything moves in either direction, and no longer than idleTime after that; what one
// end has sent arrives though it sends no more.
func TestRelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &serving{open: map[*conn]bool{}}
		client, command := net.Pipe()
		host, page := net.Pipe()
		var ended sync.WaitGroup
		ended.Go(func() { relay(s.keep(client), s.keep(host), client) })
		begin := time.Now()
		for range 5 {
			time.Sleep(idleTime - time.Second)
			go func() { _, _ = page.Write([]byte("x")) }()
			if _, err := io.ReadFull(command, make([]byte, 1)); err != nil {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
		}
		last := time.Now()
		if _, err := command.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the command's end: %v", err)
		}
		if _, err := page.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the host's end: %v", err)
		}
		ended.Wait()
		if idle := time.Since(last); idle != idleTime {
			t.Errorf("closed after %v", idle)
		}
	})
}

func TestHalfClosed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var served sync.WaitGroup
	served.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		_, _ = c.Write(bytes.ToUpper(all))
	})
	n := &network{names: map[string][]string{"example.com.": {"93.184.216.34"}}, host: map[string]string{"443": l.Addr().String()}}
	_, address := start(t, n, "example.com")
	long := strings.Repeat("all of it", 100_000)
	answer := raw(t, address, "CONNECT example.com:443 HTTP/1.1\r\n\r\n"+long)
	if want := "HTTP/1.1 200 Connection established\r\n\r\n" + strings.ToUpper(long); answer != want {
		t.Errorf("%d bytes, want %d: %.60q", len(answer), len(want), answer)
	}
	served.Wait()
}

func TestEnv(t *testing.T) {
	t.Parallel()
	env := Env("127.0.0.1:3128")
	for _, want := range []string{
		"HTTP_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128", "ALL_PROXY=http://127.0.0.1:3128", "all_proxy=http://127.0.0.1:3128",
		"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %v", want, env)
		}
	}
}

// FuzzClient: whatever a command sends, the proxy ends with it and looks up no name that is not on the list.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{
		"CONNECT example.com:443 HTTP/1.1\r\n\r\nhello", "GET http://example.com/ HTTP/1.1\r\n\r\n", socksTo("example.com", 443) + "x", socksTo("::1", 80),
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\n\r\n", "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "\x05\x01\x00\x05\x01\x00\x03\xff",
	} {
		f.Add([]byte(seed))
	}
	list := domains(f, "example.com")
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := New(list, guard.Options{})
		p.connect = func(_ context.Context, _ *net.Dialer, address string) (net.Conn, error) {
			if address != "example.com.:443" && address != "example.com.:80" {
				t.Errorf("%q: dials %s", sent, address)
			}
			client, host := net.Pipe()
			go func() {
				defer host.Close()
				if _, err := bufio.NewReader(host).ReadByte(); err == nil {
					_, _ = io.WriteString(host, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
			return client, nil
		}
		server, command := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		s := &serving{proxy: p, ctx: ctx, open: map[*conn]bool{}}
		s.transport = &http.Transport{DialContext: s.dialTransport, DisableKeepAlives: true}
		var ended sync.WaitGroup
		ended.Go(func() { _, _ = io.Copy(io.Discard, command) })
		ended.Go(func() { _, _ = command.Write(sent); command.Close() })
		c := s.keep(server)
		s.client(c)
		c.Close()
		cancel()
		ended.Wait()
		s.closeAll() // those of requests that are forwarded end on their own
	})
}

// A burst is a listener whose Accept fails a few times, then returns one connection, then ends.
type burst struct {
	net.Listener
	errs []error
	conn chan net.Conn
}

func (b *burst) Accept() (net.Conn, error) {
	if len(b.errs) > 0 {
		err := b.errs[0]
		b.errs = b.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	if c, ok := <-b.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (b *burst) Close() error { return nil }

// A server that had no free descriptor for a moment left the command without a network until its end.
func TestAcceptGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		b := &burst{conn: make(chan net.Conn, 1), errs: []error{
			syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM, syscall.EMFILE}}
		b.conn <- there
		_ = here.SetDeadline(time.Now().Add(time.Minute)) // of the bubble's clock
		ended := make(chan error, 1)
		go func() { ended <- New(nil, guard.Options{}).Serve(t.Context(), b) }()
		if _, err := io.WriteString(here, "GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
			t.Errorf("the proxy has ended: %v", err)
		}
		answer, err := io.ReadAll(here)
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 ")) {
			t.Errorf("the answer is %q, %v", answer, err)
		}
		close(b.conn)
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve ended with %v", err)
		}
	})
}

// A Proxy that waits for a free descriptor ends with its command.
func TestAcceptEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		b := &burst{conn: make(chan net.Conn), errs: slices.Repeat([]error{syscall.EMFILE}, 1000)}
		go func() { ended <- New(nil, guard.Options{}).Serve(ctx, b) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve ended with %v", err)
		}
	})
}
