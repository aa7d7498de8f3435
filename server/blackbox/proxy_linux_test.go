package blackbox

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/filestate/leaktest"
	"codehand/server"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/listen"
	"codehand/server/replaytest"
	"codehand/tools"
)

// The tests of this file have a real proxy between client and server: nginx as it is configured without a thought of
// streams, nginx and Caddy as packaging/ configures them.

// proxied is the name under which clients call the server of packaging/.
const proxied = "tools.example.com"

// debian finds a program of Debian. Without it the test is skipped, but never in CI.
func debian(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} { // which an ordinary user's PATH does not have
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed: apt-get install %s", name, pkg)
	}
	t.Skipf("%s is not installed: apt-get install %s", name, pkg)
	return ""
}

// A group is a running program with all that it started.
type group struct {
	t   *testing.T
	cmd *exec.Cmd
	log replaytest.LockedBuffer
}

// startGroup starts a program that ends with the test, and shows its log if that failed.
func startGroup(t *testing.T, cmd *exec.Cmd) *group {
	t.Helper()
	g := &group{t: t, cmd: cmd}
	cmd.Stdout, cmd.Stderr = &g.log, &g.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := leaktest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s:\n%.4000s", filepath.Base(cmd.Path), g.log.String())
		}
	})
	return g
}

// end sends a signal to all of them, once, and waits.
func (g *group) end(sig syscall.Signal) {
	if g.cmd.ProcessState != nil {
		return
	}
	if err := syscall.Kill(-g.cmd.Process.Pid, sig); err != nil {
		g.t.Error(err)
	}
	_ = g.cmd.Wait() // by a signal
}

// An nginx is one that listens on a socket of the test, so that its address is not taken while it is away.
type nginx struct {
	t       *testing.T
	path    string
	dir     string
	socket  *os.File
	address string
	*group
}

// startNginx starts nginx with the servers of a configuration, in which ADDRESS is where it listens.
func startNginx(t *testing.T, servers string) *nginx {
	t.Helper()
	n := &nginx{t: t, path: debian(t, "nginx", "nginx-light"), dir: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.address = l.Addr().String()
	if n.socket, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.socket.Close() })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // or its workers cannot write to the directory
	}
	// What Debian's nginx.conf says about the way of bytes; the rest is places.
	conf := fmt.Sprintf(`daemon off;
%s
worker_processes 2;
pid "%[2]s/pid";
error_log stderr warn;
events { worker_connections 768; }
http {
	sendfile on;
	tcp_nopush on;
	gzip on;
	access_log off;
	client_body_temp_path "%[2]s/body";
	proxy_temp_path "%[2]s/proxy";
	fastcgi_temp_path "%[2]s/fastcgi";
	uwsgi_temp_path "%[2]s/uwsgi";
	scgi_temp_path "%[2]s/scgi";
	%s
}
`, user, n.dir, strings.ReplaceAll(servers, "ADDRESS", n.address))
	replaytest.WriteFile(t, filepath.Join(n.dir, "nginx.conf"), []byte(conf))
	n.start()
	return n
}

// start starts it, the second time at the same address.
func (n *nginx) start() {
	n.t.Helper()
	cmd := exec.Command(n.path, "-p", n.dir, "-e", "stderr", "-c", filepath.Join(n.dir, "nginx.conf"))
	cmd.Env = []string{"NGINX=3;"} // the socket is the first extra file, as when nginx replaces itself
	cmd.ExtraFiles = []*os.File{n.socket}
	n.group = startGroup(n.t, cmd)
	// os/exec makes the socket blocking, for all who share it, and nginx leaves an inherited one as it is. Of two workers
	// that are woken for one connection the second would wait in accept, and serve its other connections no more.
	raw, err := n.socket.SyscallConn()
	if err != nil {
		n.t.Fatal(err)
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = syscall.SetNonblock(int(fd), true) }); err != nil || set != nil {
		n.t.Fatal(err, set)
	}
}

// A front is a proxy, and how clients get through it.
type front struct {
	url     string // without a path
	address string // of Caddy
	client  *http.Client
	nginx   *nginx // nil: it is another program
}

// over makes a client that finds every host at one address.
func over(t *testing.T, address string, roots *x509.CertPool) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		// As another machine than the proxy's, as far as addresses tell.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		return d.DialContext(ctx, network, address)
	}}
	if roots != nil {
		tr.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 3 * hang} // a hang is a failure
}

// replace puts something in the place of each text, which must be there once.
func replace(t *testing.T, in string, pairs ...string) string {
	t.Helper()
	for p := range slices.Chunk(pairs, 2) {
		if n := strings.Count(in, p[0]); n != 1 {
			t.Fatalf("%q is there %d times, want once:\n%s", p[0], n, in)
		}
		in = strings.Replace(in, p[0], p[1], 1)
	}
	return in
}

// shipped reads a file of packaging/.
func shipped(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fronts are the proxies that are tried. patience is how long each waits for a server that is silent.
var fronts = []struct {
	name    string
	shipped string // its file in packaging/; "": none
	open    func(t *testing.T, server string, patience time.Duration) *front
}{
	{"nginx by default", "", func(t *testing.T, server string, patience time.Duration) *front {
		n := startNginx(t, fmt.Sprintf("server { listen ADDRESS; location / { proxy_pass %s; proxy_read_timeout %.0fs; } }", server, patience.Seconds()))
		return &front{url: "http://" + n.address, client: over(t, n.address, nil), nginx: n}
	}},
	{"nginx as shipped", "nginx/codehand.conf", func(t *testing.T, server string, patience time.Duration) *front {
		roots, cert, key := certified(t)
		n := startNginx(t, replace(t, shipped(t, "nginx/codehand.conf"),
			"listen 443 ssl;", "listen ADDRESS ssl;",
			"/etc/nginx/tools.example.com.crt", strconv.Quote(cert), "/etc/nginx/tools.example.com.key", strconv.Quote(key),
			"server 127.0.0.1:7433;", "server "+strings.TrimPrefix(server, "http://")+";",
			"proxy_read_timeout 3600s;", fmt.Sprintf("proxy_read_timeout %.0fs;", patience.Seconds())))
		return &front{url: "https://" + proxied, client: over(t, n.address, roots), nginx: n}
	}},
	{"caddy as shipped", "caddy/Caddyfile", func(t *testing.T, server string, patience time.Duration) *front {
		roots, cert, key := certified(t)
		return openCaddy(t, roots, replace(t, shipped(t, "caddy/Caddyfile"),
			"\n"+proxied+" {", fmt.Sprintf("\nhttps://%s:PORT {\n\tbind 127.0.0.1\n\ttls %q %q", proxied, cert, key),
			"\treverse_proxy 127.0.0.1:7433\n", fmt.Sprintf("\treverse_proxy %s {\n\t\ttransport http {\n\t\t\tresponse_header_timeout %s\n\t\t}\n\t}\n",
				strings.TrimPrefix(server, "http://"), patience)))
	}},
}

// TestPublicThroughProxies: serve --public finds itself through the proxies that packaging/ configures.
func TestPublicThroughProxies(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, server string) (url, certificate string){
		"nginx": func(t *testing.T, server string) (string, string) {
			_, cert, key := certified(t)
			n := startNginx(t, replace(t, shipped(t, "nginx/codehand.conf"), "listen 443 ssl;", "listen ADDRESS ssl;",
				"/etc/nginx/tools.example.com.crt", strconv.Quote(cert), "/etc/nginx/tools.example.com.key", strconv.Quote(key),
				"server 127.0.0.1:7433;", "server "+server+";"))
			return "https://" + n.address, cert
		},
		"caddy": func(t *testing.T, server string) (string, string) {
			roots, cert, key := certified(t)
			f := openCaddy(t, roots, replace(t, shipped(t, "caddy/Caddyfile"),
				"\n"+proxied+" {", fmt.Sprintf("\nhttps://127.0.0.1:PORT {\n\tbind 127.0.0.1\n\ttls %q %q", cert, key),
				"reverse_proxy 127.0.0.1:7433", "reverse_proxy "+server))
			return "https://" + f.address, cert
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := settle(t)
			h.run(0, "token", "new", "alice")
			at := replaytest.Reserved(t)
			url, cert := open(t, at)
			h.env = append(h.env, "SSL_CERT_FILE="+cert)
			d := startDaemon(t, h.command("serve", "--listen", at, "--public", url, "--http-trusted-proxies", "127.0.0.1/32"))
			if said := d.said(t, "^codehand: (ready: |nothing was served).*"); !strings.HasPrefix(said, "codehand: ready: "+url) {
				t.Error(said)
			}
		})
	}
}

// certified writes a certificate of the name that packaging/ uses to a file, and returns who signed it.
func certified(t *testing.T) (roots *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	own := httptest.NewTLSServer(nil) // its certificate is good for every name below example.com
	defer own.Close()
	key, err := x509.MarshalPKCS8PrivateKey(own.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	replaytest.WriteFile(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate().Raw}))
	replaytest.WriteFile(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	roots = x509.NewCertPool()
	roots.AddCert(own.Certificate())
	return roots, certFile, keyFile
}

// openCaddy starts Caddy, in whose configuration PORT is where it listens. It takes no socket from us, so a port that
// another program takes at that moment is tried again.
func openCaddy(t *testing.T, roots *x509.CertPool, conf string) *front {
	t.Helper()
	path := debian(t, "caddy", "caddy")
	dir := t.TempDir()
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(address)
		file := filepath.Join(dir, "Caddyfile")
		replaytest.WriteFile(t, file, []byte("{\n\tadmin off\n\tauto_https off\n}\n"+strings.ReplaceAll(conf, "PORT", port)))
		cmd := exec.Command(path, "run", "--config", file, "--adapter", "caddyfile")
		cmd.Env = []string{"HOME=" + dir}
		g := startGroup(t, cmd)
		replaytest.Until(t, "Caddy starts", func() bool {
			said := g.log.String()
			return strings.Contains(said, "serving initial configuration") || strings.Contains(said, "Error: ")
		})
		if said := g.log.String(); strings.Contains(said, "address already in use") {
			continue
		} else if strings.Contains(said, "Error: ") {
			t.Fatal(said)
		}
		return &front{url: "https://" + proxied, address: address, client: over(t, address, roots)}
	}
	t.Fatal("no port is free")
	return nil
}

// serveAs starts the server as the comment of a file of packaging/ says; "": as it is without a proxy.
func (d *deployment) serveAs(file string) *daemon {
	d.t.Helper()
	if file == "" {
		return d.serve()
	}
	_, command, ok := strings.Cut(shipped(d.t, file), "#   codehand serve ")
	if !ok {
		d.t.Fatalf("%s does not say how codehand is started", file)
	}
	var args []string
	for line := range strings.Lines(command) {
		line, more := strings.CutSuffix(strings.TrimSpace(strings.TrimPrefix(line, "#")), "\\")
		if args = append(args, strings.Fields(line)...); !more {
			break
		}
	}
	return startDaemon(d.t, d.codehand(append([]string{"serve", d.work, "--listen", d.address}, args...)...))
}

// records are the lines of the audit.
func (d *deployment) records() []auditRow {
	d.t.Helper()
	files, err := filepath.Glob(filepath.Join(d.audits(), "audit-*.jsonl"))
	if err != nil || len(files) == 0 {
		d.t.Fatalf("no audit in %s: %v", d.audits(), err)
	}
	var all []auditRow
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			d.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var row auditRow
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				if strings.HasSuffix(line, "\n") {
					d.t.Fatalf("%s: %v in %s", name, err, line)
				}
				continue // it is being written
			}
			all = append(all, row)
		}
	}
	return all
}

func (d *deployment) audits() string { return filepath.Join(d.home, "state", "codehand", "audit") }

// An auditRow is a line of the audit, as far as the tests look at it.
type auditRow struct {
	T                        time.Time
	Ev, Call, Tool, Code, IP string
	OK, Cancelled            bool
}

// recorded are the records of calls of one tool; "": of every kind.
func (d *deployment) recorded(ev, tool string) []auditRow {
	d.t.Helper()
	return slices.DeleteFunc(d.records(), func(r auditRow) bool { return ev != "" && r.Ev != ev || r.Tool != tool })
}

// A talker is a client that takes answers apart as they come.
type talker struct {
	*replaytest.HTTPClient
	via    *http.Client
	kind   wireKind
	events *coming      // of legacy SSE
	to     string       // where legacy SSE posts
	posted atomic.Int32 // messages of legacy SSE that were accepted
}

// talk connects and says hello.
func (d *deployment) talk(url string, via *http.Client, k wireKind) *talker {
	d.t.Helper()
	c := &talker{HTTPClient: &replaytest.HTTPClient{T: d.t, URL: url + "/mcp", Token: d.token, Modern: k.era == "modern"}, via: via, kind: k}
	hello := `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"proxy-test","version":"1"}}}`
	switch {
	case c.Modern:
	case k.transport == "sse":
		r, err := via.Do(c.Request(d.t.Context(), http.MethodGet, url+"/sse", ""))
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { _ = r.Body.Close() }) // only read
		c.events = &coming{t: d.t, r: r, lines: newEvents(r.Body)}
		c.to = url + c.events.must()
		c.start(hello)
		c.events.must()
	default:
		a := c.start(hello)
		if c.Session = a.r.Header.Get("Mcp-Session-Id"); c.Session == "" {
			d.t.Fatalf("initialize: %s", a.r.Status)
		}
		a.must()
	}
	return c
}

// start sends a message and returns what comes.
func (c *talker) start(body string) *coming {
	c.T.Helper()
	a, err := c.try(c.T.Context(), body)
	if err != nil {
		c.T.Fatal(err)
	}
	return a
}

// try is start for a message that may get no answer.
func (c *talker) try(ctx context.Context, body string) (*coming, error) {
	to := c.URL
	if c.to != "" {
		to = c.to
	}
	r, err := c.via.Do(c.Request(ctx, http.MethodPost, to, body))
	if err != nil {
		return nil, err
	}
	if c.to != "" {
		defer r.Body.Close()
		if r.StatusCode != http.StatusAccepted {
			return nil, fmt.Errorf("message: %s", r.Status)
		}
		c.posted.Add(1)
		return c.events, nil
	}
	return &coming{t: c.T, r: r, lines: newEvents(r.Body)}, nil
}

// newEvents reads lines of which one may be a large answer.
func newEvents(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	return lines
}

// say makes a call and returns the text of its result.
func (c *talker) say(id, name, args, meta string) (text string, failed bool) {
	c.T.Helper()
	return c.start(c.CallBody(id, name, args, meta)).result()
}

// A coming is an answer that comes.
type coming struct {
	t     testing.TB
	r     *http.Response
	lines *bufio.Scanner
}

// next returns the next message. The error says how the stream ended; io.EOF: as it should.
func (a *coming) next() (string, error) {
	plain := !strings.HasPrefix(a.r.Header.Get("Content-Type"), "text/event-stream")
	for a.lines.Scan() {
		if data, ok := strings.CutPrefix(a.lines.Text(), "data: "); ok || plain {
			if plain {
				data = a.lines.Text()
			}
			return data, nil
		}
	}
	_ = a.r.Body.Close() // only read
	if err := a.lines.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

// must returns the next message, which there is.
func (a *coming) must() string {
	a.t.Helper()
	text, err := a.next()
	if err != nil {
		a.t.Fatalf("%s: the answer ends with %v", a.r.Status, err)
	}
	return text
}

// result reads to the result of a call.
func (a *coming) result() (text string, failed bool) {
	a.t.Helper()
	text, failed, err := a.outcome()
	if err != nil {
		a.t.Fatal(err)
	}
	return text, failed
}

// outcome is result for an answer that may not come.
func (a *coming) outcome() (text string, failed bool, err error) {
	for {
		answer, err := a.next()
		if err != nil {
			return "", false, fmt.Errorf("%s: the answer ends: %w", a.r.Status, err)
		}
		if replaytest.MethodOf(answer) != "" {
			continue // a note
		}
		var m struct{ Result json.RawMessage }
		if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Result == nil {
			return "", false, fmt.Errorf("%s: no result: %s", a.r.Status, answer)
		}
		if a.r.Request.Method == http.MethodPost {
			_, _ = a.next() // the end, so that the connection is used again
		}
		text, failed = replaytest.HTTPReply{Answer: answer}.Text()
		return text, failed, nil
	}
}

const noted = `,"progressToken":"p"`

// A held is a file that commands wait for: while it is there they go on. Its directory goes with the test, and so do they.
type held struct {
	t    *testing.T
	path string
}

func hold(t *testing.T, dir, name string) held {
	t.Helper()
	h := held{t, filepath.Join(dir, name)}
	replaytest.WriteFile(t, h.path, nil)
	t.Cleanup(func() { _ = os.Remove(h.path) }) // it may be gone
	return h
}

// letEnd waits at the end of the test until no command is left that waited for one of the names in dir, which are held only
// after this call: when it is let go it still writes below what is removed next.
func letEnd(t *testing.T, dir string, names ...string) {
	t.Cleanup(func() {
		for _, name := range names {
			replaytest.Until(t, "who waited for "+name+" has ended", func() bool { return !marked(t, filepath.Join(dir, name)) })
		}
	})
}

// command is one that prints begun at once and does the rest when it is let go.
func (h held) command(rest string) string {
	return fmt.Sprintf(`{"command":"echo begun; while [ -e '%s' ]; do sleep 0.02; done; %s"}`, h.path, rest)
}

func (h held) release() {
	h.t.Helper()
	if err := os.Remove(h.path); err != nil {
		h.t.Error(err)
	}
}

// TestProxies: through a proxy that knows nothing of streams, progress comes while the call runs and hardly later than
// without it, and a cancel reaches the call.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, p := range fronts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			s := d.serveAs(p.shipped)
			f := p.open(t, s.url, time.Minute)
			direct := over(t, strings.TrimPrefix(s.url, "http://"), nil)
			for _, k := range wireKinds {
				t.Run(k.transport+"/"+k.era+"/streams", func(t *testing.T) {
					d := *d
					d.t = t
					without, with := d.firstNote(s.url, direct, k), d.firstNote(f.url, f.client, k)
					t.Logf("first progress of a call: %v without a proxy, %v with it", without, with)
					if with-without > 100*time.Millisecond {
						t.Error("that is more than 100 ms later")
					}
				})
			}
			t.Run("cancel", func(t *testing.T) {
				d := *d
				d.t = t
				c := d.talk(f.url, f.client, wireKind{"http", "modern"})
				a := c.start(c.CallBody("1", "run_shell", hold(t, d.work, "cancelled").command("true"), noted))
				a.must()
				_ = a.r.Body.Close() // that is the cancel
				replaytest.Until(t, "the call is cancelled", func() bool {
					return slices.ContainsFunc(d.recorded("call.done", "run_shell"), func(r auditRow) bool { return r.Cancelled })
				})
			})
			t.Run("outside", func(t *testing.T) {
				from := "127.0.0.1"
				if p.shipped != "" {
					from = "127.0.0.2"
					for _, path := range []string{"/metrics", "/readyz"} {
						r, err := f.client.Get(f.url + path)
						if err != nil {
							t.Fatal(err)
						}
						if got := replaytest.ReadReply(t, r); got.Status != http.StatusNotFound || strings.Contains(got.Answer, "jsonrpc") {
							t.Errorf("%s can be read from outside: %d %s", path, got.Status, got.Answer)
						}
						_ = r.Body.Close() // was read
					}
				}
				if rows := d.recorded("call.start", "run_shell"); rows[len(rows)-1].IP != from {
					t.Errorf("the call came from %s, want %s", rows[len(rows)-1].IP, from)
				}
			})
		})
	}
}

// firstNote returns how long the first progress of a call takes: the best of 3, since the machine does other things. The
// call goes on until it has come.
func (d *deployment) firstNote(url string, via *http.Client, k wireKind) time.Duration {
	d.t.Helper()
	c := d.talk(url, via, k)
	best := hang
	for i := range 3 {
		h := hold(d.t, d.work, "streams")
		began := time.Now()
		a := c.start(c.CallBody(fmt.Sprint(i), "run_shell", h.command("true"), noted))
		if note := a.must(); !strings.Contains(note, "notifications/progress") {
			d.t.Fatalf("no progress: %s", note)
		}
		best = min(best, time.Since(began))
		h.release()
		if text, failed := a.result(); failed {
			d.t.Fatal(text)
		}
	}
	return best
}

// waiting is a tool outside our table that says nothing until it answers. Unlike a command it does not move to the
// background.
func waiting(m *mcpserver.MCPServer) {
	m.AddTool(mcp.NewTool("wait_for", mcp.WithNumber("seconds")), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		timer := time.NewTimer(time.Duration(r.GetFloat("seconds", 0) * float64(time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
			return mcp.NewToolResultText("survived"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

// serveWaiting serves a tool that is none of ours from this process, and returns the address.
func serveWaiting(t *testing.T) string {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{
		WorkDir: leaktest.Dir(t), Home: t.TempDir(), Serve: true, Flags: map[string]string{"state-dir": filepath.Join(t.TempDir(), "data"), "auth-local-peer": "any"},
	})
	must(t, err)
	_, err = config.OpenState(cfg.StateDir)
	must(t, err)
	s, err := server.New(server.Options{Options: engines.Options{Config: cfg, Tools: tools.All, Version: "test", Serve: true}, Extend: waiting})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	url := "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.HTTP(ctx, []listen.Listener{{Listener: l, URL: url, Loopback: true}}) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return url
}

// TestProxiesSilence: a call during which nothing is said for longer than a proxy's patience is answered.
func TestProxiesSilence(t *testing.T) {
	t.Parallel()
	type round struct {
		patience, silence time.Duration
		meta              string // of commands
	}
	leaktest.OnlyLong(t, "waits for longer than a proxy does")
	rounds := []round{
		// Three comments on the way, 10 s apart: a machine may be 15 s late with one, and no proxy gives up.
		{25 * time.Second, 40 * time.Second, ""},
		// A command of this length moves to the background unless its client is shown progress.
		{time.Minute, 90 * time.Second, noted},
	}
	var calls sync.WaitGroup
	for _, r := range rounds {
		said := func(who string, k wireKind, c *talker, tool, args, meta string) {
			calls.Go(func() {
				began := time.Now()
				a, err := c.try(t.Context(), c.CallBody("1", tool, args, meta))
				text := ""
				if err == nil {
					text, _, err = a.outcome()
				}
				if who = fmt.Sprintf("%s, %s of %s, %s", who, k.transport, k.era, tool); err != nil || !strings.HasPrefix(text, "survived") {
					t.Errorf("%s: %v, %q", who, err, text)
				}
				t.Logf("%s: answered after %v, the proxy waits %v", who, time.Since(began).Round(time.Millisecond), r.patience)
			})
		}
		waits := serveWaiting(t)
		for _, p := range fronts {
			d := deploy(t, "CODEHAND_CLIENT_PROFILE=claude-code") // one that waits for commands; others get a job after 45 s
			tokens := map[wireKind]string{}
			for _, k := range wireKinds { // commands in one tree wait for each other
				tokens[k] = d.mint("--root", filepath.Join(d.work, k.transport+k.era))
			}
			f := p.open(t, d.serveAs(p.shipped).url, r.patience)
			for _, k := range wireKinds {
				d.token = tokens[k]
				said(p.name, k, d.talk(f.url, f.client, k), "run_shell", fmt.Sprintf(`{"command":"sleep %.0f; echo survived"}`, r.silence.Seconds()), r.meta)
			}
			if p.shipped == "" {
				d, f := &deployment{t: t}, p.open(t, waits, r.patience)
				for _, k := range wireKinds {
					said(p.name, k, d.talk(f.url, f.client, k), "wait_for", fmt.Sprintf(`{"seconds":%.0f}`, r.silence.Seconds()), "")
				}
			}
		}
	}
	calls.Wait()
}

// TestProxiesLosePatience: a server that says nothing is given up by each of the proxies, so it is the comments that
// keep calls alive in TestProxiesSilence.
func TestProxiesLosePatience(t *testing.T) {
	t.Parallel()
	for _, p := range fronts {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not noticed
				<-r.Context().Done()
			}))
			defer silent.Close()
			f := p.open(t, silent.URL, time.Second)
			r, err := f.client.Post(f.url+"/mcp", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			if r.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("got %s", r.Status)
			}
		})
	}
}

// TestService starts the server as the unit for systemd does, with the configuration that its comment shows, and has
// systemd read it.
func TestService(t *testing.T) {
	t.Parallel()
	unit := shipped(t, "systemd/codehand.service")
	d := deploy(t)
	dir := t.TempDir()
	var toml strings.Builder
	for line := range strings.Lines(unit) {
		if setting, ok := strings.CutPrefix(line, "#   "); ok {
			toml.WriteString(strings.Replace(setting, "/var/lib/codehand", dir+"/data", 1))
		}
	}
	if err := os.Mkdir(dir+"/data", 0o700); err != nil {
		t.Fatal(err)
	}
	replaytest.WriteFile(t, dir+"/config.toml", []byte(toml.String()))
	_, command, ok := strings.Cut(unit, "\nExecStart=/usr/bin/codehand ")
	command, _, _ = strings.Cut(command, "\n")
	if !ok {
		t.Fatal("the unit starts no codehand")
	}
	var args []string
	for arg := range strings.FieldsSeq(replace(t, command, "/etc/codehand/config.toml", "$CONFIG")) {
		args = append(args, strings.Replace(arg, "$CONFIG", dir+"/config.toml", 1))
	}
	out, err := d.codehand(append(args, "--check")...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "data directory "+dir+"/data (store embedded:)\n") {
		t.Errorf("%v\n%s", err, out)
	}
	replaytest.WriteFile(t, dir+"/codehand.service", []byte(replace(t, unit, "ExecStart=/usr/bin/codehand", "ExecStart=\""+d.program+"\"")))
	out, err = exec.Command(debian(t, "systemd-analyze", "systemd"), "verify", dir+"/codehand.service").CombinedOutput()
	if err != nil || strings.Contains(string(out), "codehand.service") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// inFlight is how many requests the server works on, as its metrics tell an admin.
func (d *deployment) inFlight(url, admin string) int {
	d.t.Helper()
	c := &replaytest.HTTPClient{T: d.t, Token: admin}
	ask := c.Request(d.t.Context(), http.MethodGet, url+"/metrics", "")
	ask.Close = true // it is none of the connections that a test waits for
	got := c.Do(ask)
	_, number, ok := strings.Cut(got.Answer, "\ncodehand_calls_in_flight ")
	number, _, _ = strings.Cut(number, "\n")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		d.t.Fatalf("metrics: %d, %q, %v", got.Status, number, err)
	}
	return n
}

// connections is how many connections the server has not closed, those included that it has not accepted yet.
func (d *deployment) connections() (n int) {
	d.t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		d.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(d.address)
	number, err := strconv.Atoi(port)
	if err != nil {
		d.t.Fatal(err)
	}
	here := fmt.Sprintf("0100007F:%04X", number) // 127.0.0.1, of which proc(5) prints the bytes as they are in memory
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == here && slices.Contains([]string{"01", "03", "08"}, f[3]) { // established, on its way there, closed by the other side
			n++
		}
	}
	return n
}

// An attempt is a call that goes on beside the test.
type attempt struct {
	ended  sync.WaitGroup // what follows is there when it is over
	text   string
	failed bool
	err    error // there was no answer
}

func (c *talker) begin(body string) *attempt {
	p := &attempt{}
	p.ended.Go(func() {
		a, err := c.try(c.T.Context(), body)
		if p.err = err; err == nil {
			p.text, p.failed, p.err = a.outcome()
		}
	})
	return p
}

// TestProxyDies: the proxy dies, or is stopped, while a command runs, an edit waits for it, and a reader waits for a job.
// In the legacy era what came in to change something is done, once; the reader is cancelled; and the edit that its client
// sends again, since it saw no answer, changes nothing. In the modern era a lost connection is the client's cancel, so
// nothing more is done; then the second edit is the only one.
func TestProxyDies(t *testing.T) {
	t.Parallel()
	for _, k := range wireKinds {
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			t.Run(fmt.Sprintf("%s/%s/%v", k.transport, k.era, sig), func(t *testing.T) {
				t.Parallel()
				proxyDies(t, k, sig)
			})
		}
	}
}

func proxyDies(t *testing.T, k wireKind, sig syscall.Signal) {
	d := deploy(t)
	admin := d.mint("--admin")
	s := d.serve()
	f := fronts[0].open(t, s.url, time.Minute)
	file, marker := filepath.Join(d.work, "f.txt"), filepath.Join(d.work, "marker")
	replaytest.WriteFile(t, file, []byte("one\n"))
	const (
		handle = `,"codehand/session":"the-same-one"` // legacy SSE has a new session after a new connection
		edit   = `{"file_path":"f.txt","old_string":"one","new_string":"one two"}`
	)
	c := d.talk(f.url, f.client, k)
	c.say(`"read"`, "read_file", `{"file_path":"f.txt"}`, handle)
	letEnd(t, d.work, "busy", "running")
	busy, running := hold(t, d.work, "busy"), hold(t, d.work, "running")
	job, _ := c.say(`"job"`, "run_shell", fmt.Sprintf(`{"command":"while [ -e '%s' ]; do sleep 0.1; done","run_in_background":true}`, busy.path), handle)
	wait := fmt.Sprintf(`{"job_id":%q,"block":true,"timeout_ms":600000}`, job[strings.Index(job, "job_"):][:16])

	// A message of legacy SSE has come in when it is accepted, and all answers come on one stream.
	var calls []*attempt
	send := func(c *talker, id, tool, args string) {
		body := c.CallBody(id, tool, args, handle)
		if c.events == nil {
			calls = append(calls, c.begin(body))
		} else if _, err := c.try(t.Context(), body); err != nil {
			t.Fatal(err)
		}
	}
	allIn := func() {
		replaytest.Until(t, "all calls come in", func() bool { return k.transport == "sse" || d.inFlight(s.url, admin) == 3 })
	}
	// It resists for 2 s, so a cancel of the edit does not come too late.
	resists := filepath.Join(d.work, "resists")
	send(c, "1", "run_shell", strings.Replace(running.command("echo changed >> '"+marker+"'"), "echo begun", "trap '' TERM; : > '"+resists+"'", 1))
	replaytest.Until(t, "the command begins", func() bool {
		_, err := os.Stat(resists)
		return err == nil
	})
	send(c, "2", "job_output", wait)
	send(c, "3", "edit_file", edit)
	allIn()
	f.nginx.end(sig)
	if c.events != nil {
		calls = append(calls, &attempt{})
		calls[0].text, _, calls[0].err = c.events.outcome()
	}
	for _, p := range calls {
		if p.ended.Wait(); p.err == nil {
			t.Errorf("answered: %s", p.text)
		}
	}
	f.nginx.start()
	if k.transport == "sse" {
		c = d.talk(f.url, f.client, k)
	}

	cancelled := func(tool string) {
		replaytest.Until(t, tool+" is cancelled", func() bool {
			rows := d.recorded("call.done", tool)
			return len(rows) > 0 && rows[len(rows)-1].Cancelled
		})
	}
	cancelled("job_output")
	d.holds(file, "one\n")
	calls = nil
	if c.Modern {
		cancelled("run_shell")
		cancelled("edit_file")
		running.release()
		send(c, "4", "edit_file", edit)
	} else {
		send(c, "4", "edit_file", edit)
		allIn()
		running.release()
	}
	if c.events != nil {
		calls = append(calls, &attempt{})
		calls[0].text, calls[0].failed, calls[0].err = c.events.outcome()
	}
	again := calls[0]
	again.ended.Wait()
	t.Logf("the edit that is sent again: %v, %q, refused %v", again.err, again.text, again.failed)
	d.holds(file, "one two\n")
	if again.err != nil || again.failed == c.Modern {
		t.Error("in the legacy era the first one counts, in the modern one the second")
	}

	count := func(ev, tool string, want ...auditRow) {
		t.Helper()
		// The line of an abandoned call may come after the answer to the next one.
		replaytest.Until(t, fmt.Sprintf("%s of %s is recorded %d times", ev, tool, len(want)), func() bool { return len(d.recorded(ev, tool)) >= len(want) })
		rows := d.recorded(ev, tool)
		for i := range rows {
			rows[i] = auditRow{OK: rows[i].OK, Cancelled: rows[i].Cancelled}
		}
		order := func(a, b auditRow) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) } // lines of calls may overtake each other
		slices.SortFunc(rows, order)
		slices.SortFunc(want, order)
		if !slices.Equal(rows, want) {
			t.Errorf("%s of %s: %+v, want %+v", ev, tool, rows, want)
		}
	}
	done, refused, lost := auditRow{OK: true}, auditRow{}, auditRow{Cancelled: true}
	count("call.start", "run_shell", auditRow{}, auditRow{}) // the first one is the job
	if c.Modern {
		d.holds(marker, "")
		count("call.done", "run_shell", done, lost)
		count("call.done", "edit_file", lost, done)
		count("call.start", "edit_file", auditRow{})
	} else {
		d.holds(marker, "changed\n")
		count("call.done", "run_shell", done, done)
		count("call.done", "edit_file", done, refused)
		count("call.start", "edit_file", auditRow{}, auditRow{})
	}
	d.auditHolds()
}

// TestProxyDiesUnderLoad kills the proxy at any moment while a session counts in a file. What was acknowledged is there,
// the edit that got no answer is done or not, and nothing else; and the audit says which.
func TestProxyDiesUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := leaktest.Rounds(3, 100)
	for _, k := range wireKinds[:2] {
		t.Run(k.era, func(t *testing.T) {
			t.Parallel()
			d := crowded(t)
			f := fronts[0].open(t, d.serve().url, time.Minute)
			seed := uint64(time.Now().UnixNano())
			random := rand.New(rand.NewPCG(seed, 0))
			x := d.counter(d.talk(f.url, f.client, k), "counter-0")
			edits, ahead := 0, 0
			for round := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { x.run(ctx) })
				for range 1 + random.IntN(5) {
					<-x.ack
				}
				timer := time.NewTimer(time.Duration(random.IntN(4000)) * time.Microsecond)
				<-timer.C
				f.nginx.end(syscall.SIGKILL)
				cancel() // or it would wait for the next proxy
				running.Wait()
				f.nginx.start()
				// What nginx has sent is done or not, however late the server reads it: it closes the connection after that.
				replaytest.Until(t, "no connection is left", func() bool { return d.connections() == 0 })
				replaytest.Until(t, "nothing runs any more", func() bool { return d.inFlight("http://"+d.address, d.token) == 0 })
				edits += x.done
				ahead += x.settle()
				done := 0
				// The line of an abandoned call may come after the answer to the next one.
				replaytest.Until(t, fmt.Sprintf("what began has ended in the audit, in round %d, seed %d", round, seed), func() bool {
					begun := map[string]bool{}
					done = 0
					for _, r := range d.recorded("", "edit_file") {
						switch r.Ev {
						case "call.start":
							begun[r.Call] = true
						case "call.done":
							delete(begun, r.Call)
							if r.OK {
								done++
							}
						}
					}
					return len(begun) == 0
				})
				if done != x.at {
					t.Errorf("%d edits are in the file, and %d in the audit", x.at, done)
				}
				if t.Failed() {
					t.Fatalf("in round %d, seed %d", round, seed)
				}
			}
			t.Logf("%d rounds, %d edits acknowledged, %d done and not acknowledged", rounds, edits, ahead)
			d.auditHolds()
		})
	}
}

// auditHolds has codehand look at the chain of its audit, over all starts.
func (d *deployment) auditHolds() {
	d.t.Helper()
	out, err := d.codehand("doctor", "--audit", d.audits()).CombinedOutput()
	if err != nil {
		d.t.Errorf("doctor --audit: %v\n%s", err, out)
	}
}

// holds compares a file with what it must hold; "": it must not be there.
func (d *deployment) holds(path, want string) {
	d.t.Helper()
	got, err := os.ReadFile(path)
	if err != nil && (want != "" || !errors.Is(err, fs.ErrNotExist)) || string(got) != want {
		d.t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
	}
}
