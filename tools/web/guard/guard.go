// Package guard decides which hosts and addresses of the network may be reached on behalf of a model.
//
// It works at two places. Before a request, Host and URL bring a name into the one form that rules and every later step
// see, and Guard.Host refuses names that mean this machine or its network. At the connection, Guard.Control checks the
// address that is really dialed, after the look-up and for every address of every hop, so a name server that changes
// its answer gains nothing. A Domain is an entry of a list of allowed hosts.
//
// The package opens no connection and looks up no name. It guards dials only: an http.Transport that uses it must have
// no Proxy, or the guard sees the address of the proxy.
package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrBlocked is in the error for a host or an address that may not be reached. Its text says why.
var ErrBlocked = errors.New("blocked")

// Options are what the operator opens. The zero value opens public addresses, and their ports 80 and 443.
type Options struct {
	Private []netip.Prefix // further ranges, each accepted by CheckPrivate
	Ports   []uint16       // besides 80 and 443
	NAT64   bool           // IPv4 through 64:ff9b::/96, where the embedded address may be reached
}

// A Guard checks hosts and addresses. It is safe for concurrent use.
type Guard struct {
	special *ssrf.Guardian // knows the registries of special addresses
	nat64   bool
}

// New returns the Guard for o.
func New(o Options) *Guard {
	var v4, v6 []netip.Prefix
	for _, p := range o.Private {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	if o.NAT64 {
		v6 = append(v6, ssrf.IPv6NAT64Prefix)
	}
	return &Guard{
		// Each option replaces what an earlier one of its kind said (ssrf v0.3.0, ssrf.go:36), so each is given once.
		special: ssrf.New(ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
			ssrf.WithPorts(append([]uint16{80, 443}, o.Ports...)...)),
		nat64: o.NAT64,
	}
}

// Control is for net.Dialer. Its error contains ErrBlocked.
func (g *Guard) Control(network, address string, c syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not an address", ErrBlocked, address)
	}
	if err := g.address(at.Addr()); err != nil {
		return err
	}
	if err := g.special.Safe(network, address, c); err != nil { // the network and the port
		return fmt.Errorf("%w: %w", ErrBlocked, err)
	}
	return nil
}

// Host refuses a host, as Host returns it, that need not be looked up to know that it is no public one: a name of this
// machine or of its network, and an address that Control would refuse. The error contains ErrBlocked.
func (g *Guard) Host(host string) error {
	if a, ok := literal(host); ok {
		return g.address(a)
	}
	if last := host[strings.LastIndexByte(host, '.')+1:]; last == host || slices.Contains(localDomains, last) {
		return fmt.Errorf("%w: %s is a name of this machine or of a local network", ErrBlocked, host)
	}
	return nil
}

// localDomains are the last labels of names that no public name server answers.
var localDomains = []string{"localhost", "local", "internal", "localdomain"}

// never are the ranges that no operator opens: this machine, its link, services that hand out credentials without
// authentication, and forms of IPv6 that carry an IPv4 address which nothing here could check.
var never = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), // Linux connects to itself
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local; metadata of most clouds
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's wire server, a public address
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba Cloud
	netip.MustParsePrefix("192.0.0.192/32"),     // metadata of Oracle Cloud
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("::/96"),                  // unspecified, loopback, an old form of IPv4
	netip.MustParsePrefix("::ffff:0:0/96"),          // IPv4 written as IPv6
	netip.MustParsePrefix("64:ff9b:1::/48"),         // NAT64 of a local network
	netip.MustParsePrefix("2001::/32"),              // Teredo
	netip.MustParsePrefix("2002::/16"),              // 6to4
	netip.MustParsePrefix("fd00:ec2::/32"),          // services of an EC2 instance, metadata among them
	netip.MustParsePrefix("fd20:ce::254/128"),       // metadata of Google Cloud
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // metadata of Oracle Cloud
	netip.MustParsePrefix("fd00:42::42/128"),        // metadata of Scaleway
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// address refuses an address; nil: it may be dialed.
func (g *Guard) address(a netip.Addr) error {
	blocked := func(what string) error { return fmt.Errorf("%w: %s is %s", ErrBlocked, a, what) }
	// A prefix contains no address with a zone, and none of the other family.
	if a.Zone() != "" || slices.ContainsFunc(never, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return blocked("an address of this machine, of its link or of its cloud's own services")
	}
	if ssrf.IPv6NAT64Prefix.Contains(a) {
		if !g.nat64 {
			return blocked("an IPv4 address behind NAT64, which web.nat64 opens")
		}
		b := a.As16()
		return g.address(netip.AddrFrom4([4]byte(b[12:])))
	}
	if g.special.SafeAddr(a) != nil {
		return blocked("a private or reserved address")
	}
	return nil
}

// CheckPrivate refuses a range that an operator cannot open: one that never opens, and one that is more than a private
// network can be. What never opens stays closed also in a range that contains it. p has no bits outside its mask.
func CheckPrivate(p netip.Prefix) error {
	for _, n := range never {
		if n.Bits() <= p.Bits() && n.Contains(p.Addr()) {
			return fmt.Errorf("%s cannot be opened: it lies in %s", p, n)
		}
	}
	if n := ssrf.IPv6NAT64Prefix; n.Bits() <= p.Bits() && n.Contains(p.Addr()) {
		return fmt.Errorf("%s is opened by web.nat64 = true", p)
	}
	if least := map[bool]int{true: 8, false: 7}[p.Addr().Is4()]; p.Bits() < least {
		return fmt.Errorf("%s is more than a private network; the largest are 10.0.0.0/8 and fc00::/7", p)
	}
	return nil
}
