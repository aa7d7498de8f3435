package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"codehand/tools/web/guard"
)

// Defaults of Caps.
const (
	defaultTime    = 30 * time.Second
	defaultConnect = 10 * time.Second
	defaultBody    = 10 << 20
	defaultCache   = 50 << 20
	defaultLife    = 15 * time.Minute
)

// Most pages that are fetched, and most that are made text, at once, for all sessions together: they bound the memory
// of the server.
const (
	maxFetches  = 32
	maxConverts = 2
	// largePage is the size of a body, in bytes, over which it is alone of its kind among those that are made text:
	// the tree of a page of 10 MiB takes another 100.
	largePage = 1 << 20
)

// errSlow is why a fetch ends that took longer than Caps.Time.
var errSlow = errors.New("the total time is over")

type client struct {
	o        Options
	caps     Caps
	guard    *guard.Guard
	http     *http.Transport
	hosts    hosts
	pages    cache
	fetches  chan struct{} // a token per fetch
	converts chan struct{} // a token per conversion
	large    chan struct{} // the token of a large one, which is taken first
	now      func() time.Time
}

func newClient(o Options) *Client {
	caps := o.Caps
	orDefault(&caps.Time, defaultTime)
	orDefault(&caps.Connect, defaultConnect)
	orDefault(&caps.Body, defaultBody)
	orDefault(&caps.Cache, defaultCache)
	orDefault(&caps.Life, defaultLife)
	if o.Guard == nil {
		o.Guard = guard.New(guard.Options{})
	}
	if o.UserAgent == "" {
		o.UserAgent = "codehand"
	}
	if o.Resolver == nil {
		o.Resolver = &net.Resolver{Dial: ending((&net.Dialer{}).DialContext)}
	}
	c := &Client{client{o: o, caps: caps, guard: o.Guard, now: o.Now,
		fetches: make(chan struct{}, maxFetches), converts: make(chan struct{}, maxConverts),
		large: make(chan struct{}, 1)}}
	if c.now == nil {
		c.now = time.Now
	}
	c.pages = cache{most: caps.Cache, life: caps.Life, now: c.now}
	c.hosts.now = c.now
	c.http = &http.Transport{
		Proxy:       func(*http.Request) (*url.URL, error) { return o.Proxy, nil }, // never that of the environment
		DialContext: c.dial,
		// A nil map would switch HTTP/2 on, which counts headers and streams in ways of its own.
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
		TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},

		TLSHandshakeTimeout:    caps.Connect,
		DisableCompression:     true, // decoded here, where it is counted
		DisableKeepAlives:      true, // a connection that waits would be a goroutine left behind
		MaxResponseHeaderBytes: maxHeader,
	}
	return c
}

func orDefault[T int64 | time.Duration](v *T, usual T) {
	if *v == 0 {
		*v = usual
	}
}

// Close forgets all pages. Fetches that run end with their contexts.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.pages.clear()
}

// dial connects to a host of the web, or to the operator's proxy.
func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	check := Check(c.guard.Control)
	if c.o.Proxy != nil {
		check = func(string, string, syscall.RawConn) error { return nil } // the operator chose this address
	}
	if c.o.Dial != nil {
		ctx, cancel := context.WithTimeout(ctx, c.caps.Connect)
		defer cancel()
		return c.o.Dial(ctx, network, address, check)
	}
	d := net.Dialer{Timeout: c.caps.Connect, Resolver: c.o.Resolver, Control: check, KeepAlive: -1}
	return d.DialContext(ctx, network, address)
}

// ending makes a dial function of a resolver whose connections end with the context of their question. Without it, Go's
// resolver waits for the answer of a name server for seconds after the caller has gone.
func ending(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			// Not by a deadline: the resolver sets its own behind this, and the later one would count. The context ends
			// with the question, too; then conn is closed twice.
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Host returns the host of a URL in its one form, or the *Error with which Fetch would refuse the URL at once.
func (c *Client) Host(text string) (string, error) {
	u, err := c.target(text)
	if err != nil {
		return "", err
	}
	return hostOf(u), nil
}

// fetch is Client.Fetch.
func (c *client) fetch(ctx context.Context, r Request) (Page, error) {
	asked, err := c.target(r.URL)
	if err != nil {
		return Page{}, err
	}
	start, upgraded := *asked, false
	if start.Scheme == "http" && !c.o.NoUpgrade && start.Port() == "" {
		start.Scheme, upgraded = "https", true
	}
	key := cacheKey{r.Principal, start.String()}
	if p, ok := c.pages.get(key); ok && !r.Raw {
		p.Asked, p.Cached = asked.String(), true
		return c.allowed(r, asked, p), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.caps.Time, errSlow)
	defer cancel()
	if err := take(ctx, c.fetches); err != nil {
		return Page{}, c.ended(ctx, err)
	}
	defer give(c.fetches)
	p, err := c.follow(ctx, r, &start)
	if upgraded && err != nil && fallsBack(ctx, err) {
		p, err = c.follow(ctx, r, asked)
	}
	if err != nil {
		return Page{}, c.ended(ctx, err)
	}
	p.Asked = asked.String()
	if r.Principal != "" && p.Redirect == "" && !r.Raw {
		c.pages.put(key, p)
	}
	return p, nil
}

// allowed looks again at a remembered page that came from the host with or without www.: rules may have changed.
func (c *client) allowed(r Request, asked *url.URL, p Page) Page {
	from, err := url.Parse(p.URL)
	if err == nil && (from.Hostname() == asked.Hostname() || r.Follow != nil && r.Follow(hostOf(from))) {
		return p
	}
	return Page{URL: asked.String(), Asked: asked.String(), Status: http.StatusMovedPermanently, Redirect: p.URL}
}

// errDowngrade says that https leads back to http.
var errDowngrade = errors.New("the redirect leads from https to http")

// fallsBack says whether a page that was asked for by http, and for which https was tried first, is asked for as it
// was: there is no https there. What the guard or the time refuses stays refused.
func fallsBack(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ctx.Err() == nil && ok && e.Code == Failed
}

// ended makes the error of a fetch whose context is over tell why.
func (c *client) ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return err
	case errors.Is(cause, errSlow):
		return &Error{Code: Timeout, Cause: err,
			Text: fmt.Sprintf("Error: Request timed out (%s)", shortTime(c.caps.Time))}
	}
	return cause
}

func shortTime(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// target reads a URL and refuses what needs no look-up to be refused.
func (c *client) target(text string) (*url.URL, error) {
	u, err := guard.URL(text, c.o.Ports...)
	if err != nil {
		return nil, &Error{Code: Invalid, Text: sentence(err, guard.ErrInvalid), Cause: err}
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	if err := c.guard.Host(hostOf(u)); err != nil {
		return nil, blocked(u, err)
	}
	if c.o.Proxy != nil && isLiteral(u.Hostname()) {
		return nil, &Error{Code: Blocked, Text: u.Hostname() + " is an address. Only names are fetched here, because " +
			"the operator's proxy looks them up"}
	}
	return u, nil
}

func isLiteral(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// hostOf is the host of a URL as guard.Host returns it.
func hostOf(u *url.URL) string {
	return strings.TrimSuffix(u.Host, ":"+u.Port())
}

func blocked(u *url.URL, err error) *Error {
	return &Error{Code: Blocked, Cause: err, Text: fmt.Sprintf(
		"%s is a private or local address. Only public pages can be fetched, and those in networks that the operator "+
			"opens (web.allow_private)", u.Hostname())}
}

// sentence is the text of an error of the guard without the word that tells its kind.
func sentence(err, kind error) string {
	text := strings.TrimPrefix(err.Error(), kind.Error()+": ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// follow asks for a page and follows its redirects.
func (c *client) follow(ctx context.Context, r Request, u *url.URL) (Page, error) {
	first := u
	for hop := 0; ; hop++ {
		p, to, err := c.visit(ctx, u, r.Raw)
		if err != nil || to == "" {
			return p, err
		}
		next, err := c.next(u, to)
		if err != nil {
			return Page{}, err
		}
		switch {
		case !c.sameSite(r, u, next):
			return Page{URL: first.String(), Status: p.Status, Redirect: next.String()}, nil
		case u.Scheme == "https" && next.Scheme == "http":
			return Page{}, &Error{Code: Failed, Cause: errDowngrade,
				Text: "Error fetching URL: the server redirects from https to http, which is not followed"}
		case hop == maxRedirects:
			return Page{}, &Error{Code: Failed,
				Text: fmt.Sprintf("Error fetching URL: more than %d redirects", maxRedirects)}
		}
		u = next
	}
}

// next reads where a redirect leads. Each hop begins with the checks of the first.
func (c *client) next(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil {
		return nil, &Error{Code: Failed, Cause: err, Text: "Error fetching URL: the redirect leads to no URL"}
	}
	next, err := c.target(to.String())
	if e, ok := errors.AsType[*Error](err); ok && e.Code == Invalid {
		return nil, &Error{Code: Failed, Cause: err,
			Text: "Error fetching URL: the redirect leads to a URL that is refused: " + e.Text}
	}
	return next, err
}

// sameSite says whether a redirect stays where the call was allowed to go.
func (c *client) sameSite(r Request, from, to *url.URL) bool {
	a, b := hostOf(from), hostOf(to)
	if from.Port() != to.Port() {
		return false
	}
	return a == b || strings.TrimPrefix(a, "www.") == strings.TrimPrefix(b, "www.") && r.Follow != nil && r.Follow(b)
}

// visit asks one host for one URL: it waits for its place there, and once again if the host wants it to and says for
// how long. to is where the answer leads; "": it is the page.
func (c *client) visit(ctx context.Context, u *url.URL, raw bool) (p Page, to string, err error) {
	leave, err := c.hosts.enter(ctx, u.Host)
	if err != nil {
		return Page{}, "", err
	}
	defer leave()
	p, to, err = c.once(ctx, u, raw)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Wait <= 0 {
		return p, to, err
	}
	if e.Wait > patience {
		c.hosts.rest(u.Host, e.Wait)
		return p, to, err
	}
	if !sleep(ctx, e.Wait) {
		return Page{}, "", context.Cause(ctx)
	}
	if p, to, err = c.once(ctx, u, raw); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Wait > 0 {
			c.hosts.rest(u.Host, e.Wait)
		}
	}
	return p, to, err
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// accept is what is asked for; converting is done here where a server has no Markdown.
const accept = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1"

// once makes one request and reads its answer.
func (c *client) once(ctx context.Context, u *url.URL, raw bool) (p Page, to string, err error) {
	accept := accept
	if raw {
		accept = "*/*"
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Accept": {accept}, "Accept-Encoding": {"gzip"}, "User-Agent": {c.o.UserAgent}},
	}).WithContext(ctx)
	res, err := c.http.RoundTrip(req)
	if err != nil {
		// net/http goes on with a look-up, a connection and a handshake that no request waits for. This ends them.
		c.http.CloseIdleConnections()
		return Page{}, "", c.failed(ctx, u, err)
	}
	defer func() { _ = res.Body.Close() }() // the connection goes with it
	if location := res.Header.Get("Location"); location != "" && slices.Contains(redirects, res.StatusCode) {
		return Page{Status: res.StatusCode}, location, nil
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return Page{}, "", c.refused(ctx, res)
	}
	body, err := readBody(res, c.caps.Body)
	if err != nil {
		return Page{}, "", c.broken(ctx, u, err)
	}
	p = Page{URL: u.String(), Status: res.StatusCode, Name: nameOf(u)}
	if raw {
		p.Type, p.Body = mediaType(res.Header.Get("Content-Type"), body), body
		return p, "", nil
	}
	if len(body) > largePage {
		if err := take(ctx, c.large); err != nil {
			return Page{}, "", err
		}
		defer give(c.large)
	}
	if err := take(ctx, c.converts); err != nil {
		return Page{}, "", err
	}
	defer give(c.converts)
	err = c.read(ctx, &p, u, res.Header.Get("Content-Type"), body)
	return p, "", err
}

var redirects = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
	http.StatusPermanentRedirect}

// nameOf is the name of a file as the path of a URL ends; "": it ends in a slash.
func nameOf(u *url.URL) string {
	if name := path.Base(u.Path); !strings.HasSuffix(u.Path, "/") && name != "." && name != "/" {
		return name
	}
	return ""
}

// failed tells why there is no answer.
func (c *client) failed(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, guard.ErrBlocked) {
		return blocked(u, err)
	}
	return &Error{Code: Failed, Cause: err, Text: "Error fetching URL: " + c.why(u, err)}
}

// why puts an error of the network in words of ours: what a server sent is not among them.
func (c *client) why(u *url.URL, err error) string {
	host := u.Hostname()
	if c.o.Proxy != nil {
		host += ", through the operator's proxy,"
	}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, unknown := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case isDNS && dns.IsNotFound:
		return "the host " + u.Hostname() + " does not exist"
	case isDNS:
		return "the name of the host " + u.Hostname() + " could not be looked up"
	case unknown:
		return "the certificate of " + host + " is not valid for it or not trusted"
	case plain:
		return host + " does not speak TLS on this port"
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refuses the connection"
	case isTimeout(err):
		return host + " does not answer"
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return fmt.Sprintf("the headers of the answer are larger than %d KiB", maxHeader>>10)
	}
	return "the connection to " + host + " failed or its answer is no HTTP"
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// broken tells why an answer has no usable body.
func (c *client) broken(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Failed, Cause: err, Text: "Error fetching URL: the answer of " + u.Hostname() +
		" breaks off or is damaged"}
}

func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func give(places chan struct{}) { <-places }
