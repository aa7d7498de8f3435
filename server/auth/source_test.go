package auth

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// words is a Source whose tokens are words.
type words map[string]Found

func (w words) Find(text string, _ time.Time) (Found, bool, error) {
	rest, ok := strings.CutPrefix(text, "word-")
	if !ok {
		return Found{}, false, nil
	}
	f, ok := w[rest]
	if !ok {
		return Found{}, true, NotAccepted("unknown word")
	}
	return f, true, nil
}

func (w words) Valid(who Principal) (valid, mine bool) {
	rest, ok := strings.CutPrefix(who.Via, "oauth:")
	_, valid = w[rest]
	return valid, ok
}

// What a token of a source says narrows what the operator gives, and never widens it.
func TestSourcesNarrow(t *testing.T) {
	t.Parallel()
	onUnix(t)
	mode := func(text string) *string { return &text }
	w := words{
		"plain": {ID: "ann"},
		"less": {ID: "ann", Values: Values{Roots: []string{"/srv/ann/a", "/srv/other"}, Mode: mode("plan"), MaxMode: mode("default"),
			Scopes: []string{"mcp:write"}, Deny: []string{"Bash(x)"}, Profile: mode("readonly")}},
		"more": {ID: "ann", Values: Values{Mode: mode("bypassPermissions"), MaxMode: mode("bypassPermissions"), Admin: new(true),
			Scopes: []string{"mcp:all", "mcp:admin"}, Allow: []string{"Bash(*)"}, Profile: mode("default"), Quota: map[string]string{"calls_per_minute": "9999"}}},
		"away":   {ID: "ann", Values: Values{Roots: []string{"/srv/annex", "/"}}},
		"off":    {ID: "off"},
		"nobody": {},
		"wrong":  {ID: "ann", Values: Values{Scopes: []string{"x"}}},
	}
	for name, f := range w {
		f.Via = "oauth:" + name
		w[name] = f
	}
	p, err := New(Options{Mode: "owner", TokenFile: tokenFile(t).path, Sources: []Source{w}, Default: Values{Scopes: []string{"mcp:shell"}},
		Named:      map[string]Values{"ann": {Roots: []string{"/srv/ann"}, Mode: mode("acceptEdits")}, "off": {Enabled: new(false)}},
		Metadata:   func(r *http.Request) string { return "https://h/.well-known/oauth-protected-resource" + r.URL.Path },
		TokensOnly: func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/t/") }})
	mustDo(t, err)
	ask := func(path, token string) (Principal, *Error) {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		who, err := p.Authenticate(r)
		if err == nil {
			return who, nil
		}
		return who, err.(*Error)
	}
	is := func(token, roots, modes string, scopes Scopes) Principal {
		t.Helper()
		who, err := ask("/mcp", "word-"+token)
		if err != nil || strings.Join(who.Roots, " ") != roots || who.Mode+" "+who.MaxMode != modes || who.Scopes != scopes || who.Admin || who.Allow != nil {
			t.Errorf("%s: %+v, %v", token, who, err)
		}
		return who
	}
	plain := is("plain", "/srv/ann", "acceptEdits acceptEdits", Read|Write|Shell)
	less := is("less", "/srv/ann/a", "plan default", Read|Write)
	if less.Whole[0] != "/srv/ann" || less.Profile != "readonly" || len(less.Deny) != 1 {
		t.Errorf("less is %+v", less)
	}
	more := is("more", "/srv/ann", "acceptEdits acceptEdits", Read|Write|Shell)
	if more.Quota != plain.Quota {
		t.Error("a token of a source sets its own quota")
	}
	is("wrong", "/srv/ann", "acceptEdits acceptEdits", 0)
	for token, want := range map[string]string{"away": "401 invalid_token", "off": "403 principal_disabled", "nobody": "401 invalid_token", "unknown": "401 invalid_token"} {
		if _, err := ask("/mcp", "word-"+token); err == nil || strconv.Itoa(err.Status)+" "+err.Code != want {
			t.Errorf("%s: %v, want %s", token, err, want)
		}
	}
	for _, who := range []Principal{plain, less, more} {
		if !p.Valid(who) {
			t.Errorf("%s does not hold", who.Via)
		}
	}
	// new words of the operator end what meant something else
	mustDo(t, p.Configure(Values{Scopes: []string{"mcp:shell"}}, map[string]Values{"ann": {Roots: []string{"/srv/ann"}, Mode: mode("plan")}}, nil))
	if p.Valid(plain) || p.Valid(more) || !p.Valid(less) {
		t.Error("a principal keeps rights that it has no more, or loses those that it has")
	}
	delete(w, "less")
	if p.Valid(less) || p.Valid(Principal{ID: "ann", Via: "oauth:more"}) {
		t.Error("what the source does not know holds")
	}

	for path, c := range map[string]struct{ token, want string }{
		"/mcp":   {"", `Bearer realm="codehand", resource_metadata="https://h/.well-known/oauth-protected-resource/mcp", scope="mcp:read mcp:write mcp:shell mcp:web"`},
		"/sse":   {"word-x", `Bearer realm="codehand", resource_metadata="https://h/.well-known/oauth-protected-resource/sse", scope="mcp:read mcp:write mcp:shell mcp:web", error="invalid_token", error_description="token not accepted"`},
		"/t/mcp": {"", `Bearer realm="codehand"`},
		"/t/sse": {"word-plain", `Bearer realm="codehand", error="invalid_token"`},
	} {
		if _, err := ask(path, c.token); err == nil || err.Challenge != c.want {
			t.Errorf("%s: %+v", path, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	read, _ := p.foreign(&Found{ID: "ann", Values: Values{Scopes: []string{"mcp:read"}}})
	if e := p.Lacking(r, read, Write); e == nil || e.Status != 403 || !strings.Contains(e.Challenge, `error="insufficient_scope", scope="mcp:read mcp:write", resource_metadata=`) {
		t.Errorf("a call that lacks a scope: %+v", e)
	}
	if p.Lacking(r, read, Read) != nil || p.Lacking(r, read, Web) != nil || p.Lacking(r, Principal{Scopes: Read}, Write) != nil {
		t.Error("a sign-in is asked for that could change nothing")
	}
	if who, ok := p.Rights("ann"); !ok || who.Scopes != Read|Write|Shell {
		t.Errorf("ann may %+v, %v", who, ok)
	}
	if _, ok := p.Rights(""); ok {
		t.Error("nobody may sign in")
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
