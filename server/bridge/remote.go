package bridge

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"codehand/server/config"
	"codehand/server/jsonrpc"
	"codehand/tools/results"
)

// The reasons for which the bridge itself refuses to send or to go on.
var (
	errRedirect   = errors.New("redirected to another host or to a GET: give the final URL")
	errClearToken = errors.New("a token is not sent over http:// to another machine: use https://, or --insecure")
	errNoAnswer   = errors.New("the endpoint gave no answer")
)

// A remote is the endpoint at the other end of the bridge. It is safe for concurrent use.
type remote struct {
	url      *url.URL // with the handle
	client   *http.Client
	token    func() string
	from     string // where the token comes from
	insecure bool
	agent    string // User-Agent
	log      *slog.Logger

	reached atomic.Bool // it answered, whatever it was
	beats   atomic.Bool // it sends comments on streams
	unheard atomic.Bool // it was reported that it does not answer
	refused atomic.Bool // a refused token was reported; reset by the next success
}

// newRemote checks the URL and the handle.
func newRemote(o Options) (*remote, error) {
	u, err := endpoint(o.URL, o.Session)
	if err != nil {
		return nil, err
	}
	p := &remote{url: u, token: o.Token, from: o.TokenFrom, insecure: o.Insecure, log: o.Log,
		agent: "codehand/" + o.Version}
	if p.token == nil {
		p.token = func() string { return "" }
	}
	if p.token() != "" && !p.guarded() {
		return nil, errClearToken
	}
	base := o.Base
	if base == nil {
		base = newTransport(o.CAs)
	}
	p.client = &http.Client{Transport: base, CheckRedirect: checkRedirect}
	return p, nil
}

// newTransport is http.DefaultTransport for streams: nothing is compressed, and idle connections end before those of
// the server do, so that a request is seldom sent on one that is going away.
func newTransport(cas *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialFor, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: cas, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: dialFor,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     50 * time.Second,
	}
}

// endpoint adds the handle to the URL, if its path ends in /mcp. Errors do not repeat a password in it.
func endpoint(raw, handle string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("the URL cannot be read: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, errors.New("the URL must be http://HOST/mcp or https://HOST/mcp")
	case u.User != nil:
		return nil, errors.New("the URL holds a user or a password: give the token with --token-env or --token-file")
	case !config.Handle(handle):
		return nil, errors.New("the session must be 8-64 characters of [A-Za-z0-9._-]")
	}
	u.Fragment, u.RawFragment = "", ""
	if path := strings.TrimSuffix(u.Path, "/"); strings.HasSuffix(path, "/mcp") {
		u = u.JoinPath("s", handle)
	}
	return u, nil
}

// shown is the URL without what may be secret in it.
func (p *remote) shown() string { return p.url.Scheme + "://" + p.url.Host + p.url.EscapedPath() }

// guarded says whether a token may be sent.
func (p *remote) guarded() bool {
	return p.insecure || p.url.Scheme == "https" || loopback(p.url.Hostname())
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// checkRedirect follows a redirect to the same host only, and only if it repeats the request as it is: a POST that
// becomes a GET would open a stream instead.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= 5 || req.Method != first.Method || !strings.EqualFold(hostPort(req.URL), hostPort(first.URL)) ||
		req.URL.Scheme != "https" && first.URL.Scheme == "https" {
		return errRedirect
	}
	return nil
}

// hostPort is the host with its port, unless that is the usual one.
func hostPort(u *url.URL) string {
	if port := u.Port(); port != "" && (u.Scheme != "https" || port != "443") && (u.Scheme != "http" || port != "80") {
		return net.JoinHostPort(u.Hostname(), port)
	}
	return u.Hostname()
}

// send makes one HTTP request, up to the header of its answer, whose body the caller closes. What was not answered
// with 2xx is a statusError. Errors name no URL.
func (p *remote) send(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("User-Agent", p.agent)
	if t := p.token(); t != "" {
		if !p.guarded() {
			return nil, errClearToken
		}
		req.Header.Set("Authorization", "Bearer "+t)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, err
	}
	p.reached.Store(true)
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		p.refused.Store(false)
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, newStatusError(resp)
}

// A statusError is an HTTP answer that is not 2xx.
type statusError struct {
	code    int
	text    string          // what the endpoint said, one line of plain text; "": nothing that could be shown
	message json.RawMessage // a JSON-RPC error that it sent; nil: none
	after   time.Duration   // Retry-After; 0: none
}

// shownError is how much of an error's body is read.
const shownError = 256 << 10

func newStatusError(resp *http.Response) *statusError {
	e := &statusError{code: resp.StatusCode, after: retryAfter(resp.Header)}
	body, err := io.ReadAll(io.LimitReader(resp.Body, shownError))
	if err != nil {
		return e // the status says enough
	}
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		body = bytes.TrimSpace(body)
		if env, bad := jsonrpc.Scan(body); env.HasError && (bad == nil || bad.Code != jsonrpc.CodeParseError) {
			flatten(body)
			e.message = body
		}
	case "text/plain":
		e.text = results.Line(strings.Map(printable, string(body)), 200)
	}
	return e
}

// printable drops control characters, which could act on a terminal.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

func (e *statusError) Error() string {
	s := fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// passing says whether the endpoint, or a proxy before it, is only away for a while.
func (e *statusError) passing() bool {
	switch e.code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// denied says whether the endpoint does not take the token.
func (e *statusError) denied() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}

// report tells the operator once which token is not taken.
func (p *remote) report(e *statusError) {
	if !p.refused.CompareAndSwap(false, true) {
		return
	}
	from := p.from
	if p.token() == "" {
		from = "none was given: use --token-env or --token-file"
	}
	p.log.Error("not authorised", "host", p.url.Host, "status", e.code, "token", from)
}

// reportUnheard tells the operator once that the endpoint has not answered anything: a client may show nothing for as
// long as it waits.
func (p *remote) reportUnheard() {
	if !p.reached.Load() && p.unheard.CompareAndSwap(false, true) {
		p.log.Warn("the endpoint does not answer; is codehand serve running there?", "url", p.shown())
	}
}

// explain is the answer to a request that failed with err. lost says that the endpoint may have got the request and may
// have carried it out.
func (p *remote) explain(id json.RawMessage, err error, lost bool) []byte {
	var text string
	status, ok := errors.AsType[*statusError](err)
	switch {
	case ok && status.denied():
		text = "not authorised at " + p.url.Host
	case ok && status.message != nil:
		return append(jsonrpc.WithID(status.message, id), '\n')
	case ok:
		text = p.url.Host + " answered " + err.Error()
	case errors.Is(err, errTooLong), errors.Is(err, errNoAnswer):
		text = p.url.Host + ": " + err.Error()
	case lost && !permanent(err) && !unconnected(err):
		text = "the connection to " + p.url.Host + " broke before the answer came (" + err.Error() +
			"); what was asked for may have been done"
	case errors.Is(err, errStreamEnd):
		text = "the connection to " + p.url.Host + " broke before the answer came (" + err.Error() + ")"
	default:
		text = "cannot reach " + p.shown() + ": " + err.Error()
	}
	return jsonrpc.ErrorLine(id, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: results.Line(text, 300)})
}

// unconnected says that the endpoint got nothing.
func unconnected(err error) bool {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return true
	}
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// events reads a stream of the endpoint.
func (p *remote) events(body io.Reader) *eventReader {
	return newEventReader(body, jsonrpc.MaxMessage, func() { p.beats.Store(true) })
}
