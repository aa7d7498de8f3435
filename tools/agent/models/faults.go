package models

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// hide takes the key out of the text, and all that is no single line.
func (f *fault) hide(key string) {
	if key != "" {
		f.text = strings.ReplaceAll(f.text, key, "[key]")
	}
	f.text = clip(strings.Join(strings.Fields(strings.ToValidUTF8(f.text, "?")), " "), 600)
}

// final is what the caller is told after so many tries.
func (f *fault) final(tries int) *loop.Error {
	text := f.text
	if tries > 1 {
		text += fmt.Sprintf(" (%d tries)", tries)
	}
	switch f.kind {
	case loop.Full:
		text += "; give the agent a smaller task, or a model with a larger context"
	case loop.Denied:
		text += "; check the API key and what its account may use"
	case loop.Wrong:
		text += "; check the model's name, the base URL and the certificates"
	case loop.Busy:
		text += "; try again later"
	case loop.Broken:
		text += "; check that the model's server runs and can be reached"
	}
	return &loop.Error{Kind: f.kind, Text: text}
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
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
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
	switch c.Type {
	case "overloaded_error":
		return 529
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "invalid_request_error", "not_found_error", "request_too_large":
		return http.StatusBadRequest
	case "authentication_error", "permission_error", "billing_error":
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// refused is the fault of an answer that is not 200.
func refused(response *http.Response, body io.Reader) *fault {
	data, _ := io.ReadAll(io.LimitReader(body, maxFault))
	var wrapped struct {
		Error   *complaint `json:"error"`
		Message string     `json:"message"` // of vLLM and others
		Detail  string     `json:"detail"`
		complaintFields
	}
	c := complaint{}
	switch json.Unmarshal(data, &wrapped); {
	case wrapped.Error != nil:
		c = *wrapped.Error
	case wrapped.Message+wrapped.Detail != "":
		c = complaint{Type: wrapped.Type, Message: wrapped.Message + wrapped.Detail}
	case !bytes.HasPrefix(bytes.TrimSpace(data), []byte("<")): // a page of a proxy says nothing
		c.Message = string(data)
	}
	f := c.fault(response.StatusCode)
	f.text = fmt.Sprintf("HTTP %d: %s", response.StatusCode, f.text)
	switch response.Header.Get("X-Should-Retry") {
	case "true":
		f.again = true
	case "false":
		f.again = false
	}
	f.after = retryAfter(response.Header)
	return f
}

// complaintFields are those of a complaint that is not wrapped.
type complaintFields struct {
	Type string `json:"type"`
}

// fault says what a complaint with this status means.
func (c *complaint) fault(status int) *fault {
	all := strings.ToLower(c.Type + " " + string(c.Code) + " " + c.Message)
	f := &fault{text: clip(c.Message, 500)}
	if f.text == "" {
		f.text = clip(strings.TrimSpace(c.Type+" "+http.StatusText(status)), 500)
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden,
		strings.Contains(all, "insufficient_quota"), strings.Contains(all, "credit balance is too low"):
		f.kind = loop.Denied
	case status == http.StatusTooManyRequests, status == 529, status == http.StatusServiceUnavailable:
		f.kind, f.again = loop.Busy, true
	case status == http.StatusRequestEntityTooLarge, full(all):
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

func full(text string) bool {
	for _, t := range fullTexts {
		if strings.Contains(text, t) {
			return true
		}
	}
	return false
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
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
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

// arguments returns the arguments of a call as an object. broken: they are none, and why.
func arguments(text string) (object json.RawMessage, broken string) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	if text == "" || text == "null" {
		return json.RawMessage("{}"), ""
	}
	var any json.RawMessage
	if err := json.Unmarshal([]byte(text), &any); err != nil {
		return json.RawMessage("{}"), fmt.Sprintf("the arguments are no JSON (%v): %s", err, strconv.Quote(clip(text, 200)))
	}
	if text[0] != '{' {
		return json.RawMessage("{}"), "the arguments are JSON, but no object: " + strconv.Quote(clip(text, 200))
	}
	return any, ""
}
