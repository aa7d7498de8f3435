package peers

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

// serve answers on a listener with 200 those whom p takes for ours, others with 403.
func serve(t *testing.T, p *Peers, network, address string) net.Addr {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Skipf("this machine cannot listen on %s: %v", address, err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Caller(r.RemoteAddr) != Ours {
			w.WriteHeader(http.StatusForbidden)
		}
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(p.Listener(l)) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return l.Addr()
}

// get asks over a connection of its own, which prepare may change before.
func get(t *testing.T, at net.Addr, prepare func(net.Conn)) int {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, at.Network(), at.String())
		if err == nil && prepare != nil {
			prepare(c)
		}
		return c, err
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://local/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

func TestOurUser(t *testing.T) {
	t.Parallel()
	p := New()
	if p == nil {
		t.Skip("this system does not say whose a connection is")
	}
	if p.uid != os.Geteuid() {
		t.Errorf("our user is %d", p.uid)
	}
	for _, c := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"tcp", "[::]:0"}, {"unix", filepath.Join(leaktest.Public(t), "s")},
	} {
		at := serve(t, p, c.network, c.address)
		if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
			at = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port} // an IPv4 client of a dual-stack listener
		}
		if got := get(t, at, nil); got != 200 {
			t.Errorf("%s: the user who runs the server gets %d", at, got)
		}
	}
}

// fakePeers are peers whose connections belong to whom owners says.
func fakePeers(look func(remote, local netip.AddrPort) (end, error)) *Peers {
	return &Peers{uid: 1000, look: look, call: func(end) Caller { return Ours }, open: map[string][]*peerConn{}}
}

// fakeConn is a connection with addresses only.
type fakeConn struct {
	net.Conn
	remote, local net.Addr
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }
func (c *fakeConn) LocalAddr() net.Addr  { return c.local }
func (c *fakeConn) Close() error         { return nil }

func (p *Peers) accepted(remote, local net.Addr) *peerConn {
	c := &peerConn{Conn: &fakeConn{remote: remote, local: local}, peers: p, remote: remote}
	p.add(c)
	return c
}

func tcp(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

func TestPeers(t *testing.T) {
	t.Parallel()
	owners := map[string]int{"127.0.0.1:1>127.0.0.1:7433": 1000, "127.0.0.1:2>127.0.0.1:7433": 0, "127.0.0.1:3>127.0.0.1:7433": 1001, "127.0.0.1:1>127.0.0.1:7434": 1001}
	p := fakePeers(func(remote, local netip.AddrPort) (end, error) {
		uid, ok := owners[remote.String()+">"+local.String()]
		if !ok {
			return nowhere, errors.New("no such connection")
		}
		return end{uid: uid}, nil
	})
	for remote, want := range map[string]bool{"127.0.0.1:1": true, "127.0.0.1:2": true, "127.0.0.1:3": false, "127.0.0.1:4": false} {
		if p.Caller(remote) != Stranger {
			t.Errorf("%s is ours before it was accepted", remote)
		}
		c := p.accepted(tcp(remote), tcp("127.0.0.1:7433"))
		if got := p.Caller(remote) == Ours; got != want {
			t.Errorf("%s: ours: %v, want %v", remote, got, want)
		}
		_ = c.Close()
		_ = c.Close()
		if p.Caller(remote) != Stranger || len(p.open) != 0 {
			t.Errorf("%s is ours after it was closed", remote)
		}
	}
	// Two users may have the same port towards two of our addresses. Neither may pass for the other.
	a := p.accepted(tcp("127.0.0.1:1"), tcp("127.0.0.1:7433"))
	b := p.accepted(tcp("127.0.0.1:1"), tcp("127.0.0.1:7434"))
	if p.Caller("127.0.0.1:1") != Stranger {
		t.Error("a stranger shares an address with our user and passes for him")
	}
	_ = b.Close()
	if p.Caller("127.0.0.1:1") != Ours {
		t.Error("our user is kept out after the stranger left")
	}
	_ = a.Close()
	// A listener that hands out something else than sockets is of no use, but of no danger.
	_ = p.accepted(&net.IPAddr{IP: net.IPv4(127, 0, 0, 1)}, tcp("127.0.0.1:7433"))
	if p.Caller("127.0.0.1") != Stranger {
		t.Error("a connection without ports is ours")
	}
}

// Connections of Unix sockets have no address, so each gets one.
func TestUnixPeersHaveNames(t *testing.T) {
	t.Parallel()
	p := fakePeers(nil)
	local := &net.UnixAddr{Name: "/run/x", Net: "unix"}
	a, b := p.accepted(&net.UnixAddr{Net: "unix"}, local), p.accepted(&net.UnixAddr{Net: "unix"}, local)
	if x, y := a.RemoteAddr().String(), b.RemoteAddr().String(); x != "@1" || y != "@2" || len(p.open) != 2 {
		t.Errorf("they are called %q and %q", x, y)
	}
	if p.Caller("@1") != Stranger {
		t.Error("what is no socket is ours")
	}
}

// A connection that the system does not list yet is looked for again after 5 ms, once; it is looked for only once in all.
func TestPeerIsLookedForTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			found int64 // by which look
			want  bool
			looks int64
			takes time.Duration
		}{{1, true, 1, 0}, {2, true, 2, lookAgain}, {3, false, 2, lookAgain}} {
			var looks atomic.Int64
			p := fakePeers(func(netip.AddrPort, netip.AddrPort) (end, error) {
				if looks.Add(1) == c.found {
					return end{uid: 1000}, nil
				}
				return nowhere, nil
			})
			p.accepted(tcp("127.0.0.1:1"), tcp("127.0.0.1:7433"))
			start := time.Now()
			for range 3 {
				if got := p.Caller("127.0.0.1:1") == Ours; got != c.want {
					t.Errorf("found by look %d: ours: %v", c.found, got)
				}
			}
			if looks.Load() != c.looks || time.Since(start) != c.takes {
				t.Errorf("found by look %d: %d looks in %s", c.found, looks.Load(), time.Since(start))
			}
		}
	})
}
