package models

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"codehand/tools/agent/loop"
)

// maxRetryAfter is how long a server may have us wait before a try. If it wants more, there is no further try: one that
// comes too early only makes it worse.
const maxRetryAfter = 2 * time.Minute

var errSilence = errors.New("the model's server sent nothing for too long")

// A fault is why one request gave no answer.
type fault struct {
	kind    loop.Kind
	text    string        // without the key, after hide
	again   bool          // another try may help
	after   time.Duration // the server's wish; 0: none
	adapted bool          // the next request leaves out what the server did not take
}

func (f *fault) Error() string { return f.text }

// hide takes the key out of the text, before it is cut, and makes it a single line.
func (f *fault) hide(key string) {
	if key != "" {
		f.text = strings.ReplaceAll(f.text, key, "[key]")
	}
	f.text = clip(strings.Join(strings.Fields(strings.ToValidUTF8(f.text, "?")), " "), 600)
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
	text := f.text
	if tries > 1 {
		text += fmt.Sprintf(" (%d tries)", tries)
	}
	return &loop.Error{Kind: f.kind, Text: text + "; " + advice[f.kind]}
}

// pause says how long to wait after a try, and whether there is another.
func (c *Client) pause(f *fault, try int, start time.Time) (time.Duration, bool) {
	if !f.again || try >= c.options.Tries || f.after > maxRetryAfter {
		return 0, false
	}
	// Exponential back-off with full jitter, so that agents which failed together do not come back together.
	longest := min(time.Second<<min(try-1, 5), 30*time.Second)
	wait := f.after + time.Duration(c.options.Random()*float64(longest))
	return wait, c.options.Now().Add(wait).Sub(start) <= c.options.Patience
}

// unreachable is the fault of a connection that could not be made, or broke.
func unreachable(ctx context.Context, err error) *fault {
	if errors.Is(context.Cause(ctx), errSilence) {
		return &fault{kind: loop.Broken, text: errSilence.Error(), again: true}
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return &fault{kind: loop.Wrong, text: "the certificate of the model's server is not trusted: " + err.Error()}
	}
	return &fault{kind: loop.Broken, text: "the connection to the model's server failed: " + err.Error(), again: true}
}

// ended is the fault of an answer that is not whole.
func ended(why string) *fault {
	return &fault{kind: loop.Broken, text: "the answer of the model's server ended too early: " + why, again: true}
}

// A complaint is what servers send instead of an answer. Some send the error as a text.
type complaint struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a text or a number
	Message string          `json:"message"`
}

func (c *complaint) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.Message) == nil {
		return nil
	}
	type plain complaint
	return json.Unmarshal(data, (*plain)(c))
}

// status is the HTTP status that a complaint in a stream stands for.
func (c *complaint) status() int {
	if n, err := strconv.Atoi(strings.Trim(string(c.Code), `"`)); err == nil && n >= 400 && n < 600 {
		return n
	}
	return cmp.Or(statuses[c.Type], http.StatusBadGateway)
}

// statuses are the HTTP statuses that belong to types of errors.
var statuses = map[string]int{
	"overloaded_error": 529, "rate_limit_error": http.StatusTooManyRequests,
	"invalid_request_error": http.StatusBadRequest, "not_found_error": http.StatusNotFound,
	"authentication_error": http.StatusUnauthorized, "permission_error": http.StatusForbidden,
	"billing_error": http.StatusPaymentRequired, "request_too_large": http.StatusRequestEntityTooLarge,
}

// refused is the fault of an answer that is not 200.
func refused(response *http.Response, body io.Reader) *fault {
	data, _ := io.ReadAll(io.LimitReader(body, maxFault))
	var wrapped struct {
		Error           *complaint
		Message, Detail string // of vLLM, of FastAPI
	}
	c := &complaint{}
	if json.Unmarshal(data, &wrapped) != nil {
		if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")) { // a page of a proxy says nothing
			c.Message = string(data)
		}
	} else if c.Message = wrapped.Message + wrapped.Detail; wrapped.Error != nil {
		c = wrapped.Error
	}
	f := c.fault(response.StatusCode)
	f.text = fmt.Sprintf("HTTP %d: %s", response.StatusCode, f.text)
	if wish, err := strconv.ParseBool(response.Header.Get("X-Should-Retry")); err == nil {
		f.again = wish
	}
	f.after = retryAfter(response.Header)
	return f
}

// fault says what a complaint with this status means.
func (c *complaint) fault(status int) *fault {
	all := strings.ToLower(c.Type + " " + string(c.Code) + " " + c.Message)
	f := &fault{text: cmp.Or(c.Message, strings.TrimSpace(c.Type+" "+http.StatusText(status)))}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden,
		strings.Contains(all, "insufficient_quota"), strings.Contains(all, "credit balance is too low"):
		f.kind = loop.Denied
	case status == http.StatusTooManyRequests, status == 529, status == http.StatusServiceUnavailable:
		f.kind, f.again = loop.Busy, true
	case status == http.StatusRequestEntityTooLarge,
		slices.ContainsFunc(fullTexts, func(t string) bool { return strings.Contains(all, t) }):
		f.kind = loop.Full
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict:
		f.kind, f.again = loop.Broken, true
	default:
		f.kind = loop.Wrong
		if status/100 == 3 {
			f.text = "the server answers with a redirect, which is not followed"
		}
	}
	return f
}

// fullTexts are how servers say that a conversation is larger than the model's context, in lower case.
var fullTexts = []string{
	"prompt is too long", "exceed context limit", "request_too_large", // Anthropic
	"context_length_exceeded", "exceeds the context window", "reduce the length of the", // OpenAI
	"maximum context length", "longer than the maximum model length", // vLLM and many others
	"exceed_context_size_error", "exceeds the available context size", // llama.cpp
	"prompt too long", "exceeded max context length", // Ollama
	"context size has been exceeded", "when context the overflows", "greater than the context length", // LM Studio
	"exceeds the maximum number of tokens allowed", // Gemini
	"input is too long", "context window exceeded",
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
