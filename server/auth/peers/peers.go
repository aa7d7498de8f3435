package peers

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// CanLook says whether this system says which user connects.
func CanLook() bool { return canLook() }

// A Caller is what is known of who sent a request. The zero value is the strictest.
type Caller int

// The callers.
const (
	Stranger Caller = iota // another user, or not found
	Confined               // a command that codehand confines
	Hidden                 // our user, by a process that cannot be seen while commands run that codehand confines
	Ours                   // our user, or root
)

// An end is the other end of a connection.
type end struct {
	uid   int
	inode string // of the socket; "": it is a Unix socket
	pid   int    // of who connected a Unix socket; 0: that process cannot be seen from here
}

// nowhere is an end that was not found.
var nowhere = end{uid: -1}

// Peers are the open connections of the listeners by remote address. It is safe for concurrent use.
type Peers struct {
	uid  int
	look func(remote, local netip.AddrPort) (end, error) // of a TCP connection, seen from here
	call func(end) Caller                                // of our user or root

	mu   sync.Mutex
	open map[string][]*peerConn
	unix uint64 // connections so far
}

// New returns nil if the system does not say whose a connection is.
func New() *Peers {
	if !canLook() {
		return nil
	}
	return &Peers{uid: os.Geteuid(), look: tcpOwner, call: callerOf, open: map[string][]*peerConn{}}
}

// Caller says whose the connections from remote are: the least of them counts.
func (p *Peers) Caller(remote string) Caller {
	p.mu.Lock()
	open := append([]*peerConn(nil), p.open[remote]...)
	p.mu.Unlock()
	if len(open) == 0 {
		return Stranger
	}
	least := Ours
	for _, c := range open {
		least = min(least, c.caller())
	}
	return least
}

// Listener returns l with its connections noted; others are not ours. It belongs below TLS, and l's connections are
// syscall.Conns if they are Unix sockets. Each Unix connection gets a remote address of its own: "@1", "@2" and so on.
func (p *Peers) Listener(l net.Listener) net.Listener { return &peerListener{l, p} }

type peerListener struct {
	net.Listener
	peers *Peers
}

func (l *peerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := &peerConn{Conn: c, peers: l.peers, remote: c.RemoteAddr()}
	l.peers.add(n)
	return n, nil
}

func (p *Peers) add(c *peerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u, ok := c.Conn.LocalAddr().(*net.UnixAddr); ok {
		p.unix++
		c.remote = &net.UnixAddr{Name: "@" + strconv.FormatUint(p.unix, 10), Net: u.Net}
	}
	key := c.remote.String()
	p.open[key] = append(p.open[key], c)
}

// A peerConn finds out once whose it is: when the first request asks, because a look takes milliseconds and must not
// hold up the next connection.
type peerConn struct {
	net.Conn
	peers  *Peers
	remote net.Addr

	once sync.Once
	who  Caller

	closed sync.Once
}

func (c *peerConn) RemoteAddr() net.Addr { return c.remote }

// NetConn returns the connection below, as tls.Conn does.
func (c *peerConn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http end what it sends before it closes: else a client that still writes loses the answer.
func (c *peerConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close also forgets the connection.
func (c *peerConn) Close() error {
	c.closed.Do(func() {
		p := c.peers
		p.mu.Lock()
		defer p.mu.Unlock()
		key := c.remote.String()
		var rest []*peerConn // a new slice: the old one may be in use
		for _, o := range p.open[key] {
			if o != c {
				rest = append(rest, o)
			}
		}
		if p.open[key] = rest; len(rest) == 0 {
			delete(p.open, key)
		}
	})
	return c.Conn.Close()
}

// lookAgain is how long the system may take to list a connection that we have accepted already.
const lookAgain = 5 * time.Millisecond

func (c *peerConn) caller() Caller {
	c.once.Do(func() {
		if found := c.find(); found.uid == c.peers.uid || found.uid == 0 {
			c.who = c.peers.call(found)
		}
	})
	return c.who
}

// find returns the other end.
func (c *peerConn) find() end {
	if _, ok := c.Conn.LocalAddr().(*net.UnixAddr); ok {
		if s, ok := c.Conn.(syscall.Conn); ok {
			return unixOwner(s)
		}
		return nowhere
	}
	remote, err := addrPort(c.Conn.RemoteAddr())
	if err != nil {
		return nowhere
	}
	local, err := addrPort(c.Conn.LocalAddr())
	if err != nil {
		return nowhere
	}
	found, err := c.peers.look(remote, local)
	if err == nil && found == nowhere {
		time.Sleep(lookAgain)
		found, err = c.peers.look(remote, local)
	}
	if err != nil {
		return nowhere
	}
	return found
}

func addrPort(a net.Addr) (netip.AddrPort, error) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("address %s: %w", a, fs.ErrInvalid)
	}
	at := t.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}
