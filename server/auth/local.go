package auth

import (
	"net"
	"net/http"

	"codehand/server/auth/peers"
)

// Listener returns l with its connections noted, for mode none with local_peer same-user; else it returns l. Only
// requests that come over such a listener are let in then. It belongs below TLS, and l's connections are syscall.Conns
// if they are Unix sockets. Requests of several connections that share a remote address are let in if all of them may
// be, so each Unix connection gets a remote address of its own: "@1", "@2" and so on.
func (p *Porter) Listener(l net.Listener) net.Listener {
	if p.peers == nil {
		return l
	}
	return p.peers.Listener(l)
}

// localPeer says which local_peer is in force: any also where same-user was asked for but the system cannot tell users
// apart, which is weaker. It is "" in mode token.
func (p *Porter) localPeer() string {
	switch {
	case p.o.Mode != ModeNone:
		return ""
	case p.peers == nil:
		return anyUser
	}
	return sameUser
}

// local says who sent a request in mode none.
func (p *Porter) local(r *http.Request) (Principal, error) {
	if tokenInQuery(r.URL.RawQuery) {
		return Principal{}, inQuery()
	}
	if p.peers != nil && !p.peers.Ours(r.RemoteAddr) {
		return Principal{}, &Error{Status: http.StatusForbidden, Code: "not_local_user",
			Message: "Only the user who runs this server may use it. The operator can set auth.mode = \"token\", or " +
				"auth.local_peer = \"any\"."}
	}
	return p.o.Local.clone(), nil
}

// TellsUsers says whether this system says which user connects. Without that, local_peer same-user acts as any.
func TellsUsers() bool { return peers.CanLook() }
