package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
)

// A journal is what was changed in a test, the newest first. It lists two changes at a time.
type journal struct {
	unknown  string // no change has this id
	all      []Change
	conflict string // id that cannot be taken back as a whole
	stays    bool   // of it something stays when the rest goes back
	said     string // why nothing is listed
	err      error
	undone   []string
	asked    []string // for whom
	more     string   // hunks that each change has besides
	parts    []Extent // for which an undo was asked
}

func (j *journal) List(_ context.Context, who auth.Principal, before string) ([]Change, bool, string, error) {
	j.asked = append(j.asked, who.ID)
	from := 0
	if before != "" {
		from = 1 + slices.IndexFunc(j.all, func(c Change) bool { return c.ID == before })
	}
	to := min(from+2, len(j.all))
	return j.all[from:to], to < len(j.all), j.said, j.err
}

func (j *journal) Show(_ context.Context, _ auth.Principal, id string) (string, bool, error) {
	if id == j.unknown {
		return "CHANGE_UNKNOWN: no change " + id + " is recorded <b>. Call file_history.", true, j.err
	}
	return "the change " + id + "\n@@ -1 +1 @@\n-old <b>\n+new \u202e\n" + j.more, false, j.err
}

func (j *journal) Undo(_ context.Context, _ auth.Principal, id string, part Extent) (string, bool, error) {
	j.parts = append(j.parts, part)
	if id == j.conflict && part.Hunk == "" && !part.Around {
		return "UNDO_CONFLICT: somebody changed it <b>", false, j.err
	}
	j.undone = append(j.undone, id[:1])
	if id == j.conflict && part.Around && j.stays {
		return "Took it back\n[left as they are: <b>.txt (changed since)]\n[another note]", true, j.err
	}
	return "Took it back", true, j.err
}

func (j *journal) HandOver(_ context.Context, who auth.Principal, session string, whole bool) (string, error) {
	j.asked = append(j.asked, fmt.Sprintf("%s %s %t", who.ID, session, whole))
	return "# Hand-over\n\n- `<script>alert(1)</script>` \u202e </textarea><b>\n", j.err
}

// made are changes a to g of two sessions; b undid f, and c is a kept content.
func made() []Change {
	id := func(letter string) string { return strings.Repeat(letter, 16) }
	one, two := "00000001", "00000002"
	return []Change{
		{ID: id("a"), Session: one, Tool: "write_file", Files: []ChangedFile{{Path: "/w/<b>.txt", Op: "update", Added: 2, Removed: 1}}},
		{ID: id("b"), Session: one, Tool: "undo_change", Undoes: []string{id("f")}, Files: []ChangedFile{{Path: "/w/f.txt", Op: "update"}}},
		{ID: id("c"), Session: one, Kept: "external", Files: []ChangedFile{{Path: "/w/f.txt", Op: "update"}}},
		{ID: id("d"), Session: two, Tool: "edit_file", Files: []ChangedFile{{Path: "/w/d.txt", Op: "create", Added: 5}}},
		{ID: id("e"), Session: one, Tool: "run_shell", Command: "make <all>", Files: []ChangedFile{{Path: "/w/f.txt", Op: "update"}}},
		{ID: id("f"), Session: one, Tool: "write_file", Undone: true, Files: []ChangedFile{{Path: "/w/f.txt", Op: "update"}}},
		{ID: id("g"), Session: one, Tool: "write_file", Files: []ChangedFile{{Path: "/w/<b>.txt", Op: "create", Added: 9}}},
	}
}

func changing(who Person, j *journal) *Console {
	c := site(who, &desk{})
	c.o.Changes = j
	return c
}

func undo(c *Console, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/console/undo", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// TestChangesListed: the list has all changes, narrowed to a session or a file where that is asked for, and escapes what it
// shows.
func TestChangesListed(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct{ ids, has string }{
		"":                                      {"abcdefg", "+11 -1"},
		"?session=00000001":                     {"abcefg", "Undo 3 changes of this session"},
		"?session=00000002":                     {"d", "Undo 1 change of this session"},
		"?session=00000001&path=%2Fw%2Ff.txt":   {"bcef", "Undo 1 change of this file"},
		"?session=00000003":                     {"", "No changes by these tools are recorded."},
		"?session=%22%3E%3Cscript%3E":           {"abcdefg", "Sessions"}, // no name of a session
		"?path=%22%3E%3Cscript%3Ealert(1)%3C":   {"", "No changes by these tools are recorded."},
		"?session=00000001&ticket=of-this-page": {"abcefg", "Undo 3 changes"},
	} {
		text := get(changing(ann(), &journal{all: made()}), "/changes"+query).Body.String()
		got := ""
		for _, c := range made() {
			if strings.Contains(text, `href="./changes/`+c.ID) {
				got += c.ID[:1]
			}
		}
		if got != want.ids || !strings.Contains(text, want.has) {
			t.Errorf("%s lists %q, want %q with %q: %s", query, got, want.ids, want.has, text)
		}
		if strings.Contains(text, "<script>") || strings.Contains(text, "<b>") || strings.Contains(text, "<all>") {
			t.Errorf("%s: %s", query, text)
		}
	}
	many := &journal{}
	for i := range mostListed + 100 {
		many.all = append(many.all, Change{ID: fmt.Sprintf("%016d", i), Session: fmt.Sprintf("%08x", i), Time: time.Now(), Tool: "write_file"})
	}
	text := get(changing(ann(), many), "/changes").Body.String()
	if n := strings.Count(text, `href="./changes/0`); n != mostShown || !strings.Contains(text, "There are older ones.") || len(many.asked) != mostListed/2 {
		t.Errorf("%d listed, asked %d times", n, len(many.asked))
	}
	if text := get(changing(ann(), many), "/changes?session=ffffffff").Body.String(); !strings.Contains(text, "None of the newest 2000 changes is of this.") {
		t.Errorf("of a session that may be older: %s", text)
	}
	if n := strings.Count(text, `href="./changes?session=`); n != mostSessions || len(text) > 80_000 {
		t.Errorf("%d sessions in %d bytes", n, len(text))
	}
}

// TestChangeShown: its diff, with a form to take it back; no form where that is barred.
func TestChangeShown(t *testing.T) {
	t.Parallel()
	barred := ann()
	barred.Bars = "Not here."
	for name, who := range map[string]Person{"ann": ann(), "barred": barred} {
		text := get(changing(who, &journal{}), "/changes/"+strings.Repeat("a", 16)).Body.String()
		for _, want := range []string{`<span class="hunk">@@ -1 &#43;1 @@</span>`, `<span class="minus">-old &lt;b&gt;</span>`, `<span class="plus">&#43;new \u202e</span>`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %s", name, want, text)
			}
		}
		if strings.Contains(text, "<form") != (name == "ann") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, path := range []string{"/changes/short", "/changes/" + strings.Repeat("A", 16), "/changes/" + strings.Repeat("a", 16) + "/x"} {
		if w := get(changing(ann(), &journal{}), path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	// A link to a change that is not there any more showed a button to take it back, and what a model can do.
	gone := strings.Repeat("g", 16)
	none := get(changing(ann(), &journal{unknown: gone}), "/changes/"+gone)
	if text := none.Body.String(); none.Code != http.StatusNotFound || strings.Contains(text, "<form") || strings.Contains(text, "file_history") ||
		!strings.Contains(text, "no change "+gone+" is recorded &lt;b&gt;.") {
		t.Errorf("%d: %s", none.Code, text)
	}
	w := get(changing(ann(), &journal{err: errors.New("secret cause")}), "/changes/"+strings.Repeat("a", 16))
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret cause") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	said := get(changing(ann(), &journal{said: "PERMISSION_DENIED: no"}), "/changes").Body.String()
	if !strings.Contains(said, "PERMISSION_DENIED: no") || strings.Contains(said, "No changes by") {
		t.Error(said)
	}
}

// TestUndo: one change, or those of a session or a file in it, the newest first, up to the first that cannot be.
func TestUndo(t *testing.T) {
	t.Parallel()
	token, g := "csrf-of-ann", strings.Repeat("g", 16)
	barred := ann()
	barred.Bars = "Not here."
	for name, tt := range map[string]struct {
		who      Person
		form     url.Values
		conflict string
		code     int
		undone   string
		has      string
	}{
		"a change":        {ann(), url.Values{"change": {g}}, "", 200, "g", "Taken back."},
		"a conflict":      {ann(), url.Values{"change": {g}}, g, 409, "", "somebody changed it &lt;b&gt; <span class=\"soft\">UNDO_CONFLICT<"},
		"a session":       {ann(), url.Values{"session": {"00000001"}}, "", 200, "aeg", "3 changes were taken back."},
		"a file":          {ann(), url.Values{"session": {"00000001"}, "path": {"/w/<b>.txt"}}, "", 200, "ag", "2 changes were taken back."},
		"past a conflict": {ann(), url.Values{"session": {"00000001"}}, strings.Repeat("e", 16), 409, "ag", "2 changes were taken back, 1 could not be:"},
		"around it":       {ann(), url.Values{"session": {"00000001"}, "around": {"1"}}, strings.Repeat("e", 16), 200, "aeg", "3 changes were taken back."},
		"one kept":        {ann(), url.Values{"session": {"00000001"}, "keep-" + strings.Repeat("a", 16): {"1"}}, "", 200, "eg", "2 changes were taken back."},
		"a change around": {ann(), url.Values{"change": {g}, "around": {"1"}}, g, 200, "g", "Taken back, as far as nobody changed it since."},
		"a file alone":    {ann(), url.Values{"path": {"/w/f.txt"}}, "", 400, "", ""},
		"both":            {ann(), url.Values{"change": {g}, "session": {"00000001"}}, "", 400, "", ""},
		"no id":           {ann(), url.Values{"change": {"g"}}, "", 400, "", ""},
		"nothing":         {ann(), url.Values{}, "", 400, "", ""},
		"barred":          {barred, url.Values{"change": {g}}, "", 403, "", "Not here."},
		"nobody":          {Person{Token: token}, url.Values{"change": {g}}, "", 403, "", ""},
		"forged":          {ann(), url.Values{"change": {g}, "csrf": {"x"}}, "", 403, "", ""},
	} {
		if tt.form.Get("csrf") == "" {
			tt.form.Set("csrf", token)
		}
		j := &journal{all: made(), conflict: tt.conflict}
		w := undo(changing(tt.who, j), tt.form)
		if got := strings.Join(j.undone, ""); w.Code != tt.code || got != tt.undone || !strings.Contains(w.Body.String(), tt.has) {
			t.Errorf("%s: %d, took back %q: %s", name, w.Code, got, w.Body)
		}
	}
	j := &journal{all: made()}
	for _, path := range []string{"/changes", "/changes/" + g} {
		if text := get(changing(Person{}, j), path).Body.String(); !strings.Contains(text, "Sign in first.") || len(j.asked) > 0 {
			t.Errorf("%s without a sign-in: %s", path, text)
		}
	}
}

// TestUndoHunk: each of several hunks has a button, which names it by its place and its head; a form that names none that
// way undoes nothing.
func TestUndoHunk(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 16)
	text := get(changing(ann(), &journal{}), "/changes/"+id).Body.String()
	if strings.Contains(text, `name="hunk"`) {
		t.Errorf("a change of one hunk: %s", text)
	}
	j := &journal{more: "@@ -9,2 +9,3 @@\n one\n+@@ -1 +1 @@\n"}
	text = get(changing(ann(), j), "/changes/"+id).Body.String()
	if n := strings.Count(text, `name="hunk"`); n != 2 || !strings.Contains(text, `name="hunk" value="2 @@ -9,2 +9,3 @@"`) &&
		!strings.Contains(text, `name="hunk" value="2 @@ -9,2 &#43;9,3 @@"`) {
		t.Errorf("%d buttons: %s", n, text)
	}
	barred := ann()
	barred.Bars = "Not here."
	if text := get(changing(barred, j), "/changes/"+id).Body.String(); strings.Contains(text, `name="hunk"`) {
		t.Errorf("who may not undo is offered it: %s", text)
	}
	form := url.Values{"csrf": {"csrf-of-ann"}, "change": {id}, "hunk": {"2 @@ -9,2 +9,3 @@"}}
	if w := undo(changing(ann(), j), form); w.Code != http.StatusOK || !slices.Equal(j.parts, []Extent{{Hunk: "2 @@ -9,2 +9,3 @@"}}) {
		t.Errorf("%d, %+v: %s", w.Code, j.parts, w.Body)
	}
	for name, other := range map[string]url.Values{
		"no number":  {"change": {id}, "hunk": {"@@ -9,2 +9,3 @@"}},
		"markup":     {"change": {id}, "hunk": {"2 @@ -9,2 +9,3 @@<b>"}},
		"a session":  {"session": {"00000001"}, "hunk": {"1 @@ -1 +1 @@"}},
		"no change":  {"hunk": {"1 @@ -1 +1 @@"}},
		"both of it": {"change": {id}, "hunk": {"1 @@ -1 +1 @@", "2 @@ -9,2 +9,3 @@"}},
	} {
		other.Set("csrf", "csrf-of-ann")
		if w := undo(changing(ann(), j), other); w.Code != http.StatusBadRequest || len(j.parts) != 1 {
			t.Errorf("%s: %d, %+v", name, w.Code, j.parts)
		}
	}
}

// TestUndoAround: what could not be taken back is listed, with a form that takes back what nobody changed since and keeps
// what was to be kept. The page said then that nothing was written, though parts had gone back; it says what stays. A
// file of a session goes back alone, and not with all others of its changes.
func TestUndoAround(t *testing.T) {
	t.Parallel()
	e, g := strings.Repeat("e", 16), strings.Repeat("g", 16)
	form := url.Values{"csrf": {"csrf-of-ann"}, "session": {"00000001"}, "path": {"/w/f.txt"}, "keep-" + g: {"1"}}
	j := &journal{all: made(), conflict: e, stays: true}
	text := undo(changing(ann(), j), form).Body.String()
	for _, want := range []string{`href="../changes/` + e, "somebody changed it &lt;b&gt;", `name="around" value="1"`, `name="keep-` + g, `name="path" value="/w/f.txt"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	form.Set("around", "1")
	w := undo(changing(ann(), j), form)
	if got := strings.Join(j.undone, ""); w.Code != http.StatusOK || got != "e" || strings.Contains(w.Body.String(), `name="around"`) ||
		!strings.Contains(w.Body.String(), "1 change was taken back.") || !strings.Contains(w.Body.String(), "In these, what was changed since stays:") ||
		!strings.Contains(w.Body.String(), "run_shell: &lt;b&gt;.txt (changed since)</li>") {
		t.Errorf("%d, took back %q: %s", w.Code, got, w.Body)
	}
	if want := []Extent{{File: "/w/f.txt"}, {File: "/w/f.txt", Around: true}}; !slices.Equal(j.parts, want) {
		t.Errorf("asked for %+v, want %+v", j.parts, want)
	}
	partly := made()
	partly[slices.IndexFunc(partly, func(c Change) bool { return c.ID == e })].Partly = []string{"/w/f.txt"}
	j = &journal{all: partly}
	if undo(changing(ann(), j), form); len(j.undone) > 0 {
		t.Errorf("took back what was back: %q", j.undone)
	}
	if text := get(changing(ann(), j), "/changes").Body.String(); !strings.Contains(text, e+"</a> partly undone") {
		t.Errorf("it is not said to be partly undone: %s", text)
	}
	alone := &journal{conflict: e, stays: true}
	if w := undo(changing(ann(), alone), url.Values{"csrf": {"csrf-of-ann"}, "change": {e}, "around": {"1"}}); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "Taken back, as far as nobody changed it since.") || !strings.Contains(w.Body.String(), "[left as they are: &lt;b&gt;.txt (changed since)]") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	one := undo(changing(ann(), &journal{conflict: e}), url.Values{"csrf": {"csrf-of-ann"}, "change": {e}}).Body.String()
	if !strings.Contains(one, `name="around" value="1"`) {
		t.Errorf("no way around it: %s", one)
	}
	if text := get(changing(ann(), &journal{all: made()}), "/changes?session=00000001").Body.String(); strings.Count(text, `form="undo" name="keep-`) != 3 {
		t.Errorf("three changes can be kept: %s", text)
	}
}

// TestHandOver: the page of a hand-over has the text in a field, of the session or the workspace that was asked for, and
// nothing in it is markup; who is not in sees none, and a fault is told.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                               "ann  true",
		"?session=00000001":              "ann 00000001 false",
		"?session=00000001&whole=1":      "ann 00000001 true",
		"?session=%22%3E%3Cscript%3E":    "ann  true", // no name of a session
		"?session=00000001&ticket=other": "ann 00000001 false",
	} {
		j := &journal{all: made()}
		w := get(changing(ann(), j), "/handover"+query)
		text := w.Body.String()
		if w.Code != http.StatusOK || !slices.Equal(j.asked, []string{want}) {
			t.Errorf("%s: %d, asked for %q", query, w.Code, j.asked)
		}
		_, field, _ := strings.Cut(text, "<textarea")
		field, after, _ := strings.Cut(field, "</textarea>")
		if !strings.Contains(field, "# Hand-over") || !strings.Contains(field, "readonly") || strings.Contains(field, "\u202e") ||
			strings.Contains(text, "<script>alert") || strings.Contains(after, "<b>") {
			t.Errorf("%s: %s", query, text)
		}
		if !strings.Contains(text, "for=\"handover\"") || !strings.Contains(text, "/changes") {
			t.Errorf("%s has no label or no way back: %s", query, text)
		}
	}
	j := &journal{all: made()}
	if text := get(changing(Person{}, j), "/handover").Body.String(); len(j.asked) != 0 || !strings.Contains(text, "Sign in first.") {
		t.Errorf("asked %q: %s", j.asked, text)
	}
	if w := get(changing(ann(), &journal{err: errors.New("no")}), "/handover"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for query, link := range map[string]string{"": `href="./handover"`, "?session=00000001": `href="./handover?session=00000001"`} {
		if text := get(changing(ann(), &journal{all: made()}), "/changes"+query).Body.String(); !strings.Contains(text, link) {
			t.Errorf("%s has no link to it: %s", query, text)
		}
	}
}

// TestChangesOfOthers: an administrator is led to the changes of another principal, sees them and takes them back, and
// each link and form stays there; others are shown their own, whatever they ask for.
func TestChangesOfOthers(t *testing.T) {
	t.Parallel()
	own, bobs := &journal{}, &journal{all: made(), conflict: made()[0].ID}
	of := func(who Person) *Console {
		c := changing(who, own)
		c.o.ChangesOf = func(admin auth.Principal, principal string) (Changes, bool) {
			return bobs, admin.Admin && principal == "bob"
		}
		c.o.Activity = &work{calls: Calls{List: []PastCall{{Principal: "bob", Session: "00000001", ID: made()[0].ID, Files: 1}}}}
		return c
	}
	admin := ann()
	admin.Who.Admin = true
	for _, path := range []string{"/changes", "/activity"} {
		if text := get(of(admin), path).Body.String(); !strings.Contains(text, "?principal=bob") {
			t.Errorf("%s does not lead to bob: %s", path, text)
		}
		if text := get(of(ann()), path).Body.String(); strings.Contains(text, "principal=bob") {
			t.Errorf("%s leads everybody to bob: %s", path, text)
		}
	}
	for path, want := range map[string][]string{
		"/changes?principal=bob":                                    {"Of bob.", "changes/" + made()[0].ID + "?principal=bob", "?principal=bob&amp;session=00000001"},
		"/changes?principal=bob&session=00000001":                   {`name="principal" value="bob"`, "Undo 3 changes"},
		"/changes/" + made()[0].ID + "?principal=bob":               {`name="principal" value="bob"`, "the change a"},
		"/handover?principal=bob&session=00000001":                  {"# Hand-over", "?principal=bob&amp;session=00000001"},
		"/changes?principal=eve":                                    {"There is no principal eve."},
		"/changes?principal=" + url.QueryEscape("<b>"):              {"There is no principal &lt;b&gt;."},
		"/changes/" + made()[0].ID + "?principal=" + ann().Who.ID:   {"the change a"}, // their own, of a journal that has none
		"/activity?principal=bob&session=00000001":                  {"Of bob.", "?principal=bob&amp;session=00000001"},
		"/changes?principal=bob&path=%2Fw%2Ff.txt&session=00000001": {`name="principal" value="bob"`, "Undo 1 change of this file"},
	} {
		text := get(of(admin), path).Body.String()
		for _, has := range want {
			if !strings.Contains(text, has) {
				t.Errorf("%s lacks %q: %s", path, has, text)
			}
		}
	}
	if text := get(of(ann()), "/changes?principal=bob").Body.String(); strings.Contains(text, made()[0].ID) || len(own.asked) == 0 {
		t.Errorf("who is no administrator sees the changes of bob: %s", text)
	}
	form := url.Values{"csrf": {"csrf-of-ann"}, "change": {made()[4].ID}, "principal": {"bob"}}
	if w := undo(of(ann()), form); len(bobs.undone) > 0 {
		t.Errorf("who is no administrator takes back a change of bob: %s", w.Body)
	}
	if w := undo(of(admin), form); w.Code != http.StatusOK || !slices.Equal(bobs.undone, []string{"e"}) {
		t.Errorf("an administrator does not: %d %v %s", w.Code, bobs.undone, w.Body)
	}
	conflict := undo(of(admin), url.Values{"csrf": {"csrf-of-ann"}, "change": {made()[0].ID}, "principal": {"bob"}}).Body.String()
	if !strings.Contains(conflict, `name="principal" value="bob"`) || !strings.Contains(conflict, made()[0].ID+"?principal=bob") {
		t.Errorf("a conflict leads elsewhere: %s", conflict)
	}
	form.Set("principal", "eve")
	if w := undo(of(admin), form); w.Code != http.StatusNotFound || len(own.undone) != 1 { // by who is no administrator
		t.Errorf("an undo for nobody: %d, %v", w.Code, own.undone)
	}
}
