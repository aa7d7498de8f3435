package issuer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// newClient makes the client for documents of issuers: short, small, and to where the operator said. Over nil it uses
// the network.
func newClient(over http.RoundTripper) *http.Client {
	if over == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives = true // a fetch is rare, and an idle connection would outlive the server
		over = t
	}
	return &http.Client{Transport: &small{over}, Timeout: fetchTime, CheckRedirect: stay}
}

// stay refuses a redirect to another host.
func stay(r *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case len(via) > maxRedirects:
		return errors.New("too many redirects")
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return fmt.Errorf("redirected to another host, %s", r.URL.Host)
	}
	return nil
}

// A small is a transport whose answers have at most maxDocument bytes, and which speaks plain HTTP with this machine
// only.
type small struct{ over http.RoundTripper }

func (t *small) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := secure(r.URL); err != nil {
		return nil, err
	}
	resp, err := t.over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &limited{resp.Body, maxDocument}
	return resp, nil
}

// secure refuses a URL whose answers a host on the way could forge.
func secure(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
		return nil
	}
	return fmt.Errorf("%s is not https", u.Redacted())
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// A limited is a body that fails after left bytes.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the document is larger than 1 MiB")
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
