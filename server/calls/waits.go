package calls

import (
	"context"

	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/waiting"
	"codehand/tools/tool"
)

// resume goes on with the call of a modern client that waits for the answers which this request brings.
func (t *turn) resume(ctx context.Context) request.Answer {
	if e := t.h.Replies.Unserved(t.Req.Envelope); e != nil {
		return replies.Failed(e)
	}
	var work request.Work
	err := waiting.ErrOver
	if t.h.Waiting != nil {
		work, err = t.h.Waiting.Resume(t.Req)
	}
	if err != nil {
		a := t.h.Replies.Refuse(t.Req.Envelope, true, tool.Refuse(tool.Interrupted, "This call is over: its answer "+
			"came twice, too late, with other arguments, or after codehand was restarted. Look at what the call has "+
			"done before you make it again."))
		a.Tool = t.tool()
		return a
	}
	return work(ctx)
}
