// Package waiting lets a modern call ask its client while it works. Protocol 2026-07-28 has no requests of the server:
// a call that needs something is answered with a question, and the client sends the call again with the answer. So the
// work of such a call outlives its first request: it goes on in a goroutine of its own, and each further request of the
// client finds it by its requestState.
//
// A question of the pipeline takes another way (server/asking): it holds no work, and any replica can take its answer.
// What waits here belongs to this process, and ends with it.
package waiting

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/tools/session"
)

const (
	// mostRounds is how often one call asks its client at most. Clients give a call up at the tenth question: mcp-go
	// v1.2.1, client/mrtr.go; at the eleventh: @modelcontextprotocol/client 2.4.0, inputRequired.maxRounds.
	mostRounds = 9
	// roundsBefore is how many questions of the pipeline a call may have been asked before its work began.
	roundsBefore = 3
	// mostOfOne is how many calls of one principal wait for their client at once.
	mostOfOne = 64
	// maxQuestion is how large the params of one question may be, in bytes: several must fit into one answer.
	maxQuestion = jsonrpc.MaxResponse / 8
	// gather is how long a question waits for others: of sub-agents that work side by side each has one, and a client
	// answers all in one round.
	gather = 30 * time.Millisecond
	// version begins every requestState of this package.
	version = "w1."
)

var (
	// ErrSpent says that the client was asked mostRounds times.
	ErrSpent = errors.New("a client answers no more questions within one call")
	// ErrTooLarge says that a question has more than 1 MiB.
	ErrTooLarge = errors.New("the question is too large for one answer")
	// ErrOver says that a requestState names no call of this caller that waits: it was answered, the client did not
	// come back in time, or another process had it.
	ErrOver = errors.New("no call waits for this answer")
	// errAbandoned is why work ends whose client did not come back.
	errAbandoned = errors.New("the client did not come back with an answer")
)

// Calls are the calls of one process that wait for their client. It is safe for concurrent use.
type Calls struct {
	life     time.Duration // that a client has to come back
	question func(asked map[string]Asked, state string) request.Answer

	mu     sync.Mutex
	calls  map[string]*Call // by requestState
	of     map[string]int   // how many of them are a principal's
	works  map[*Call]bool   // that run
	closed bool
	all    sync.WaitGroup // of works
}

// New makes a table. life is how long a client has to come back with an answer; question makes the answer that asks.
func New(life time.Duration, question func(asked map[string]Asked, state string) request.Answer) *Calls {
	return &Calls{life: life, question: question, calls: map[string]*Call{}, of: map[string]int{},
		works: map[*Call]bool{}}
}

// Asked is one question, as an inputRequest of MCP.
type Asked struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Close ends all work; the channel is closed when it has ended. Nothing can be asked any more. A nil table has none.
func (c *Calls) Close() <-chan struct{} {
	ended := make(chan struct{})
	if c == nil {
		close(ended)
		return ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for x := range c.works {
		x.cancel(jsonrpc.ErrClosed)
	}
	for state, x := range c.calls {
		c.forget(state, x)
	}
	go func() {
		defer close(ended)
		c.all.Wait()
	}()
	return ended
}

// A binding is what a requestState is good for: the same call of the same session again.
type binding struct {
	key       session.Key
	name      string
	arguments [sha256.Size]byte
}

func bindingOf(r request.Request) binding {
	return binding{r.Session, r.Name, sha256.Sum256(canonical(r.Arguments))}
}

// canonical is a JSON value in one spelling: a client may write its arguments anew. What cannot be read stays.
func canonical(raw json.RawMessage) []byte {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}

// Begin prepares a call. It takes the place of the Peer in what the server does for it, and Run follows.
func (c *Calls) Begin(r request.Request) *Call {
	x := &Call{
		calls: c, of: sync.OnceValue(func() binding { return bindingOf(r) }), peer: r.Peer, token: r.ProgressToken,
		asked: map[string]*question{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
		gone: make(chan struct{}),
	}
	x.leave = sync.OnceFunc(func() { close(x.gone) })
	if r.RequestState != nil {
		x.rounds = roundsBefore
	}
	return x
}

// Names says whether a request goes on with a call that waits, as its requestState says; it may be none.
func Names(r request.Request) bool {
	var state string
	return r.RequestState != nil && json.Unmarshal(r.RequestState, &state) == nil && strings.HasPrefix(state, version)
}

// Resume goes on with the call that a request names, with the answers that it brings. The call waits no more, so a
// second request with the same name finds ErrOver.
func (c *Calls) Resume(r request.Request) (request.Work, error) {
	var state string
	if json.Unmarshal(r.RequestState, &state) != nil {
		return nil, ErrOver
	}
	answers := map[string]json.RawMessage{}
	if r.InputResponses != nil && json.Unmarshal(r.InputResponses, &answers) != nil {
		answers = nil // they cannot be read: nothing was answered
	}
	of := bindingOf(r)
	c.mu.Lock()
	x := c.calls[state]
	if x == nil || x.of() != of {
		c.mu.Unlock()
		return nil, ErrOver
	}
	c.forget(state, x)
	c.mu.Unlock()
	x.attach(r, answers)
	return x.attend, nil
}

// forget takes a call out of the table. mu is held.
func (c *Calls) forget(state string, x *Call) {
	x.idle.Stop()
	delete(c.calls, state)
	if p := x.of().key.Principal; c.of[p] > 1 {
		c.of[p]--
	} else {
		delete(c.of, p)
	}
}

// park keeps a call under a new name; "": there are too many of its principal, or the process ends.
func (c *Calls) park(x *Call) (state string) {
	principal := x.of().key.Principal
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.of[principal] >= mostOfOne {
		return ""
	}
	state = version + strings.ToLower(rand.Text())
	c.calls[state] = x
	c.of[principal]++
	x.idle = time.AfterFunc(c.life, func() {
		c.mu.Lock()
		abandoned := c.calls[state] == x
		if abandoned {
			c.forget(state, x)
		}
		c.mu.Unlock()
		if abandoned {
			x.cancel(errAbandoned)
		}
	})
	return state
}

// A Call is one call over all its requests. It is the Peer of the request that is being served. It is safe for
// concurrent use.
type Call struct {
	calls  *Calls
	of     func() binding          // made when it first waits: most calls never do
	cancel context.CancelCauseFunc // of the work
	idle   *time.Timer             // while it is in the table; its mu guards it
	wake   chan struct{}           // something was asked
	done   chan struct{}           // the work has ended
	answer request.Answer          // valid after done
	gone   chan struct{}
	leave  func() // closes gone

	mu     sync.Mutex
	peer   request.Peer    // of the request that waits for its answer; nil: none does
	token  json.RawMessage // by which that request wants to be told of progress
	asked  map[string]*question
	number int // of questions so far
	rounds int // answers that asked so far
}

// A question waits for its answer.
type question struct {
	Asked
	sent   bool       // the client has it
	answer chan reply // gets one
}

// A reply is what Call.Call returns.
type reply struct {
	result json.RawMessage
	err    error
}

// Run runs work, and returns its answer or the first question. ctx is that of the first request.
func (x *Call) Run(ctx context.Context, work request.Work) request.Answer {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	x.cancel = cancel
	if !x.calls.begin(x) {
		cancel(jsonrpc.ErrClosed)
		return work(inner)
	}
	go func() {
		defer x.calls.end(x)
		defer cancel(nil)
		x.answer = work(inner)
		close(x.done)
	}()
	return x.attend(ctx)
}

// begin enters the work of a call. ok is false if the process ends.
func (c *Calls) begin(x *Call) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.works[x] = true
	c.all.Add(1)
	return true
}

func (c *Calls) end(x *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.works, x)
	c.all.Done()
}

// attend waits for the end of the work or a question, for one request. If ctx ends the work does.
func (x *Call) attend(ctx context.Context) request.Answer {
	stop := context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	defer stop()
	left := x.peer.Gone() // no other goroutine sets peer meanwhile
	var gathered <-chan time.Time
	for {
		select {
		case <-x.done:
			return x.answer
		case <-left:
			left = nil
			x.leave()
		case <-x.wake:
			if gathered == nil {
				gathered = time.After(gather)
			}
		case <-gathered:
			gathered = nil
			if ctx.Err() != nil {
				continue // the work ends
			}
			if a, ok := x.ask(); ok {
				return a
			}
		}
	}
}

// ask makes the answer that asks all that is open. ok is false if there is nothing to ask, or the call cannot wait.
func (x *Call) ask() (a request.Answer, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	asked := map[string]Asked{}
	for id, q := range x.asked {
		asked[id] = q.Asked
	}
	if len(asked) == 0 {
		return a, false
	}
	if x.rounds >= mostRounds { // it was asked when there was still one left
		x.refuse(ErrSpent)
		return a, false
	}
	state := x.calls.park(x)
	if state == "" {
		x.refuse(jsonrpc.ErrNoCalls)
		return a, false
	}
	for _, q := range x.asked {
		q.sent = true
	}
	x.peer, x.token = nil, nil
	x.rounds++
	return x.calls.question(asked, state), true
}

// refuse ends all questions with an error. mu is held.
func (x *Call) refuse(err error) {
	for id, q := range x.asked {
		q.answer <- reply{err: err}
		delete(x.asked, id)
	}
}

// attach makes a request the one that waits, with the answers that it brings. What was asked and is not answered gets
// none.
func (x *Call) attach(r request.Request, answers map[string]json.RawMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.peer, x.token = r.Peer, r.ProgressToken
	for id, q := range x.asked {
		if q.sent {
			q.answer <- reply{result: result(answers[id])}
			delete(x.asked, id)
		}
	}
	if len(x.asked) > 0 {
		x.signal()
	}
}

// result is an answer, nil for none.
func result(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (x *Call) signal() {
	select {
	case x.wake <- struct{}{}:
	default: // it is on its way
	}
}

// Token is by what the request that waits wants to be told of progress; nil: not at all.
func (x *Call) Token() json.RawMessage {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.token
}

// Rounds is how often the client can still be asked.
func (x *Call) Rounds() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return mostRounds - x.rounds
}

// Notify is request.Peer.Notify. Between two requests there is no client to notify.
func (x *Call) Notify(method string, params any) error {
	x.mu.Lock()
	peer := x.peer
	x.mu.Unlock()
	if peer == nil {
		return jsonrpc.ErrAnswered
	}
	return peer.Notify(method, params)
}

// Call is request.Peer.Call: the question becomes a part of the next answer. The error may also be ErrSpent or
// ErrTooLarge.
func (x *Call) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := jsonrpc.Marshal(params)
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxQuestion:
		return nil, ErrTooLarge
	}
	q := &question{Asked: Asked{method, raw}, answer: make(chan reply, 1)}
	x.mu.Lock()
	if x.rounds >= mostRounds {
		x.mu.Unlock()
		return nil, ErrSpent
	}
	x.number++
	id := "q" + strconv.Itoa(x.number)
	x.asked[id] = q
	x.mu.Unlock()
	x.signal()
	select {
	case a := <-q.answer:
		return a.result, a.err
	case <-ctx.Done():
		x.mu.Lock()
		delete(x.asked, id)
		x.mu.Unlock()
		return nil, nil
	}
}

// Gone is request.Peer.Gone.
func (x *Call) Gone() <-chan struct{} { return x.gone }
