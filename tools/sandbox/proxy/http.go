package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"time"
)

// http serves one request, CONNECT or one with an absolute URI. head limits what is read for its head.
func (s *serving) http(c *conn, in *bufio.Reader, head *io.LimitedReader) {
	r, err := http.ReadRequest(in)
	switch {
	case err != nil && head.N <= 0:
		answer(c, http.StatusRequestHeaderFieldsTooLarge, "",
			fmt.Sprintf("the head of a request has at most %d bytes", maxHeader))
		return
	case err != nil:
		answer(c, http.StatusBadRequest, "", "this is a proxy for HTTP and SOCKS5")
		return
	}
	head.N = math.MaxInt64
	if r.Method == http.MethodConnect {
		s.tunnel(c, in, r)
		return
	}
	s.forward(c, r)
}

// tunnel serves CONNECT.
func (s *serving) tunnel(c *conn, in *bufio.Reader, r *http.Request) {
	host, port, err := splitHostPort(r.RequestURI)
	if err != nil {
		answer(c, http.StatusBadRequest, "", "CONNECT needs HOST:PORT")
		return
	}
	out, err := s.connect(s.ctx, host, port)
	if err != nil {
		fail(c, err)
		return
	}
	defer out.Close() // what was to be sent was sent
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		relay(c, out, in)
	}
}

// hopHeaders are those that concern one connection only (RFC 9110, 7.6.1), and those that are meant for the proxy.
var hopHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// dropHop removes the headers of one connection.
func dropHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}

// forward serves a request with an absolute URI. The connection ends with the answer.
func (s *serving) forward(c *conn, r *http.Request) {
	port := r.URL.Port()
	switch {
	case r.URL.Host == "":
		answer(c, http.StatusBadRequest, "", "this is a proxy: ask for an absolute http:// URI, or CONNECT")
		return
	case r.URL.Scheme != "http", port != "" && port != "80":
		_, number, _ := splitHostPort(r.URL.Host) // 0: the usual one of another scheme
		why := "only http:// and port 80 are forwarded; CONNECT is for others"
		fail(c, s.proxy.refuse(r.URL.Hostname(), number, why))
		return
	}
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		// What follows is wanted whatever the host says.
		if _, err := io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return
		}
		r.Header.Del("Expect")
	}
	_ = c.SetDeadline(time.Time{}) // from here idle sets it
	if r.Body = io.NopCloser(steady{r.Body, c}); r.ContentLength == 0 {
		r.Body = http.NoBody
	}
	r.RequestURI, r.URL.User = "", nil
	dropHop(r.Header)
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "") // net/http adds its own if there is none
	}
	resp, err := s.transport.RoundTrip(r.WithContext(s.ctx))
	if err != nil {
		fail(c, err)
		return
	}
	defer resp.Body.Close() // its connection ends
	dropHop(resp.Header)
	resp.Close = true
	if !r.ProtoAtLeast(1, 1) { // it knows no chunks
		resp.TransferEncoding, resp.ProtoMinor = nil, 0
	}
	_ = resp.Write(idle{c}) // either side may be gone
}

// steady is the body of a request, which fails when nothing comes for idleTime.
type steady struct {
	io.Reader
	c *conn
}

func (b steady) Read(p []byte) (int, error) {
	_ = b.c.SetReadDeadline(time.Now().Add(idleTime)) // of a closed one: reading fails
	return b.Reader.Read(p)
}

// fail answers that there is no connection.
func fail(c *conn, err error) {
	if r, ok := errors.AsType[*Refusal](err); ok {
		answer(c, http.StatusForbidden, "Forbidden by codehand: "+r.Why, r.Error())
		return
	}
	code := http.StatusBadGateway
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		code = http.StatusGatewayTimeout
	}
	answer(c, code, "", err.Error())
}

// lingerTime and lingerBytes bound what is still read of a client that was answered early: if it is cut off while it
// sends, it may never read the answer.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// answer sends an answer of our own. Many programs show no more of it than the status line, so reason stands there;
// "": the usual one.
func answer(c *conn, code int, reason, text string) {
	if reason == "" {
		reason = http.StatusText(code)
	}
	_ = c.SetDeadline(time.Now().Add(helloTime)) // of a closed one: writing fails
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s\n", code, reason, len(text)+1, text)
	if err != nil {
		return
	}
	c.closeWrite()
	_ = c.SetDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes) // it counts that it was read
}
