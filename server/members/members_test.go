package members

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/console"
	"codehand/server/oauth"
	"codehand/server/people"
)

// An operator lets in all but out, whom it names, too.
type operator struct{ reloads int }

func (o *operator) Named() []string { return []string{"out", "carol"} }
func (o *operator) Reload() error   { o.reloads++; return nil }
func (o *operator) Rights(id string) (auth.Principal, bool) {
	return auth.Principal{ID: id, Admin: id == "carol"}, id != "out"
}

type grants struct{ all []oauth.Grant }

func (g *grants) Grants(context.Context) ([]oauth.Grant, error) { return g.all, nil }

func (g *grants) RevokeGrant(_ context.Context, id string) error {
	n := len(g.all)
	if g.all = slices.DeleteFunc(g.all, func(g oauth.Grant) bool { return g.ID == id }); len(g.all) == n {
		return oauth.ErrNoGrant
	}
	return nil
}

// TestMembers: all who may call are listed with what acts for them and is good now. Each of these ends once, and the
// audit says by whom.
func TestMembers(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	book, tokens := people.Open(dir, nil), auth.OpenTokenFile(filepath.Join(dir, "tokens.jsonl"))
	must(book.SetPassword("alice", "$argon2id$x", false))
	must(book.AddPasskey("alice", people.Passkey{ID: "k1", Name: "phone"}))
	_, code, err := book.Invite("bob")
	must(err)
	_, err = book.Accept(code, "", &people.Passkey{ID: "k2", Name: "laptop"}, []byte("h"))
	must(err)
	for _, x := range []auth.Token{
		{Principal: "alice", Note: "ci", Values: auth.Values{Scopes: []string{"mcp:read"}, Roots: []string{"/srv"}}},
		{Principal: "alice", Note: "old", Revoked: now},
		{Principal: "alice", Note: "older", Expires: now.Add(-time.Hour)},
	} {
		_, _, err := tokens.New(x)
		must(err)
	}
	porter := &operator{}
	given := &grants{all: []oauth.Grant{{ID: "g1", Client: oauth.ClientInfo{Name: "Editor"},
		Decision: oauth.Decision{Principal: "bob", Scopes: auth.Read}, Created: now}}}
	var events []string
	ended := 0
	event := func(name string, f map[string]any) {
		events = append(events, fmt.Sprint(name, " ", f["p"], " ", f["by"]))
	}
	m := New(Options{Porter: porter, Grants: given, Book: book, Tokens: tokens, Ended: func() { ended++ }, Event: event})

	for _, name := range []string{"out", "", "a\nb"} {
		if _, _, err := m.Invite(t.Context(), "carol", name); err == nil || !errors.As(err, new(*console.NameError)) {
			t.Errorf("an invitation for %q: %v", name, err)
		}
	}
	path, until, err := m.Invite(t.Context(), "carol", "dora")
	must(err)
	invite, err := book.Invited(strings.TrimPrefix(path, people.InvitePath))
	if err != nil || invite.Principal != "dora" || !until.Equal(invite.Expires) {
		t.Errorf("%s: %+v %v", path, invite, err)
	}

	list := func() (all []string, ids []console.AccessID) {
		t.Helper()
		people, err := m.All(t.Context())
		must(err)
		for _, one := range people {
			text := fmt.Sprintf("%s %q refused %t", one.Who.ID, one.Signs, one.Refused)
			for _, a := range one.Access {
				text += fmt.Sprintf(", %s %q %q", a.Kind, a.Name, a.May)
				ids = append(ids, a.AccessID)
			}
			all = append(all, text)
		}
		return all, ids
	}
	all, ids := list()
	want := []string{
		`alice "password and 1 passkey" refused false, token "ci" "mcp:read in /srv"`,
		`bob "1 passkey" refused false, client "Editor" "Read and search files"`,
		`carol "" refused false`,
		`dora "" refused false, invitation "" ""`,
		`out "" refused true`,
	}
	if !slices.Equal(all, want) {
		t.Errorf("%q\nwant %q", all, want)
	}
	for _, id := range append(ids, console.AccessID{Kind: "other", ID: "x"}) {
		known := id.Kind != "other"
		if err := m.End(t.Context(), "carol", id); (err == nil) != known {
			t.Errorf("%v: %v", id, err)
		}
		if err := m.End(t.Context(), "carol", id); !errors.Is(err, console.ErrNoAccess) {
			t.Errorf("%v, once more: %v", id, err)
		}
	}
	if _, ids := list(); len(ids) > 0 {
		t.Errorf("what was ended is listed: %v", ids)
	}
	want = []string{"page.invite dora carol", "page.end alice carol", "page.end bob carol", "page.end dora carol"}
	if !slices.Equal(events, want) {
		t.Errorf("the audit has %q, want %q", events, want)
	}
	if porter.reloads == 0 || ended == 0 {
		t.Error("what was opened with the token goes on")
	}
}
