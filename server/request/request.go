// Package request is what transports and the server share: one request as it arrived, the client at its other end, and
// the answer.
//
// A transport makes a Request, is its Peer, and writes the Answer. The server has one way from the one to the other,
// Serve, which transports receive as a function. A Request does not change; what changes while it is served lives on
// the stack of that one function.
package request

import (
	"context"
	"encoding/json"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// A Request is one request of a client. It does not change.
type Request struct {
	jsonrpc.Envelope
	Message []byte // the whole message, of which Envelope is a part
	Client  Client
	Tenant  *tenants.Tenant
	Session session.Key // whose conversation it belongs to
	Shelf   session.Key // whose found tools its client is listed: of the connection, in the legacy era; else zero
	Caller  Caller
	Peer    Peer
}

// A Client is what is known of the program that sent a request.
type Client struct {
	sessions.ClientRecord // what it said when it initialized; of modern clients, with each request
	// the request is of protocol 2026-07-28 or later; a header may say so, too
	Modern  bool
	Muted   bool                 // its transport brings no question to a person
	Roots   *tenants.ClientRoots // which it wants to be used; nil: it is not asked
	Prompts *sessions.PromptMark // which it was shown; nil: it cannot be told of others
}

// A Caller is on whose behalf and over which way a request came.
type Caller struct {
	Limits *auth.Limits // of the principal; nil: none
	From   pipeline.From
}

// A Peer is the other end of one request, as its transport knows it. It is safe for concurrent use.
type Peer interface {
	// Notify sends a notification that reaches the client before the answer; params nil: it has none. Progress may be
	// dropped for a client that does not read. The error says that nothing was sent.
	Notify(method string, params any) error
	// Call sends a request of the server, and waits for its result until ctx ends. A nil result without an error: the
	// client answered with an error, left, or did not answer in time. jsonrpc.ErrNoCalls: this request has no way to
	// ask.
	Call(ctx context.Context, method string, params any) (json.RawMessage, error)
	// Gone is closed when the client has left, so that nobody reads the answer.
	Gone() <-chan struct{}
}

// Left says whether the client of a request has left.
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

// Serve takes a request in: its session, its places in the queues of its principal, and its ticket at the gate. It is
// fast; a transport calls it in the order in which requests came in, and calls work exactly once. changes says that the
// request may change something, so it may finish when its client has left.
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
}

// Line is the answer as one JSON-RPC message with a newline, to the request with this id.
func (a Answer) Line(id json.RawMessage) []byte {
	if a.Err != nil {
		return jsonrpc.ErrorLine(id, a.Err)
	}
	return jsonrpc.ResultLine(id, a.Result)
}
