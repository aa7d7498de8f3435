package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

const (
	// proxyLimit bounds the check of a long call.
	proxyLimit = 45 * time.Second
	// slowCall is how long the call takes: longer than two beats of the endpoint.
	slowCall = 25 * time.Second
	// quiet is how long nothing may come while it runs. The endpoint sends something every 10 s.
	quiet = 15 * time.Second
)

// proxy makes a call that takes 25 s, and sees whether what stands between passes on what comes meanwhile. The call is
// `sleep` and changes nothing.
func (r Remote) proxy(ctx context.Context) []Finding {
	s := &series{id: "proxy"}
	l, err := r.open(ctx)
	if err != nil {
		return nil // url says it
	}
	defer l.close()
	const off = "switch buffering off: proxy_buffering off in nginx (Caddy and Traefik do not buffer)"
	const longer = "raise its limit for reading: proxy_read_timeout 3600s in nginx, or the idle limit of the balancer"
	gap, err := l.sleep(ctx)
	switch status := statusOf(err); {
	case status == http.StatusGatewayTimeout || status == http.StatusBadGateway:
		s.add(Fail, "a call of 25 s was cut: "+err.Error(), longer)
	case status != 0:
		s.add(Note, "not tried: "+err.Error(), "give a token: --token-env NAME or --token-file FILE")
	case errors.Is(err, errNotCalled):
		s.add(Note, "not tried: "+err.Error(), "use a token that may call run_readonly")
	case errors.Is(err, errBuffered):
		s.add(Fail, "what the endpoint sends during a call arrives at its end only: it is buffered", off)
	case err != nil:
		s.add(Fail, "a call of 25 s was cut: "+err.Error(), longer)
	case gap > quiet:
		s.add(Fail, fmt.Sprintf("nothing came for %d s of a call of 25 s: it is buffered", int(gap.Seconds())), off)
	default:
		s.add(OK, fmt.Sprintf("a call of 25 s: nothing was held back for more than %d s", int(gap.Seconds())+1), "")
	}
	return s.found
}

// What can keep a call from telling anything.
var (
	errNotCalled = errors.New("the call was refused")
	errBuffered  = errors.New("no stream")
)

// sleep makes the call, and returns the longest time in which nothing came.
func (l *link) sleep(ctx context.Context) (gap time.Duration, err error) {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_readonly",`+
		`"arguments":{"command":"sleep %d"},%s}`, int(slowCall.Seconds()), strings.TrimPrefix(modernMeta, "{"))
	text = strings.Replace(text, `"_meta":{`, `"_meta":{"progressToken":"doctor",`, 1)
	req, err := l.message(ctx, modern, text)
	if err != nil {
		return 0, err
	}
	l.authorize(req)
	last := l.time()
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	gap = l.time().Sub(last)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // the status says enough
		return gap, reply{status: resp.StatusCode, body: body}.failed()
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	answered := false
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, maxBody)
	for last = l.time(); scan.Scan(); last = l.time() {
		gap = max(gap, l.time().Sub(last))
		line := scan.Text()
		answered = answered || strings.Contains(line, `"id":3`)
		if strings.Contains(line, `"isError":true`) || strings.Contains(line, `"error":{`) {
			return gap, errNotCalled
		}
	}
	switch {
	case scan.Err() != nil:
		return gap, scan.Err()
	case !answered:
		return gap, io.ErrUnexpectedEOF
	case kind != "text/event-stream":
		return gap, errBuffered
	}
	return gap, nil
}
