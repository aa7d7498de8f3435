// Package request is what transports and the server share: one request as it arrived, the client at its other end, and
// the answer.
//
// A transport makes a Request, implements its Peer, and writes the Answer. It gets the server as one function, Serve. A
// Request never changes; the server keeps what changes meanwhile in a value of its own, its turn.
package request

import (
	"context"
	"encoding/json"

	"codehand/server/auth/limits"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/agent"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// A Request is one request of a client. It does not change.
type Request struct {
	jsonrpc.Envelope
	Message []byte // the whole message, of which Envelope is a part
	Client  Client
	Tenant  *tenants.Tenant
	Session session.Key // the session that it belongs to
	// Shelf is the session whose tools, found by tool_search, tools/list shows to this client. A legacy connection has
	// one list, even if single requests name another session. Zero for modern clients.
	Shelf  session.Key
	Caller Caller
	Peer   Peer
	// Relayed names the request where another node sent it here, which may send it again, to whoever serves its
	// principal then; "": none did.
	Relayed string
	Child   *Child // of a call that a sub-agent makes; nil: it comes from a client
}

// A Child is what the server knows of the sub-agent that makes a call.
type Child struct {
	ID, Type string // of the sub-agent
	Depth    int    // below the client: 1 or more
	// Mode is the mode that holds for its calls now, whatever else would; it is never wider than that of its parent.
	Mode  func(ctx context.Context) permission.Mode
	Forms session.Forms // of the client of its parent
	// Searches are those of its parent's session, whose budget it uses.
	Searches session.Cell[int]
	Limits   []session.Cell[session.Limit] // what persons set for the sessions above
	Apart    agent.Apart                   // the work tree to which it is narrowed; zero: to none
}

// A Client is what is known of the program that sent a request.
type Client struct {
	sessions.ClientRecord // what it said when it initialized; of modern clients, with each request
	// Modern: the body or, over HTTP, the Mcp-Protocol-Version header names protocol 2026-07-28 or later.
	Modern  bool
	Muted   bool                 // no question to the user can be sent during this request
	Roots   *tenants.ClientRoots // narrowed by the client's roots/list; nil: the client is never asked
	Prompts *sessions.PromptMark // the prompts that the connection was last shown; nil: the session's mark counts
}

// A Caller says on whose behalf a request came and over which transport.
type Caller struct {
	Limits *limits.Limiter // of the principal; nil: none
	From   pipeline.From
}

// A Peer is the other end of one request, as its transport knows it. It is safe for concurrent use.
type Peer interface {
	// Notify sends a notification that reaches the client before the answer; params nil: it has none. Progress may be
	// dropped for a client that does not read. After an error the client has not got the notification, or not all of
	// it.
	Notify(method string, params any) error
	// Call sends a request of the server, and waits for its result until ctx ends. A nil result without an error: the
	// client answered with an error, left, or did not answer in time. jsonrpc.ErrNoCalls: this request has no way to
	// ask.
	Call(ctx context.Context, method string, params any) (json.RawMessage, error)
	// Gone is closed when the client has left and no longer reads the answer.
	Gone() <-chan struct{}
}

// Left reports whether the client of a request has left.
func Left(p Peer) bool {
	select {
	case <-p.Gone():
		return true
	default:
		return false
	}
}

// A Work does what a Request asks for, once. ctx ends when the request is cancelled.
type Work func(ctx context.Context) Answer

// Serve accepts a request: it gets the session and queues the call, which is fast. A transport calls Serve in the order
// in which requests arrived, and then calls work exactly once. changes reports that the request may change something;
// the transport may let such a request finish after its client has left.
type Serve func(Request) (work Work, changes bool)

// An Answer is a result, an error, or a question: a result that asks the client for input.
type Answer struct {
	Result json.RawMessage // nil: Err says why
	Err    *jsonrpc.Error

	// Failed is the code of an error, or "tool_error"; "": none. It is for the metrics, as Tool is.
	Failed string
	Tool   string // the tool that was called, also through a dispatcher; "": none

	// Client is what an initialize that succeeded said of its client; else nil.
	Client *sessions.ClientRecord
	// Interrupted says that a call was cancelled before it was done.
	Interrupted bool
	// Sent is called by WasSent; nil: WasSent does nothing.
	Sent func()
}

// WasSent says that the answer is written, or never will be. A transport calls it once for each answer of a Work.
func (a Answer) WasSent() {
	if a.Sent != nil {
		a.Sent()
	}
}

// Line is the answer as one JSON-RPC message with a newline, to the request with this id.
func (a Answer) Line(id json.RawMessage) []byte {
	if a.Err != nil {
		return jsonrpc.ErrorLine(id, a.Err)
	}
	return jsonrpc.ResultLine(id, a.Result)
}
