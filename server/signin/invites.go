package signin

import (
	"errors"
	"net/http"
	"time"

	"codehand/server/people"
)

// follow takes the code of an invitation out of the address bar. A cookie carries it from here on; over plain http,
// where others would be sent that, the ticket does, sealed. It uses nothing up, since programs that preview links
// follow them, too.
func (p *Pages) follow(v *visit) {
	v.w.Header().Set("Referrer-Policy", "no-referrer")
	code := v.r.PathValue("code")
	if len(code) > 100 {
		code = "-" // no person has it
	}
	if v.secure() {
		v.setCookie(inviteCookie, code, time.Hour)
	} else {
		v.ticket = v.p.seal(v.cookie, code)
	}
	v.goTo("invite")
}

// code is that of the browser's invitation; "": it has none.
func (v *visit) code() string {
	if !v.secure() {
		return v.p.unseal(v.cookie, v.ticket)
	}
	c, err := v.r.Cookie(v.cookieName(inviteCookie))
	if err != nil {
		return ""
	}
	return c.Value
}

func (v *visit) inviteOver(err error) {
	if !errors.Is(err, people.ErrInvite) {
		v.broken(err)
		return
	}
	const title, why = "No invitation", "This invitation does not exist, has expired or was used."
	if v.isJSON() {
		v.fail(http.StatusGone, title, why)
		return
	}
	v.status, v.ticket = http.StatusGone, ""
	v.show(title, message{Text: why + " If you used it, sign in with what you set up then; else ask for a new link.",
		Link: "Sign in"})
}

// An inviteForm is the page to accept an invitation.
type inviteForm struct {
	Principal string
	Wrong     string
}

// invited shows what is needed to accept an invitation.
func (p *Pages) invited(v *visit) {
	i, err := p.o.People.Invited(v.code())
	if err != nil {
		v.inviteOver(err)
		return
	}
	v.showInvite(i, "")
}

func (v *visit) showInvite(i people.Invite, wrong string) {
	v.withScript()
	v.show("Welcome", inviteForm{Principal: i.Principal, Wrong: wrong})
}

// accept sets the first password of a principal.
func (p *Pages) accept(v *visit) {
	i, err := p.o.People.Invited(v.code())
	if err != nil {
		v.inviteOver(err)
		return
	}
	password := v.r.PostForm.Get("password")
	wrong := people.CheckPassword(password)
	if wrong == nil && password != v.r.PostForm.Get("again") {
		wrong = errors.New("the two passwords differ")
	}
	if wrong != nil {
		v.status = http.StatusUnprocessableEntity
		v.showInvite(i, sentence(wrong))
		return
	}
	hash, err := p.hasher.Hash(v.r.Context(), password)
	switch {
	case errors.Is(err, people.ErrBusy):
		v.later(time.Second)
	case err != nil:
		v.broken(err)
	default:
		p.join(v, hash, nil, nil)
	}
}

// join uses the invitation up, and signs the person in.
func (p *Pages) join(v *visit, hash string, key *people.Passkey, handle []byte) {
	person, err := p.o.People.Accept(v.code(), hash, key, handle)
	if err != nil {
		v.inviteOver(err)
		return
	}
	if v.secure() {
		v.setCookie(inviteCookie, "", 0)
	}
	way := "password"
	if key != nil {
		way = "passkey"
	}
	p.event(v, "signin.invited", map[string]any{"p": person.ID, "way": way})
	if _, enabled := p.o.Rights(person.ID); !enabled || !p.admits(person.ID) {
		v.fail(http.StatusForbidden, "Not yet", "This is set up, but you cannot sign in now. Ask the operator.")
		return
	}
	if err := v.begin(v.r.Context(), person, "invitation"); err != nil {
		v.broken(err)
		return
	}
	if v.isJSON() {
		v.answerJSON(http.StatusOK, map[string]string{"next": queried(v.ticket)})
		return
	}
	v.goTo("")
}
