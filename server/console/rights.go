package console

import (
	"errors"
	"net/http"
	"time"
)

// A SessionID names a session in use.
type SessionID struct {
	Principal string
	Session   string // a short name
}

// SessionRights are what a session in use may do. Its texts come from clients, models and settings.
type SessionRights struct {
	SessionID

	Mode   string   // in force
	Chosen string   // that a person set; "": none
	Usual  string   // in which the operator has it start
	Modes  []string // that may be set, the strictest first
	Rules  []HeldRule
}

// A HeldRule is one that was allowed in a session.
type HeldRule struct {
	Rule  string
	Skill string // that lends it; "": a person allowed it
	Since time.Time
}

var (
	// ErrNotOpen says that a session is not in use, or does not have that rule any more.
	ErrNotOpen = errors.New("this session is not in use, or does not have that rule")
	// ErrMode says that a mode is not one that may be set.
	ErrMode = errors.New("this mode may not be set here")
)

// rightsDone is what the last form did, if it was about rights.
func rightsDone(r *http.Request) string {
	switch r.URL.Query().Get("done") {
	case "mode":
		return "The mode holds from the next call on. The session is told with its next result."
	case "taken":
		return "The rule allows nothing any more, from the next call on."
	case "closed":
		return "Nothing was done: this session is not in use now, or does not have that rule."
	}
	return ""
}

// rights sets the mode of a session, or takes back a rule that was allowed in it.
func (c *Console) rights(w http.ResponseWriter, r *http.Request, p Person) {
	if c.barred(w, r, p) {
		return
	}
	f := r.PostForm
	id, rule := SessionID{f.Get("of"), f.Get("session")}, f.Get("rule")
	done, err := "mode", error(nil)
	switch {
	case !sessionName.MatchString(id.Session), f.Has("rule") == f.Has("mode"):
		err = ErrMode
	case f.Has("rule"):
		done, err = "taken", c.o.Activity.TakeBack(r.Context(), p.Who, id, rule)
	default:
		err = c.o.Activity.SetMode(r.Context(), p.Who, id, f.Get("mode"))
	}
	switch {
	case errors.Is(err, ErrNotOpen):
		done = "closed"
	case errors.Is(err, ErrMode):
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "Choose one of what is offered.")
		return
	case err != nil:
		c.broken(w, r, err)
		return
	}
	p.Query = link(p, CallQuery{Session: id.Session})
	c.redirect(w, p, "../activity", done)
}
