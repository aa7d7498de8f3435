package userpage

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
	"codehand/server/asking"
	"codehand/server/pauses"
	"codehand/server/sessions"
	"codehand/tools/session"
)

// An opened workspace remembers what was called in it.
type opened struct {
	roots  []string
	calls  *[]string
	closed *int
}

func (o opened) CallByPerson(_ context.Context, name string, args json.RawMessage) (string, bool, error) {
	*o.calls = append(*o.calls, strings.Join(o.roots, ",")+" "+name+" "+string(args))
	return "done with it\n", false, nil
}

func (o opened) Close() error { *o.closed++; return nil }

// A site is a page in a test, which no listener serves.
type site struct {
	*page
	calls  []string
	closed int
}

func open(t *testing.T, state string) *site {
	t.Helper()
	s := &site{}
	p, err := newPage("127.0.0.1:1234", Options{StateDir: state, Approvals: true,
		Open: func(_ context.Context, roots []string) (Workspace, error) {
			if strings.HasSuffix(roots[0], "closed") {
				return nil, errors.New("no such thing")
			}
			return opened{roots, &s.calls, &s.closed}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	p.callers = nil // requests of this test come over no connection
	s.page = p
	t.Cleanup(func() { p.hub.Close(); p.history.close() })
	return s
}

func (s *site) ask(method, target, cookie string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:1234"
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "codehand_page_1234", Value: cookie})
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestKey: the key opens the page once, for the browser that brings it; nobody else sees or does anything, and a name of
// another site that leads here is no way in.
func TestKey(t *testing.T) {
	t.Parallel()
	s := open(t, leaktest.Dir(t))
	key := s.key
	for _, target := range []string{"/", "/changes", "/activity", "/console/live", "/?key=wrong", "/changes?key=" + key} {
		w := s.ask(http.MethodGet, target, "", nil)
		if w.Result().Cookies() != nil && len(w.Result().Cookies()) > 0 || strings.Contains(w.Body.String(), "Nothing waits") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := s.ask(http.MethodGet, "/?key="+key, "", nil, "Host", "evil.example"); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("another name: %d", w.Code)
	}
	w := s.ask(http.MethodGet, "/?key="+key, "", nil)
	if len(w.Result().Cookies()) != 1 {
		t.Fatalf("the key opens nothing: %d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Value != s.secret {
		t.Errorf("%+v", c)
	}
	if w := s.ask(http.MethodGet, "/?key="+key, "", nil); len(w.Result().Cookies()) != 0 {
		t.Error("the key opens the page twice")
	}
	w = s.ask(http.MethodGet, "/", c.Value, nil)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "waits for your approval") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	undo := url.Values{"change": {"aaaaaaaaaaaaaaaa"}, "csrf": {s.csrf}}
	for name, c := range map[string]struct {
		cookie, csrf string
		headers      []string
		code         int
	}{
		"no cookie":      {"", s.csrf, nil, 403},
		"other cookie":   {"x", s.csrf, nil, 403},
		"no token":       {s.secret, "", nil, 403},
		"another port":   {s.secret, s.csrf, []string{"Sec-Fetch-Site", "same-site"}, 403},
		"another site":   {s.secret, s.csrf, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a page of ours": {s.secret, s.csrf, nil, 409}, // there is no such change
	} {
		undo.Set("csrf", c.csrf)
		if w := s.ask(http.MethodPost, "/console/undo", c.cookie, undo, c.headers...); w.Code != c.code {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestWorkspaces: the changes of all workspaces are listed, each with its own, and shown and taken back by the tools of
// a server over that workspace alone.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	state, base := leaktest.Dir(t), leaktest.Dir(t)
	ids := map[string]string{}
	for _, name := range []string{"one", "two", "closed"} {
		ids[name] = change(t, state, filepath.Join(base, name), "s")
	}
	s := open(t, state)
	text := s.ask(http.MethodGet, "/changes", s.secret, nil).Body.String()
	for name, id := range ids {
		if !strings.Contains(text, "changes/"+id) || !strings.Contains(text, filepath.Join(base, name)) {
			t.Errorf("%s is not listed: %s", name, text)
		}
	}
	s.ask(http.MethodGet, "/changes/"+ids["one"], s.secret, nil)
	w := s.ask(http.MethodPost, "/console/undo", s.secret, url.Values{"csrf": {s.csrf}, "change": {ids["two"]}})
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Taken back.") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	want := base + `/one file_history {"change_id":"` + ids["one"] + `"};` + base + `/two undo_change {"change_id":"` + ids["two"] + `"}`
	if got := strings.Join(s.calls, ";"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := s.ask(http.MethodGet, "/changes/"+ids["closed"], s.secret, nil); !strings.Contains(w.Body.String(), "cannot be opened: no such thing") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	session := regexp.MustCompile(`session=([0-9a-f]{8})`).FindStringSubmatch(text)
	if w := s.ask(http.MethodPost, "/console/undo", s.secret, url.Values{"csrf": {s.csrf}, "session": {session[1]}}); !strings.Contains(w.Body.String(), "could not be:") {
		t.Errorf("a session over three workspaces, one of which cannot be opened: %d %s", w.Code, w.Body)
	}
}

// TestHandOver: what the next conversation can read of a session is asked of a server over the workspace that it changed
// last, for who has the key.
func TestHandOver(t *testing.T) {
	t.Parallel()
	state, base := leaktest.Dir(t), leaktest.Dir(t)
	change(t, state, filepath.Join(base, "one"), "a")
	change(t, state, filepath.Join(base, "two"), "agent:b.x")
	s := open(t, state)
	one, two := asking.ShortName(session.Key{Session: "a"}), asking.ShortName(session.Key{Session: "b"})
	for query, want := range map[string]string{
		"":                             base + "/two session_digest {}",
		"?session=" + one:              base + `/one session_digest {"session":"` + one + `"}`,
		"?session=" + two:              base + `/two session_digest {"session":"` + two + `"}`,
		"?session=" + one + "&whole=1": base + "/one session_digest {}",
		"?session=00000000":            "",
	} {
		s.calls = nil
		w := s.ask(http.MethodGet, "/handover"+query, s.secret, nil)
		if got := strings.Join(s.calls, ";"); got != want || want == "" && !strings.Contains(w.Body.String(), "No changes of this session") {
			t.Errorf("%s: got %s, want %s: %s", query, got, want, w.Body)
		}
	}
	s.calls = nil
	if w := s.ask(http.MethodGet, "/handover", "", nil); s.calls != nil {
		t.Errorf("without the key: %q %d", s.calls, w.Code)
	}
}

// TestPause: the page pauses the sessions of all processes, also after it has ended, until a page resumes them.
func TestPause(t *testing.T) {
	t.Parallel()
	state := leaktest.Dir(t)
	s := open(t, state)
	press := func(s *site, what, cookie, csrf string) (at string) {
		w := s.ask(http.MethodPost, "/console/"+what, cookie, url.Values{"csrf": {csrf}, "of": {"local"}})
		return w.Header().Get("Location")
	}
	for _, forged := range [][2]string{{"", s.csrf}, {"x", s.csrf}, {s.secret, "x"}} {
		press(s, "pause", forged[0], forged[1])
	}
	if pauses.Dir(state).Paused("local") != nil {
		t.Fatal("a stranger pauses")
	}
	if at := press(s, "pause", s.secret, s.csrf); at != "../?done=paused" || pauses.Dir(state).Paused("local") == nil {
		t.Errorf("%s", at)
	}
	next := open(t, state)
	if text := next.ask(http.MethodGet, "/", next.secret, nil).Body.String(); !strings.Contains(text, "Calls are paused") {
		t.Error(text)
	}
	press(next, "resume", s.secret, next.csrf) // of the page before
	if pauses.Dir(state).Paused("local") == nil {
		t.Error("a stranger resumes")
	}
	if at := press(next, "resume", next.secret, next.csrf); at != "../?done=resumed" || pauses.Dir(state).Paused("local") != nil {
		t.Errorf("%s", at)
	}
}

// change makes a change in a workspace of its own, and returns its id.
func change(t *testing.T, state, root, session string) string {
	t.Helper()
	must(t, os.Mkdir(root, 0o700))
	book, err := journal.Open(sessions.JournalDir(state, "local"), journal.Options{})
	must(t, err)
	defer book.Close()
	content := []byte("a\n")
	p, err := book.Begin(journal.By{Principal: "local", Workspace: root, Session: session, Tool: "write_file"}, nil,
		[]journal.Part{{Path: filepath.Join(root, "a.txt"), New: content, After: disk.DigestOf(content)}})
	must(t, err)
	p.Done(t.Context())
	return p.ID
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
