package hooks

import (
	"context"
	"time"
)

// notifyTime is what the program has that tells a person that a call waits.
const notifyTime = 30 * time.Second

// A Notice is what that program reads on its standard input. Client, tool and title come from clients and models.
type Notice struct {
	Principal string    `json:"principal"`
	Client    string    `json:"client"`
	Tool      string    `json:"tool"`
	Title     string    `json:"title"` // of the question
	URL       string    `json:"url"`   // of the page that shows it
	Until     time.Time `json:"until"` // then the call goes on without an answer
}

// Notify tells a person that a call waits for them, by the operator's program. It does not wait for that.
func (r *Runner) Notify(n Notice) {
	if len(r.o.Notify) == 0 {
		return
	}
	input, err := line(n)
	if err != nil {
		return // strings and a time can be written
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
