package listen

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// slots bound the connections of all listeners together. They are safe for concurrent use.
type slots struct{ free chan struct{} }

func newSlots(n int) *slots { return &slots{make(chan struct{}, max(n, 1))} }

func (s *slots) limit(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, slots: s, closed: make(chan struct{})}
}

// A limitedListener takes a slot for each connection, and accepts no more while none is free: the system keeps the
// next ones waiting. The listener takes the slot after accepting: else an idle listener would keep one from the others.
type limitedListener struct {
	net.Listener
	slots  *slots
	once   sync.Once
	closed chan struct{}
}

// Accept waits for a connection and a slot. After Close the error is net.ErrClosed.
func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.slots.free <- struct{}{}:
		return &limitedConn{Conn: c, slots: l.slots}, nil
	case <-l.closed:
		_ = c.Close() // never served
		return nil, net.ErrClosed
	}
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// A limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	slots *slots
	once  sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots.free })
	return err
}

// NetConn returns the connection below, as tls.Conn does: who asks for the peer of a socket needs it.
func (c *limitedConn) NetConn() net.Conn { return c.Conn }

// SyscallConn makes a limitedConn a syscall.Conn.
func (c *limitedConn) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite is what net/http looks for when it refuses a body: without it the answer is lost in a reset.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
