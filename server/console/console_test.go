package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/asking"
	"codehand/server/auth"
	"codehand/tools/tool"
)

// A desk is what waits in a test. It remembers who answered what.
type desk struct {
	list    []asking.Waiting
	err     error
	opened  []string
	all     bool
	answers []string
}

func (d *desk) Of(_ string, all bool) ([]asking.Waiting, uint64, <-chan struct{}) {
	d.all = all
	return d.list, 7, make(chan struct{})
}

func (d *desk) Open(principal string) func() {
	d.opened = append(d.opened, principal)
	return func() {}
}

func (d *desk) Answer(id, by string, admin bool, values map[string]string) error {
	as := ""
	if admin {
		as = " as admin"
	}
	d.answers = append(d.answers, by+as+": "+id+" "+values["decision"]+" "+values["reason"])
	return d.err
}

// site is a Console for one person, with a desk.
func site(who Person, d *desk) *Console {
	return New(Options{Questions: d, Activity: &work{}, Pauses: &valve{}, SignIn: true,
		Person: func(_ http.ResponseWriter, r *http.Request, posted string) (Person, error) {
			if r.Method == http.MethodPost && posted != who.Token {
				return Person{}, ErrForged
			}
			return who, nil
		}})
}

func ann() Person { return Person{Who: auth.Principal{ID: "ann"}, In: true, Token: "csrf-of-ann"} }

func get(c *Console, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func post(c *Console, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/console/answer", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://example.com") // the Host of httptest
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// TestEscapes: nothing of a client, model or file becomes markup, and what could not be seen is shown.
func TestEscapes(t *testing.T) {
	t.Parallel()
	evil := `"onload=alert(1) <script>alert(1)</script><img src=x onerror=alert(1)> ` + "\u202e\x1b[2J\x00</pre></textarea>"
	d := &desk{list: []asking.Waiting{{
		ID: "abc", Principal: evil, Session: "0011", Client: evil, Agent: evil, Tool: evil, Since: time.Now(), Until: time.Now(),
		Question: tool.Question{Title: evil, Text: evil + strings.Repeat("x", 1<<20),
			Fields: []tool.Field{{Name: "decision", Label: evil, Choices: []string{"allow once", "deny"}, Titles: []string{evil, evil}}, {Name: "reason", Label: evil}}},
	}}}
	who := ann()
	who.Who.ID = evil
	for _, path := range []string{"/", "/console/live"} {
		text := get(site(who, d), path).Body.String()
		for _, bad := range []string{"<script>alert", "<img", `"onload`, "\u202e", "\x1b", "\x00", "</textarea>"} {
			if strings.Contains(strings.ReplaceAll(text, `&#34;onload`, ""), bad) {
				t.Errorf("%s: %q is in the page", path, bad)
			}
		}
		if strings.Count(text, "</pre>") != 1 || !strings.Contains(text, `\u202e`) || !strings.Contains(text, strings.Repeat("x", 1<<20)) {
			t.Errorf("%s: the question is not whole", path)
		}
	}
}

// TestRights: who is not signed in, or may not answer, sees no question and answers none; an administrator sees all.
func TestRights(t *testing.T) {
	t.Parallel()
	waiting := asking.Waiting{ID: "abc", Principal: "ann", Question: tool.Question{Title: "Allow it?"}}
	barred, admin := ann(), ann()
	barred.Bars = "Not here."
	admin.Who.Admin = true
	for name, tt := range map[string]struct {
		who       Person
		sees      bool
		all       bool
		answer    int
		answeredA string
	}{
		"nobody": {Person{Token: "t"}, false, false, http.StatusForbidden, ""},
		"barred": {barred, false, false, http.StatusForbidden, ""},
		"person": {ann(), true, false, http.StatusSeeOther, "ann: abc deny because"},
		"admin":  {admin, true, true, http.StatusSeeOther, "ann as admin: abc deny because"},
	} {
		d := &desk{list: []asking.Waiting{waiting}}
		c := site(tt.who, d)
		for _, path := range []string{"/", "/console/live"} {
			text := get(c, path).Body.String()
			if strings.Contains(text, "Allow it?") != tt.sees || tt.sees != (len(d.opened) > 0) || d.all != tt.all {
				t.Errorf("%s: %s: opened %q, all %t: %s", name, path, d.opened, d.all, text)
			}
		}
		w := post(c, url.Values{"csrf": {tt.who.Token}, "id": {"abc"}, "f-decision": {"deny"}, "f-reason": {"because"}})
		if got := strings.Join(d.answers, "; "); w.Code != tt.answer || got != tt.answeredA {
			t.Errorf("%s: %d, %q", name, w.Code, got)
		}
	}
}

// TestForms: a form of another page, one that repeats a field and one that is too long do nothing.
func TestForms(t *testing.T) {
	t.Parallel()
	whole := func() url.Values {
		return url.Values{"csrf": {"csrf-of-ann"}, "id": {"abc"}, "f-decision": {"deny"}}
	}
	for name, tt := range map[string]struct {
		change func(url.Values)
		err    error
		code   int
		said   int
	}{
		"whole":     {func(url.Values) {}, nil, 303, 1},
		"over":      {func(url.Values) {}, asking.ErrOver, 303, 1},
		"no choice": {func(url.Values) {}, asking.ErrChoice, 400, 1},
		"broken":    {func(url.Values) {}, errors.New("secret cause"), 503, 1},
		"no token":  {func(f url.Values) { f.Del("csrf") }, nil, 403, 0},
		"other":     {func(f url.Values) { f.Set("csrf", "csrf-of-bob") }, nil, 403, 0},
		"twice":     {func(f url.Values) { f.Add("f-decision", "allow once") }, nil, 400, 0},
		"too long":  {func(f url.Values) { f.Set("f-reason", strings.Repeat("x", maxForm)) }, nil, 400, 0},
	} {
		d := &desk{err: tt.err}
		form := whole()
		tt.change(form)
		w := post(site(ann(), d), form)
		if w.Code != tt.code || len(d.answers) != tt.said || strings.Contains(w.Body.String(), "secret cause") {
			t.Errorf("%s: %d, %q", name, w.Code, d.answers)
		}
	}
	d := &desk{}
	form := whole()
	form.Set("f-reason", strings.Repeat("é", 5_000))
	post(site(ann(), d), form)
	if n := strings.Count(strings.Join(d.answers, ""), "é"); n != maxReason-1 {
		t.Errorf("%d characters of a reason", n)
	}
}

// TestAnswerSaid: after an answer the page says which one it was, also without a script.
func TestAnswerSaid(t *testing.T) {
	t.Parallel()
	d := &desk{list: []asking.Waiting{{ID: "abc", Question: tool.Question{Fields: []tool.Field{{Name: "decision", Choices: []string{"allow once", "deny"}}, {Name: "reason"}}}}}}
	for answer, want := range map[string]string{"allow once": "You allowed it", "deny": "You denied it"} {
		at := post(site(ann(), d), url.Values{"csrf": {"csrf-of-ann"}, "id": {"abc"}, "f-decision": {answer}}).Header().Get("Location")
		if text := get(site(ann(), d), strings.TrimPrefix(at, "..")).Body.String(); !strings.Contains(text, want) {
			t.Errorf("%s leads to %s: %s", answer, at, text)
		}
	}
	text := get(site(ann(), d), "/").Body.String()
	if strings.Index(text, `data-id="abc"`) > strings.Index(text, "Pause everything") {
		t.Errorf("the question stands below the buttons that pause: %s", text)
	}
}

// TestTicket: links and forms keep what a page has besides its cookie.
func TestTicket(t *testing.T) {
	t.Parallel()
	who := ann()
	who.Query = "?ticket=abc"
	c := site(who, &desk{})
	if text := get(c, "/").Body.String(); !strings.Contains(text, `href="./signin/?ticket=abc"`) {
		t.Error(text)
	}
	w := post(c, url.Values{"csrf": {who.Token}, "id": {"abc"}})
	if at := w.Header().Get("Location"); at != "../?ticket=abc&done=answered" {
		t.Errorf("goes to %s", at)
	}
}

// TestSmall: a page weighs little, with all that it loads.
func TestSmall(t *testing.T) {
	t.Parallel()
	n := get(site(ann(), &desk{}), "/").Body.Len()
	for _, a := range assets() {
		n += len(a.text)
	}
	if n > 80_000 {
		t.Errorf("%d bytes", n)
	}
}
