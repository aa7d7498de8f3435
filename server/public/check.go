package public

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// A Failure says why a URL is not proven to reach this process, and what to do.
type Failure struct {
	Text string
	Fix  string
}

func (f *Failure) Error() string { return f.Text }

// Hint is Fix, under the name that the program looks for.
func (f *Failure) Hint() string { return f.Fix }

// Limits of the check.
const (
	tryTime  = 10 * time.Second // for one challenge
	firstGap = time.Second      // after the first challenge; then twice as long each time
	mostGap  = 5 * time.Second
)

// Usable says whether a URL may be published at all: https, or http to this machine. The error is a *Failure.
func Usable(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &Failure{"--public needs the URL that the world calls, such as https://tools.example.com",
			`"codehand serve --public" alone prints how to get one`}
	}
	if u.Scheme == "http" && !OnThisMachine(u.Hostname()) {
		return &Failure{text + " is not encrypted: everybody on the way could read the tokens and change the commands",
			"use the https:// URL of the tunnel or proxy; only http://localhost does without"}
	}
	return nil
}

// OnThisMachine says whether host is an address of the loopback network, localhost, or a name below it (RFC 6761). It
// looks nothing up.
func OnThisMachine(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if at, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return at.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// A Check sends challenges to a public URL until the process of Prover answers one.
type Check struct {
	URL    string // http.public_url
	Prover *Prover
	Agent  string        // User-Agent
	Wait   time.Duration // how long it tries; a tunnel takes a while
	Trying func(error)   // is called once, with the first failure, if it goes on trying

	transport http.RoundTripper // nil: the network
}

// Run returns nil as soon as the URL is proven. Otherwise the error is the last *Failure, or that of ctx.
func (c Check) Run(ctx context.Context) error {
	if err := Usable(c.URL); err != nil {
		return err
	}
	client := &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a client would send its messages, and its token, elsewhere
	}}
	if c.transport == nil {
		client.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, // each try meets the tunnel as it is then
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		}
	}
	over := time.NewTimer(c.Wait)
	defer over.Stop()
	for gap := firstGap; ; gap = min(2*gap, mostGap) {
		err := c.try(ctx, client)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if gap == firstGap && c.Trying != nil && c.Wait > 0 {
			c.Trying(err)
		}
		next := time.NewTimer(gap)
		select {
		case <-over.C:
			next.Stop()
			return err
		case <-ctx.Done():
			next.Stop()
			return ctx.Err()
		case <-next.C:
		}
	}
}

// try sends one challenge.
func (c Check) try(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	nonce := NewNonce()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+Path+nonce, nil)
	if err != nil {
		return &Failure{c.URL + " is not a URL: " + err.Error(), "give the URL that the tunnel or proxy has"}
	}
	req.Header.Set("User-Agent", c.Agent)
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return unreachable(c.URL, err)
	}
	defer func() { _ = resp.Body.Close() }() // a try has one request
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProof+1))
	if err != nil {
		return unreachable(c.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return refused(c.URL, resp, body)
	}
	proof, err := Verify(body, nonce)
	switch {
	case err != nil:
		return foreign(c.URL, resp, body)
	case proof.Instance != c.Prover.Instance():
		return &Failure{fmt.Sprintf("%s reaches another codehand (instance %s); this process is %s", c.URL,
			proof.Instance, c.Prover.Instance()),
			"end the other one, or point the tunnel or proxy at the address that this process listens on"}
	}
	return nil
}

// unreachable is the failure of a request without an answer.
func unreachable(at string, err error) *Failure {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	const renew = "renew it, or set this machine's clock"
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok && bad.Reason == x509.Expired {
		return &Failure{at + ": its certificate is not valid now", renew}
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return &Failure{at + ": its certificate is signed by nobody whom this machine knows, so no chat accepts it",
			"use a certificate of a public authority, such as Let's Encrypt; Caddy and the tunnels get one " +
				"by themselves"}
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return &Failure{at + ": its certificate is for another name", "get a certificate for this name"}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return &Failure{at + ": there is no such name", "compare it with what the tunnel printed; a new name takes a " +
			"minute until it is known"}
	}
	const look = "start the tunnel or proxy first, and compare the URL with what it printed"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{at + ": no answer within " + tryTime.String(), look}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Failure{at + ": nothing listens there", look}
	}
	return &Failure{at + ": " + err.Error(), look}
}

// refused is the failure of an answer that is not 200.
func refused(at string, resp *http.Response, body []byte) *Failure {
	status := resp.StatusCode
	said := fmt.Sprintf("%s answers HTTP %d", at, status)
	switch {
	case status >= 300 && status < 400:
		to := "elsewhere"
		if u, err := resp.Location(); err == nil {
			to = "to " + u.Scheme + "://" + u.Host
		}
		return &Failure{fmt.Sprintf("%s redirects %s; clients do not follow", at, to), "give the URL that answers " +
			"itself. A login of the tunnel's own, such as Cloudflare Access, must be off: codehand has its own"}
	case bytes.Contains(body, []byte(`"forbidden_host"`)):
		return &Failure{said + ": it reaches a codehand that does not serve this name",
			"let the proxy pass the Host header on as it came"}
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout,
		status >= 520 && status <= 530: // of Cloudflare's own
		return &Failure{said + ": the tunnel or proxy is there, but does not reach this process",
			"point it at the address that this process listens on"}
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusProxyAuthRequired:
		return &Failure{said + ": something in front wants a login of its own",
			"turn that login off: codehand has its own, and chats can pass only that one"}
	}
	return &Failure{said + ", so something else is there or the path is not passed on",
		"pass everything on, with /.well-known/ and /oauth/; if the URL has a path, --public needs it, too"}
}

// foreign is the failure of an answer that proves nothing.
func foreign(at string, resp *http.Response, body []byte) *Failure {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	low := bytes.ToLower(body)
	switch {
	case resp.Header.Get("Ngrok-Error-Code") != "" || kind == "text/html" && bytes.Contains(low, []byte("ngrok")):
		return &Failure{at + " answers with a page of ngrok, not with codehand",
			"compare the URL with what ngrok printed. If it is the warning page of free accounts, use a paid account " +
				"or another tunnel"}
	case kind == "text/html":
		return &Failure{at + " answers with a web page, not with codehand",
			"if it is a warning or login page of the tunnel, turn it off; else compare the URL with what the tunnel " +
				"printed"}
	case len(body) > maxProof:
		return &Failure{at + " answers with more than a proof has", "compare the URL with what the tunnel printed"}
	}
	return &Failure{at + " answers, but without a proof for this challenge: something else is there, or a cache",
		"point it at this process, and let nothing cache /.well-known/"}
}
