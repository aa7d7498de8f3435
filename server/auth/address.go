package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientIP is the address that a request comes from: that of its connection or, if that is a trusted proxy, the last
// one in X-Forwarded-For that is not. It is the zero Addr for a Unix socket, and counts for audit and for the limit of
// failures only.
func (p *Porter) ClientIP(r *http.Request) netip.Addr {
	at, ok := parseIP(r.RemoteAddr)
	if !ok || !p.trusts(at) {
		return at
	}
	// Each proxy appends who called it, so only what stands right of the first stranger is known to be true.
	entries := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, entry := range slices.Backward(entries) {
		next, ok := parseIP(strings.TrimSpace(entry))
		if !ok {
			return at
		}
		if at = next; !p.trusts(at) {
			return at
		}
	}
	return at
}

func (p *Porter) trusts(at netip.Addr) bool {
	return slices.ContainsFunc(p.o.Trusted, func(n netip.Prefix) bool { return n.Contains(at) })
}

// parseIP reads an address with or without a port. A zone says nothing to others, and an IPv4 address has one form.
func parseIP(text string) (netip.Addr, bool) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	at, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}, false
	}
	return at.Unmap().WithZone(""), true
}
