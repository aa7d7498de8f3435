package signin

import (
	"net/http"

	"codehand/server/auth"
)

// A Visitor is the browser of a request for a page of another room, which has our session.
type Visitor struct {
	Who   auth.Principal // of In
	In    bool           // a person has signed in
	Token string         // CSRF, for the forms of a page; "": nobody has signed in
	Fresh bool           // the person signed in a short time ago
	Query string         // ends links to pages, since over plain http the cookie alone proves nothing; "" or "?..."
}

// Visit finds out who sent r, for a page beside ours. posted is the CSRF token of its form, "" for a GET. ok is false
// if the form is not one of a page that this browser has open: then nothing may be done. The error is that of the
// Store.
func Visit(p *Pages, w http.ResponseWriter, r *http.Request, posted string) (x Visitor, ok bool, err error) {
	v := &visit{asked: asked{r, p.public}, p: p, w: w, status: http.StatusOK}
	if c, err := r.Cookie(v.cookieName(browserCookie)); err == nil && len(c.Value) == 43 {
		v.cookie = c.Value
	}
	if r.Method == http.MethodPost {
		if v.cookie == "" || !v.sameOrigin() || !v.genuine(posted) {
			return x, false, nil
		}
	} else if !v.secure() {
		v.ticket = r.URL.Query().Get(ticketName)
	}
	if v.cookie == "" {
		return x, true, nil
	}
	if err := v.recall(); err != nil || v.who == nil {
		return x, err == nil, err
	}
	return Visitor{Who: v.rights, In: true, Fresh: v.fresh(), Token: v.token(), Query: queried(v.ticket)}, true, nil
}

// Style is the look of all pages of codehand.
func Style() []byte {
	text, err := files.ReadFile("pages/signin.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}

// Icon is the picture of all pages of codehand, as SVG.
func Icon() []byte {
	text, err := files.ReadFile("pages/icon.svg")
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}
