package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
)

// Numbers of SOCKS5 (RFC 1928).
const (
	socksVersion = 5

	socksNoAuth       = 0
	socksNoMethod     = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksDone         = 0
	socksForbidden    = 2
	socksUnreachable  = 4
	socksNoCommand    = 7
	socksNoAddrOfKind = 8
)

// socks serves a SOCKS5 connection: no authentication, CONNECT to a name.
func (s *serving) socks(c *conn, in *bufio.Reader) {
	methods, err := socksMethods(in)
	if err != nil {
		return
	}
	if !slices.Contains(methods, socksNoAuth) {
		_, _ = c.Write([]byte{socksVersion, socksNoMethod}) // it is gone or reads it
		return
	}
	if _, err := c.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return
	}
	command, host, port, err := socksRequest(in)
	switch {
	case errors.Is(err, errKind):
		_ = socksReply(c, socksNoAddrOfKind) // it is gone or reads it, as below
		return
	case err != nil:
		return
	case command != socksConnect:
		_ = socksReply(c, socksNoCommand)
		return
	}
	out, err := s.connect(s.ctx, host, port)
	if err != nil {
		code := byte(socksUnreachable)
		if _, ok := errors.AsType[*Refusal](err); ok {
			code = socksForbidden
		}
		_ = socksReply(c, code)
		return
	}
	defer out.Close() // what was to be sent was sent
	if socksReply(c, socksDone) == nil {
		relay(c, out, in)
	}
}

// socksMethods reads the first message: the ways to sign in that the client knows.
func socksMethods(in io.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	methods := make([]byte, head[1])
	_, err := io.ReadFull(in, methods)
	return methods, err
}

// errKind: a kind of address of unknown length.
var errKind = errors.New("unknown kind of address")

// socksRequest reads what is wanted. The host is a name, or an address as text.
func socksRequest(in io.Reader) (command byte, host string, port uint16, err error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, "", 0, err
	}
	var size int
	switch head[3] {
	case socksIPv4:
		size = net.IPv4len
	case socksIPv6:
		size = net.IPv6len
	case socksName:
		var n [1]byte
		if _, err := io.ReadFull(in, n[:]); err != nil {
			return 0, "", 0, err
		}
		size = int(n[0])
	default:
		return 0, "", 0, errKind
	}
	b := make([]byte, size+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return 0, "", 0, err
	}
	host = string(b[:size])
	if head[3] != socksName {
		a, _ := netip.AddrFromSlice(b[:size]) // it has one of the two lengths
		host = a.String()
	}
	return head[1], host, binary.BigEndian.Uint16(b[size:]), nil
}

// socksReply answers a request. The address that it was bound to is of no use to the client.
func socksReply(c *conn, code byte) error {
	_, err := c.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
