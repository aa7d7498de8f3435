package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/powernap/pkg/lsp/protocol"
	"github.com/sourcegraph/jsonrpc2"
)

const (
	startTime   = 60 * time.Second // that a server may take to shake hands
	requestTime = 30 * time.Second // that a server may take to answer
	goodbyeTime = time.Second      // that it may take to end by itself
	retryTime   = 200 * time.Millisecond
	maxReplies  = 64 // answers to requests of the server that wait to be written
	maxHung     = 2  // requests in a row without an answer in time, after which a server is ended
)

// A Client is a server that has shaken hands. It is safe for concurrent use.
type Client struct {
	server Server
	root   string
	conn   *jsonrpc2.Conn
	proc   Process
	log    *slog.Logger
	able   abilities

	turn    chan struct{} // held while documents are changed, and until a request about them has gone out
	docs    *documents    // covered by turn
	reports reports
	replies chan struct{} // one for each answer that is being written
	pulls   atomic.Bool   // the server registered for diagnostics that are asked for
	project project
	hung    atomic.Int32
	checks  atomic.Int32 // that are under way
	id      atomic.Uint64

	applying sync.Mutex // held while a command runs whose edits are wanted
	applied  atomic.Pointer[applied]

	why atomic.Pointer[string] // why the connection was given up; nil: it was not, or the process has ended
}

// abilities are what the server says that it can do, as far as it matters here.
type abilities struct {
	Diagnostics json.RawMessage `json:"diagnosticProvider"`
	Commands    struct {
		Commands []string `json:"commands"`
	} `json:"executeCommandProvider"`
	Sync json.RawMessage `json:"textDocumentSync"`
}

// stream joins what is read through a buffer with what is written.
type stream struct {
	Process
	in *bufio.Reader
	c  *Client
}

// ReadObject reads the next message.
func (s *stream) ReadObject(v any) error {
	err := framing{}.ReadObject(s.in, v)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) {
		s.c.giveUp("what it sent cannot be read: " + err.Error())
	}
	return err
}

// WriteObject writes a message.
func (s *stream) WriteObject(v any) error { return framing{}.WriteObject(s.Process, v) }

// Close does nothing: the end of the process is that of the Client.
func (s *stream) Close() error { return nil }

// connect shakes hands with a server. The Client owns p, also after an error, when it has ended it.
func connect(ctx context.Context, server Server, root string, p Process, log *slog.Logger) (*Client, error) {
	c := &Client{server: server, root: root, proc: p, log: log, turn: make(chan struct{}, 1),
		replies: make(chan struct{}, maxReplies)}
	c.reports.all = map[string]*report{}
	c.docs = newDocuments(c)
	c.conn = jsonrpc2.NewConn(context.WithoutCancel(ctx), &stream{p, bufio.NewReaderSize(p, 64<<10), c}, handler{c},
		jsonrpc2.SetLogger(silent{}))
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	c.docs.look(ctx) // what changes from now on is told
	if err := c.shakeHands(ctx); err != nil {
		if c.gone() || errors.Is(err, jsonrpc2.ErrClosed) { // it may be closing
			err = errors.New(c.Why())
		} else if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it did not shake hands within %v", startTime)
		}
		c.end()
		return nil, err
	}
	return c, nil
}

func (c *Client) shakeHands(ctx context.Context) error {
	uri := protocol.URIFromPath(c.root)
	params := map[string]any{
		"processId": nil, // it lives in namespaces of its own, and would take this process for dead
		"clientInfo": map[string]string{
			"name": "codehand",
		},
		"rootUri": uri, "rootPath": c.root,
		"workspaceFolders": []any{map[string]any{"uri": uri, "name": filepath.Base(c.root)}},
		"capabilities":     json.RawMessage(capabilities),
	}
	if c.server.Init != nil {
		params["initializationOptions"] = c.server.Init
	}
	var met struct {
		Capabilities abilities             `json:"capabilities"`
		Server       struct{ Name string } `json:"serverInfo"`
	}
	if err := c.conn.Call(ctx, "initialize", params, &met); err != nil {
		return err
	}
	c.able = met.Capabilities
	if met.Server.Name == "rust-analyzer" {
		c.project.says(false) // it tells when it has read it, and until then it answers that there is nothing
	}
	return c.conn.Notify(ctx, "initialized", struct{}{})
}

// capabilities are what this client can do. Positions are in UTF-16 units, which every server has.
const capabilities = `{
	"general":{"positionEncodings":["utf-16"]},
	"window":{"workDoneProgress":false},
	"workspace":{"configuration":true,"workspaceFolders":true,"applyEdit":true,
		"didChangeWatchedFiles":{"dynamicRegistration":true,"relativePatternSupport":true},
		"workspaceEdit":{"documentChanges":true},"symbol":{},"executeCommand":{}},
	"textDocument":{
		"synchronization":{"didSave":true},
		"hover":{"contentFormat":["markdown","plaintext"]},
		"definition":{"linkSupport":true},"implementation":{"linkSupport":true},"references":{},
		"documentSymbol":{"hierarchicalDocumentSymbolSupport":true},
		"callHierarchy":{},"rename":{},
		"codeAction":{"codeActionLiteralSupport":{"codeActionKind":{"valueSet":
			["source","source.organizeImports"]}},"dataSupport":true,"resolveSupport":{"properties":["edit"]}},
		"publishDiagnostics":{"versionSupport":true},
		"diagnostic":{"dynamicRegistration":true,"relatedDocumentSupport":false}
	},
	"experimental":{"serverStatusNotification":true}
}`

// gone says whether the connection has ended.
func (c *Client) gone() bool {
	select {
	case <-c.conn.DisconnectNotify():
		return true
	default:
		return false
	}
}

// alive says whether the server can be asked.
func (c *Client) alive() bool { return !c.gone() }

// giveUp remembers why the connection is closed. The first reason counts.
func (c *Client) giveUp(why string) { c.why.CompareAndSwap(nil, &why) }

// Why says why the connection ended.
func (c *Client) Why() string {
	if why := c.why.Load(); why != nil {
		return *why
	}
	return c.proc.Why()
}

// Name is that of the server.
func (c *Client) Name() string { return c.server.Name }

// Root is the directory that the server works in.
func (c *Client) Root() string { return c.root }

// end says goodbye to the server, and ends its process with all that it started.
func (c *Client) end() {
	if !c.gone() {
		ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
		go func() { // writing may wait for a server that does not read
			if c.conn.Call(ctx, "shutdown", nil, nil) == nil {
				_ = c.conn.Notify(ctx, "exit", nil)
			}
			cancel()
		}()
		<-ctx.Done()
	}
	_ = c.proc.Close()
	_ = c.conn.Close() // it may have ended by itself
}

// take waits until the server has read the project, and for the turn to change documents.
func (c *Client) take(ctx context.Context) error {
	select {
	case <-c.project.read():
	case <-c.conn.DisconnectNotify():
		return ErrLost
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), ErrTime) {
			return ErrReading
		}
		return context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) leave() { <-c.turn }

// A RequestError is what a server said instead of an answer.
type RequestError struct {
	Code int64 // of JSON-RPC
	Text string
}

func (e *RequestError) Error() string { return e.Text }

// ErrTime is the error of a request that was not answered in time.
var ErrTime = errors.New("the language server did not answer in time")

// ErrReading is the error of a request that was not sent, because the server still reads the project.
var ErrReading = errors.New("the language server still reads the project")

// Codes of servers that want the request once more.
const (
	contentModified = -32801
	serverCancelled = -32802
)

// send sends a request. The caller holds the turn if the order of documents and request matters. wait waits for the
// answer.
func (c *Client) send(ctx context.Context, method string, params any) (wait func(result any) error, err error) {
	id := jsonrpc2.ID{Num: c.id.Add(1)}
	call, err := c.conn.DispatchCall(ctx, method, params, jsonrpc2.PickID(id))
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	return func(result any) error {
		err := call.Wait(ctx, result)
		if err == nil {
			c.hung.Store(0)
			return nil
		}
		if ctx.Err() != nil {
			go func() { _ = c.conn.Notify(context.WithoutCancel(ctx), "$/cancelRequest", map[string]any{"id": id}) }()
		}
		return c.failure(ctx, err)
	}, nil
}

// failure is an error in the words of this package. A server that is silent again and again is ended.
func (c *Client) failure(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		c.hung.Store(0)
		return &RequestError{e.Code, e.Message}
	}
	switch {
	case errors.Is(err, ErrTime) || errors.Is(err, ErrReading): // it was counted, or is no reason to count
		return err
	case c.gone() || errors.Is(err, jsonrpc2.ErrClosed): // it may be closing
		return ErrLost
	case errors.Is(context.Cause(ctx), ErrTime):
		if c.hung.Add(1) >= maxHung {
			c.giveUp("it did not answer again and again")
			_ = c.conn.Close() // which the Pool sees
		}
		return ErrTime
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// call asks once more while the server says that a document changed meanwhile.
func (c *Client) call(ctx context.Context, method string, params, result any) error {
	for {
		wait, err := c.send(ctx, method, params)
		if err == nil {
			err = wait(result)
		}
		e, ok := errors.AsType[*RequestError](err)
		if !ok || e.Code != contentModified && e.Code != serverCancelled {
			return err
		}
		if !pause(ctx) {
			return c.failure(ctx, ctx.Err())
		}
	}
}

// pause waits before a request is repeated. It returns false if ctx ends.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryTime):
		return true
	}
}

// limited is ctx with the time of one request.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, requestTime, ErrTime)
}

// silent drops what the library logs.
type silent struct{}

// Printf drops it.
func (silent) Printf(string, ...any) {}

// handler hears what the server says by itself. It never waits.
type handler struct{ c *Client }

// Handle handles one message. The library calls it in order, and reads no further meanwhile.
func (h handler) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Notif {
		switch {
		case r.Params == nil:
		case r.Method == "textDocument/publishDiagnostics":
			h.c.reports.published(*r.Params)
		case r.Method == "experimental/serverStatus":
			if message, news := h.c.project.told(*r.Params); news {
				h.c.log.Info("a language server says", "server", h.c.server.Name, "message", message)
			}
		}
		return
	}
	var params json.RawMessage
	if r.Params != nil {
		params = *r.Params
	}
	result, known := h.answer(r.Method, params)
	select {
	case h.c.replies <- struct{}{}:
	default:
		h.c.giveUp("it asked more than it read answers")
		go func() { _ = h.c.conn.Close() }()
		return
	}
	go func() { // a server that writes and does not read would wait for us, and we for it
		defer func() { <-h.c.replies }()
		if known {
			_ = h.c.conn.Reply(context.Background(), r.ID, result) // else the connection is lost
			return
		}
		_ = h.c.conn.ReplyWithError(context.Background(), r.ID,
			&jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "there is no such method"})
	}()
}

// answer is what the server gets for a request.
func (h handler) answer(method string, params json.RawMessage) (result any, known bool) {
	switch method {
	case "workspace/configuration":
		var asked struct {
			Items []struct{ Section string } `json:"items"`
		}
		_ = json.Unmarshal(params, &asked) // what cannot be read asks for nothing
		all := make([]json.RawMessage, len(asked.Items))
		for i, item := range asked.Items {
			if all[i] = h.c.server.Settings[item.Section]; all[i] == nil {
				all[i] = json.RawMessage("null")
			}
		}
		return all, true
	case "client/registerCapability":
		var asked struct {
			Registrations []struct{ Method string } `json:"registrations"`
		}
		_ = json.Unmarshal(params, &asked)
		for _, r := range asked.Registrations {
			if r.Method == "textDocument/diagnostic" {
				h.c.pulls.Store(true)
			}
		}
		return nil, true
	case "workspace/workspaceFolders":
		uri := protocol.URIFromPath(h.c.root)
		return []any{map[string]any{"uri": uri, "name": filepath.Base(h.c.root)}}, true
	case "workspace/applyEdit":
		return map[string]bool{"applied": h.c.applied.Load().take(params)}, true
	case "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest",
		"workspace/diagnostic/refresh", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh",
		"workspace/codeLens/refresh", "workspace/inlineValue/refresh", "workspace/foldingRange/refresh":
		return nil, true
	}
	return nil, false
}

// pathOf is the path that a URI names; "": it names no file.
func pathOf(uri protocol.DocumentURI) string {
	path, err := uri.Path()
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return filepath.Clean(path)
}

// uriOf names a file.
func uriOf(path string) protocol.DocumentURI { return protocol.URIFromPath(path) }
