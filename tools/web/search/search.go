// Package search asks the search endpoint of the operator: SearXNG, Brave, Tavily, or any other by a template.
//
// The endpoint is the operator's choice, so no address is guarded; but the transport is our own: no proxy of the
// environment, no redirect to another host, the key in a header and never in a URL, limits of time and size. What comes
// back is foreign text, which the caller frames. The package knows no tools and no sessions.
package search

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"codehand/tools/keys"
)

// Kinds of endpoints.
const (
	SearXNG  = "searxng"
	Brave    = "brave"
	Tavily   = "tavily"
	Template = "template"
)

// Limits.
const (
	MaxHits     = 10 // of one Query
	MaxRequests = 8  // to the endpoint, of one Query

	maxText   = 300
	maxTitle  = 200
	maxLink   = 2000     // bytes
	maxBody   = 2 << 20  // bytes, decompressed
	maxHeader = 64 << 10 // bytes
	maxHops   = 5
	askTime   = 15 * time.Second // of one request with its body
	wholeTime = 30 * time.Second // of one Query
	dialTime  = 10 * time.Second
)

// Options are what the operator says about the endpoint.
type Options struct {
	Kind string
	URL  string      // "": the public one of Brave or Tavily. Of a Template it holds {query}, unless Body does
	Key  keys.Source // required by Brave and Tavily

	// Of a Template. Header carries the key, as `X-Api-Key: {key}`; "": `Authorization: Bearer {key}`. Body is JSON
	// with {query} in a string, and is posted; "": there is none, and the URL is fetched. The paths say where things
	// are in the answer: names and indexes of arrays with dots between them; "": results, title, url, content.
	Header, Body            string
	List, Title, Link, Text string

	UserAgent string         // "": codehand
	Roots     *x509.CertPool // nil: those of the system
	Proxy     *url.URL       // the operator's way out; nil: none
}

// An Engine asks one endpoint. It is safe for concurrent use.
type Engine struct {
	o      Options
	at     *url.URL // without what a query adds
	header headerForm
	form   form
	rounds http.RoundTripper
	close  func()
	limits limits
}

// limits are the times; tests have their own.
type limits struct{ ask, whole time.Duration }

// New checks what the operator says. Errors are for the operator, and hold no key.
func New(o Options) (*Engine, error) {
	e := &Engine{o: o, limits: limits{askTime, wholeTime}}
	if err := e.read(); err != nil {
		return nil, err
	}
	e.rounds, e.close = transport(o)
	return e, nil
}

// Kind names the kind of the endpoint as people write it.
func (e *Engine) Kind() string {
	return map[string]string{SearXNG: "SearXNG", Brave: "Brave Search", Tavily: "Tavily"}[e.o.Kind]
}

// Host is the endpoint's host name, for rules and for people.
func (e *Engine) Host() string { return e.at.Hostname() }

// Name says in a few words which endpoint answers.
func (e *Engine) Name() string {
	if kind := e.Kind(); kind != "" {
		return kind + " (" + e.Host() + ")"
	}
	return e.Host()
}

// Key says whether the key can be read now; nil: it can, or none is needed.
func (e *Engine) Key() error {
	_, err := e.o.Key.Read()
	return err
}

// A Query is what to look for.
type Query struct {
	Text string // 2 to 400 characters
	// Allowed and Blocked are hosts, each with all below it. Both nil: all hosts.
	Allowed, Blocked []Domain
	// Spend is asked before each request to the endpoint, and its error ends the search; nil: no budget.
	Spend func(context.Context) error
}

// A Hit is one result, in the endpoint's words: plain text in one line each, not cleaned.
type Hit struct {
	Title string // at most 200 characters; never empty
	URL   string // http or https, without a user
	Text  string // at most 300 characters; "": none
}

// An Error says why an endpoint gave no hits, in words for the model that hold no foreign text.
type Error struct {
	Text  string
	Cause error // for the log; holds neither the key nor the query
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func failed(cause error, format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Cause: cause}
}

// Search returns at most MaxHits hits, the best first, none twice. It makes at most MaxRequests requests, one after the
// other: for each part of Allowed, and for the next page while too few hits are left of those that came and each page
// brings new ones. An error after some hits only ends the search. Errors: *Error, that of Spend, or the cause of an
// ended ctx.
func (e *Engine) Search(ctx context.Context, q Query) ([]Hit, error) {
	key, err := e.o.Key.Read()
	if err != nil {
		return nil, failed(err, "The key of the search endpoint cannot be read. Tell the operator: `codehand doctor` "+
			"says why.")
	}
	whole, cancel := context.WithTimeoutCause(ctx, e.limits.whole, errSlow)
	defer cancel()
	defer e.close()
	var found collected
	for _, ask := range e.plan(q) {
		hits, more, err := e.once(whole, ask, key, q.Spend)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if len(found.hits) > 0 {
				break
			}
			return nil, err
		}
		fresh := found.add(hits, q)
		if len(found.hits) >= MaxHits || !(more && fresh) && len(q.Allowed) == 0 {
			break
		}
	}
	return found.best(), nil
}

// once makes one request, and says whether the endpoint may have more.
func (e *Engine) once(ctx context.Context, a ask, key string, spend func(context.Context) error) ([]Hit, bool, error) {
	if spend != nil {
		if err := spend(ctx); err != nil {
			return nil, false, err
		}
	}
	answer, err := e.answer(ctx, a, key)
	if err != nil {
		return nil, false, err
	}
	hits, raw, err := e.form.hits(answer, key)
	if err != nil {
		return nil, false, failed(err, "The search endpoint %s answered with something that holds no results. Tell "+
			"the operator.", e.Name())
	}
	return hits, raw > 0, nil
}

// errSlow is the cause of a context whose time is over.
var errSlow = errors.New("the search endpoint is too slow")
