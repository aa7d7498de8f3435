package calls

import (
	"time"

	"codehand/server/asking"
	"codehand/server/mcpgo"
	"codehand/server/notices"
	"codehand/server/places"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/subagents"
	"codehand/server/toolset"
	"codehand/server/waiting"
	"codehand/tools/session"
)

// A Handler serves requests. Its fields are set once, before the first request. It is safe for concurrent use.
type Handler struct {
	Replies  replies.Replies
	Tools    *toolset.Set
	Sessions *sessions.Table
	Places   *places.Desk
	Asks     *asking.Asker
	Waiting  *waiting.Calls // nil: no call asks its client while it works
	Agents   subagents.Host
	Notices  *notices.Notifier
	Gate     *mcpgo.Gateway
	Keeps    *sessions.Retention
	// Active is what a session has found, without opening it.
	Active func(session.Key) session.Cell[[]string]
	// Observed adds to the work of a request what counts and times it.
	Observed func(request.Request, request.Work) request.Work
	Lends    Lends
	Waits    Waits
}

// Lends says what models of clients may be used for. The zero value: for nothing.
type Lends struct {
	WithTools bool // by sub-agents
	Plain     bool // for an answer to one question
}

// Waits are how long a call waits for its client.
type Waits struct {
	// Roots is how long a client has to say which roots it wants to be used, and how long its calls wait for that: one
	// that never answers costs its first call this long.
	Roots time.Duration
	// Relist is how long the answer of tool_search waits for a client that reads its list again.
	Relist time.Duration
}

// DefaultWaits are those of a server that serves clients.
func DefaultWaits() Waits { return Waits{Roots: 5 * time.Second, Relist: time.Second} }
