package blackbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// On a busy machine BenchmarkHTTPSession ended with "modern: EOF": a server closes connections on which nothing was
// asked for a while, and the benchmark went on with those that it had opened at its beginning.
func TestBenchConnectionsWake(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	ended := make(chan error, 1)
	go func() {
		idle, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		_ = idle.Close() // nothing was asked on it
		again, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer again.Close()
		in := bufio.NewReader(again)
		for range 2 {
			r, err := http.ReadRequest(in)
			if err != nil {
				ended <- err
				return
			}
			body, _ := io.ReadAll(r.Body)
			_, id, _ := strings.Cut(string(body), `"id":`)
			id, _, _ = strings.Cut(id, ",")
			answer := `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"pong"}]}}`
			_, _ = fmt.Fprintf(again, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		}
		ended <- nil
	}()
	c, err := dialSite(&site{addr: l.Addr().String()})
	must(t, err)
	defer func() { _ = c.conn.Close() }()
	ping := newErrand("", "ping", `{}`, "", `"pong"`)
	must(t, c.wake(ping))
	must(t, c.run(ping, 7))
	must(t, <-ended)
	if err := c.run(ping, 8); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that ends while it is measured: %v", err)
	}
}
