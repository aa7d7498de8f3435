package team

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/config"
	"codehand/server/console"
	"codehand/server/listen"
	"codehand/server/members"
	"codehand/server/people"
	"codehand/server/signin"
	"codehand/tools/sandbox"
)

// A webPage is what serve shows people at `/`.
type webPage struct {
	*console.Console
	team *Team
	none bool   // nobody signs in
	key  []byte // of its CSRF tokens, where nobody signs in
}

// newPage makes that of t; nil: callers sign in with tokens alone, so nobody could be told from a program.
func newPage(t *Team) *webPage {
	modes, err := auth.ParseModes(t.o.Config.Auth.Mode)
	if err != nil || !modes.None && !modes.Pages() {
		return nil
	}
	p := &webPage{team: t, none: modes.None, key: make([]byte, sha256.Size)}
	_, _ = rand.Read(p.key) // it never fails
	o := console.Options{Person: p.person, SignIn: modes.Pages(), Changes: pageChanges{team: t}, ChangesOf: t.changesOf,
		Activity: pageActivity{t}, Pauses: t.Pauses, Connects: true, Public: t.o.Config.HTTP.PublicURL, Log: t.o.Log,
		Limits: func(who auth.Principal) []limits.Use { return t.Porter.Limits(who).Uses() }}
	if t.Desk != nil {
		o.Questions = t.Desk
	}
	if modes.Team {
		o.People = members.New(members.Options{Porter: t.Porter, Grants: t.Signing.OAuth,
			Book: people.Open(t.o.Dir, nil), Tokens: auth.OpenTokenFile(t.o.Config.TokenFile()), Ended: t.revoked,
			Event: t.Event, Log: t.o.Log})
	}
	p.Console = console.New(o)
	return p
}

// pagesOf returns what serves a path that needs no token; nil: nothing there does.
func pagesOf(t *Team) func(path string) http.Handler {
	prefix := pathOf(t.o.Config.HTTP.PublicURL)
	return func(path string) http.Handler {
		if own, below := strings.CutPrefix(path, prefix); t.page != nil && below && console.Serves(own) {
			return http.StripPrefix(prefix, t.page)
		}
		return t.Signing.pages(path)
	}
}

// person finds out who sent a request for the page.
func (p *webPage) person(w http.ResponseWriter, r *http.Request, posted string) (console.Person, error) {
	if !p.none {
		v, ok, err := signin.Visit(p.team.Signing.people, w, r, posted)
		if err == nil && !ok {
			err = console.ErrForged
		}
		return console.Person{Who: v.Who, In: v.In, Fresh: v.Fresh, Token: v.Token, Query: v.Query}, err
	}
	who, err := p.team.Porter.Authenticate(r)
	if err != nil {
		return console.Person{}, err
	}
	m := hmac.New(sha256.New, p.key)
	m.Write([]byte("csrf|1|" + who.ID))
	token := base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	x := console.Person{Who: who, In: true, Token: token, Bars: p.bars(r)}
	if r.Method == http.MethodPost && subtle.ConstantTimeCompare([]byte(posted), []byte(x.Token)) != 1 {
		return console.Person{}, console.ErrForged
	}
	return x, nil
}

// bars says why who sent r, without a sign-in, may be a command of an agent; "": it is a person's program.
func (p *webPage) bars(r *http.Request) string {
	const help = " To approve calls here, sign in: start serve with --auth-mode owner."
	o := p.team.o
	switch {
	case o.Maker.NoShell != "":
		return "" // no command runs
	case o.Config.Sandbox.Policy == config.SandboxOff, o.Proven().Level < sandbox.LevelKernel:
		return "Commands are not confined here, so a command of an agent could answer in your place." + help
	case !auth.Ours(p.team.Porter, r):
		return "This system does not say which program connects, so a command of an agent could answer in your " +
			"place." + help
	}
	return ""
}

// servePage lets questions and pauses wait for people at the page of a server on ls until ctx ends or stop is called.
func servePage(ctx context.Context, t *Team, ls []listen.Listener) (stop func()) {
	url := pageURL(t.o.Config.HTTP.PublicURL, ls)
	if t.page != nil && url != "" {
		t.Pauses.Serve(url)
		t.Desk.Serve(url)
	}
	over := func() {
		t.Pauses.Stop()
		t.Desk.Serve("")
	}
	end := context.AfterFunc(ctx, over)
	return func() {
		end()
		over()
	}
}

// pageURL is where a browser finds the page; "": nowhere.
func pageURL(public string, ls []listen.Listener) string {
	if public != "" {
		return strings.TrimSuffix(public, "/") + "/"
	}
	for _, l := range ls {
		if !l.Unix && l.URL != "" {
			return strings.TrimSuffix(l.URL, "/") + "/"
		}
	}
	return ""
}
