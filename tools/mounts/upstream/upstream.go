package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Bounds of what a server may send.
const (
	maxMessage = 32 << 20 // bytes of one message
	maxTools   = 1_000    // tools of one server; the rest is left out
	maxPages   = 100      // pages of one list
)

// discoverTime is how long a server may take to answer the first question of the newer era. One that is older may
// ignore it.
const discoverTime = 3 * time.Second

// Options say where the server is. Either Command, Stream or URL is set.
type Options struct {
	Command Command
	// Stream opens a connection that stands for the pipes of a process; nil: Command or URL is used.
	Stream func() (io.ReadCloser, io.WriteCloser, error)

	URL    string            // http or https
	Header map[string]string // of each request; never sent to another host
	SSE    bool              // the older transport, HTTP with SSE
	Only   bool              // Streamable HTTP alone is tried
	HTTP   http.RoundTripper // nil: http.DefaultTransport

	Version string       // of codehand
	Log     *slog.Logger // nil: nothing is logged
	// Ask puts a question of the server to a person. It may be called at any time and takes as long as it takes; nil:
	// nobody answers.
	Ask     func(context.Context, Form) Reply
	Changed func() // the server says that its list of tools changed; must not block; nil: nobody is told
}

// A Conn is a connection that has shaken hands. It is safe for concurrent use.
type Conn struct {
	client *client.Client
	raw    *tap
	name   string
	end    func() // ends the process and its pipes
	piped  bool   // messages go through pipes

	progress sync.Map // of calls, func(done, total float64, note string), by token
	tokens   atomic.Int64

	lost   chan struct{}
	losing sync.Once
	why    error // written before lost is closed

	listening context.CancelFunc // ends the subscription of the newer era; nil: there is none
}

// A Definition is a tool as its server describes it. Nothing in it was cleaned.
type Definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"inputSchema,omitempty"`
	Hints       Hints           `json:"annotations"`
}

// Hints are what a server says of its tool; nil: it does not say.
type Hints struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// An Answer is the result of a call.
type Answer struct {
	Failed     bool
	Blocks     []Block
	Structured json.RawMessage // nil: none
}

// A Block is one part of a result. Kind is that of the protocol: text, image, audio, resource_link, resource.
type Block struct {
	Kind string
	Text string // of text, and of an embedded resource that is text
	MIME string
	Data []byte // of image, audio, and of an embedded resource that is no text

	URI, Name, Description string // of a link or an embedded resource
}

// A RemoteError is an error that the server answered with, in its own words.
type RemoteError struct {
	Code int // of JSON-RPC; 0: it is none
	Text string
}

func (e *RemoteError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Text) }

// ErrLost is the error of a call whose connection broke: nobody knows whether the server did it.
var ErrLost = errors.New("the connection was lost")

// ErrForgotten means that the server has forgotten this connection. It has not done the call.
var ErrForgotten = errors.New("the server has ended the session")

// ErrUnauthorized means that the server wants other credentials.
var ErrUnauthorized = errors.New("the server refuses the credentials (HTTP 401)")

// Dial starts or reaches a server and shakes hands, within ctx. The caller closes the Conn, also after it was lost.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := dial(ctx, o, false)
	if errors.Is(err, errEndedEarly) && ctx.Err() == nil {
		// Some servers of the older era end when the first thing they hear is not initialize.
		c, err = dial(ctx, o, true)
	}
	if errors.Is(err, transport.ErrLegacySSEServer) && !o.SSE && !o.Only {
		o.SSE = true
		c, err = dial(ctx, o, false)
	}
	return c, err
}

// errEndedEarly is why a server that ended before it had shaken hands may be started once more.
var errEndedEarly = errors.New("it ended before it answered")

func dial(ctx context.Context, o Options, legacy bool) (*Conn, error) {
	c := &Conn{lost: make(chan struct{}), end: func() {}}
	via, err := c.transport(ctx, o)
	if err != nil {
		return nil, err
	}
	options := []client.ClientOption{client.WithDiscoverTimeout(discoverTime),
		client.WithElicitationHandler(asked{o.Ask})}
	if legacy {
		options = append(options, client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	c.client = client.NewClient(via, options...)
	// A transport keeps its ctx for as long as it lives, so it is not that of the handshake.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	end := c.end
	c.end = func() { stop(); end() }
	defer context.AfterFunc(ctx, stop)()
	if err := c.client.Start(life); err != nil {
		c.Close()
		return nil, plainly(err)
	}
	c.client.OnNotification(func(n mcp.JSONRPCNotification) { c.notified(n, o.Changed) })
	c.client.OnConnectionLost(c.lose)
	if err := c.shakeHands(ctx, o); err != nil {
		c.Close()
		if ended := c.Err(); ended != nil && o.URL == "" && ctx.Err() == nil {
			if legacy {
				return nil, ended
			}
			return nil, fmt.Errorf("%w: %w", errEndedEarly, ended)
		}
		return nil, plainly(err)
	}
	return c, nil
}

// transport makes what messages go through.
func (c *Conn) transport(ctx context.Context, o Options) (transport.Interface, error) {
	if o.URL == "" {
		in, out, err := c.streams(ctx, o)
		if err != nil {
			return nil, err
		}
		c.raw = &tap{Interface: transport.NewIO(in, out, nil)}
		return &pipes{tap: c.raw}, nil
	}
	through := &http.Client{Transport: bounded{cmp.Or(o.HTTP, http.DefaultTransport)}, CheckRedirect: sameHost}
	if o.SSE {
		sse, err := transport.NewSSE(o.URL, transport.WithHTTPClient(through), transport.WithHeaders(o.Header),
			transport.WithSSELogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		c.raw = &tap{Interface: sse}
		return &web{tap: c.raw, sse: sse, version: sse.SetProtocolVersion}, nil
	}
	stream, err := transport.NewStreamableHTTP(o.URL, transport.WithHTTPBasicClient(through),
		transport.WithHTTPHeaders(o.Header), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	c.raw = &tap{Interface: stream}
	return &web{tap: c.raw, version: stream.SetProtocolVersion}, nil
}

// sameHost keeps headers, which may hold a key, from another host.
func sameHost(next *http.Request, before []*http.Request) error {
	if first := before[0].URL; next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("it redirects to another host, %s", next.URL.Host)
	}
	if len(before) >= 5 {
		return errors.New("it redirects without end")
	}
	return nil
}

func (c *Conn) shakeHands(ctx context.Context, o Options) error {
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "codehand", Version: cmp.Or(o.Version, "devel")}
	met, err := within(ctx, c, func(ctx context.Context) (*mcp.InitializeResult, error) {
		return c.client.Initialize(ctx, hello)
	})
	if err != nil {
		return err
	}
	c.name = met.ServerInfo.Name
	if met.Capabilities.Tools != nil && met.Capabilities.Tools.ListChanged && o.Changed != nil &&
		mcp.IsModernProtocol(c.client.ProtocolVersion()) {
		c.subscribe(ctx)
	}
	return nil
}

// subscribe asks a server of the newer era to tell when its list of tools changes. One that does not costs nothing.
func (c *Conn) subscribe(ctx context.Context) {
	ctx, c.listening = context.WithCancel(context.WithoutCancel(ctx))
	go func() { _ = c.client.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}) }()
}

// Lost is closed when the connection can be used no more.
func (c *Conn) Lost() <-chan struct{} { return c.lost }

// Err says why the connection was lost; nil: it was not.
func (c *Conn) Err() error {
	select {
	case <-c.lost:
		return c.why
	default:
		return nil
	}
}

func (c *Conn) lose(why error) {
	c.losing.Do(func() {
		c.why = why
		close(c.lost)
	})
}

// Close ends the connection, and the process with all that it started.
func (c *Conn) Close() {
	c.lose(errClosed)
	if c.listening != nil {
		c.listening()
	}
	if c.client != nil {
		go func() { _ = c.client.Close() }() // it may wait for a server that does not answer; the end does not
	}
	c.end()
}

var errClosed = errors.New("the connection was closed")

// Tools asks for the list of tools. left is how many were left out: they could not be read, run as tasks only, or were
// too many.
func (c *Conn) Tools(ctx context.Context) (all []Definition, left int, err error) {
	c.raw.listing.Lock()
	defer c.raw.listing.Unlock()
	var page mcp.ListToolsRequest
	for range maxPages {
		got := new(list)
		c.raw.list.Store(got)
		next, err := within(ctx, c, func(ctx context.Context) (mcp.Cursor, error) {
			r, err := c.client.ListToolsByPage(ctx, page)
			if err != nil {
				return "", err
			}
			return r.NextCursor, nil
		})
		if err != nil {
			return nil, 0, plainly(err)
		}
		left += got.bad
		for _, d := range got.tools {
			if len(all) == maxTools {
				left++
				continue
			}
			all = append(all, d)
		}
		if next == "" || next == page.Params.Cursor || len(all) == maxTools {
			return all, left, nil
		}
		page.Params.Cursor = next
	}
	return all, left, nil
}

// Call calls a tool. note is told how far it is, and must not block; nil: it is not. When ctx ends, the server is told
// to stop; a server over pipes that does not read what is written may hold Call up for 30 s. Errors: a *RemoteError,
// ErrLost, ErrForgotten, ErrUnauthorized, or that of ctx.
func (c *Conn) Call(ctx context.Context, name string, arguments json.RawMessage,
	note func(done, total float64, note string)) (Answer, error) {
	if err := c.Err(); err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrLost, err)
	}
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = name, arguments
	token := fmt.Sprintf("p%d", c.tokens.Add(1))
	r.Params.Meta = &mcp.Meta{ProgressToken: token}
	if note != nil {
		c.progress.Store(token, note)
		defer c.progress.Delete(token)
	}
	got := new(result)
	c.raw.calls.Store(token, got)
	defer c.raw.calls.Delete(token)
	call := func(ctx context.Context) (struct{}, error) {
		_, err := c.client.CallTool(ctx, r)
		return struct{}{}, err
	}
	var err error
	if c.piped { // its end ends the call, and a write that waits has its own time
		_, err = recovered(ctx, call)
	} else {
		_, err = within(ctx, c, call)
	}
	if err != nil {
		return Answer{}, c.callError(ctx, err)
	}
	return got.answer(), nil
}

// recovered does something with the library, which may meet what it does not expect.
func recovered[T any](ctx context.Context, do func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do(ctx)
}

func (c *Conn) callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, unreached := errors.AsType[*net.OpError](err)
	err = plainly(err)
	if _, remote := errors.AsType[*RemoteError](err); remote || errors.Is(err, ErrForgotten) ||
		errors.Is(err, ErrUnauthorized) {
		return err
	}
	if why := c.Err(); why != nil {
		return fmt.Errorf("%w: %w", ErrLost, why)
	}
	if unreached || c.piped {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return &RemoteError{Text: err.Error()} // an answer that is no answer, such as HTTP 500
}

// within does what may wait for a server that neither reads nor answers, and ends with ctx or the connection whatever
// becomes of it.
func within[T any](ctx context.Context, c *Conn, do func(context.Context) (T, error)) (T, error) {
	type done struct {
		value T
		err   error
	}
	over := make(chan done, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		value, err := recovered(ctx, do)
		over <- done{value, err}
	}()
	var none T
	select {
	case d := <-over:
		return d.value, d.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-c.lost:
		select {
		case d := <-over: // an answer that came before the end counts
			if d.err == nil {
				return d.value, nil
			}
		case <-time.After(lastWords):
		}
		return none, c.why
	}
}

// lastWords is how long an answer that arrived just before the end may take to be read.
const lastWords = 50 * time.Millisecond

// notified hands on what the server says between answers.
func (c *Conn) notified(n mcp.JSONRPCNotification, changed func()) {
	switch n.Method {
	case string(mcp.MethodNotificationToolsListChanged):
		if changed != nil {
			changed()
		}
	case "notifications/progress":
		fields := n.Params.AdditionalFields
		token, _ := fields["progressToken"].(string)
		note, ok := c.progress.Load(token)
		if !ok {
			return
		}
		done, _ := fields["progress"].(float64)
		total, _ := fields["total"].(float64)
		text, _ := fields["message"].(string)
		note.(func(done, total float64, note string))(done, total, text)
	}
}

// plainly makes an error of the library one of ours.
func plainly(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrSessionTerminated):
		return ErrForgotten
	case errors.Is(err, transport.ErrLegacySSEServer):
		return err
	case errors.Is(err, ErrUnauthorized): // of a Grant
		if at, ok := errors.AsType[*url.Error](err); ok {
			return at.Err
		}
		return ErrUnauthorized
	}
	if _, ok := errors.AsType[*transport.AuthorizationRequiredError](err); ok {
		return ErrUnauthorized
	}
	if r, ok := errors.AsType[*remote](err); ok {
		return &RemoteError{Code: r.code, Text: r.text}
	}
	if inner, ok := errors.AsType[*transport.Error](err); ok && inner.Err != nil {
		err = inner.Err
	}
	return errors.New(strings.TrimPrefix(err.Error(), "transport error: "))
}
