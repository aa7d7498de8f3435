package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
)

// People are those who may call, for an administrator. Each act says by whom.
type People interface {
	// All returns them by name.
	All(ctx context.Context) ([]Member, error)
	// Invite returns the path, below the address, of a link with which a principal chooses how they sign in, and when
	// it ends. It replaces how they signed in, and earlier links. A *NameError: there is no such principal.
	Invite(ctx context.Context, by, principal string) (path string, until time.Time, err error)
	// End ends an access. ErrNoAccess: it is over.
	End(ctx context.Context, by string, id AccessID) error
}

// ErrNoAccess says that an access has ended, or never was one.
var ErrNoAccess = errors.New("there is no such access")

// A NameError says why a principal cannot be invited.
type NameError struct{ Text string }

func (e *NameError) Error() string { return e.Text }

// A Member is one of the People.
type Member struct {
	Who     auth.Principal // with an ID alone, if Refused
	Refused bool           // the settings let nobody call by this name
	Signs   string         // how this person signs in, in a few words; "": there is no way yet
	Access  []Access       // the newest first
}

// The kinds of an Access.
const (
	OfClient     = "client"     // a grant: what a person allowed a client
	OfToken      = "token"      // a token of the tokens file
	OfInvitation = "invitation" // whoever has the link becomes that person
)

// An AccessID names an Access.
type AccessID struct{ Kind, ID string }

// An Access lets a program or a browser act for a person until it ends.
type Access struct {
	AccessID
	Name    string // of a client, as it says; of a token, its note
	Host    string // of a client, verified; "": nothing is
	May     string // what it may do, in a few words; "": what the person may
	Created time.Time
	Used    time.Time // zero: never, or it is not known
	Expires time.Time // zero: never
}

// A peopleView is a page about people.
type peopleView struct {
	All  []Member
	One  *Member // whose page it is; nil: that of all
	Uses []limited
	Link string // of the invitation that was made just now; it is shown once
	Life time.Time
}

// Last is when any access of a person was used; zero: it is not known that one was.
func (m Member) Last() (last time.Time) {
	for _, a := range m.Access {
		if a.Used.After(last) {
			last = a.Used
		}
	}
	return last
}

// Count is how many accesses of a kind a person has.
func (m Member) Count(kind string) (n int) {
	for _, a := range m.Access {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

// peoplePages are the pages about people.
type peoplePages struct{ *Console }

// peopleDone is what the last form did.
func peopleDone(r *http.Request) string {
	switch r.URL.Query().Get("done") {
	case "ended":
		return "It has ended. What was opened with it is closed."
	case "over":
		return "Nothing was done: it had ended before."
	}
	return ""
}

// managed answers who may not see to people. If ok is false, r was answered.
func (x peoplePages) managed(w http.ResponseWriter, r *http.Request, p Person) (ok bool) {
	if p.In && !p.Who.Admin {
		x.fail(w, r, p, http.StatusForbidden, "Not for you", "Only an administrator sees this page "+
			"(admin = true in [principals.NAME] of the settings).")
		return false
	}
	return !x.barred(w, r, p)
}

// people shows all of them, or one.
func (x peoplePages) people(w http.ResponseWriter, r *http.Request, p Person) {
	if !x.managed(w, r, p) {
		return
	}
	x.showPeople(w, r, p, r.URL.Query().Get(ofField), peopleView{})
}

// showPeople shows the page of a principal, or with "" that of all, with what v already has.
func (x peoplePages) showPeople(w http.ResponseWriter, r *http.Request, p Person, principal string, v peopleView) {
	out := view{Title: "People", Person: p.For(""), Now: time.Now(), Done: peopleDone(r), pages: pages{People: &v}}
	if !p.In {
		x.show(w, r, http.StatusOK, out)
		return
	}
	all, err := x.o.People.All(r.Context())
	if err != nil {
		x.broken(w, r, err)
		return
	}
	v.All = all
	if principal != "" {
		i := slices.IndexFunc(all, func(m Member) bool { return m.Who.ID == principal })
		if i < 0 {
			x.fail(w, r, p, http.StatusNotFound, "Not found", "There is no principal "+shown(principal)+".")
			return
		}
		v.One = &all[i]
		v.Uses = limitsOf(x.o, Person{Who: v.One.Who})
		out.Title = shown(principal)
	}
	x.show(w, r, http.StatusOK, out)
}

// invite makes a link for a person. It is as good as that person's password, so who asks must have signed in a short
// time ago.
func (x peoplePages) invite(w http.ResponseWriter, r *http.Request, p Person) {
	if !x.managed(w, r, p) {
		return
	}
	if !p.Fresh {
		x.fail(w, r, p, http.StatusForbidden, "Sign in again", "Nothing was done. An invitation is as good as a "+
			"password: to make one, sign out and in again first.")
		return
	}
	name := strings.TrimSpace(r.PostForm.Get("name"))
	path, until, err := x.o.People.Invite(r.Context(), p.Who.ID, name)
	if wrong, is := errors.AsType[*NameError](err); is {
		x.fail(w, r, p, http.StatusBadRequest, "Not invited", "Nothing was done: "+shown(wrong.Text))
		return
	} else if err != nil {
		x.broken(w, r, err)
		return
	}
	x.showPeople(w, r, p, name, peopleView{Link: address(x.o, r) + path, Life: until})
}

// endAccess ends what lets a program or a browser act for a person.
func (x peoplePages) endAccess(w http.ResponseWriter, r *http.Request, p Person) {
	if !x.managed(w, r, p) {
		return
	}
	done := "ended"
	id := AccessID{r.PostForm.Get("kind"), r.PostForm.Get("id")}
	switch err := x.o.People.End(r.Context(), p.Who.ID, id); {
	case errors.Is(err, ErrNoAccess):
		done = "over"
	case err != nil:
		x.broken(w, r, err)
		return
	}
	p.Query = memberQuery(p, r.PostForm.Get(ofField))
	x.redirect(w, p, "../people", done)
}

// memberQuery ends the link to the page of one of the people.
func memberQuery(p Person, principal string) string {
	q, _ := url.ParseQuery(strings.TrimPrefix(p.Query, "?")) // it is ours
	q.Set(ofField, principal)
	return "?" + q.Encode()
}

// address is where others find this page, without a slash at its end.
func address(o Options, r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.TrimSuffix(cmp.Or(o.Public, scheme+"://"+r.Host), "/")
}
