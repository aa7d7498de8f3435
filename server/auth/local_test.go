package auth

import (
	"net"
	"path/filepath"
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

func TestConnectionsAreNotNotedForTokens(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Mode: "token", TokenFile: filepath.Join(t.TempDir(), "x")})
	if err != nil {
		t.Fatal(err)
	}
	l := &net.TCPListener{}
	if p.Listener(l) != net.Listener(l) {
		t.Error("connections are noted for nothing")
	}
}

// With local_peer any another user is let in, too.
func TestAnyUser(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Mode: "none", LocalPeer: "any", Local: Principal{ID: "local"}})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := p.Authenticate(ask("")); err != nil || who.ID != "local" {
		t.Errorf("got %+v (%v)", who, err)
	}
}

// Where the system does not say whose a connection is, the unwrapped request is let in.
func TestWithoutTables(t *testing.T) {
	t.Parallel()
	p := sameUserPorter(t)
	p.peers = nil
	if who, err := p.Authenticate(ask("")); err != nil || who.ID != "local" {
		t.Errorf("got %+v (%v)", who, err)
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
