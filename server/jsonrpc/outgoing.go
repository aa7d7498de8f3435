package jsonrpc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
)

// Outgoing are the requests that we sent to one client and that it has not answered yet. It is safe for concurrent use;
// the zero value is ready.
type Outgoing struct {
	mu     sync.Mutex
	open   map[string]chan json.RawMessage // by raw id; each takes one result, nil for an error
	closed bool                            // no answer can come any more
}

// A Way is how requests reach a client and how it is seen that no answer can come.
type Way struct {
	Send     func(line []byte) error // the request, while the client still reads
	Withdraw func(line []byte)       // a notification that the answer is not needed any more
	Gone     <-chan struct{}         // closed when the client cannot answer any more
}

// Call sends a request and waits for its result until ctx ends. params nil: it has none. The result is nil if the
// client answers with an error, if it goes, and if ctx ends first; a request without a waiting caller is withdrawn. The
// error is that of Way.Send or of Marshal.
func (o *Outgoing) Call(ctx context.Context, way Way, method string, params any) (json.RawMessage, error) {
	line, id, err := requestLine(method, params)
	if err != nil {
		return nil, err
	}
	answers := o.add(id)
	if answers == nil {
		return nil, nil
	}
	if err := way.Send(line); err != nil {
		o.remove(id)
		return nil, err
	}
	gone := false
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
	case <-way.Gone:
		gone = true
	}
	switch {
	case !o.remove(id): // what the client was told is taken counts, whatever else happened by then
		return <-answers, nil
	case gone:
		return nil, nil
	}
	way.Withdraw([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id +
		`,"reason":"no longer needed"}}` + "\n"))
	return nil, nil
}

// ownPrefix begins the id of every request of ours.
const ownPrefix = `"ask-`

func requestLine(method string, params any) (line []byte, id string, err error) {
	id = ownPrefix + strings.ToLower(rand.Text()) + `"`
	line = []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"`)
	if params != nil {
		body, err := Marshal(params)
		if err != nil {
			return nil, "", err
		}
		line = append(append(line, `,"params":`...), body...)
	}
	return append(line, "}\n"...), id, nil
}

// add begins to wait for an answer. nil: none can come.
func (o *Outgoing) add(id string) chan json.RawMessage {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	if o.open == nil {
		o.open = map[string]chan json.RawMessage{}
	}
	c := make(chan json.RawMessage, 1)
	o.open[id] = c
	return c
}

// remove ends the wait for an answer. ok is false if one was taken meanwhile: it is in the channel.
func (o *Outgoing) remove(id string) (ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok = o.open[id]
	delete(o.open, id)
	return ok
}

// Answer takes a client's answer. One that no Call waits for is dropped.
func (o *Outgoing) Answer(id json.RawMessage, msg []byte) {
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(msg, &m) != nil || m.Error != nil {
		m.Result = nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.open[string(id)]; c != nil {
		c <- m.Result              // it has room for one
		delete(o.open, string(id)) // only one answer counts
	}
}

// Close ends every Call without an answer, and each that comes later at once.
func (o *Outgoing) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for id, c := range o.open {
		c <- nil
		delete(o.open, id)
	}
}

// ErrNoCalls says that the server can send no request to a client.
var ErrNoCalls = errors.New("this client takes no requests from the server")
