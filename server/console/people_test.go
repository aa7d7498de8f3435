package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/auth/limits"
)

// A team is the People of a test. It remembers what was done.
type team struct {
	all  []Member
	done []string
}

func (f *team) All(context.Context) ([]Member, error) { return f.all, nil }

func (f *team) Invite(_ context.Context, by, principal string) (string, time.Time, error) {
	if principal == "eve" {
		return "", time.Time{}, &NameError{"nobody is <b>"}
	}
	f.done = append(f.done, by+" invites "+principal)
	if principal == "new" {
		f.all = append(f.all, Member{Who: auth.Principal{ID: "new"}})
	}
	return "/signin/invite/chi_secret", time.Now(), nil
}

func (f *team) End(_ context.Context, by string, id AccessID) error {
	if id.ID == "gone" {
		return ErrNoAccess
	}
	f.done = append(f.done, by+" ends "+id.Kind+" "+id.ID)
	return nil
}

// staffed is a Console with people, for one person.
func staffed(who Person) (*Console, *team) {
	f := &team{all: []Member{
		{Who: auth.Principal{ID: "ann", Admin: true}, Signs: "password"},
		{Who: auth.Principal{ID: "bob <b>&"}, Signs: "1 passkey", Access: []Access{
			{AccessID: AccessID{OfClient, "g1"}, Name: "<i>evil</i>", Used: time.Now()},
			{AccessID: AccessID{OfToken, "t1"}, Name: "laptop", May: "mcp:read"},
			{AccessID: AccessID{OfInvitation, "i1"}, Expires: time.Now()}}},
		{Who: auth.Principal{ID: "out"}, Refused: true},
	}}
	c := New(Options{Questions: &desk{}, Activity: &work{}, Pauses: &valve{}, People: f, SignIn: true,
		Limits: func(p auth.Principal) []limits.Use {
			if p.ID != "bob <b>&" {
				return nil
			}
			return []limits.Use{{Key: "concurrent_calls", Used: 2, Most: 4}}
		},
		Person: func(_ http.ResponseWriter, r *http.Request, posted string) (Person, error) {
			if r.Method == http.MethodPost && posted != who.Token {
				return Person{}, ErrForged
			}
			return who, nil
		}})
	return c, f
}

func send(c *Console, path string, fields ...string) *httptest.ResponseRecorder {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// TestPeople: an administrator who signed in a short time ago sees all people, the page of each, ends what acts for
// them and invites; any other person sees and does nothing of it, and nothing of a client becomes markup.
func TestPeople(t *testing.T) {
	t.Parallel()
	admin := ann()
	admin.Who.Admin, admin.Fresh = true, true
	c, f := staffed(admin)
	bob := "/people?principal=" + url.QueryEscape("bob <b>&")
	for path, want := range map[string][]string{
		"/people":                    {`href="./people?principal=bob&#43;%3Cb%3E%26"`, "bob &lt;b&gt;&amp;", "may not call", "1 passkey", `action="./console/invite"`, `aria-current="page">People`},
		bob:                          {"&lt;i&gt;evil&lt;/i&gt;", "not verified", "laptop", "mcp:read", "Invitation", "concurrent_calls", "2 of 4", "replaces the password", `value="g1"`, "activity?principal=bob"},
		"/people?principal=out":      {"may not call", "Nothing."},
		"/people?principal=ann":      {"administrator"},
		"/people?principal=%3Cb%3Ex": {"There is no principal &lt;b&gt;x."},
		"/activity":                  {`href="./people"`},
	} {
		text := get(c, path).Body.String()
		for _, has := range want {
			if !strings.Contains(text, has) {
				t.Errorf("%s lacks %q: %s", path, has, text)
			}
		}
		if strings.Contains(text, "<i>evil") || strings.Contains(text, "chi_secret") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if text := get(c, "/people?principal=out").Body.String(); strings.Contains(text, "Invite") {
		t.Errorf("who may not call can be invited: %s", text)
	}
	token := admin.Token
	w := send(c, "/console/invite", "csrf", token, "name", " new ")
	if !strings.Contains(w.Body.String(), "http://example.com/signin/invite/chi_secret") || !strings.Contains(w.Body.String(), "<h1>new</h1>") {
		t.Errorf("the link is not shown: %s", w.Body)
	}
	if w := send(c, "/console/invite", "csrf", token, "name", "eve"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "nobody is &lt;b&gt;") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = send(c, "/console/end", "csrf", token, "principal", "bob <b>&", "kind", OfToken, "id", "t1")
	if at := w.Header().Get("Location"); at != "../people?principal=bob+%3Cb%3E%26&done=ended" {
		t.Errorf("it leads to %q", at)
	}
	w = send(c, "/console/end", "csrf", token, "principal", "ann", "kind", OfClient, "id", "gone")
	if at := w.Header().Get("Location"); at != "../people?principal=ann&done=over" {
		t.Errorf("it leads to %q", at)
	}
	if want := []string{"ann invites new", "ann ends token t1"}; !slices.Equal(f.done, want) {
		t.Errorf("done %q, want %q", f.done, want)
	}
}

func TestPeopleIsForAdministrators(t *testing.T) {
	t.Parallel()
	stale, nobody, barred := ann(), Person{Token: "x"}, ann()
	stale.Who.Admin = true
	barred.Who.Admin, barred.Fresh, barred.Bars = true, true, "Not from here."
	for name, x := range map[string]struct {
		who    Person
		sees   bool
		ends   bool
		status int
	}{
		"another person":               {who: ann(), status: http.StatusForbidden},
		"who has not signed in":        {who: nobody, status: http.StatusForbidden},
		"who may not answer":           {who: barred, status: http.StatusForbidden},
		"an administrator of long ago": {who: stale, sees: true, ends: true, status: http.StatusForbidden},
	} {
		c, f := staffed(x.who)
		page := get(c, "/people").Body.String()
		if strings.Contains(page, "1 passkey") != x.sees || strings.Contains(page, "console/invite") {
			t.Errorf("%s sees %s", name, page)
		}
		if strings.Contains(get(c, "/activity").Body.String(), `"./people"`) != (x.who.In && x.who.Who.Admin) {
			t.Errorf("%s: the link", name)
		}
		if w := send(c, "/console/invite", "csrf", x.who.Token, "name", "new"); w.Code != x.status {
			t.Errorf("%s invites: %d %s", name, w.Code, w.Body)
		}
		send(c, "/console/end", "csrf", x.who.Token, "kind", OfToken, "id", "t1")
		if (len(f.done) > 0) != x.ends || slices.Contains(f.done, "ann invites new") {
			t.Errorf("%s: %q", name, f.done)
		}
		if w := send(c, "/console/end", "csrf", "forged", "kind", OfToken, "id", "t2"); w.Code != http.StatusForbidden || len(f.done) > 1 {
			t.Errorf("%s, forged: %d %q", name, w.Code, f.done)
		}
	}
	if c := site(ann(), &desk{}); get(c, "/people").Code != http.StatusNotFound {
		t.Error("there is such a page where there are no people")
	}
}
