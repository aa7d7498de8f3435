package auth

import (
	"net"
	"path/filepath"
	"runtime"
	"testing"
)

func sameUserPorter(t *testing.T) *Porter {
	t.Helper()
	p, err := New(Options{Mode: "none", Local: Principal{ID: "local"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSameUser(t *testing.T) {
	t.Parallel()
	p := sameUserPorter(t)
	if runtime.GOOS == "linux" && p.localPeer() != "same-user" || runtime.GOOS != "linux" && p.localPeer() != "any" {
		t.Errorf("on %s the peer is %s", runtime.GOOS, p.localPeer())
	}
}

func TestNobodyIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"any": {Mode: "none", LocalPeer: "any"}, "token": {Mode: "token", TokenFile: filepath.Join(t.TempDir(), "x")}} {
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := &net.TCPListener{}
		if p.Listener(l) != net.Listener(l) {
			t.Errorf("%s: connections are noted for nothing", name)
		}
	}
}

// Where the system does not say whose a connection is, the unwrapped request is let in, and localPeer says so.
func TestWithoutTables(t *testing.T) {
	t.Parallel()
	p := sameUserPorter(t)
	p.peers = nil
	if who, err := p.Authenticate(ask("")); err != nil || who.ID != "local" || p.localPeer() != "any" {
		t.Errorf("got %+v (%v), %s", who, err, p.localPeer())
	}
}

// A request that did not come over our listener is refused.
func TestUnknownConnection(t *testing.T) {
	t.Parallel()
	if !TellsUsers() {
		t.Skip("this system does not say whose a connection is")
	}
	p := sameUserPorter(t)
	if e := refused(t, p, ask("")); e == nil || e.Status != 403 || e.Code != "not_local_user" {
		t.Errorf("got %+v", e)
	}
}
