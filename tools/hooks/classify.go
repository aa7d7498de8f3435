package hooks

import (
	"context"
	"encoding/json"
	"time"

	"codehand/tools/permission"
)

// classifierTime is what the classifier has; see Runner.judging.
const classifierTime = 10 * time.Second

// judged is what the classifier reads on its standard input.
type judged struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
	Cwd   string          `json:"cwd"`
	Mode  string          `json:"mode"`
}

// Classify asks the operator's classifier command about a call: exit code 0 allows it, 1 asks a person, 2 denies it.
// Whatever else it does, and none at all, asks a person. The error is that of a ctx that ended, or that the
// Runner is closed.
func (r *Runner) Classify(ctx context.Context, e Event) (permission.Verdict, error) {
	if len(r.o.Classifier) == 0 {
		return permission.Ask, nil
	}
	input, err := line(judged{Tool: e.Tool, Input: e.Input, Cwd: e.Cwd, Mode: e.Mode.String()})
	if err != nil {
		return permission.Ask, err
	}
	held, release, ok := r.running.hold(ctx)
	if !ok {
		return permission.Ask, errStopped
	}
	defer release()
	d := r.program(r.o.Classifier, r.judging, e, input).run(held)
	if err := context.Cause(ctx); err != nil {
		return permission.Ask, err
	}
	if d.err != nil {
		r.log.Warn("the classifier failed, so a person decides", "tool", e.Tool, "error", d.err,
			"stderr", shortened(d.stderr))
		return permission.Ask, nil
	}
	switch d.exit.Code {
	case 0:
		return permission.Allow, nil
	case 1:
		return permission.Ask, nil
	case 2:
		return permission.Deny, nil
	}
	r.log.Warn("the classifier failed, so a person decides", "tool", e.Tool, "exit", d.exit.Code,
		"stderr", shortened(d.stderr))
	return permission.Ask, nil
}
