package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Serve serves the connections of l until ctx ends or l fails, then closes l and all connections, and returns when
// their goroutines have ended. nil: ctx ended. l may be a socket of another network namespace.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &serving{proxy: p, ctx: ctx, open: map[*conn]bool{}}
	s.transport = &http.Transport{
		DialContext: s.dialTransport, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: 4 * maxHeader,
	}
	s.running.Go(func() {
		<-ctx.Done()
		_ = l.Close() // Accept returns
		s.closeAll()
	})
	err := s.accept(l)
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	s.running.Wait()
	return err
}

// serving is one run of Serve.
type serving struct {
	proxy     *Proxy
	ctx       context.Context
	transport *http.Transport
	running   sync.WaitGroup

	mu     sync.Mutex
	open   map[*conn]bool // of commands and of hosts
	closed bool
}

// shortage are errors of Accept that pass: descriptors or memory are short, most often because of others.
var shortage = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// firstPause and longestPause are how long accept waits after such an error, doubled each time.
const firstPause, longestPause = 5 * time.Millisecond, time.Second

// accept serves the connections of l until there are no more.
func (s *serving) accept(l net.Listener) error {
	places := make(chan struct{}, maxConnections)
	pause := firstPause
	for {
		select {
		case places <- struct{}{}:
		case <-s.ctx.Done():
			return nil
		}
		accepted, err := l.Accept()
		switch {
		case err == nil:
			pause = firstPause
			s.running.Go(func() {
				defer func() { <-places }()
				c := s.keep(accepted)
				defer c.Close() // what was to be sent was sent
				s.client(c)
			})
			continue
		case errors.Is(err, syscall.ECONNABORTED): // that one left before it was accepted
		case slices.ContainsFunc(shortage, func(e error) bool { return errors.Is(err, e) }):
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				return nil
			}
			pause = min(2*pause, longestPause)
		default:
			return err
		}
		<-places
	}
}

// A conn is a connection that the end of Serve closes.
type conn struct {
	net.Conn
	serving *serving
}

// keep notes a connection. One that comes when all were closed is closed at once.
func (s *serving) keep(c net.Conn) *conn {
	kept := &conn{c, s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
	} else {
		s.open[kept] = true
	}
	return kept
}

func (s *serving) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		_ = c.Conn.Close()
	}
}

func (c *conn) Close() error {
	c.serving.mu.Lock()
	delete(c.serving.open, c)
	c.serving.mu.Unlock()
	return c.Conn.Close()
}

// closeWrite tells the other end that nothing more comes; what it sends still arrives.
func (c *conn) closeWrite() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be gone
	}
}

// connect connects to a host of the list.
func (s *serving) connect(ctx context.Context, host string, port uint16) (*conn, error) {
	c, err := s.proxy.dial(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return s.keep(c), nil
}

// dialTransport is how requests with an absolute URI connect.
func (s *serving) dialTransport(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := splitHostPort(address)
	if err != nil {
		return nil, err
	}
	c, err := s.connect(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return idle{c}, nil
}

// client serves one connection of a command.
func (s *serving) client(c *conn) {
	_ = c.SetDeadline(time.Now().Add(helloTime)) // of a closed one: reading fails
	head := &io.LimitedReader{R: c, N: maxHeader}
	in := bufio.NewReader(head)
	first, err := in.Peek(1)
	switch {
	case err != nil: // a client that only tested the port
	case first[0] == socksVersion:
		head.N = math.MaxInt64 // its own parts have lengths
		s.socks(c, in)
	default:
		s.http(c, in, head)
	}
}

// relay carries bytes in both directions until both have ended, one fails, or none moves for idleTime. in is what
// comes from the client.
func relay(client, host *conn, in io.Reader) {
	move := func(to *conn, from io.Reader) {
		b := make([]byte, 32<<10)
		for {
			later := time.Now().Add(idleTime)
			_, _ = client.SetDeadline(later), host.SetDeadline(later) // of a closed one: moving fails
			n, err := from.Read(b)
			if n > 0 {
				if _, failed := to.Write(b[:n]); failed != nil {
					err = failed
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				to.closeWrite()
				return
			case err != nil:
				_, _ = client.Close(), host.Close() // the other direction ends, too
				return
			}
		}
	}
	var there sync.WaitGroup
	there.Go(func() { move(host, in) })
	move(client, host)
	there.Wait()
}

// idle is a connection that fails when nothing moves for idleTime.
type idle struct{ *conn }

func (c idle) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(idleTime)) // of a closed one: reading fails
	return c.conn.Read(b)
}

func (c idle) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(idleTime))
	return c.conn.Write(b)
}

func splitHostPort(address string) (host string, port uint16, err error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return host, uint16(n), err
}
