package server

import (
	"context"
	"strings"

	"codehand/tools/agent/loop"
)

// sample is Arrival.Sample: the model of the client of this call answers one question, without tools; nil: it may not
// be asked.
func (t *toolCall) sample() func(ctx context.Context, system, prompt string, maxTokens int) (string, error) {
	if !t.State.PageModel {
		return nil
	}
	return func(ctx context.Context, system, prompt string, maxTokens int) (string, error) {
		t.leavePlaces() // a person may think about it
		a, err := sampler{t.Req.Peer}.Turn(ctx, loop.Turn{
			System: system, MaxOutput: maxTokens,
			Messages: []loop.Message{{Role: loop.RoleUser, Parts: []loop.Part{{Text: prompt}}}},
		}, nil)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, p := range a.Parts {
			b.WriteString(p.Text)
		}
		return b.String(), nil
	}
}
