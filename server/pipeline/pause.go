package pipeline

import (
	"context"
	"time"

	"codehand/tools/session"
	"codehand/tools/tool"
)

// A Pause is why the calls of a principal wait: a person wants that.
type Pause struct {
	By    string    // the principal who paused them; "": not known
	Since time.Time // zero: not known
	Where string    // where a person resumes them, as "on http://…" or "with codehand page"
	// Closing: this process stops, so no call can wait for the end of the pause
	Closing bool
}

const (
	// pauseLook is how often a call that waits looks whether the pause is over. Nothing tells it: the pause may have
	// been ended by another process.
	pauseLook = 250 * time.Millisecond
	pauseNote = "paused by a person on the page"
)

// resumed lets the call wait while a person has paused those of its principal. waited says that it did: what was
// decided about it before may not hold any more. It does not hold calls of our own command line and of the page, which
// a person makes.
func resumed(ctx context.Context, c *call) (waited bool, err error) {
	if c.pipe.Paused == nil || c.arrival.From.Transport == InProcess {
		return false, nil
	}
	why := c.pipe.Paused(c.state.Key.Principal)
	if why == nil {
		return false, nil
	}
	began := time.Now()
	defer func() { c.record.Stages.Gate += time.Since(began) }()
	until := c.visit.arrived.Add(waitUnheard)
	if c.arrival.Token || c.arrival.Agent.ID != "" {
		until = time.Now().Add(c.pipe.PauseTime)
	}
	limit := time.NewTimer(time.Until(until))
	defer limit.Stop()
	look := time.NewTicker(pauseLook)
	defer look.Stop()
	noted := began
	c.progress(0, 0, pauseNote)
	for !why.Closing {
		select {
		case <-ctx.Done():
			return true, interrupted(ctx)
		case <-limit.C:
			return true, pausedBy(c, why)
		case <-look.C:
		}
		if why = c.pipe.Paused(c.state.Key.Principal); why == nil {
			c.arrival.Located = session.Snapshot{} // it shows how things were before
			if err := c.state.Narrow(ctx, c.arrival.Located); err != nil {
				return true, stateUnavailable(ctx, err)
			}
			return true, nil
		}
		if c.arrival.Lost != nil && c.arrival.Lost() { // nothing may run later that no client waits for
			break
		}
		if time.Since(noted) >= noteEvery {
			noted = time.Now()
			c.progress(0, 0, pauseNote)
		}
	}
	return true, pausedBy(c, why)
}

// pausedBy is the refusal of a call that could not wait for the end of a pause.
func pausedBy(c *call, why *Pause) error {
	who, since := "A person", ""
	switch why.By {
	case "":
	case c.state.Key.Principal:
		who = "The user"
	default:
		who = "The administrator " + clip(oneLine(why.By), maxHead)
	}
	if !why.Since.IsZero() {
		since = " at " + why.Since.UTC().Format(gateTimeShape)
	}
	return tool.Refuse(tool.Paused, "%s paused all calls%s. Nothing was done, and no other call will run. Stop here "+
		"and tell the user: they resume %s. Make exactly this call again after that.", who, since, why.Where)
}

// again looks once more at what may have changed while the call waited for a hook, a person or its turn: the pause, and
// plan mode. After a pause the call is decided about anew, as people pause calls to narrow what holds; what a person
// answered about it still counts.
func again(ctx context.Context, c *call) error {
	waited, err := resumed(ctx, c)
	if err != nil {
		return err
	}
	if t := c.bound.Traits; waited || !t.ReadOnly && !t.Private {
		if err := c.plan(ctx); err != nil {
			return err
		}
	}
	if !waited {
		return nil
	}
	return c.record.timed(&c.record.Stages.Permit, func() error { return c.denied(c.permit(ctx)) })
}
