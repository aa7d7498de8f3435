// Package web fetches pages of the web for a model, as text.
//
// A Client asks for one page at a time, without anything that belongs to this machine: no proxy of the environment, no
// cookies, no credentials, no client certificate. The guard checks the address of every connection after the look-up,
// on every hop. Redirects to the same host are followed, those to another host are handed back, so that rules see the
// new host. Time, headers and the decompressed body have limits.
//
// The package knows no tools and no sessions, and writes no file.
package web

import (
	"context"
	"crypto/x509"
	"net"
	"net/url"
	"syscall"
	"time"

	"codehand/tools/web/guard"
)

// Limits that are the same for everybody.
const (
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of the headers of one answer
	perHost      = 4        // requests at once
)

// A Code says what kind of failure an Error is. The values are those that a model reads (tools.md 27).
type Code string

// The codes.
const (
	Invalid  Code = "URL_INVALID"  // no request was made
	Blocked  Code = "URL_BLOCKED"  // the host or its address may not be reached
	Status   Code = "HTTP_ERROR"   // the server answered with 4xx or 5xx
	Timeout  Code = "TIMEOUT"      // the total time is over
	Failed   Code = "FETCH_FAILED" // look-up, connection, certificate, a broken answer
	TooLarge Code = "TOO_LARGE"    // the body, decompressed, is larger than Caps.Body
	Limited  Code = "RATE_LIMITED" // the host said earlier how long to wait, and that time is not over
)

// An Error says why there is no page. The error of a context that the caller ended is none: Fetch returns its cause.
type Error struct {
	Code   Code
	Text   string        // what is wrong, one line, for the model; foreign text is not in it
	Status int           // of Status; else 0
	Body   string        // of Status: at most 500 characters of the answer, foreign text
	Wait   time.Duration // how long the host wants us to wait; 0: it did not say
	Cause  error         // for the log
}

// Error returns the code and the text.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Caps bound one Fetch. A zero field is the default.
type Caps struct {
	Time    time.Duration // of everything, with redirects and the body; 30 s
	Connect time.Duration // look-up, connection and TLS handshake, each; 10 s
	Body    int64         // bytes after decompression; 10 MiB
	Cache   int64         // bytes of pages that are remembered; 50 MiB; negative: nothing is remembered
	Life    time.Duration // how long a page is remembered; 15 min
}

// Check is asked about each address, as net.Dialer.Control.
type Check func(network, address string, c syscall.RawConn) error

// Options are the settings of a Client. The zero value reaches public addresses only.
type Options struct {
	Guard *guard.Guard // nil: guard.New(guard.Options{})
	Ports []uint16     // that a URL may name besides 80 and 443; the Guard must open them, too
	Caps  Caps

	UserAgent string         // "": codehand
	NoUpgrade bool           // ask for http URLs as they are, instead of by https first
	Roots     *x509.CertPool // nil: those of the system
	// Proxy is the operator's way out; nil: none. It is dialed without a check, and it must check addresses itself:
	// the Guard sees only names then, and URLs with a literal address are refused.
	Proxy *url.URL

	// For tests. Resolver looks names up; nil: the system's. Dial makes a connection to an address whose every address
	// check has accepted; nil: a net.Dialer with Resolver and check as its Control. Now is the clock; nil: time.Now.
	Resolver *net.Resolver
	Dial     func(ctx context.Context, network, address string, check Check) (net.Conn, error)
	Now      func() time.Time
}

// A Request is a page to fetch.
type Request struct {
	URL string
	// Principal is whose cache may answer; "": none, and the page is not remembered.
	Principal string
	// Follow says whether a redirect to the same host with or without www. may be followed; host is as guard.Host
	// returns it. nil: only redirects to the very same host are.
	Follow func(host string) bool
	// Raw wants the bytes as the server has them: Page.Body has them whatever they are, and there is no text. Such a
	// page is neither remembered nor taken from what is.
	Raw bool
}

// A Page is what a server answered. It is shared: the caller changes nothing of it.
type Page struct {
	URL    string // of the answer, after upgrade and redirects
	Asked  string // in its one form, as it was asked for
	Status int    // 2xx; of a Redirect 3xx
	Type   string // media type in lower case without parameters, as the server said or else as the bytes look
	Form   string // what Text is: markdown, text, json, xml; "": there is no text, see Body
	Text   string // valid UTF-8 with LF, not cleaned
	Note   string // what is missing in Text, one line; "": nothing
	Body   []byte // of everything that is no text: images, PDF files, archives
	Name   string // file name that the last part of the URL's path suggests; "": none
	Cached bool   // it was not fetched now

	// Redirect is the absolute URL on another host to which the server sends; "": it sends nowhere. There is no text.
	Redirect string
}

// A Client fetches pages. It is safe for concurrent use. At most four requests to one host are made at once, and who
// comes next waits.
type Client struct {
	client
}

// New returns a Client for o. Call Close when it is no longer needed.
func New(o Options) *Client { return newClient(o) }

// Fetch returns the page, from the network or from what it remembers. It ends within a second after ctx, and then
// nothing of it runs on. Errors: *Error, or the cause of an ended ctx.
func (c *Client) Fetch(ctx context.Context, r Request) (Page, error) { return c.fetch(ctx, r) }
