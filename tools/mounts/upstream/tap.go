package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A tap sees results as they arrive. The types of the library keep of a schema only what they know, and refuse a whole
// list or result for one part that they cannot read; the tap reads them itself, and hands on what is harmless.
type tap struct {
	transport.Interface

	listing   sync.Mutex                   // held while a list is asked for
	list      atomic.Pointer[list]         // where its page goes
	resources atomic.Pointer[resourceList] // likewise, of resources
	calls     sync.Map                     // a reader of the answer of each call, by its progress token
}

// A reader takes what it needs from an answer, and returns what the library may read of it.
type reader interface {
	read(response *transport.JSONRPCResponse) (*transport.JSONRPCResponse, error)
}

// A remote is an error of the server, kept apart from errors on the way.
type remote struct {
	code int
	text string
}

func (r *remote) Error() string { return fmt.Sprintf("error %d: %s", r.code, r.text) }

// SendRequest is that of the library.
func (t *tap) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := t.Interface.SendRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, errors.New("there was no answer")
	}
	var to reader
	switch mcp.MCPMethod(r.Method) {
	case mcp.MethodToolsList:
		if listed := t.list.Load(); listed != nil {
			to = listed
		}
	case mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList:
		if listed := t.resources.Load(); listed != nil {
			to = listed
		}
	case mcp.MethodToolsCall, mcp.MethodResourcesRead:
		if called, ok := t.calls.Load(tokenOf(r.Params)); ok {
			to = called.(reader)
		}
	case mcp.MethodServerDiscover:
		return response, onlyLegacy(response)
	default:
		return response, nil
	}
	switch {
	case response.Error != nil:
		return nil, &remote{response.Error.Code, response.Error.Message}
	case to == nil:
		return nil, errUnreadable
	}
	return to.read(response)
}

// onlyLegacy is the error for a server that answers in the newer era that it speaks the older one alone, as those of
// the official Go SDK do over HTTP; nil: it does not say so. The library takes every such answer for the newer era, and
// goes back to the older one after an error.
func onlyLegacy(response *transport.JSONRPCResponse) error {
	var met struct {
		Versions []string `json:"supportedVersions"`
	}
	if response.Error != nil {
		return nil // the library reads it
	}
	if err := json.Unmarshal(response.Result, &met); err != nil {
		return fmt.Errorf("its answer cannot be read: %w", err)
	}
	if len(met.Versions) == 0 || slices.ContainsFunc(met.Versions, mcp.IsModernProtocol) {
		return nil
	}
	return errors.New("it speaks only older versions of the protocol")
}

// tokenOf is the progress token of a call, in the form of either era.
func tokenOf(params any) string {
	switch p := params.(type) {
	case mcp.CallToolParams:
		return metaToken(p.Meta)
	case mcp.ReadResourceParams:
		return metaToken(p.Meta)
	case map[string]json.RawMessage:
		var meta struct {
			Token string `json:"progressToken"`
		}
		if json.Unmarshal(p["_meta"], &meta) == nil {
			return meta.Token
		}
	}
	return ""
}

func metaToken(m *mcp.Meta) string {
	if m == nil {
		return ""
	}
	token, _ := m.ProgressToken.(string)
	return token
}

// pipes is a tap of a transport over pipes: the server may ask, and is told when a call is cancelled.
type pipes struct{ *tap }

// SetRequestHandler is that of the library.
func (p *pipes) SetRequestHandler(h transport.RequestHandler) {
	p.Interface.(transport.BidirectionalInterface).SetRequestHandler(h)
}

// web is a tap of a transport over HTTP.
type web struct {
	*tap
	sse     *transport.SSE // nil: Streamable HTTP
	version func(string)
}

// SetProtocolVersion is that of the library.
func (w *web) SetProtocolVersion(version string) { w.version(version) }

// SetRequestHandler is that of the library.
func (w *web) SetRequestHandler(h transport.RequestHandler) {
	if b, ok := w.Interface.(transport.BidirectionalInterface); ok {
		b.SetRequestHandler(h)
	}
}

// SetConnectionLostHandler is that of the library.
func (w *web) SetConnectionLostHandler(h func(error)) {
	if w.sse != nil {
		w.sse.SetConnectionLostHandler(h)
	}
}

// RequiresLegacyProtocol says that the older transport has the older era alone.
func (w *web) RequiresLegacyProtocol() bool { return w.sse != nil }

// A list is one page of tools.
type list struct {
	tools []Definition
	bad   int // how many could not be read, or run as tasks only, which we do not ask for
}

// read reads the page, and leaves in the response what the library makes headers of.
func (l *list) read(response *transport.JSONRPCResponse) (*transport.JSONRPCResponse, error) {
	var page struct {
		Tools  []json.RawMessage `json:"tools"`
		Cursor json.RawMessage   `json:"nextCursor,omitempty"`
	}
	if err := json.Unmarshal(response.Result, &page); err != nil {
		return nil, errors.New("its list of tools cannot be read")
	}
	known := []json.RawMessage{}
	for _, raw := range page.Tools {
		var d struct {
			Definition
			Execution struct {
				TaskSupport mcp.TaskSupport `json:"taskSupport"`
			} `json:"execution"`
		}
		if json.Unmarshal(raw, &d) != nil || d.Name == "" || d.Execution.TaskSupport == mcp.TaskSupportRequired {
			l.bad++
			continue
		}
		l.tools = append(l.tools, d.Definition)
		var own mcp.Tool
		if json.Unmarshal(raw, &own) == nil {
			known = append(known, raw)
		}
	}
	var err error
	page.Tools = known
	clean := *response
	clean.Result, err = json.Marshal(page)
	return &clean, err
}

// A result is that of a call, as it arrived.
type result struct {
	Type       string            `json:"resultType"` // of the newer era
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	Failed     bool              `json:"isError"`
}

// read reads the result, and leaves nothing of it in the response but that the server wants an answer first.
func (r *result) read(response *transport.JSONRPCResponse) (*transport.JSONRPCResponse, error) {
	*r = result{}
	if err := json.Unmarshal(response.Result, r); err != nil {
		// It may ask, with what is no result.
		if asks, bad := wantsInput(response); asks || bad != nil {
			return response, bad
		}
		return nil, errUnreadable
	}
	if r.Type == string(mcp.ResultTypeInputRequired) {
		return response, nil
	}
	clean := *response
	clean.Result = json.RawMessage(`{"content":[]}`)
	return &clean, nil
}

// wantsInput says whether an answer is a question of the newer era, which the library puts.
func wantsInput(response *transport.JSONRPCResponse) (bool, error) {
	var kind struct {
		Type string `json:"resultType"`
	}
	if err := json.Unmarshal(response.Result, &kind); err != nil {
		return false, errUnreadable
	}
	return kind.Type == string(mcp.ResultTypeInputRequired), nil
}

var errUnreadable = errors.New("its answer cannot be read")

// answer takes the blocks apart. One that cannot be read says so.
func (r *result) answer() Answer {
	a := Answer{Failed: r.Failed}
	if s := string(r.Structured); s != "" && s != "null" {
		a.Structured = r.Structured
	}
	for _, raw := range r.Content {
		a.Blocks = append(a.Blocks, readBlock(raw))
	}
	return a
}

func readBlock(raw json.RawMessage) Block {
	var b struct {
		Type, Text, Data, URI, Name, Title, Description string
		MIME                                            string `json:"mimeType"`
		Resource                                        struct {
			URI, Text, Blob string
			MIME            string `json:"mimeType"`
		}
	}
	if json.Unmarshal(raw, &b) != nil {
		return Block{Kind: "unreadable"}
	}
	block := Block{Kind: b.Type, Text: b.Text, MIME: b.MIME, URI: b.URI, Name: b.Name, Description: b.Description}
	data := b.Data
	if b.Type == "resource" {
		block.URI, block.Text, block.MIME, data = b.Resource.URI, b.Resource.Text, b.Resource.MIME, b.Resource.Blob
	}
	if data != "" {
		var err error
		if block.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
			return Block{Kind: "unreadable"}
		}
	}
	return block
}

// bounded bounds what a server sends over HTTP.
type bounded struct{ http.RoundTripper }

// RoundTrip is that of the transport below.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{limited(resp.Body, true), resp.Body}
	}
	return resp, err
}

// A lineLimit ends a stream in which a message is too long: one ends with its line, or, where blocks is set as in a
// stream of events, with an empty line.
type lineLimit struct {
	io.Reader
	most   int
	blocks bool

	at   int  // bytes of the message so far
	line bool // the line so far is not empty
}

// limited is a stream in which each message is bounded.
func limited(r io.Reader, blocks bool) io.Reader {
	return &lineLimit{Reader: r, most: maxMessage, blocks: blocks}
}

var errTooLong = fmt.Errorf("a message has more than %d bytes", maxMessage)

func (l *lineLimit) Read(b []byte) (int, error) {
	if l.at > l.most {
		return 0, errTooLong
	}
	n, err := l.Reader.Read(b)
	for _, c := range b[:n] {
		switch {
		case c == '\n' && (!l.blocks || !l.line):
			l.at, l.line = 0, false
			continue
		case c == '\n':
			l.line = false
		case c != '\r':
			l.line = true
		}
		if l.at++; l.at > l.most {
			return 0, errTooLong
		}
	}
	return n, err
}
