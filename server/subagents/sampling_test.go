package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/agent/loop"
)

// A peer that declared sampling and never answers costs 120 s, and not more.
func TestSamplerWaitsTwoMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := sampler{deafPeer{}}.Turn(t.Context(), loop.Turn{MaxOutput: 1}, nil)
		if e, ok := errors.AsType[*loop.Error](err); !ok || e.Kind != loop.Broken || time.Since(began) != sampleTime || sampleTime != 2*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// A deafPeer never answers.
type deafPeer struct{}

func (deafPeer) Notify(string, any) error { return fmt.Errorf("nobody listens") }
func (deafPeer) Gone() <-chan struct{}    { return nil }
func (deafPeer) Call(ctx context.Context, _ string, _ any) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
