package console

import (
	"context"
	"errors"
	"net/http"

	"codehand/server/pauses"
)

// Pauses are the calls that people have paused. *pauses.Table and pauses.Dir are some.
type Pauses interface {
	// Of returns the pauses that hold for a principal; all: all that there are.
	Of(principal string, all bool) []pauses.Pause
	// Pause pauses the calls of a principal, or as an administrator everybody's.
	Pause(ctx context.Context, by string, admin bool) error
	// Resume ends the pause of a principal's calls; of "": of everybody's. pauses.ErrNotYours.
	Resume(ctx context.Context, of, by string, admin bool) error
}

// Own is the pause that a press on the button of this page would make; nil: there is none.
func (v view) Own() *pauses.Pause {
	for _, p := range v.Paused {
		if p.Of == "" || !v.Person.Who.Admin && p.Of == v.Person.Who.ID {
			return &p
		}
	}
	return nil
}

// pauseDone is what the last form did, if it was one of ours.
func pauseDone(r *http.Request) string {
	switch r.URL.Query().Get("done") {
	case "paused":
		return "Paused. Calls that had begun go on to their end."
	case "halted":
		return "Paused, and the commands that ran were stopped."
	case "unhalted":
		return "Paused. Some command could not be stopped: look at Activity."
	case "resumed":
		return "Calls run again."
	case "unpaused":
		return "Nothing was done: this pause is over, or is not yours to end."
	}
	return ""
}

// pause holds all calls that a person may answer for, and stops the commands that run, if that is wanted.
func (c *Console) pause(w http.ResponseWriter, r *http.Request, p Person) {
	if c.barred(w, r, p) {
		return
	}
	if err := c.o.Pauses.Pause(r.Context(), p.Who.ID, p.Who.Admin); err != nil {
		c.broken(w, r, err)
		return
	}
	done := "paused"
	if r.PostForm.Get("stop") != "" {
		done = halt(r.Context(), c.o, p)
	}
	c.redirect(w, p, pausedFrom(r), done)
}

// halt stops what runs. New commands do not begin any more.
func halt(ctx context.Context, o Options, p Person) (done string) {
	running, err := o.Activity.Running(ctx, p.Who)
	for _, one := range running {
		if gone := o.Activity.Stop(ctx, p.Who, one.CommandID); !errors.Is(gone, ErrNotRunning) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		o.Log.Error("stop the commands that run", "err", err)
		return "unhalted"
	}
	return "halted"
}

// resume lets calls run again.
func (c *Console) resume(w http.ResponseWriter, r *http.Request, p Person) {
	if c.barred(w, r, p) {
		return
	}
	done := "resumed"
	switch err := c.o.Pauses.Resume(r.Context(), r.PostForm.Get("of"), p.Who.ID, p.Who.Admin); {
	case errors.Is(err, pauses.ErrNotYours):
		done = "unpaused"
	case err != nil:
		c.broken(w, r, err)
		return
	}
	c.redirect(w, p, pausedFrom(r), done)
}

// barred answers a person who may decide nothing here.
func (c *Console) barred(w http.ResponseWriter, r *http.Request, p Person) bool {
	if p.Bars != "" {
		c.fail(w, r, p, http.StatusForbidden, "Not here", "Nothing was done. "+p.Bars)
	}
	return p.Bars != ""
}

// pausedFrom leads back to the page with the form.
func pausedFrom(r *http.Request) string {
	if r.PostForm.Get("from") == "activity" {
		return "../activity"
	}
	return "../"
}
