package server

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
)

// questions are the requests that we sent to one client and that it has not answered yet. It is safe for concurrent use;
// the zero value is ready.
type questions struct {
	mu     sync.Mutex
	open   map[string]chan json.RawMessage // by raw id; each takes one result, nil for an error
	closed bool                            // no answer can come any more
}

// An asking is how a legacy request puts a question to its client.
type asking interface {
	// put sends our request while the client still waits for the answer to its own.
	put(line []byte) error
	// withdraw sends a message about a question that is over.
	withdraw(line []byte)
	// gone is closed when the client cannot answer any more.
	gone() <-chan struct{}
	// questions are those of the client.
	questions() *questions
}

// add begins to wait for an answer. nil: none can come.
func (q *questions) add(id string) chan json.RawMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	if q.open == nil {
		q.open = map[string]chan json.RawMessage{}
	}
	c := make(chan json.RawMessage, 1)
	q.open[id] = c
	return c
}

// remove ends the wait for an answer. ok is false if one was taken meanwhile: it is in the channel.
func (q *questions) remove(id string) (ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok = q.open[id]
	delete(q.open, id)
	return ok
}

// answer takes a client's answer. One that nobody waits for is dropped.
func (q *questions) answer(id json.RawMessage, msg []byte) {
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(msg, &m) != nil || m.Error != nil {
		m.Result = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.open[string(id)]; c != nil {
		c <- m.Result              // it has room for one
		delete(q.open, string(id)) // only one answer counts
	}
}

// close ends every question without an answer, and each that comes later at once.
func (q *questions) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for id, c := range q.open {
		c <- nil
		delete(q.open, id)
	}
}

// An askSession is what mcp-go v1.2.1 wants of the session of a legacy request whose handler asks (server/mrtr.go:300).
type askSession struct {
	rec      *record
	patience time.Duration // with the person
}

func (*askSession) SessionID() string                                   { return "ask" }
func (*askSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return nil }
func (*askSession) Initialize()                                         {}
func (*askSession) Initialized() bool                                   { return true }

// RequestElicitation puts a question and waits for the answer. It has no error: whatever goes wrong is no answer, and
// the handler decides what that means.
func (a *askSession) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*elicited, error) {
	answer := a.put(ctx, r.Params)
	if answer == nil {
		a.rec.unheard = true // the time of the question may be over, too; it is not put again
		answer = &elicited{}
		answer.Action = mcp.ElicitationResponseActionCancel
	}
	return answer, nil
}

// put puts a question. nil: an error of the client, a closed stream, a time that is over.
func (a *askSession) put(ctx context.Context, question mcp.ElicitationParams) *elicited {
	params, err := jsonrpc.Marshal(question)
	if err != nil {
		return nil
	}
	answer := &elicited{}
	if result := put(ctx, a.rec.to, string(mcp.MethodElicitationCreate), params, a.patience); result == nil || json.Unmarshal(result, answer) != nil {
		return nil
	}
	return answer
}

// put sends a request of ours and waits for its result. nil: an error of the client, a closed stream, a time that is over.
// params nil: it has none.
func put(ctx context.Context, to asking, method string, params []byte, patience time.Duration) json.RawMessage {
	id := ownID()
	answers := to.questions().add(id)
	if answers == nil {
		return nil
	}
	line := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"`)
	if params != nil {
		line = append(append(line, `,"params":`...), params...)
	}
	if to.put(append(line, "}\n"...)) != nil {
		to.questions().remove(id)
		return nil
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	gone := false
	select {
	case answer := <-answers:
		return answer
	case <-late.C:
	case <-ctx.Done():
	case <-to.gone():
		gone = true
	}
	switch {
	case !to.questions().remove(id): // what the client was told is taken counts, whatever else happened by then
		return <-answers
	case gone:
		return nil
	}
	to.withdraw([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"no longer needed"}}` + "\n"))
	return nil
}

// idPrefix begins the id of every request of ours, so that none is taken for one of mcp-go, whose ids are numbers.
const idPrefix = `"ask-`

func ownID() string { return idPrefix + newID() + `"` }

// isOwnID says whether a raw id may be one of ours.
func isOwnID(id json.RawMessage) bool { return bytes.HasPrefix(id, []byte(idPrefix)) }

// A connAsking puts the questions of one request on a connection.
type connAsking struct {
	c *conn
	f *jsonrpc.Flight
}

func (a *connAsking) put(line []byte) error { return a.c.out.WriteLine(line, 0, a.f.Waits) }
func (a *connAsking) withdraw(line []byte)  { _ = a.c.out.WriteLine(line, a.c.out.Patience, nil) } // who does not read sees no question
func (a *connAsking) gone() <-chan struct{} { return a.c.out.Failed }
func (a *connAsking) questions() *questions { return &a.c.asks }

// What an exchange asks travels on the stream that its answer becomes; the client's answer comes with a request of its
// own.

func (x *exchange) put(line []byte) error { return x.out.notify(line) }
func (x *exchange) withdraw(line []byte)  { _ = x.out.notify(line) } // a stream that has ended says it, too
func (x *exchange) gone() <-chan struct{} { return x.r.Context().Done() }
func (x *exchange) questions() *questions { return &x.scope.asks }
