package doctor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"codehand/tools/results"
)

// A Remote is an endpoint that clients reach by its URL. Its methods are safe for concurrent use.
type Remote struct {
	URL   string         // of /mcp
	Token func() string  // nil: none is sent
	CAs   *x509.CertPool // nil: those of the system
	// Slow adds the check that takes half a minute: what stands before the endpoint passes on a long call.
	Slow bool

	now  func() time.Time                                                // nil: time.Now
	dial func(ctx context.Context, network, at string) (net.Conn, error) // nil: as always
}

// Checks are those of an endpoint.
func (r Remote) Checks() []Check {
	checks := []Check{
		{ID: "url", Run: r.url},
		{ID: "public", Run: r.public},
		{ID: "oauth", Run: r.oauth},
		{ID: "clock", Run: r.clock},
	}
	if r.Slow {
		checks = append(checks, Check{ID: "proxy", Limit: proxyLimit, Run: r.proxy})
	}
	return checks
}

// A link is an endpoint with what it takes to send it requests.
type link struct {
	Remote
	at     *url.URL
	client *http.Client
	local  bool // only this machine is behind the name
}

// open checks the URL. The error is a Finding's text. What it returns must be closed.
func (r Remote) open(ctx context.Context) (*link, error) {
	at, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return nil, errors.New("not the URL of an endpoint, such as https://tools.example.com/mcp")
	}
	transport := &http.Transport{
		DialContext: r.dial, TLSClientConfig: &tls.Config{RootCAs: r.CAs},
		ForceAttemptHTTP2: true,
	}
	if r.dial == nil {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &link{Remote: r, at: at, local: loopback(ctx, at.Hostname()), client: &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it would take the token elsewhere
		},
	}}, nil
}

func (l *link) close() { l.client.CloseIdleConnections() }

// loopback says whether a name leads to this machine alone.
func loopback(ctx context.Context, host string) bool {
	if at, err := netip.ParseAddr(host); err == nil {
		return at.Unmap().IsLoopback()
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, at := range found {
		if !at.Unmap().IsLoopback() {
			return false
		}
	}
	return err == nil && len(found) > 0
}

// page is the URL of something beside /mcp.
func (l *link) page(name string) string {
	base := *l.at
	base.RawQuery, base.Fragment = "", ""
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/mcp") + name
	return base.String()
}

// bearer is the token; "": none is to be sent.
func (l *link) bearer() string {
	if l.Token == nil || l.at.Scheme == "http" && !l.local {
		return "" // everybody on the way could read it
	}
	return l.Token()
}

// maxBody is how much of an answer is read, in bytes.
const maxBody = 8 << 20

// A reply is an answer that was read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
	tls    *tls.ConnectionState
}

// get asks for a page, without a token.
func (l *link) get(ctx context.Context, at string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return reply{}, err
	}
	return l.do(req)
}

func (l *link) do(req *http.Request) (reply, error) {
	resp, err := l.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return reply{resp.StatusCode, resp.Header, body, resp.TLS}, err
}

// message makes a POST of one message. era is "" where it is not to be told.
func (l *link) message(ctx context.Context, era, text string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.at.String(), strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if era == modern {
		var m struct {
			Method string `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, err
		}
		req.Header.Set("Mcp-Protocol-Version", modernVersion)
		req.Header.Set("Mcp-Method", m.Method)
		if m.Params.Name != "" {
			req.Header.Set("Mcp-Name", m.Params.Name)
		}
	}
	return req, nil
}

// authorize adds the token.
func (l *link) authorize(req *http.Request) {
	if token := l.bearer(); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
}

// An httpError is an answer that is not 2xx.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.status, cmp.Or(e.text, http.StatusText(e.status))))
}

// statusOf is the status of an *httpError; 0: err is none.
func statusOf(err error) int {
	if e, ok := errors.AsType[*httpError](err); ok {
		return e.status
	}
	return 0
}

// failed returns an *httpError unless the answer is 2xx.
func (r reply) failed() error {
	if r.status >= 200 && r.status < 300 {
		return nil
	}
	var m struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(r.body, &m) // another server's page says nothing that helps
	return &httpError{r.status, results.Line(m.Error.Message, 200)}
}

// list lists the tools as a client of this era does.
func (l *link) list(ctx context.Context, era string) (listing, error) {
	begun := time.Now()
	var got listing
	session := http.Header{}
	defer func() { l.leave(ctx, session) }()
	for _, text := range messages(era) {
		req, err := l.message(ctx, era, text)
		if err != nil {
			return got, err
		}
		l.authorize(req)
		for name, value := range session {
			req.Header[name] = value
		}
		r, err := l.do(req)
		if err == nil {
			err = r.failed()
		}
		if err != nil {
			return got, err
		}
		if id := r.header.Get("Mcp-Session-Id"); id != "" {
			session.Set("Mcp-Session-Id", id)
			session.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		for _, message := range r.messages() {
			done, err := got.add(message)
			if done {
				got.took = time.Since(begun)
				return got, l.stream(ctx, era, session)
			}
			if err != nil {
				return got, err
			}
		}
	}
	return got, errors.New("tools/list was not answered")
}

// messages are those of an answer, as JSON or as a stream.
func (r reply) messages() [][]byte {
	if kind, _, _ := mime.ParseMediaType(r.header.Get("Content-Type")); kind != "text/event-stream" {
		if len(bytes.TrimSpace(r.body)) == 0 {
			return nil
		}
		return [][]byte{r.body}
	}
	var all [][]byte
	scan := bufio.NewScanner(bytes.NewReader(r.body))
	scan.Buffer(nil, maxBody)
	for scan.Scan() {
		if data, ok := bytes.CutPrefix(scan.Bytes(), []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			all = append(all, bytes.Clone(bytes.TrimSpace(data)))
		}
	}
	return all
}

// stream sees whether the stream of a session opens, on which a legacy client hears of changes.
func (l *link) stream(ctx context.Context, era string, session http.Header) error {
	if era != legacy || session.Get("Mcp-Session-Id") == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.at.String(), nil)
	if err != nil {
		return err
	}
	req.Header = session.Clone()
	req.Header.Set("Accept", "text/event-stream")
	l.authorize(req)
	resp, err := l.client.Do(req)
	if err != nil {
		return fmt.Errorf("its stream of events does not open: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return fmt.Errorf("its stream of events does not open: HTTP %d, %s", resp.StatusCode, cmp.Or(kind, "no type"))
	}
	return nil
}

// leave ends a session of legacy HTTP.
func (l *link) leave(ctx context.Context, session http.Header) {
	if session.Get("Mcp-Session-Id") == "" {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.at.String(), nil)
	if err != nil {
		return
	}
	req.Header = session.Clone()
	l.authorize(req)
	_, _ = l.do(req) // an unused session ends by itself
}
