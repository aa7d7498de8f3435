package auth

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth/limits"
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

func (p *Porter) trusts(at netip.Addr) bool { return listed(p.o.Trusted, at) }

func listed(networks []netip.Prefix, at netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(at) })
}

// clients is what is known of addresses that sent requests. It is safe for concurrent use.
type clients struct {
	log      *slog.Logger
	failures limits.Failures

	mu      sync.Mutex
	ignored map[netip.Addr]bool // whose X-Forwarded-For did not count
}

// maxIgnored bounds them: any client can send the header.
const maxIgnored = 100

// failed counts a failed authentication.
func (c *clients) failed(from netip.Addr, now time.Time) {
	if c.failures.Add(from, now) {
		c.log.Warn("too many wrong tokens from one address: until they stop, only valid tokens pass from there",
			"ip", from)
	}
}

// forwarded says once for each address that its X-Forwarded-For does not count. All clients of a proxy that is not
// named among trusted are one address otherwise, and nothing tells the operator.
func (c *clients) forwarded(r *http.Request, trusted []netip.Prefix) {
	if len(r.Header.Values("X-Forwarded-For")) == 0 {
		return
	}
	at, ok := parseIP(r.RemoteAddr)
	if !ok || listed(trusted, at) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ignored[at] || len(c.ignored) >= maxIgnored {
		return
	}
	if c.ignored == nil {
		c.ignored = map[netip.Addr]bool{}
	}
	c.ignored[at] = true
	c.log.Warn("X-Forwarded-For from "+at.String()+" is ignored: if that is your proxy, add it to http.trusted_proxies",
		"ip", at)
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
