package auth

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// A oneSource is a Source with one token.
type oneSource struct {
	text  string
	found Found
	ask   string
}

func (s *oneSource) Find(text string, _ time.Time) (Found, bool, error) {
	return s.found, text == s.text, nil
}

func (s *oneSource) Valid(who Principal) (valid, mine bool) {
	return true, who.Via == s.found.Via
}

func (s *oneSource) Ask(who Principal, _ Scopes) (string, bool) { return s.ask, who.Via == s.found.Via }

// What is said about groups counts in the order of the file, after what is said about the principal itself.
func TestGroups(t *testing.T) {
	source := &oneSource{text: "a.b.c", found: Found{ID: "corp/1", Via: "oidc:corp", Groups: []string{"ops", "unknown", "devs", "ops"},
		Values: Values{Scopes: []string{"mcp:write"}}}, ask: "api.shell"}
	groups := []Group{
		{Name: "devs", Values: Values{Mode: new("plan"), Deny: []string{"run_shell"}, Quota: map[string]string{"burst": "5"}}},
		{Name: "ops", Values: Values{Mode: new("default"), Profile: new("readonly"), Deny: []string{"Read(x)"}, Quota: map[string]string{"burst": "6"}}},
		{Name: "others", Values: Values{Profile: new("default"), Enabled: new(false)}},
	}
	p, err := New(Options{Mode: "oidc", Workspaces: t.TempDir(), Sources: []Source{source}, Groups: groups,
		Named:    map[string]Values{"corp/1": {Quota: map[string]string{"burst": "7"}}},
		Metadata: func(*http.Request) string { return "https://x/meta" }, Initial: "api.read openid"})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(token string) (Principal, error) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return p.Authenticate(r)
	}
	who, err := ask("a.b.c")
	if err != nil {
		t.Fatal(err)
	}
	if who.Mode != "plan" || who.Profile != "readonly" || who.Quota.Burst != 7 || !slices.Equal(who.Deny, []string{"run_shell", "Read(x)"}) || who.Scopes != Read|Write {
		t.Errorf("%+v", who)
	}
	if !p.Valid(who) {
		t.Error("not valid")
	}
	if bad := p.Lacking(nil, who, Shell); bad == nil || !strings.Contains(bad.Challenge, `scope="api.shell"`) {
		t.Errorf("%+v", bad)
	}
	if source.ask = ""; p.Lacking(nil, who, Shell) != nil {
		t.Error("a client is told to ask for what it cannot get")
	}
	_, err = ask("")
	if bad, ok := err.(*Error); !ok || !strings.Contains(bad.Challenge, `scope="api.read openid"`) {
		t.Errorf("%+v", err)
	}
	if err := p.Configure(Values{}, nil, []Group{{Name: "x", Values: Values{Mode: new("y")}}}); err == nil || !strings.Contains(err.Error(), `principals.groups."x"`) {
		t.Errorf("%v", err)
	}
	if err := p.Configure(Values{}, nil, groups[1:]); err != nil || p.Valid(who) {
		t.Errorf("the rights changed, and the principal is still valid: %v", err)
	}
	if err := p.Configure(Values{}, nil, []Group{{Name: "ops", Values: Values{Enabled: new(false)}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask("a.b.c"); err == nil {
		t.Error("a group that is disabled came in")
	}
}
