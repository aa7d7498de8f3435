package signin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/oauth"
)

// Whatever a form says: what is decided is within what was asked for and what the person has.
func FuzzDecision(f *testing.F) {
	p := &Pages{key: []byte("key")}
	ask := oauth.Ask{ID: askID, Scopes: auth.Read | auth.Write}
	f.Add("access=all&root=/srv/ws/one&root=/srv/ws/two&mode=plan&life=24")
	f.Add("access=read&root=/srv/ws/one&root=/srv/ws/one&mode=acceptEdits&life=1&offered=x")
	f.Add("access=all&access=read&root=/&mode=bypassPermissions&life=-1")
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/signin/ask/"+askID, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if r.ParseForm() != nil {
			return
		}
		who := everyPrincipal()
		v := &visit{asked: asked{r: r}, p: p, who: &session{Principal: "alice"}, rights: who}
		d, wrong := decisionOf(v, ask)
		if wrong != "" {
			return
		}
		if d.Principal != "alice" || d.Scopes == 0 || d.Scopes&^(ask.Scopes&who.Scopes) != 0 || d.Life <= 0 || d.Life > oauth.MaxLife ||
			lowerMode(d.MaxMode, who.MaxMode) != d.MaxMode || lowerMode(d.Mode, d.MaxMode) != d.Mode {
			t.Fatalf("decided %+v", d)
		}
		if d.Roots == nil && r.PostForm.Get("offered") != offered(v) {
			t.Fatal("everything was allowed, also what is to come, and nobody was shown it")
		}
		if d.Roots != nil && len(d.Roots) == 0 || len(slices.Compact(slices.Sorted(slices.Values(d.Roots)))) != len(d.Roots) {
			t.Fatalf("the roots are %q", d.Roots)
		}
		for _, root := range d.Roots {
			if !slices.Contains(who.Roots, root) {
				t.Fatalf("the roots are %q", d.Roots)
			}
		}
	})
}

// A name that stands twice in an object of JSON is refused, however it is spelled, as is a field of a form.
func FuzzRepeated(f *testing.F) {
	f.Add(`{"csrf":"a","csrf":"b"}`, "csrf=a&csrf=b")
	f.Add(`{"csrf":"a","CSRF":"b"}`, "root=a&root=b")
	f.Fuzz(func(t *testing.T, object, form string) {
		var one struct{ CSRF string }
		if oauth.ReadObject([]byte(object), &one) == nil {
			if twice := strings.TrimSuffix(strings.TrimSpace(object), "}") + `,"cSRF":"x","csrf":"y"}`; oauth.ReadObject([]byte(twice), &one) == nil {
				t.Fatalf("%s", twice)
			}
		}
		values, err := url.ParseQuery(form)
		if err == nil && unrepeated(values) == nil {
			for name := range values {
				values.Add(name, "x")
				if unrepeated(values) == nil && name != "root" {
					t.Fatalf("%q stands there twice", name)
				}
				return
			}
		}
	})
}
