package running

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"codehand/tools/credentials"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// An asker puts questions that come up while a command runs to the person, until the call of the command has answered.
// It is safe for concurrent use. nil asks nobody.
type asker struct {
	put     func(ctx context.Context, message string, schema json.RawMessage) (tool.Elicited, error)
	call    context.Context // ends with the call
	over    context.CancelFunc
	pending atomic.Int32
}

// newAsker returns the asker of a call; nil: nobody can be asked.
func newAsker(ctx context.Context, env tool.Env) *asker {
	if env.Elicit == nil {
		return nil
	}
	mode, _, err := env.InForce(ctx, time.Now())
	if err != nil || mode == permission.DontAsk {
		return nil
	}
	a := &asker{put: env.Elicit}
	a.call, a.over = context.WithCancel(ctx)
	return a
}

// end says that the call answers now. What is asked meanwhile has no answer.
func (a *asker) end() {
	if a != nil {
		a.over()
	}
}

// waits says whether a person is being asked. Then the command waits, and so does its call.
func (a *asker) waits() bool { return a != nil && a.pending.Load() > 0 }

// asking is for confine.Use; nil: nobody can be asked.
func (a *asker) asking() credentials.Asking {
	if a == nil {
		return nil
	}
	return a.ask
}

// yes is a form without fields: the person accepts it or does not.
var yes = json.RawMessage(`{"type":"object","properties":{}}`)

func (a *asker) ask(ctx context.Context, question string) error {
	a.pending.Add(1)
	defer a.pending.Add(-1)
	if a.call.Err() != nil {
		return credentials.ErrNobody
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.call, cancel)()
	said, err := a.put(ctx, question, yes)
	switch {
	case err != nil && a.call.Err() != nil:
		return credentials.ErrNobody
	case err != nil:
		return fmt.Errorf("ask the user: %w", err)
	case said.Action != "accept":
		return credentials.ErrDeclined
	}
	return nil
}
