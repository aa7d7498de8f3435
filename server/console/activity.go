package console

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"time"

	"codehand/server/auth"
)

// Activity is what runs on behalf of a principal, and how it is ended.
type Activity interface {
	// Running returns the commands that run for a principal, the oldest first; for an administrator those of all.
	Running(ctx context.Context, who auth.Principal) ([]RunningCommand, error)
	// Stop ends one with its whole tree, and waits for that. ErrNotRunning: it is over, or never was that principal's.
	Stop(ctx context.Context, who auth.Principal, id CommandID) error
}

// ErrNotRunning says that a command is not there to be stopped.
var ErrNotRunning = errors.New("this command does not run any more")

// A CommandID names a command that runs.
type CommandID struct {
	Process string // that runs it; "": this one
	Session string // a short name
	Job     string
}

// A RunningCommand is one that runs. Its texts come from clients and models.
type RunningCommand struct {
	CommandID
	Principal  string
	Text       string
	Dir        string // in which it runs; "": not known
	Since      time.Time
	Background bool
}

// An activityView is what the page of activity shows.
type activityView struct {
	Running []RunningCommand
}

var (
	jobID       = regexp.MustCompile(`^job_[a-z0-9]{1,32}$`)
	processName = regexp.MustCompile(`^[a-z0-9]{0,32}$`)
)

// activity shows what runs.
func (c *Console) activity(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Activity", Person: p, Now: time.Now(), Activity: &activityView{}}
	switch r.URL.Query().Get("done") {
	case "stopped":
		v.Done = "The command was stopped."
	case "over":
		v.Done = "Nothing was done: this command does not run any more."
	}
	if p.In {
		var err error
		if v.Activity.Running, err = c.o.Activity.Running(r.Context(), p.Who); err != nil {
			c.broken(w, r, err)
			return
		}
		v.Refresh = true
	}
	c.show(w, r, http.StatusOK, v)
}

// stop ends a command.
func (c *Console) stop(w http.ResponseWriter, r *http.Request, p Person) {
	id := CommandID{r.PostForm.Get("process"), r.PostForm.Get("session"), r.PostForm.Get("job")}
	switch {
	case p.Bars != "":
		c.fail(w, r, p, http.StatusForbidden, "Not here", "Nothing was done. "+p.Bars)
		return
	case !processName.MatchString(id.Process) || !sessionName.MatchString(id.Session) || !jobID.MatchString(id.Job):
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "This form cannot be read.")
		return
	}
	done := "stopped"
	switch err := c.o.Activity.Stop(r.Context(), p.Who, id); {
	case errors.Is(err, ErrNotRunning):
		done = "over"
	case err != nil:
		c.broken(w, r, err)
		return
	}
	c.redirect(w, p, "../activity", done)
}
