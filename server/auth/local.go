package auth

import (
	"net"
	"net/http"

	"codehand/server/auth/peers"
)

// Listener returns l with its connections noted, where requests without a token are answered: in mode none, and on the
// pages of a sign-in. Else it returns l. Only requests that come over such a listener are let in then. It belongs below
// TLS, and l's connections are syscall.Conns if they are Unix sockets. Requests of several connections that share a
// remote address are let in if all of them may be, so each Unix connection gets a remote address of its own: "@1", "@2"
// and so on.
func (p *Porter) Listener(l net.Listener) net.Listener {
	if p.peers == nil {
		return l
	}
	return p.peers.Listener(l)
}

// local says who sent a request in mode none.
func (p *Porter) local(r *http.Request) (Principal, error) {
	if tokenInQuery(r.URL.RawQuery) {
		return Principal{}, inQuery()
	}
	if p.peers == nil {
		return p.o.Local.clone(), nil
	}
	switch caller := p.peers.Caller(r.RemoteAddr); {
	case caller == peers.Confined:
		return Principal{}, confinedCaller()
	case caller == peers.Ours || p.o.LocalPeer == anyUser:
		return p.o.Local.clone(), nil
	case caller == peers.Hidden:
		return Principal{}, &Error{Status: http.StatusForbidden, Code: "hidden_caller",
			Message: "Commands run in a sandbox of codehand's, and the system does not say that this connection " +
				"is not one of theirs. Connect again when they have ended, or use a token: the operator can set " +
				"auth.mode = \"token\"."}
	}
	return Principal{}, &Error{Status: http.StatusForbidden, Code: "not_local_user",
		Message: "Only the user who runs this server may use it. The operator can set auth.mode = \"token\", or " +
			"auth.local_peer = \"any\"."}
}

// Ours says whether the system vouches to p that r comes from a program of our own user's that is no confined command.
func Ours(p *Porter, r *http.Request) bool {
	return p.peers != nil && p.peers.Caller(r.RemoteAddr) == peers.Ours
}

// Page returns the refusal of a request for a page for people; nil: the page may answer. A confined command gets
// none: it could have read a browser's cookie, or guess.
func (p *Porter) Page(r *http.Request) error {
	if p.peers != nil && p.peers.Caller(r.RemoteAddr) == peers.Confined {
		return confinedCaller()
	}
	return nil
}

func confinedCaller() *Error {
	return &Error{Status: http.StatusForbidden, Code: "confined_caller",
		Message: "This connection comes from a command that codehand runs in a sandbox, which would work here " +
			"outside of it. Call the tools of your own session instead, or let a person connect."}
}

// TellsUsers says whether this system says which user connects. Without that, local_peer same-user acts as any.
func TellsUsers() bool { return peers.CanLook() }
