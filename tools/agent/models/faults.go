package models

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/wire"
)

// maxRetryAfter is how long a server may have us wait before a try. If it wants more, there is no further try: one that
// comes too early only makes it worse.
const maxRetryAfter = 2 * time.Minute

var errSilence = errors.New("the model's server sent nothing for too long")

// A fault is one of the wire, or of the connection.
type fault struct {
	wire.Fault
	after   time.Duration // the server's wish; 0: none
	adapted bool          // the next request leaves out what the server did not take
}

// hide takes the key out of the text, before it is cut, and makes it a single line.
func (f *fault) hide(key string) {
	if key != "" {
		f.Text = strings.ReplaceAll(f.Text, key, "[key]")
	}
	f.Text = clip(strings.Join(strings.Fields(strings.ToValidUTF8(f.Text, "?")), " "), 600)
}

// advice is what to do about each kind of fault.
var advice = map[loop.Kind]string{
	loop.Full:   "give the agent a smaller task, or a model with a larger context",
	loop.Denied: "check the API key and what its account may use",
	loop.Wrong:  "check the model's name, the base URL and the certificates",
	loop.Busy:   "try again later",
	loop.Broken: "check that the model's server runs and can be reached",
}

// final is what the caller is told after so many tries.
func (f *fault) final(tries int) *loop.Error {
	text := f.Text
	if tries > 1 {
		text += fmt.Sprintf(" (%d tries)", tries)
	}
	return &loop.Error{Kind: f.Kind, Text: text + "; " + advice[f.Kind]}
}

// pause says how long to wait after a try, and whether there is another.
func (c *Client) pause(f *fault, try int, start time.Time) (time.Duration, bool) {
	if !f.Again || try >= c.options.Tries || f.after > maxRetryAfter {
		return 0, false
	}
	// Exponential back-off with full jitter, so that agents which failed together do not come back together.
	longest := min(time.Second<<min(try-1, 5), 30*time.Second)
	wait := f.after + time.Duration(c.options.Random()*float64(longest))
	return wait, c.options.Now().Add(wait).Sub(start) <= c.options.Patience
}

// failed is a fault that another try does not mend.
func failed(kind loop.Kind, text string) *fault {
	return &fault{Fault: wire.Fault{Kind: kind, Text: text}}
}

// refused is the fault of an answer that is not 200.
func refused(response *http.Response, body io.Reader) *fault {
	data, _ := io.ReadAll(io.LimitReader(body, maxFault)) // what was read counts
	f := &fault{Fault: *wire.Refused(response.StatusCode, data), after: retryAfter(response.Header)}
	if wish, err := strconv.ParseBool(response.Header.Get("X-Should-Retry")); err == nil {
		f.Again = wish
	}
	return f
}

// unreachable is the fault of a connection that could not be made, or broke.
func unreachable(ctx context.Context, err error) *fault {
	if errors.Is(context.Cause(ctx), errSilence) {
		return &fault{Fault: wire.Fault{Kind: loop.Broken, Text: errSilence.Error(), Again: true}}
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return failed(loop.Wrong, "the certificate of the model's server is not trusted: "+err.Error())
	}
	text := "the connection to the model's server failed: " + err.Error()
	return &fault{Fault: wire.Fault{Kind: loop.Broken, Text: text, Again: true}}
}

// retryAfter is how long a server wants us to wait; 0: it does not say.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, 1e9)) * time.Millisecond
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return time.Duration(min(s, 1e6) * float64(time.Second))
	}
	// A date is held against the server's own clock, because ours may be wrong.
	until, err := http.ParseTime(text)
	now, wrong := http.ParseTime(h.Get("Date"))
	if err != nil || wrong != nil {
		return 0
	}
	return max(0, until.Sub(now))
}

// clip cuts a text, between characters.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
