package listen

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/replaytest"
)

// listening is a configuration that listens on addresses, with an empty data directory.
func listening(t *testing.T, addresses ...string) config.Config {
	t.Helper()
	var c config.Config
	c.HTTP.Listen, c.HTTP.DataDir = addresses, t.TempDir()
	c.HTTP.UnixMode, c.HTTP.MaxConnections = 0o600, 100
	c.Auth.Mode = "auto"
	return c
}

// TestCheckListen holds the refusals of the start to their words: an operator reads them at three in the morning.
func TestCheckListen(t *testing.T) {
	t.Parallel()
	const makeToken = `--auth-mode token, then "codehand token new NAME"`
	for name, test := range map[string]struct {
		listen     []string
		with       func(*config.Config)
		want, hint string // "": served
	}{
		"loopback":            {listen: []string{"127.0.0.1:7433", "[::1]:7433", "localhost:7434", "127.9.9.9:1"}},
		"unix":                {listen: []string{"unix:/run/codehand.sock"}},
		"loopback with proxy": {listen: []string{"127.0.0.1:7433"}, with: func(c *config.Config) { c.HTTP.BehindProxy, c.Auth.Mode = true, "token" }},
		"proxy without tokens": {listen: []string{"127.0.0.1:7433"}, with: func(c *config.Config) { c.HTTP.BehindProxy = true },
			want: "http.behind_proxy needs authentication: without it everyone who reaches the proxy could connect", hint: makeToken},
		"every interface": {listen: []string{":7433"},
			want: `listen ":7433" binds every interface; write 0.0.0.0:7433 or 127.0.0.1:7433`},
		"every IPv4 address": {listen: []string{"0.0.0.0:7433"}, want: "listen 0.0.0.0:7433 needs authentication", hint: makeToken},
		"every IPv6 address": {listen: []string{"[::]:7433"}, want: "listen [::]:7433 needs authentication", hint: makeToken},
		"a name":             {listen: []string{"tools.example.com:7433"}, want: "listen tools.example.com:7433 needs authentication", hint: makeToken},
		"the second one":     {listen: []string{"127.0.0.1:7433", "10.0.0.1:7433"}, want: "listen 10.0.0.1:7433 needs authentication", hint: makeToken},
		"none on purpose": {listen: []string{"0.0.0.0:7433"}, with: func(c *config.Config) { c.Auth.Mode, c.HTTP.BehindProxy = "none", true },
			want: "listen 0.0.0.0:7433 needs authentication", hint: makeToken},
		"tokens in clear": {listen: []string{"0.0.0.0:7433"}, with: func(c *config.Config) { c.Auth.Mode = "token" },
			want: "listen 0.0.0.0:7433 would send tokens without encryption",
			hint: "set http.tls_cert and http.tls_key, or http.behind_proxy = true if a proxy in front speaks TLS"},
		"no name": {listen: []string{"0.0.0.0:7433"}, with: func(c *config.Config) { c.Auth.Mode, c.HTTP.BehindProxy = "token", true },
			want: "listen 0.0.0.0:7433 needs the host name that clients use",
			hint: "--http-public-url https://NAME, as clients call this server; more names: http.allowed_hosts"},
		"behind a proxy": {listen: []string{"0.0.0.0:7433"}, with: func(c *config.Config) {
			c.Auth.Mode, c.HTTP.BehindProxy, c.HTTP.PublicURL = "token", true, "https://tools.example.com"
		}},
		"allowed hosts": {listen: []string{"0.0.0.0:7433"}, with: func(c *config.Config) {
			c.Auth.Mode, c.HTTP.BehindProxy, c.HTTP.AllowedHosts = "token", true, []string{"tools"}
		}},
		"no address":    {listen: []string{"7433"}, want: `listen "7433" is not an address; write host:port, [v6]:port, unix:/path or systemd:`},
		"bare address":  {listen: []string{"0.0.0.0"}, want: `listen "0.0.0.0" is not an address; write host:port, [v6]:port, unix:/path or systemd:`},
		"bare v6":       {listen: []string{"[::]"}, want: `listen "[::]" is not an address; write host:port, [v6]:port, unix:/path or systemd:`},
		"named port":    {listen: []string{"127.0.0.1:http"}, want: `listen "127.0.0.1:http": the port must be a number from 0 to 65535`},
		"large port":    {listen: []string{"127.0.0.1:65536"}, want: `listen "127.0.0.1:65536": the port must be a number from 0 to 65535`},
		"relative path": {listen: []string{"unix:http.sock"}, want: "listen unix:http.sock: the path must be absolute: unix:/run/codehand/http.sock"},
		"nothing":       {want: "http.listen is empty", hint: "--listen 127.0.0.1:7433"},
		"no socket": {listen: []string{"systemd:"}, want: "listen systemd: no socket was passed by systemd",
			hint: "start it from a systemd socket unit, or give an address with --listen"},
		"key without certificate": {listen: []string{"127.0.0.1:7433"}, with: func(c *config.Config) { c.HTTP.TLSKey = "/k" },
			want: "http.tls_cert is not set, but http.tls_key or http.client_ca is", hint: "--http-tls-cert FILE"},
		"certificate without key": {listen: []string{"127.0.0.1:7433"}, with: func(c *config.Config) { c.HTTP.TLSCert = "/c" },
			want: "http.tls_key is not set, but http.tls_cert is", hint: "--http-tls-key FILE"},
		"no such certificate": {listen: []string{"127.0.0.1:7433"}, with: func(c *config.Config) { c.HTTP.TLSCert, c.HTTP.TLSKey = "/nowhere/c", "/nowhere/k" },
			want: "http.tls_cert, http.tls_key: open /nowhere/c: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := listening(t, test.listen...)
			if test.with != nil {
				test.with(&c)
			}
			err := Check(c)
			if test.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			wrong, ok := errors.AsType[*config.Unusable](err)
			if !ok || wrong.Error() != test.want || wrong.Hint != test.hint {
				t.Errorf("got %v (%+v)\nwant %s\nhint %s", err, wrong, test.want, test.hint)
			}
		})
	}
}

// TestAuthMode decides auto. A revoked token counts, or the last revocation would open the server for everybody.
func TestAuthMode(t *testing.T) {
	t.Parallel()
	with := func(revoked bool) func(*testing.T, config.Config) {
		return func(t *testing.T, c config.Config) {
			f := auth.OpenTokenFile(c.TokenFile())
			if _, _, err := f.New(auth.Token{Principal: "alice"}); err != nil {
				t.Fatal(err)
			}
			if revoked {
				if _, err := f.Revoke(func(auth.Token) bool { return true }); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, test := range map[string]struct {
		listen, mode string
		tokens       func(*testing.T, config.Config)
		want         string
	}{
		"loopback":                   {"127.0.0.1:0", "auto", nil, "none"},
		"unix":                       {"unix:/x", "auto", nil, "none"},
		"loopback with a token":      {"127.0.0.1:0", "auto", with(false), "token"},
		"with a revoked token":       {"127.0.0.1:0", "auto", with(true), "token"},
		"others reach it":            {"0.0.0.0:0", "auto", with(false), "token"},
		"none although there is one": {"127.0.0.1:0", "none", with(false), "none"},
		"token without any":          {"127.0.0.1:0", "token", nil, "token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := listening(t, test.listen)
			c.Auth.Mode = test.mode
			if test.tokens != nil {
				test.tokens(t, c)
			}
			if got, err := authMode(c); got != test.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
	t.Run("broken file", func(t *testing.T) {
		t.Parallel()
		c := listening(t, "127.0.0.1:0")
		if err := os.WriteFile(c.TokenFile(), []byte("{\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := authMode(c)
		if _, ok := errors.AsType[*config.Unusable](err); !ok || !strings.Contains(err.Error(), "tokens.jsonl:1: ") {
			t.Errorf("got %v, want a config.Unusable with file and line", err)
		}
	})
}

// opened binds, and closes at the end of the test.
func opened(t *testing.T, c config.Config, o Options) []Listener {
	t.Helper()
	ls, err := Open(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range ls {
			_ = l.Close() // some tests closed it themselves
		}
	})
	return ls
}

func TestListenDescribes(t *testing.T) {
	t.Parallel()
	sock := filepath.Join(leaktest.Public(t), "s")
	ls := opened(t, listening(t, "127.0.0.1:0", "unix:"+sock), Options{})
	if len(ls) != 2 {
		t.Fatalf("%d listeners", len(ls))
	}
	if l := ls[0]; l.URL != "http://"+l.Addr().String() || !l.Loopback || l.Unix || l.TLS != nil {
		t.Errorf("got %+v", l)
	}
	if l := ls[1]; l.URL != "unix:"+sock || !l.Unix || l.TLS != nil {
		t.Errorf("got %+v", l)
	}
}

// TestListenAllOrNothing: a second address in use gives back the first one.
func TestListenAllOrNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	sock := filepath.Join(leaktest.Public(t), "s")
	at := taken.Addr().String()
	_, err = Open(t.Context(), listening(t, "unix:"+sock, at), Options{})
	bind, ok := errors.AsType[*BindError](err)
	if !ok || bind.Error() != "listen "+at+": address already in use" || !strings.HasSuffix(bind.Hint, "choose another address with --listen") {
		t.Errorf("got %v (%+v)", err, bind)
	}
	if _, err := os.Lstat(sock); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the first socket is still there: %v", err)
	}
}

// TestListenChecks: Open refuses what Check refuses, even if the caller did not call Check.
func TestListenChecks(t *testing.T) {
	t.Parallel()
	inherited, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), listening(t, "0.0.0.0:0", "systemd:"), Options{Inherited: []net.Listener{inherited}})
	if _, ok := errors.AsType[*config.Unusable](err); !ok {
		t.Errorf("got %v", err)
	}
	if _, err := inherited.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the socket of systemd is still open: %v", err)
	}
}

func TestListenInherited(t *testing.T) {
	t.Parallel()
	inherited, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ls := opened(t, listening(t, "127.0.0.1:0", "systemd:"), Options{Inherited: []net.Listener{inherited}})
	if len(ls) != 2 || ls[1].Addr().String() != inherited.Addr().String() || !ls[1].Loopback {
		t.Errorf("got %+v", ls)
	}
}

// TestListenMetrics binds the address of the metrics, if there is one.
func TestListenMetrics(t *testing.T) {
	t.Parallel()
	c := listening(t, "127.0.0.1:0")
	if _, ok, err := OpenMetrics(t.Context(), c); ok || err != nil {
		t.Errorf("without an address: %v, %v", ok, err)
	}
	c.Metrics.Listen = "127.0.0.1:0"
	l, ok, err := OpenMetrics(t.Context(), c)
	if !ok || err != nil || l.URL != "http://"+l.Addr().String() {
		t.Fatalf("got %+v, %v, %v", l, ok, err)
	}
	defer l.Close()
	c.Metrics.Listen = l.Addr().String()
	if _, _, err := OpenMetrics(t.Context(), c); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the same address again: %v", err)
	}
}

// TestUnixSocket holds the rules for what is at the path before, and who may call afterwards.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dead := func(t *testing.T, path string) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close() // as a kill leaves it

		for { // a child that another test forks has it until it runs its program
			c, err := net.Dial("unix", path)
			if err != nil {
				return
			}
			_ = c.Close() // it only asked
		}
	}
	for name, test := range map[string]struct {
		before func(*testing.T, string)
		mode   fs.FileMode
		want   error // nil: it is served
	}{
		"nothing there": {nil, 0o600, nil},
		"for a group":   {nil, 0o660, nil},
		"dead socket":   {dead, 0o600, nil},
		"live socket": {func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}, 0o600, syscall.EADDRINUSE},
		"file": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 0o600, syscall.EEXIST},
		"link to a dead socket": {func(t *testing.T, path string) {
			dead(t, path+"2")
			if err := os.Symlink(path+"2", path); err != nil {
				t.Fatal(err)
			}
		}, 0o600, syscall.EEXIST},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(leaktest.Public(t), "s")
			if test.before != nil {
				test.before(t, path)
			}
			before, _ := os.Lstat(path) // nil if nothing is there
			c := listening(t, "unix:"+path)
			c.HTTP.UnixMode = test.mode
			ls, err := Open(t.Context(), c, Options{})
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if test.want != nil {
				if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
					t.Errorf("what was there is gone: %v", err)
				}
				return
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode().Perm() != test.mode {
				t.Errorf("mode %v, %v; want %v", info.Mode(), err, test.mode)
			}
			if err := ls[0].Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket stays behind: %v", err)
			}
		})
	}
}

// TestMaxConnections: the connections of both listeners share the limit, the next one waits, and one that ends makes
// room. What waits when a listener closes is given up.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	c := listening(t, "127.0.0.1:0", "127.0.0.1:0")
	c.HTTP.MaxConnections = 2
	ls := opened(t, c, Options{})
	accepted := make(chan net.Conn)
	var accepting sync.WaitGroup
	for _, l := range ls {
		accepting.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("accept: %v", err)
					}
					return
				}
				accepted <- conn
			}
		})
	}
	dial := func(l Listener) net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	dial(ls[0])
	first := <-accepted
	dial(ls[1])
	<-accepted
	waiting := dial(ls[0])
	slots := ls[0].Listener.(*limitedListener).slots
	if len(slots.free) != 2 {
		t.Fatalf("%d slots are taken, want 2", len(slots.free))
	}
	if err := errors.Join(first.Close(), first.Close()); err == nil {
		t.Error("the second close said nothing")
	}
	third := <-accepted // waited until now; the slot was given back once, although it was closed twice
	if third.RemoteAddr().String() != waiting.LocalAddr().String() {
		t.Errorf("accepted %s, want %s", third.RemoteAddr(), waiting.LocalAddr())
	}
	given := dial(ls[0])
	for _, l := range ls {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	accepting.Wait()
	if _, err := given.Read(make([]byte, 1)); err == nil {
		t.Error("the connection that never had a slot is alive")
	}
}

// TestLimitedConn keeps what others look for below a net.Conn.
func TestLimitedConn(t *testing.T) {
	t.Parallel()
	ls := opened(t, listening(t, "127.0.0.1:0"), Options{})
	conn, err := net.Dial("tcp", ls[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := ls[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if raw, err := got.(syscall.Conn).SyscallConn(); raw == nil || err != nil {
		t.Errorf("no descriptor: %v", err)
	}
	if err := got.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Errorf("half close: %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after half a close: %v, want EOF", err)
	}
	if _, ok := got.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn); !ok {
		t.Error("the TCP connection is not below")
	}
}

// shake makes one TLS handshake with a listener, and returns the certificate that the server showed.
func shake(t *testing.T, l Listener, client *tls.Config) (*x509.Certificate, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		server := tls.Server(conn, l.TLS)
		if err := server.HandshakeContext(ctx); err != nil {
			served <- err
			return
		}
		_, err = server.Write([]byte("x")) // TLS 1.3: the client learns only now whether its certificate was taken
		served <- err
	}()
	conn, err := (&tls.Dialer{Config: client}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		<-served
		return nil, err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], errors.Join(err, <-served)
}

// TestTLS serves with a certificate, refuses old versions and clients without one where they need one.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir, ca, clients := t.TempDir(), replaytest.NewAuthority(t), replaytest.NewAuthority(t)
	cert, key := ca.Issue(t, "server")
	replaytest.WriteFile(t, dir+"/cert", cert)
	replaytest.WriteFile(t, dir+"/key", key)
	replaytest.WriteFile(t, dir+"/ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: clients.Cert.Raw}))
	pair := func(of *replaytest.Authority) []tls.Certificate {
		p, err := tls.X509KeyPair(of.Issue(t, "client"))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{p}
	}
	for name, test := range map[string]struct {
		clientCA bool
		client   *tls.Config
		works    bool
	}{
		"now":                 {false, &tls.Config{}, true},
		"TLS 1.2":             {false, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		"TLS 1.1":             {false, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		"no certificate":      {true, &tls.Config{}, false},
		"foreign certificate": {true, &tls.Config{Certificates: pair(ca)}, false},
		"client certificate":  {true, &tls.Config{Certificates: pair(clients)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := listening(t, "127.0.0.1:0")
			c.HTTP.TLSCert, c.HTTP.TLSKey = dir+"/cert", dir+"/key"
			if test.clientCA {
				c.HTTP.ClientCA = dir + "/ca"
			}
			l := opened(t, c, Options{})[0]
			if l.URL != "https://"+l.Addr().String() {
				t.Errorf("URL %s", l.URL)
			}
			client := test.client.Clone()
			client.RootCAs, client.ServerName = ca.Pool(), "localhost"
			if _, err := shake(t, l, client); (err == nil) != test.works {
				t.Errorf("got %v, want it to work: %v", err, test.works)
			}
		})
	}
}

// TestCertificateRenewed: a new pair is served after the next look, a broken one is logged once and the old one goes
// on.
func TestCertificateRenewed(t *testing.T) {
	t.Parallel()
	dir, ca := t.TempDir(), replaytest.NewAuthority(t)
	put := func(name string, at time.Time) {
		cert, key := ca.Issue(t, name)
		replaytest.WriteFile(t, dir+"/cert", cert)
		replaytest.WriteFile(t, dir+"/key", key)
		for _, f := range []string{"/cert", "/key"} {
			if err := os.Chtimes(dir+f, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := time.Now().Truncate(time.Second)
	put("first", start)
	var log bytes.Buffer
	c := listening(t, "127.0.0.1:0")
	c.HTTP.TLSCert, c.HTTP.TLSKey = dir+"/cert", dir+"/key"
	l := opened(t, c, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})[0]
	now := start
	l.pair.now = func() time.Time { return now }
	l.pair.looked = now
	expect := func(when, name string) {
		t.Helper()
		got, err := shake(t, l, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"})
		if err != nil || got.Subject.CommonName != name {
			t.Errorf("%s: got %v, %v; want %s", when, got, err, name)
		}
	}
	expect("at first", "first")
	put("second", start.Add(time.Second))
	now = now.Add(pairEvery - 1)
	expect("before the look", "first")
	now = now.Add(1)
	expect("after the look", "second")

	replaytest.WriteFile(t, dir+"/cert", []byte("half a cert"))
	now = now.Add(pairEvery)
	expect("with a broken file", "second")
	now = now.Add(pairEvery)
	expect("still", "second")
	if n := strings.Count(log.String(), "the old one stays in use"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, &log)
	}
	if err := l.Reload(); err == nil {
		t.Error("Reload of a broken file says nothing")
	}
	put("third", start.Add(time.Minute))
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
	expect("after Reload", "third")
}
