package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/tools/web/pages"
)

const (
	chunk      = 256 << 10 // bytes that are read at once
	maxExcerpt = 500       // characters of the body of an error
	// patience is how long a fetch waits because a host wants it to; what takes longer is said to the model.
	patience = 5 * time.Second
	maxRest  = 5 * time.Minute // for which a host can have us stay away
)

// readBody reads the decoded body, at most most bytes of it. An *Error, or what the network says.
func readBody(res *http.Response, most int64) ([]byte, error) {
	tooLarge := &Error{Code: TooLarge,
		Text: fmt.Sprintf("The page is larger than %s, the most that is fetched. Look for a smaller page, or another "+
			"source", size(most))}
	coding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding")))
	plain := coding == "" || coding == "identity"
	if plain && res.ContentLength > most {
		return nil, tooLarge
	}
	raw := io.LimitReader(res.Body, most+1) // members of gzip can be empty without end
	body, from := raw, io.Closer(nil)
	switch {
	case plain:
	case coding == "gzip" || coding == "x-gzip":
		z, err := gzip.NewReader(raw)
		if errors.Is(err, io.EOF) {
			return nil, nil // an empty body has no header either
		}
		if err != nil {
			return nil, err
		}
		body, from = z, z
	default:
		return nil, &Error{Code: Failed, Text: "Error fetching URL: the server compressed the answer" + known(coding) +
			", and only gzip was asked for"}
	}
	text, err := readAll(body, most)
	if from != nil {
		_ = from.Close() // says what reading has said
	}
	if errors.Is(err, errTooMuch) {
		return nil, tooLarge
	}
	return text, err
}

// known names a content coding; "": none that has a name here.
func known(coding string) string {
	if slices.Contains([]string{"br", "zstd", "deflate", "compress"}, coding) {
		return " as " + coding
	}
	return ""
}

var errTooMuch = errors.New("too much")

// readAll is io.ReadAll with a limit. It reads in pieces, since a buffer that grows needs several times as much.
func readAll(r io.Reader, most int64) ([]byte, error) {
	var parts [][]byte
	for n := int64(0); ; {
		part := make([]byte, min(chunk, most+1-n))
		got, err := fill(r, part)
		n += int64(got)
		parts = append(parts, part[:got])
		switch {
		case n > most:
			return nil, errTooMuch
		case errors.Is(err, io.EOF):
			return bytes.Join(parts, nil), nil
		case err != nil:
			return nil, err
		}
	}
}

// fill is io.ReadFull, but an end is io.EOF wherever it comes: io.ErrUnexpectedEOF is what r says of a broken answer.
func fill(r io.Reader, part []byte) (n int, err error) {
	for n < len(part) && err == nil {
		var got int
		got, err = r.Read(part[n:])
		n += got
	}
	return n, err
}

// typeForm allows as many words as registered types have.
var typeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z]{1,15}/[a-z0-9]+([._+-][a-z0-9]+){0,7}$`)
})

func size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// refused is the error of an answer that is no page.
func (c *client) refused(ctx context.Context, res *http.Response) error {
	e := &Error{Code: Status, Status: res.StatusCode,
		Text: strings.TrimSpace(fmt.Sprintf("HTTP error: %d %s", res.StatusCode, http.StatusText(res.StatusCode)))}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		e.Wait = c.waitOf(res.Header.Get("Retry-After"))
	}
	// It is only an excerpt, so an error in it, or of the connection, does not matter; less so its end.
	text, _ := readBody(&http.Response{Header: res.Header, Body: res.Body, ContentLength: -1}, chunk)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if page, err := pages.Text(ctx, text, res.Header.Get("Content-Type"), res.Request.URL); err == nil {
		e.Body = head(strings.TrimSpace(page.Text), maxExcerpt)
	}
	return e
}

// waitOf reads Retry-After: seconds, or a date.
func (c *client) waitOf(text string) time.Duration {
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxRest)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(c.now())), maxRest)
	}
	return 0
}

// head is the first n characters of a text.
func head(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

// read makes of a body what Page promises.
func (c *client) read(ctx context.Context, p *Page, u *url.URL, contentType string, body []byte) error {
	p.Type = mediaType(contentType, body)
	text, err := pages.Text(ctx, body, contentType, u)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, pages.ErrNoText):
		p.Body = body
		return nil
	case err != nil:
		return &Error{Code: Failed, Cause: err, Text: "Error fetching URL: the page cannot be read as text"}
	}
	p.Text, p.Form, p.Note = text.Text, text.Form, text.Note
	return nil
}

// mediaType is what the server says that a body is; else what it looks like. It stands in a result outside of what is
// marked as foreign, so a text that poses as a type is none.
func mediaType(header string, body []byte) string {
	if t, _, err := mime.ParseMediaType(header); err == nil && len(t) <= 80 && typeForm().MatchString(t) {
		return t
	}
	t, _, _ := mime.ParseMediaType(http.DetectContentType(body)) // it always is one
	return t
}
