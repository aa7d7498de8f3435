package calls

import (
	"time"

	"codehand/server/asking"
	"codehand/server/mcpgo"
	"codehand/server/notices"
	"codehand/server/once"
	"codehand/server/pipeline"
	"codehand/server/places"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/subagents"
	"codehand/server/toolset"
	"codehand/server/waiting"
	"codehand/tools/session"
)

// Parts are what a Handler works with.
type Parts struct {
	Replies  replies.Replies
	Tools    *toolset.Set
	Sessions *sessions.Table
	Pipe     *pipeline.Pipeline
	Asks     *asking.Asker
	OnPage
	MayAsk  bool // something may ask the client of a modern call while it works: that costs each a goroutine
	Notices *notices.Notifier
	Gate    *mcpgo.Gateway
	Keeps   *sessions.Retention
	Once    *once.Records // of calls that arrive again; nil: none can
	// Event takes what is no call into the record.
	Event func(name string, fields map[string]any)
	// Active is what a session has found, without opening it.
	Active func(session.Key) session.Cell[[]string]
	// Observed adds to the work of a request what counts and times it.
	Observed func(request.Request, request.Work) request.Work
	Lends    Lends
}

// OnPage is what a person decides there about calls.
type OnPage struct {
	Desk  *asking.Desk // where people answer whom clients cannot ask; nil: there is none
	Chats bool         // a person lets each new session of a client work there
}

// A Handler serves requests. Its fields are set once, before the first request. It is safe for concurrent use.
type Handler struct {
	Parts
	Places  *places.Desk
	Waiting *waiting.Calls // nil: no call asks its client while it works
	Agents  subagents.Host
	Waits   Waits
}

// New makes a Handler, which cannot start sub-agents yet.
func New(p Parts) *Handler {
	h := &Handler{
		Parts: p, Places: &places.Desk{Pipe: p.Pipe, Tools: p.Tools, Kept: p.Keeps.Kept},
		Waits: Waits{Roots: rootsTime, Relist: relistTime},
	}
	if p.MayAsk {
		h.Waiting = waiting.New(p.Asks.Life, func(asked map[string]waiting.Asked, state string) request.Answer {
			return p.Replies.Question(asked, state)
		})
	}
	return h
}

// Lends says what models of clients may be used for. The zero value: for nothing.
type Lends struct {
	WithTools bool // by sub-agents
	Plain     bool // for an answer to one question
}

// Waits are how long a call waits for its client.
type Waits struct {
	Roots  time.Duration // for the roots that it wants to be used
	Relist time.Duration // for it to read its list of tools again
}

const (
	// rootsTime is how long a client has to say which roots it wants to be used, and how long its calls wait for that:
	// one that never answers costs its first call this long.
	rootsTime = 5 * time.Second
	// relistTime is how long the answer of tool_search waits for a client that reads its list again.
	relistTime = time.Second
)
