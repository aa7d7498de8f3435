package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A hole is a network within the process whose hosts answer as a test says. It counts the connections that are open.
type hole struct {
	// runs on the other end of each connection, until it returns; nil: that end reads nothing
	serve   func(conn net.Conn)
	open    atomic.Int64
	reached chan struct{} // a connection was made; room for all
	over    chan struct{} // the test closes it at its end
}

func newHole(serve func(net.Conn)) *hole {
	return &hole{serve: serve, reached: make(chan struct{}, 100), over: make(chan struct{})}
}

func (h *hole) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	h.open.Add(1)
	go func() {
		if h.serve == nil {
			<-h.over
		} else {
			h.serve(far)
		}
		_ = far.Close()
	}()
	h.reached <- struct{}{}
	return &counted{Conn: near, left: func() { h.open.Add(-1) }}, nil
}

type counted struct {
	net.Conn
	left func()
	done atomic.Bool
}

func (c *counted) Close() error {
	if c.done.CompareAndSwap(false, true) {
		c.left()
	}
	return c.Conn.Close()
}

// silent reads whatever comes until the other side leaves, and says nothing.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// saying reads a request and answers it with a text, and then says nothing more.
func saying(text string) func(net.Conn) {
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		if _, err := http.ReadRequest(r); err == nil {
			_, _ = io.WriteString(conn, text)
		}
		_, _ = io.Copy(io.Discard, r)
	}
}

// Wherever a fetch is when its context ends, it returns at once with the cause, and then no connection is open and
// nothing runs on: not net/http's dial either, nor the question to a name server.
func TestEndsWithNothingLeft(t *testing.T) {
	t.Parallel()
	// What net keeps for all look-ups is made by the first one, and must belong to no bubble.
	early := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	if _, err := early.LookupHost(t.Context(), "docs.example"); err == nil {
		t.Fatal("a look-up without a name server")
	}
	const length = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n"
	for name, c := range map[string]struct {
		url    string
		serve  func(net.Conn)
		lookup bool // the hole is the name server
	}{
		"look-up":          {"http://docs.example/", silent, true},
		"TLS handshake":    {"https://docs.example/", silent, false},
		"half a handshake": {"https://docs.example/", saying("\x16\x03\x03\x40\x00"), false},
		"request":          {"http://docs.example/", nil, false},
		"headers":          {"http://docs.example/", saying("HTTP/1.1 200 OK\r\nContent-"), false},
		"interim answer":   {"http://docs.example/", saying("HTTP/1.1 103 Early Hints\r\n\r\n"), false},
		"body":             {"http://docs.example/", saying(length + "\r\n<p>half"), false},
		"chunk":            {"http://docs.example/", saying("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf"), false},
		"gzip":             {"http://docs.example/", saying(length + "Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08"), false},
		"body of an error": {"http://docs.example/", saying("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf"), false},
		"Retry-After":      {"http://docs.example/", saying("HTTP/1.1 429 No\r\nRetry-After: 4\r\nContent-Length: 0\r\n\r\n"), false},
	} {
		for _, how := range []string{"cancel", "time"} {
			t.Run(strings.ReplaceAll(name, " ", "_")+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHole(c.serve)
					o := Options{NoUpgrade: true, Caps: Caps{Time: 3 * time.Second}}
					if how == "cancel" {
						o.Caps.Time = time.Minute
					}
					if c.lookup {
						o.Resolver = &net.Resolver{PreferGo: true, Dial: ending(h.dial)}
					} else {
						o.Dial = func(ctx context.Context, network, address string, _ Check) (net.Conn, error) {
							return h.dial(ctx, network, address)
						}
					}
					client := New(o)
					defer client.Close()
					ctx, cancel := context.WithCancelCause(t.Context())
					why := errors.New("the client left")
					result := make(chan error)
					begin := time.Now()
					go func() {
						_, err := client.Fetch(ctx, Request{URL: c.url})
						result <- err
					}()
					<-h.reached
					synctest.Wait() // it waits for the other side
					if how == "cancel" {
						cancel(why)
						if err := <-result; !errors.Is(err, why) || time.Since(begin) != 0 {
							t.Errorf("%v after %v", err, time.Since(begin))
						}
					} else if err := <-result; codeOf(err) != Timeout || time.Since(begin) != 3*time.Second {
						t.Errorf("%v after %v", err, time.Since(begin))
					}
					synctest.Wait()
					if n := h.open.Load(); n != 0 {
						t.Errorf("%d connections are open", n)
					}
					cancel(nil)
					close(h.over)
				})
			})
		}
	}
}

// A fetch that waits for its place, at a host or among all, ends with its context, and keeps no place.
func TestEndsInQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHole(silent)
		client := New(Options{NoUpgrade: true, Dial: func(ctx context.Context, network, address string, _ Check) (net.Conn, error) {
			return h.dial(ctx, network, address)
		}})
		defer client.Close()
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 100)
		for i := range maxFetches + 10 { // four at each host connect, others wait there, ten wait in front of all
			go func() {
				_, err := client.Fetch(ctx, Request{URL: fmt.Sprintf("http://h%d.example/%d", i%5, i)})
				results <- err
			}()
		}
		synctest.Wait()
		if n := h.open.Load(); n != 5*perHost {
			t.Errorf("%d connections, want %d", n, 5*perHost)
		}
		begin := time.Now()
		cancel()
		for range maxFetches + 10 {
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := h.open.Load(); n != 0 || time.Since(begin) != 0 || len(client.fetches) != 0 || len(client.hosts.all) != 0 {
			t.Errorf("after %v %d connections, %d places and %d hosts are held", time.Since(begin), n, len(client.fetches), len(client.hosts.all))
		}
	})
}
