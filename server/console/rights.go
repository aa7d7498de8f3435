package console

import (
	"errors"
	"net/http"
	"strings"

	"codehand/server/sessions"
)

// A SessionID names a session in use.
type SessionID struct {
	Principal string
	Session   string // a short name
}

// rightsDone is what the last form did, if it was about rights.
func rightsDone(r *http.Request) string {
	switch r.URL.Query().Get("done") {
	case "mode":
		return "The mode holds from the next call on. The session is told with its next result."
	case "set":
		return "The rule holds from the next call on. The session is told with its next result."
	case "taken":
		return "The rule does not hold any more, from the next call on."
	case "closed":
		return "Nothing was done: this session is not in use now, or does not have that rule."
	}
	return ""
}

// rights sets the mode of a session, sets a rule for it, or takes one back.
func (c *Console) rights(w http.ResponseWriter, r *http.Request, p Person) {
	if c.barred(w, r, p) {
		return
	}
	f := r.PostForm
	id, a := SessionID{f.Get("of"), f.Get("session")}, c.o.Activity
	rule := sessions.NamedRule{List: f.Get("list"), Rule: strings.TrimSpace(f.Get("rule"))}
	done, err := "mode", error(nil)
	switch {
	case !sessionName().MatchString(id.Session), f.Has("rule") == f.Has("mode"):
		err = sessions.ErrMode
	case f.Has("mode"):
		err = a.SetMode(r.Context(), p.Who, id, f.Get("mode"))
	case f.Get("do") == "take":
		done, err = "taken", a.TakeBack(r.Context(), p.Who, id, rule)
	default:
		done, err = "set", a.AddRule(r.Context(), p.Who, id, rule)
	}
	wrong, isWrong := errors.AsType[*sessions.RuleError](err)
	switch {
	case errors.Is(err, sessions.ErrNotOpen):
		done = "closed"
	case errors.Is(err, sessions.ErrMode):
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "Choose one of what is offered.")
		return
	case isWrong:
		c.fail(w, r, p, http.StatusBadRequest, "Not set", "Nothing was done: "+shown(wrong.Text))
		return
	case err != nil:
		c.broken(w, r, err)
		return
	}
	p.Query = link(p, CallQuery{Session: id.Session})
	c.redirect(w, p, "../activity", done)
}

// A rightsForm is what each form about the rights of a session holds.
type rightsForm struct{ Token, Principal, Session string }

func formOf(v view, r sessions.Rights) rightsForm {
	return rightsForm{v.Person.Token, r.Key.Principal, v.Activity.Query.Session}
}

// Lists are what a rule of a session may do.
func (v *activityView) Lists() []string { return sessions.Lists }
