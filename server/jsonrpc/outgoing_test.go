package server

import (
	"context"
	"encoding/json"
	"testing"
)

// A lateAsking has the answer of a client and the end of the request come at the same time.
type lateAsking struct {
	open   questions
	cancel context.CancelFunc
	ended  chan struct{}
}

func (a *lateAsking) put(line []byte) error {
	var q struct{ ID json.RawMessage }
	if err := json.Unmarshal(line, &q); err != nil {
		return err
	}
	a.open.answer(q.ID, []byte(`{"jsonrpc":"2.0","result":{"action":"accept"}}`))
	a.cancel()
	close(a.ended)
	return nil
}

func (a *lateAsking) withdraw([]byte) {}

func (a *lateAsking) gone() <-chan struct{} { return a.ended }

func (a *lateAsking) questions() *questions { return &a.open }

// TestAskAnsweredAtTheEnd: a person's answer was taken, and the time of the question was over or its stream had ended
// before anybody looked. The client had been told that the answer is taken, but it counted for nothing, now and then.
func TestAskAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	for range 100 { // which of several things a select takes is chance
		ctx, cancel := context.WithCancel(t.Context())
		a := &lateAsking{cancel: cancel, ended: make(chan struct{})}
		if got := put(ctx, a, "elicitation/create", nil, 1); string(got) != `{"action":"accept"}` {
			t.Fatalf("the answer is lost: %q", got)
		}
		if len(a.open.open) > 0 {
			t.Fatal("the question is still open")
		}
	}
}
