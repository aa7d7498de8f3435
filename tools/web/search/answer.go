package search

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/tools/keys"
)

// transport returns what makes connections, and what closes those that idle.
func transport(o Options) (http.RoundTripper, func()) {
	dialer := &net.Dialer{Timeout: dialTime}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTime,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        wholeTime,
	}
	if o.Proxy != nil {
		t.Proxy = http.ProxyURL(o.Proxy)
	}
	return t, t.CloseIdleConnections
}

// Reasons why a request fails that are not the network's.
var (
	errElsewhere = errors.New("it redirects to another host, which would get the key and the query")
	errHops      = errors.New("it redirects without end")
	errLarge     = errors.New("its answer is too large")
)

// follow lets redirects stay on the endpoint: only the scheme may become https.
func follow(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	secured := from.Scheme == "http" && req.URL.Scheme == "https" && from.Port() == "" && req.URL.Port() == "" &&
		from.Hostname() == req.URL.Hostname()
	switch {
	case len(via) > maxHops:
		return errHops
	case !secured && (req.URL.Host != from.Host || req.URL.Scheme != from.Scheme):
		return errElsewhere
	case req.URL.User != nil:
		return errElsewhere
	}
	req.Header.Del("Referer") // it has the query
	return nil
}

// answer makes a request and returns the body of the answer.
func (e *Engine) answer(ctx context.Context, a ask, key string) ([]byte, error) {
	req, err := e.request(a)
	if err != nil {
		return nil, failed(err, "The search endpoint %s cannot be asked for that: %v.", e.Name(), err)
	}
	if key != "" {
		req.Header.Set(e.header.name, strings.Replace(e.header.value, "{key}", key, 1))
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.limits.ask, errSlow)
	defer cancel()
	client := &http.Client{Transport: e.rounds, CheckRedirect: follow}
	resp, err := client.Do(req.WithContext(limited))
	if err != nil {
		return nil, e.unreached(limited, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, e.refused(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1)) // of what is decompressed
	switch {
	case err != nil:
		return nil, e.unreached(limited, err)
	case len(body) > maxBody:
		return nil, failed(errLarge, "The search endpoint %s sent more than 2 MiB. Tell the operator.", e.Name())
	}
	return body, nil
}

// unreached says why there is no answer. The causes of net/http hold the address with the query, and that is cut off.
func (e *Engine) unreached(ctx context.Context, err error) error {
	if bad, ok := errors.AsType[*url.Error](err); ok {
		err = bad.Err
	}
	if errors.Is(context.Cause(ctx), errSlow) {
		return failed(errSlow, "The search endpoint %s did not answer in time. Try once more, or go on without it.",
			e.Name())
	}
	for _, own := range []error{errElsewhere, errHops} {
		if errors.Is(err, own) {
			return failed(own, "The search endpoint %s cannot be used: %v. Tell the operator.", e.Name(), own)
		}
	}
	return failed(err, "The search endpoint %s cannot be reached. Go on without it, and tell the operator: the "+
		"server's log says why.", e.Name())
}

// refused says what an answer without results means. Its body is foreign, and may repeat the key: it is not shown.
func (e *Engine) refused(resp *http.Response) error {
	cause := fmt.Errorf("it answered %d", resp.StatusCode)
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		text := "The search endpoint %s allows no more requests now."
		n, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err == nil && n > 0 && n < int((24*time.Hour).Seconds()) {
			text += " Try again in " + strconv.Itoa(n) + " s."
		}
		return failed(cause, text, e.Name())
	case code == http.StatusForbidden && e.o.Kind == SearXNG:
		return failed(cause, "The search endpoint %s refuses to answer in JSON (403). The operator must allow it "+
			"there: `json` in search.formats.", e.Name())
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusPaymentRequired:
		return failed(cause, "The search endpoint %s refuses the operator's key (%d). Tell the operator.", e.Name(),
			code)
	}
	return failed(cause, "The search endpoint %s answered %d. Try once more, or go on without it.", e.Name(),
		resp.StatusCode)
}

// A form says where things are in an answer: the way to the list from the top, and to the rest from each entry.
type form struct {
	list, title, link, text []string
	missing                 bool // an answer without a list has no hits
}

// hits reads an answer, and takes the key out of it. raw is how many entries its list has, also of those that are no
// hits.
func (f form) hits(answer []byte, key string) (hits []Hit, raw int, err error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	var top any
	if err := d.Decode(&top); err != nil {
		return nil, 0, errors.New("it is no JSON")
	}
	list, ok := at(top, f.list).([]any)
	if _, object := top.(map[string]any); !ok && f.missing && object {
		return nil, 0, nil
	}
	if !ok {
		return nil, 0, errors.New("there is no list of results at " + strings.Join(f.list, "."))
	}
	for _, entry := range list {
		h := Hit{Title: line(at(entry, f.title), key, maxTitle), Text: line(at(entry, f.text), key, maxText)}
		h.URL, _ = at(entry, f.link).(string)
		h.URL = keys.Redact(strings.TrimSpace(h.URL), key)
		if h.Title == "" {
			h.Title = "(no title)"
		}
		if h.URL != "" {
			hits = append(hits, h)
		}
	}
	return hits, len(list), nil
}

// at goes down into a value; nil: there is nothing.
func at(value any, path []string) any {
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// highlights are the tags by which endpoints mark the words of the query.
var highlights = strings.NewReplacer("<strong>", "", "</strong>", "", "<b>", "", "</b>", "", "<em>", "", "</em>", "",
	"<mark>", "", "</mark>", "")

// line makes one line of a text, without the key, of at most n characters.
func line(value any, key string, n int) string {
	text, _ := value.(string)
	text = html.UnescapeString(highlights.Replace(strings.ToValidUTF8(text, "\uFFFD")))
	text = strings.Join(strings.Fields(text), " ")
	text = keys.Redact(text, key) // before it is cut, which could leave a part of it
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:n-1]), " ") + "…"
}
