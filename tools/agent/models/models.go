// Package models asks models over HTTP, in a format of tools/agent/wire, at the provider's own address or that of a
// compatible server.
//
// It sends what it is told and nothing of the machine: no variable of the environment, no proxy that it was not given,
// no cookie; it follows no redirect. An answer counts only once the provider has said that it is whole. No error holds
// the key. It knows no tool and keeps no conversation.
package models

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/wire"
)

// Options say which model is asked, and how.
type Options struct {
	Provider string // Anthropic or OpenAI: the format, also of compatible servers
	BaseURL  string // with or without /v1; "": the provider's own
	Model    string // as the provider names it
	// Key returns the API key. It is asked before each request, so a key may change. nil, or an empty key: none is
	// sent, as servers on one's own machine want it. Its error must not hold the key.
	Key       func() (string, error)
	PlainHTTP bool           // the key may be sent over http:// to other machines
	MaxOutput int            // tokens of an answer where Turn.MaxOutput is 0; 0: 8,192
	Proxy     *url.URL       // nil: none; the environment is not asked
	Roots     *x509.CertPool // who may sign the server's certificate; nil: whom the system trusts

	Tries    int           // requests of one turn, at most; 0: 6
	Patience time.Duration // a turn begins no further try after that long; 0: 5 minutes
	Silence  time.Duration // the longest time without a byte of the server; 0: 5 minutes

	// Time and chance, for tests. nil: the real ones.
	Now    func() time.Time
	Wait   func(ctx context.Context, d time.Duration) error // returns early with the error of ctx
	Random func() float64                                   // in [0, 1)
}

// The formats.
const (
	Anthropic = "anthropic" // Anthropic Messages
	OpenAI    = "openai"    // OpenAI Chat Completions
)

// What is read of a server at most.
const (
	maxHeader = 64 << 10
	maxFault  = 64 << 10 // of an error's body
	maxEvent  = 4 << 20  // of one line and of one event: servers may send a whole tool call in one
	maxAnswer = 32 << 20
)

// A Client is a loop.Model. It is safe for concurrent use.
type Client struct {
	options   Options
	url       string
	format    wire.Format
	transport *http.Transport
}

// New makes a Client. The error is about what a person wrote in a configuration.
func New(o Options) (*Client, error) {
	if o.Model == "" {
		return nil, errors.New("no model is named")
	}
	o.MaxOutput = cmp.Or(max(0, o.MaxOutput), 8192)
	o.Tries = cmp.Or(max(0, o.Tries), 6)
	o.Patience = cmp.Or(o.Patience, 5*time.Minute)
	o.Silence = cmp.Or(o.Silence, 5*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = sleep
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	c := &Client{options: o}
	var address, own string
	switch o.Provider {
	case Anthropic:
		c.format, address, own = wire.NewMessages(), "/messages", "https://api.anthropic.com"
	case OpenAI:
		address, own = "/chat/completions", "https://api.openai.com"
		base, err := url.Parse(cmp.Or(o.BaseURL, own))
		c.format = wire.NewChat(err == nil && base.Hostname() == "api.openai.com")
	default:
		return nil, fmt.Errorf("%q is no provider; write %q or %q", o.Provider, Anthropic, OpenAI)
	}
	var err error
	if c.url, err = endpoint(cmp.Or(o.BaseURL, own), o.Provider, address, o.Key != nil && !o.PlainHTTP); err != nil {
		return nil, err
	}
	c.transport = &http.Transport{
		DialContext:     (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
	}
	if o.Proxy != nil {
		c.transport.Proxy = http.ProxyURL(o.Proxy)
	}
	return c, nil
}

// Close closes idle connections. Turns that go on are not ended.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// endpoint makes the URL that requests go to. secret: a key is sent, and only over a connection that hides it.
func endpoint(base, provider, address string, secret bool) (string, error) {
	u, err := url.Parse(base)
	// The error of Parse is not shown, because a URL may hold a password.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return "", errors.New("the base URL is not of the form https://HOST/PATH")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("the base URL has a user, a query or a fragment; write https://HOST/PATH")
	}
	if secret && u.Scheme == "http" && !loopback(u.Hostname()) {
		return "", fmt.Errorf("the key would be sent to %s without encryption; write https://", u.Hostname())
	}
	p := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), address)
	if provider == Anthropic {
		p = strings.TrimSuffix(p, "/v1") + "/v1"
	}
	u.Path, u.RawPath = cmp.Or(p, "/v1")+address, ""
	return u.String(), nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Turn implements loop.Model. It tries again after errors that pass; see Options.
func (c *Client) Turn(ctx context.Context, t loop.Turn, say func(text string)) (loop.Answer, error) {
	if say == nil {
		say = func(string) {}
	}
	t.MaxOutput = cmp.Or(max(0, t.MaxOutput), c.options.MaxOutput)
	start := c.options.Now()
	for try := 1; ; try++ {
		answer, f := c.attempt(ctx, t, say)
		if f == nil {
			return answer, nil
		}
		if err := ctx.Err(); err != nil {
			return loop.Answer{}, err
		}
		if f.adapted { // no field is left out twice, so this ends
			try--
			continue
		}
		wait, again := c.pause(f, try, start)
		if !again {
			return loop.Answer{}, f.final(try)
		}
		if err := c.options.Wait(ctx, wait); err != nil {
			return loop.Answer{}, err
		}
	}
}

// attempt makes one request and reads its answer.
func (c *Client) attempt(ctx context.Context, t loop.Turn, say func(string)) (a loop.Answer, f *fault) {
	key, err := c.key()
	if err != nil {
		return a, failed(loop.Denied, "the API key cannot be used: "+err.Error())
	}
	defer func() {
		if f != nil {
			f.hide(key)
		}
	}()
	var sent bytes.Buffer
	encoder := json.NewEncoder(&sent)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c.format.Body(c.options.Model, t)); err != nil {
		return a, failed(loop.Wrong, "the request cannot be written as JSON: "+err.Error())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(c.options.Silence, func() { cancel(errSilence) })
	defer quiet.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(sent.Bytes()))
	if err != nil {
		return a, failed(loop.Wrong, "the base URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("User-Agent", "codehand")
	c.format.Authorize(request.Header, key)
	response, err := c.transport.RoundTrip(request) // follows no redirect, and knows no cookies
	if err != nil {
		return a, unreachable(ctx, err)
	}
	defer response.Body.Close()
	body := http.MaxBytesReader(nil, &watched{response.Body, quiet, c.options.Silence}, maxAnswer)
	if response.StatusCode != http.StatusOK {
		f = refused(response, body)
		f.adapted = f.Kind == loop.Wrong && c.format.Adapt(strings.ToLower(f.Text))
		return a, f
	}
	if a, err = receive(response, body, c.format.Assemble(t, say)); err != nil {
		var known *wire.Fault
		if errors.As(err, &known) {
			return loop.Answer{}, &fault{Fault: *known}
		}
		return loop.Answer{}, unreachable(ctx, err)
	}
	for i := range a.Parts {
		if len(key) >= minKey { // calls stay as they are, since they may change files
			a.Parts[i].Text = strings.ReplaceAll(a.Parts[i].Text, key, "[key]")
		}
	}
	if a.Tokens == (loop.Tokens{}) {
		written, _ := json.Marshal(a.Parts) // only its size counts
		a.Tokens = loop.Tokens{Input: sent.Len() / 4, Output: len(written) / 4, Estimated: true}
	}
	return a, nil
}

// minKey is how long a key is that is taken out of answers. Servers that want none are given a word such as "ollama".
const minKey = 16

// receive reads the events of an answer, or the one JSON object of a server that does not stream.
func receive(response *http.Response, body io.Reader, into wire.Assembler) (loop.Answer, error) {
	events, done := newEvents(body), false
	next := events.next
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind {
	case "text/html": // whatever stands at this address is no model, also at the next try
		return loop.Answer{}, &wire.Fault{Kind: loop.Wrong, Text: "the model's server answers with a page (text/html)"}
	case "application/json":
		next = func() ([]byte, error) {
			done = true
			return io.ReadAll(http.MaxBytesReader(nil, io.NopCloser(body), maxEvent))
		}
	}
	for !done {
		data, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		var size *http.MaxBytesError
		if errors.As(err, &size) {
			err = tooLong("an answer", int(size.Limit))
		}
		if err != nil {
			return loop.Answer{}, err
		}
		ended, err := into.Event(data)
		if err != nil {
			return loop.Answer{}, err
		}
		done = done || ended
	}
	return into.Answer()
}

// key returns the key as it can stand in a header.
func (c *Client) key() (string, error) {
	if c.options.Key == nil {
		return "", nil
	}
	key, err := c.options.Key()
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("it has spaces or characters that no key has")
	}
	return key, err
}

// watched is a body that resets a timer with each piece.
type watched struct {
	io.ReadCloser
	quiet *time.Timer
	limit time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.quiet.Reset(w.limit)
	return n, err
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
