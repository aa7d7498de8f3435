package pipeline

import (
	"context"
	"testing"

	"codehand/tools/tool"
)

// TestRuns: a call counts as one that runs until its answer is out, whichever comes first, its end or the client's leave;
// so what it kept is not removed before the client has read its name.
func TestRuns(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "runs")
	var id string
	var v *Visit
	leave := false
	look := fixture("look", free, func(_ context.Context, env tool.Env) (tool.Result, error) {
		id = env.CallID
		if leave {
			v.Leave()
		}
		if !p.Runs(id) {
			t.Error("a call does not count while its tool runs")
		}
		return tool.Result{Text: "x"}, nil
	})
	for _, leave = range []bool{false, true} {
		v = p.Arrive(s)
		if _, err := v.Call(t.Context(), look, []byte("{}"), Arrival{}); err != nil {
			t.Fatal(err)
		}
		if p.Runs(id) == leave {
			t.Errorf("left=%v: the call counts: %v", leave, !leave)
		}
		v.Leave()
		if p.Runs(id) {
			t.Error("an answered call still counts")
		}
	}
}
