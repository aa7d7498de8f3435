// Package wire says turns in the two formats of models' servers, Anthropic Messages and OpenAI Chat Completions, and
// puts their streamed answers together. Compatible servers differ; what they are known to do is understood.
//
// It is pure: it opens no connection, reads no clock and keeps nothing but what a server did not take.
package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"codehand/tools/agent/loop"
)

// A Format is one way to say a turn. It is safe for concurrent use.
type Format interface {
	// Body is what is sent, as JSON. MaxOutput of the turn is set.
	Body(model string, t loop.Turn) any
	Authorize(h http.Header, key string) // an empty key: none
	Assemble(t loop.Turn, say func(string)) Assembler
	// Adapt says whether requests now leave out what a refusal, in lower case, complains about.
	Adapt(text string) bool
}

// An Assembler puts one answer together. Its errors are a *Fault.
type Assembler interface {
	Event(data []byte) (done bool, err error) // data is that of one event
	Answer() (loop.Answer, error)             // after the last event
}

// NewMessages returns the format Anthropic Messages.
func NewMessages() Format { return &messages{} }

// NewChat returns the format OpenAI Chat Completions. official: of OpenAI itself, whose newer models refuse max_tokens;
// most compatible servers know nothing else.
func NewChat(official bool) Format {
	c := &chat{}
	c.newLimit.Store(official)
	return c
}

// A Fault is why one request gave no answer.
type Fault struct {
	Kind  loop.Kind
	Text  string // may repeat what was sent, also the key
	Again bool   // another try may help
}

func (f *Fault) Error() string { return f.Text }

// ended is the fault of an answer that is not whole.
func ended(why string) *Fault {
	return &Fault{Kind: loop.Broken, Text: "the answer of the model's server ended too early: " + why, Again: true}
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

// Refused is the fault of an answer with another status than 200, and this body.
func Refused(status int, data []byte) *Fault {
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
	f := c.fault(status)
	f.Text = fmt.Sprintf("HTTP %d: %s", status, f.Text)
	return f
}

// fault says what a complaint with this status means.
func (c *complaint) fault(status int) *Fault {
	all := strings.ToLower(c.Type + " " + string(c.Code) + " " + c.Message)
	f := &Fault{Text: cmp.Or(c.Message, strings.TrimSpace(c.Type+" "+http.StatusText(status)))}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden,
		strings.Contains(all, "insufficient_quota"), strings.Contains(all, "credit balance is too low"):
		f.Kind = loop.Denied
	case status == http.StatusTooManyRequests, status == 529, status == http.StatusServiceUnavailable:
		f.Kind, f.Again = loop.Busy, true
	case status == http.StatusRequestEntityTooLarge,
		slices.ContainsFunc(fullTexts, func(t string) bool { return strings.Contains(all, t) }):
		f.Kind = loop.Full
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict:
		f.Kind, f.Again = loop.Broken, true
	default:
		f.Kind = loop.Wrong
		if status/100 == 3 {
			f.Text = "the server answers with a redirect, which is not followed"
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
