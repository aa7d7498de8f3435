package auth

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// An approved directory that was replaced by a link leads nowhere: else a writer beside it would choose what a token
// opens. The targets of the operator's own links stay open.
func TestNarrowedRootsAreReal(t *testing.T) {
	t.Parallel()
	base := Real(leaktest.Dir(t))
	at := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	for _, dir := range []string{"ann/a", "ann/b", "bob", "v1/x"} {
		mustDo(t, os.MkdirAll(at(dir), 0o700))
	}
	if err := os.Symlink("v1", at("current")); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	w := words{"a": {ID: "ann", Via: "oauth:a", Values: Values{Roots: []string{at("v1", "x"), at("ann", "b"), at("ann", "a"), at("ann", "new")}}}}
	p, err := New(Options{Mode: "owner", TokenFile: tokenFile(t).path, Sources: []Source{w},
		Named: map[string]Values{"ann": {Roots: []string{at("ann"), at("ann", "a"), at("current")}}}})
	mustDo(t, err)
	is := func(what string, want ...string) Principal {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer word-a")
		who, err := p.Authenticate(r)
		mustDo(t, err)
		if got := strings.Join(who.Roots, " "); got != strings.Join(want, " ") {
			t.Errorf("%s: the roots are %s", what, got)
		}
		return who
	}
	// in the order in which the principal has them
	who := is("as approved", at("ann", "b"), at("ann", "a"), at("ann", "new"), at("v1", "x"))
	mustDo(t, os.Remove(at("ann", "a")))
	mustDo(t, os.Symlink(at("bob"), at("ann", "a"))) // also one that is a root of the principal by its name
	mustDo(t, os.Symlink(at("bob"), at("ann", "new")))
	is("after two were exchanged", at("ann", "b"), at("v1", "x"))
	mustDo(t, os.Remove(at("current")))
	mustDo(t, os.Symlink("bob", at("current")))
	is("after the operator's link leads elsewhere", at("ann", "b"))
	mustDo(t, os.Rename(at("ann", "b"), at("ann", "c")))
	mustDo(t, os.Symlink("c", at("ann", "b")))
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer word-a")
	if who, err := p.Authenticate(r); err == nil {
		t.Errorf("without any root that is left: %q", who.Roots)
	}
	// who was quicker than the look at the token
	if !who.Reaches([]string{at("ann", "c")}) || who.Reaches([]string{at("ann", "c"), at("v1")}) || who.Reaches([]string{base}) || !who.Reaches(nil) {
		t.Error("what was opened is not held against the roots of the principal")
	}
	if whole, _ := p.foreign(&Found{ID: "ann"}); !whole.Reaches([]string{base}) {
		t.Error("a token that narrows nothing is held against links")
	}
}

// Failures of others behind the same address, as all have behind a tunnel, do not lock out whom a person signed in.
// Guesses stay slow, and what is in a URL is no token.
func TestFailuresOfOthers(t *testing.T) {
	t.Parallel()
	at := newClock()
	w := words{"good": {ID: "ann", Via: "oauth:good"}, "off": {ID: "off", Via: "oauth:off"}}
	p, err := New(Options{Mode: "owner", TokenFile: tokenFile(t).path, Sources: []Source{w}, Workspaces: "/srv/ws", Now: at.now,
		Named: map[string]Values{"off": {Enabled: new(false)}}, TokensOnly: func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/t/") }})
	mustDo(t, err)
	ask := func(path string, tokens ...string) string {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		for _, token := range tokens {
			r.Header.Add("Authorization", "Bearer "+token)
		}
		who, err := p.Authenticate(r)
		if err != nil {
			return err.(*Error).Code
		}
		return who.ID
	}
	for range failuresBefore {
		if got := ask("/mcp", "word-guess"); got != "invalid_token" {
			t.Fatal(got)
		}
	}
	const slow = "too_many_failures"
	for name, c := range map[string][2]string{
		"a good one": {ask("/mcp", "word-good"), "ann"}, "a guess": {ask("/mcp", "word-guess"), slow}, "none": {ask("/mcp"), slow},
		"of a principal that is shut out": {ask("/mcp", "word-off"), slow}, "two": {ask("/mcp", "word-good", "word-good"), slow},
		"in the URL": {ask("/mcp?token=x", "word-good"), slow}, "where only static ones are good": {ask("/t/mcp", "word-good"), slow}, "of no source": {ask("/mcp", "x"), slow},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %s, want %s", name, c[0], c[1])
		}
	}
	at.move(time.Minute)
	if got := ask("/mcp", "word-guess"); got != "invalid_token" {
		t.Errorf("a minute later: %s", got)
	}
}
