package jsonrpc

import (
	"context"
	"encoding/json"
	"testing"
)

// TestOutgoingAnsweredAtTheEnd: a person's answer arrived, and then the question's time was over or its stream had
// ended before the call read the answer. The client had got the confirmation, but the answer was lost now and then.
func TestOutgoingAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	for range 100 { // which of several things a select takes is chance
		ctx, cancel := context.WithCancel(t.Context())
		var open Outgoing
		gone := make(chan struct{})
		way := Way{Withdraw: func([]byte) {}, Gone: gone}
		way.Send = func(line []byte) error { // the answer, the end of ctx and that of the client come at the same time
			var q struct{ ID json.RawMessage }
			if err := json.Unmarshal(line, &q); err != nil {
				return err
			}
			open.Answer(q.ID, []byte(`{"jsonrpc":"2.0","result":{"action":"accept"}}`))
			cancel()
			close(gone)
			return nil
		}
		if got, err := open.Call(ctx, way, "elicitation/create", nil); err != nil || string(got) != `{"action":"accept"}` {
			t.Fatalf("the answer is lost: %q, %v", got, err)
		}
		if len(open.open) > 0 {
			t.Fatal("the question is still open")
		}
	}
}
