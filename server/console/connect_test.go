package console

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"codehand/server/clients"
	"codehand/server/public"
)

// TestConnect: the page tells what codehand install would write, for the address that a person's client can reach.
func TestConnect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o     Options
		url   string
		chats bool
	}{
		"as the browser names it": {o: Options{Connects: true, SignIn: true}, url: "http://example.com/mcp"},
		"as others know it": {o: Options{Connects: true, SignIn: true, Public: "https://code.example.org/a/"},
			url: "https://code.example.org/a/mcp", chats: true},
		"no sign-in": {o: Options{Connects: true, Public: "https://code.example.org"}, url: "https://code.example.org/mcp"},
	} {
		c.o.Pauses = &valve{}
		c.o.Person = func(http.ResponseWriter, *http.Request, string) (Person, error) { return ann(), nil }
		w := get(New(c.o), "/connect") // the Host of httptest is example.com
		got := html.UnescapeString(w.Body.String())
		if w.Code != http.StatusOK || !strings.Contains(got, "<pre class=\"said\" tabindex=\"0\">"+c.url+"</pre>") ||
			!strings.Contains(got, `<a href="./connect" aria-current="page">`) {
			t.Errorf("%s: %d, %s", name, w.Code, got)
		}
		for _, s := range clients.Snippets(clients.Endpoint{URL: c.url}) {
			if !strings.Contains(got, "<summary>"+s.Title+"</summary>") || !strings.Contains(got, s.Text) ||
				!strings.Contains(got, "codehand install "+s.ID+" --remote "+c.url+"</pre>") ||
				!strings.Contains(got, s.Note) || !strings.Contains(got, "<code>"+s.Files.Windows+"</code>") {
				t.Errorf("%s: nothing of %s, or not what install writes: %q", name, s.ID, s.Text)
			}
		}
		for _, link := range []string{`"vscode:mcp/install?%7B%22name`, `"cursor://anysphere.cursor-deeplink/mcp/install?name=codehand&config=`} {
			if !strings.Contains(got, link) {
				t.Errorf("%s: no link %s", name, link)
			}
		}
		if chat := public.Chats()[0]; strings.Contains(got, chat.Where) != c.chats {
			t.Errorf("%s: chats: %t, want %t", name, !c.chats, c.chats)
		}
	}
	// Over TLS, to who is not signed in, and where clients do not connect.
	r := httptest.NewRequest(http.MethodGet, "https://localhost:7433/connect", nil)
	w := httptest.NewRecorder()
	person := ann()
	o := Options{Connects: true, SignIn: true, Pauses: &valve{},
		Person: func(http.ResponseWriter, *http.Request, string) (Person, error) { return person, nil }}
	New(o).ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), ">https://localhost:7433/mcp</pre>") {
		t.Errorf("over TLS: %s", w.Body)
	}
	person = Person{}
	if w := get(New(o), "/connect"); strings.Contains(w.Body.String(), "/mcp") || !strings.Contains(w.Body.String(), "Sign in first") {
		t.Errorf("to a stranger: %s", w.Body)
	}
	o.Connects, person = false, ann()
	if w := get(New(o), "/connect"); w.Code != http.StatusNotFound {
		t.Errorf("where no client connects: %d", w.Code)
	}
}
