package hooks

import (
	"context"
	"time"
)

// notifyTime is what the program has that tells a person that a call waits.
const notifyTime = 30 * time.Second

// Notify tells a person that a call waits for them, by the operator's program, which reads the notice as a line of JSON
// on its standard input. It does not wait for that.
func (r *Runner) Notify(notice any) {
	if len(r.o.Notify) == 0 {
		return
	}
	input, err := line(notice)
	if err != nil {
		r.log.Warn("a notice cannot be written", "error", err)
		return
	}
	if !r.running.background(func(ctx context.Context) {
		d := r.program(r.o.Notify, notifyTime, Event{}, input).run(ctx)
		if d.err != nil || d.exit.Code != 0 {
			r.log.Warn("the program of console.notify failed", "error", d.err, "exit", d.exit.Code,
				"stderr", shortened(d.stderr))
		}
	}) {
		r.log.Warn("too much runs to start the program of console.notify")
	}
}
