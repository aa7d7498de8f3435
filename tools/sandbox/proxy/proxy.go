// Package proxy is the way out of a sandbox whose network is a list of domains.
//
// A command with sandbox.network = "list" runs in a network namespace that has nothing but loopback. A Proxy serves a
// listener of that namespace from outside of it. It speaks HTTP (CONNECT, and requests with an absolute URI) and SOCKS5
// on the same port, takes host names only, compares them with the list, and dials through the guard against private
// addresses. Only the processes of the sandbox can connect, so there is no authentication.
//
// What an allowed domain means: everything that the command can read may be sent there, and to whatever else its
// operator serves behind the same name. Inside of CONNECT and SOCKS the proxy sees a name and a port, never the
// encrypted content, so a list of domains narrows where data can go; it does not look at the data. The proxy logs
// nothing and adds nothing to a request, no address of the caller and no credentials.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"codehand/tools/web/guard"
)

const (
	// maxConnections is how many connections of a command are served at once; more wait. A package manager opens some
	// dozens. Each holds two descriptors of the server.
	maxConnections = 100
	// maxHeader is the most bytes of the head of a request.
	maxHeader = 16 << 10
	// maxRefused is how many different refusals are remembered.
	maxRefused = 100

	helloTime = 30 * time.Second // for a request to arrive
	dialTime  = 10 * time.Second // for a look-up and a connection
	idleTime  = 10 * time.Minute // without a byte in either direction, as a long poll may be
)

// Env returns the variables by which programs find a Proxy that listens on address, host:port. They replace what the
// server's own environment says, in both letter cases. Loopback is not sent through the proxy: in the namespace it is
// the sandbox itself, where a command may run servers of its own.
func Env(address string) []string {
	// Also ALL_PROXY names HTTP: libraries that can do no SOCKS fail at socks5h://, even for requests by HTTP.
	url := "http://" + address
	var env []string
	for _, v := range [][2]string{
		{"HTTP_PROXY", url}, {"HTTPS_PROXY", url}, {"ALL_PROXY", url}, {"NO_PROXY", "localhost,127.0.0.1,::1"},
	} {
		env = append(env, v[0]+"="+v[1], strings.ToLower(v[0])+"="+v[1])
	}
	return append(env, "NODE_USE_ENV_PROXY=1") // node heeds the others only then
}

// A Refusal is a connection that was asked for and not made, because a setting forbids it.
type Refusal struct {
	Host string // a name in its normal form, an address, or in quotes what is neither
	Port uint16
	Why  string // half a sentence, for a model
}

// A Proxy decides about connections and remembers what it refused. It is safe for concurrent use. One command has one.
type Proxy struct {
	domains []guard.Domain
	guard   *guard.Guard
	// connect is dialWith, but for tests, which have no other network than loopback.
	connect func(ctx context.Context, d *net.Dialer, address string) (net.Conn, error)

	mu      sync.Mutex
	refused []Refusal
}

// New returns a Proxy that connects to domains, at addresses that o opens. The ports of the domains are opened here.
func New(domains []guard.Domain, o guard.Options) *Proxy {
	o.Ports = slices.Clone(o.Ports)
	for _, d := range domains {
		if d.Port() != 0 {
			o.Ports = append(o.Ports, d.Port())
		}
	}
	return &Proxy{domains: slices.Clone(domains), guard: guard.New(o), connect: dialWith}
}

// Refused returns what was refused until now, each once, in the order of its first time; at most 100.
func (p *Proxy) Refused() []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// refuse remembers a refusal. host may be anything.
func (p *Proxy) refuse(host string, port uint16, why string) error {
	if name, err := guard.Host(host); err == nil {
		host = name
	} else if a, err := netip.ParseAddr(host); err == nil {
		host = a.WithZone("").String()
	} else {
		host = strconv.QuoteToASCII(host[:min(len(host), 100)])
	}
	r := Refusal{host, port, why}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) < maxRefused && !slices.Contains(p.refused, r) {
		p.refused = append(p.refused, r)
	}
	return &r
}

// Error is what the program in the sandbox reads.
func (r *Refusal) Error() string {
	return fmt.Sprintf("codehand's sandbox: no connection to %s: %s",
		net.JoinHostPort(strings.Trim(r.Host, "[]"), strconv.Itoa(int(r.Port))), r.Why)
}

// dial connects to a host of the list. The error is a *Refusal, or what the network said.
func (p *Proxy) dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	refuse := func(why string) error { return p.refuse(host, port, why) }
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return nil, refuse("only host names can be reached, and no addresses")
	}
	name, err := guard.Host(host)
	if err != nil {
		return nil, refuse("it is not a host name")
	}
	if !slices.ContainsFunc(p.domains, func(d guard.Domain) bool { return d.Allows(name, port) }) {
		why := "it is not in sandbox.domains"
		if slices.ContainsFunc(p.domains, func(d guard.Domain) bool {
			return d.Allows(name, 443) || d.Port() != 0 && d.Allows(name, d.Port())
		}) {
			why = fmt.Sprintf("sandbox.domains does not open port %d of it", port)
		}
		return nil, refuse(why)
	}
	if err := p.guard.Host(name); err != nil {
		return nil, refuse("it is a name of this machine or of a local network")
	}
	var blocked atomic.Pointer[string] // why, of the first address that the guard refused
	control := func(network, address string, c syscall.RawConn) error {
		err := p.guard.Control(network, address, c)
		if err != nil {
			why := strings.TrimPrefix(err.Error(), guard.ErrBlocked.Error()+": ")
			blocked.CompareAndSwap(nil, &why)
		}
		return err
	}
	// The final dot: a search list of the resolver must not make another name of it.
	conn, err := p.connect(ctx, &net.Dialer{Timeout: dialTime, Control: control},
		net.JoinHostPort(name+".", strconv.Itoa(int(port))))
	if err == nil {
		return conn, nil
	}
	if why := blocked.Load(); why != nil {
		return nil, refuse(*why)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		unknown.Server = "" // it is not the sandbox's business
		return nil, unknown
	}
	return nil, err
}

func dialWith(ctx context.Context, d *net.Dialer, address string) (net.Conn, error) {
	return d.DialContext(ctx, "tcp", address)
}
