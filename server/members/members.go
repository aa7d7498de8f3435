// Package members is who may call serve, and what acts for each: clients, tokens and invitations. It is what codehand
// invite, grants and token do, for an administrator on the page.
package members

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/console"
	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/signin"
)

// Options of Members. All are needed.
type Options struct {
	Porter Porter
	Grants Grants
	Book   *people.Book
	Tokens *auth.TokenFile
	// Ended closes what was opened with a token that is good no more.
	Ended func()
	Event func(name string, fields map[string]any) // for the audit
	Log   *slog.Logger
}

// Porter knows what the operator says about principals. *auth.Porter is one.
type Porter interface {
	Named() []string
	Rights(id string) (who auth.Principal, ok bool)
	Reload() error // reads the tokens again
}

// Grants are what people allowed clients. *oauth.Server has them, and closes what was opened with one that ends.
type Grants interface {
	Grants(ctx context.Context) ([]oauth.Grant, error)
	RevokeGrant(ctx context.Context, id string) error
}

// Members are those who may call. They are safe for concurrent use.
type Members struct{ o Options }

// New makes Members.
func New(o Options) *Members { return &Members{o} }

// All is console.People.All: whom the settings name, who signs in or is invited, and for whom a client or token acts.
func (m *Members) All(ctx context.Context) ([]console.Member, error) {
	persons, err := m.o.Book.All()
	if err != nil {
		return nil, err
	}
	all := map[string]*console.Member{}
	of := func(id string) *console.Member {
		one := all[id]
		if one == nil {
			one = &console.Member{Who: auth.Principal{ID: id}, Refused: true}
			if who, ok := m.o.Porter.Rights(id); ok {
				one.Who, one.Refused = who, false
			}
			all[id] = one
		}
		return one
	}
	for _, id := range m.o.Porter.Named() {
		of(id)
	}
	for _, one := range persons {
		of(one.ID).Signs = waysOf(one)
	}
	if err := m.access(ctx, func(id string, a console.Access) {
		one := of(id)
		one.Access = append(one.Access, a)
	}); err != nil {
		return nil, err
	}
	list := make([]console.Member, 0, len(all))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		one := *all[id]
		slices.SortStableFunc(one.Access, func(a, b console.Access) int { return b.Created.Compare(a.Created) })
		list = append(list, one)
	}
	return list, nil
}

// access calls with every access that is good now, and whose it is.
func (m *Members) access(ctx context.Context, with func(principal string, a console.Access)) error {
	now := time.Now()
	grants, err := m.o.Grants.Grants(ctx)
	if err != nil {
		return err
	}
	for _, g := range grants {
		with(g.Principal, console.Access{AccessID: console.AccessID{Kind: console.OfClient, ID: g.ID},
			Name: g.Client.Name, Host: g.Client.Host, May: within(signin.Can(g.Scopes), g.Roots),
			Created: g.Created, Used: g.LastUse, Expires: g.Expires})
	}
	tokens, err := m.o.Tokens.List()
	if err != nil {
		return err
	}
	used, err := m.o.Tokens.LastUse()
	if err != nil { // the list is of use without it
		m.o.Log.Warn("cannot read when tokens were last used", "err", err)
	}
	for _, t := range tokens {
		if t.State(now) == "active" {
			with(t.Principal, console.Access{AccessID: console.AccessID{Kind: console.OfToken, ID: t.ID},
				Name: t.Note, May: within(t.Values.Scopes, t.Values.Roots),
				Created: t.Created, Used: used[t.ID], Expires: t.Expires})
		}
	}
	invites, err := m.o.Book.Invites()
	if err != nil {
		return err
	}
	for _, i := range invites {
		if i.State(now) == "open" {
			with(i.Principal, console.Access{AccessID: console.AccessID{Kind: console.OfInvitation, ID: i.ID},
				Created: i.Created, Expires: i.Expires})
		}
	}
	return nil
}

// within are rights in words, with the directories that they are narrowed to; "": all that the person has.
func within(may, roots []string) string {
	text := strings.Join(may, "; ")
	if len(roots) > 0 {
		text = strings.TrimSpace(text + " in " + strings.Join(roots, ", "))
	}
	return text
}

// waysOf is how a person signs in, in words.
func waysOf(p people.Person) string {
	keys := strconv.Itoa(len(p.Passkeys)) + " passkeys"
	if len(p.Passkeys) == 1 {
		keys = "1 passkey"
	}
	switch {
	case p.Password == "" && len(p.Passkeys) == 0:
		return ""
	case p.Password == "":
		return keys
	case len(p.Passkeys) == 0:
		return "password"
	}
	return "password and " + keys
}

// Invite is console.People.Invite.
func (m *Members) Invite(_ context.Context, by, principal string) (path string, until time.Time, err error) {
	if err := auth.CheckID(principal); err != nil {
		return "", time.Time{}, &console.NameError{Text: err.Error()}
	}
	if _, ok := m.o.Porter.Rights(principal); !ok {
		return "", time.Time{}, &console.NameError{Text: "the settings let nobody in as " + principal +
			" (enabled in [principals.NAME] or [principals.default])"}
	}
	made, code, err := m.o.Book.Invite(principal)
	if err != nil {
		return "", time.Time{}, err
	}
	m.o.Event("page.invite", map[string]any{"p": principal, "by": by, "invitation": made.ID})
	return people.InvitePath + code, made.Expires, nil
}

// End is console.People.End.
func (m *Members) End(ctx context.Context, by string, id console.AccessID) error {
	principal := ""
	switch id.Kind {
	case console.OfClient:
		grants, err := m.o.Grants.Grants(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(grants, func(g oauth.Grant) bool { return g.ID == id.ID })
		if i < 0 {
			return console.ErrNoAccess
		}
		principal = grants[i].Principal
		if err := m.o.Grants.RevokeGrant(ctx, id.ID); errors.Is(err, oauth.ErrNoGrant) {
			return console.ErrNoAccess
		} else if err != nil {
			return err
		}
	case console.OfToken:
		ended, err := m.o.Tokens.Revoke(func(t auth.Token) bool { return t.ID == id.ID })
		if err != nil {
			return err
		}
		for _, t := range ended {
			principal = t.Principal
		}
		if err := m.o.Porter.Reload(); err != nil { // it is looked at again soon
			m.o.Log.Warn("read the tokens", "err", err)
		}
		m.o.Ended()
	case console.OfInvitation:
		ended, err := m.o.Book.RevokeInvites(func(i people.Invite) bool { return i.ID == id.ID })
		if err != nil {
			return err
		}
		for _, i := range ended {
			principal = i.Principal
		}
	}
	if principal == "" {
		return console.ErrNoAccess
	}
	m.o.Event("page.end", map[string]any{"p": principal, "by": by, "kind": id.Kind, "id": id.ID})
	return nil
}
