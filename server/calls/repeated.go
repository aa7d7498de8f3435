package calls

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/answers"
	"codehand/server/once"
	"codehand/server/pipeline"
	"codehand/server/places"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/tools/tool"
)

// call makes a call, once if its client may repeat it. A tool that only reads runs again.
func (t *turn) call(ctx context.Context) request.Answer {
	if t.h.Once == nil || t.target.Tool.Spec.Traits.ReadOnly || t.Req.Child != nil || t.inProcess() {
		return t.make(ctx, nil)
	}
	key, ok := once.KeyOf(t.Req)
	if !ok {
		return t.make(ctx, nil)
	}
	return t.h.Once.Do(ctx, key, once.Caller{
		Make: t.make,
		Tell: t.tell,
		// the attempt that this one waits for may have given up its places, and must come first when it takes them
		// again
		Aside: t.places.Leave,
		Back:  t.takePlaces,
		Admit: func() error {
			if refused := places.Told(&t.Turn, t.target.Tool); refused != nil {
				return refused
			}
			return nil
		},
		History: t.State.Files.History,
		Settled: func(call, tool, became string) {
			t.h.Event("call.repeated", map[string]any{
				"p": t.Req.Session.Principal, "sk": t.Req.Session.Session, "call": call, "tool": tool, "became": became,
			})
		},
	})
}

// tell makes the answer to a call that is not made.
func (t *turn) tell(ctx context.Context, result tool.Result, err error) request.Answer {
	client, bad := t.h.Gate.ClientOf(&t.Turn)
	if bad != nil {
		return replies.Failed(bad)
	}
	var out *mcp.CallToolResult
	if name := t.target.Tool.Spec.Name; err != nil {
		out = answers.Refusal(err, name)
	} else {
		out = answers.Result(name, result)
	}
	return t.finish(ctx, client, out)
}

// lost is Arrival.Lost.
func (t *toolCall) lost() bool {
	return request.Left(t.Req.Peer) && (t.once == nil || !t.once.Followed())
}

// begin is Arrival.Begin.
func (t *toolCall) begin() func(context.Context, pipeline.Begun) error {
	return func(ctx context.Context, b pipeline.Begun) error {
		if err := t.State.Files.MayCommit(); err != nil { // of a command, nobody asks later
			return err
		}
		if t.once == nil {
			return nil
		}
		return t.once.Begin(ctx, b.Call, b.Tool, fateOf(b))
	}
}

// fateOf says what becomes of a call that is cut off. Tools that edit make all changes of a call as one of the journal.
func fateOf(b pipeline.Begun) once.Fate {
	switch {
	case b.Edits:
		return once.Files
	case b.Idempotent:
		return once.Again
	}
	return once.Unknown
}
