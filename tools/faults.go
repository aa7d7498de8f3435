package tools

import (
	"context"
	"errors"

	"codehand/tools/tool"
)

// stateRefusal answers a call that needs what the Store does not give.
func stateRefusal() error {
	return tool.Refuse(tool.StateUnavailable, "The state store does not answer. Reading works, changes are refused. Try again.")
}

// stateFault is what an error of the Store means for the caller: that of a call that has ended comes back as it is, since
// the Store is well.
func stateFault(ctx context.Context, err error) error {
	if err == nil || ended(ctx, err) {
		return err
	}
	return stateRefusal()
}

// ended says whether an error is no more than the end of its call.
func ended(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return cause != nil && (errors.Is(err, cause) || errors.Is(err, ctx.Err()))
}
