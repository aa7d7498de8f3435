package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/asking"
	"codehand/server/auth"
	"codehand/server/sessions"
)

// A work is what runs in a test. It remembers what was stopped.
type work struct {
	list    []RunningCommand
	err     error
	stopped []CommandID
	calls   Calls
	asked   []CallQuery
	stamp   string
	rights  []sessions.Rights
	changed []string // rights
}

func (x *work) Running(context.Context, auth.Principal) ([]RunningCommand, error) {
	return x.list, x.err
}

func (x *work) Stop(_ context.Context, _ auth.Principal, id CommandID) error {
	x.stopped = append(x.stopped, id)
	return x.err
}

func (x *work) Calls(_ context.Context, _ auth.Principal, q CallQuery) (Calls, error) {
	x.asked = append(x.asked, q)
	return x.calls, x.err
}

func (x *work) Rights(_ context.Context, _ auth.Principal, name string) ([]sessions.Rights, error) {
	return x.rights, x.err
}

func (x *work) SetMode(_ context.Context, who auth.Principal, id SessionID, mode string) error {
	x.changed = append(x.changed, who.ID+": "+id.Principal+" "+id.Session+" mode "+mode)
	return x.err
}

func (x *work) AddRule(_ context.Context, who auth.Principal, id SessionID, r sessions.NamedRule) error {
	x.changed = append(x.changed, who.ID+": "+id.Principal+" "+id.Session+" set "+r.List+" "+r.Rule)
	return x.err
}

func (x *work) TakeBack(_ context.Context, who auth.Principal, id SessionID, r sessions.NamedRule) error {
	x.changed = append(x.changed, who.ID+": "+id.Principal+" "+id.Session+" take "+r.List+" "+r.Rule)
	return x.err
}

func (x *work) Stamp(context.Context, auth.Principal) string { return x.stamp }

func working(who Person, x *work) *Console {
	c := site(who, &desk{})
	c.o.Activity = x
	return c
}

func stop(c *Console, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/console/stop", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// TestRunning: commands that run are listed, escaped and cut, and stopped by a form of the page; where the person may
// not, or is not signed in, nothing is.
func TestRunning(t *testing.T) {
	t.Parallel()
	id := CommandID{Process: "p1", Session: "00000001", Job: "job_a"}
	x := &work{list: []RunningCommand{{CommandID: id, Text: "<script>\u202e" + strings.Repeat("x", 1<<20), Dir: "/w/<b>", Since: time.Now(), Background: true}}}
	text := get(working(ann(), x), "/activity").Body.String()
	if strings.Contains(text, "<script>\\") || strings.Contains(text, "<b>") || !strings.Contains(text, `&lt;script&gt;\u202e`) || len(text) > 10_000 {
		t.Errorf("%d bytes: %.3000s", len(text), text)
	}
	form := url.Values{"csrf": {"csrf-of-ann"}, "process": {"p1"}, "session": {"00000001"}, "job": {"job_a"}}
	if w := stop(working(ann(), x), form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "../activity?done=stopped" || len(x.stopped) != 1 || x.stopped[0] != id {
		t.Errorf("%d %s %v", w.Code, w.Header().Get("Location"), x.stopped)
	}
	barred := ann()
	barred.Bars = "Not here."
	if strings.Contains(get(working(barred, x), "/activity").Body.String(), "console/stop") {
		t.Error("who may not stop is offered it")
	}
	for name, c := range map[string]struct {
		who   Person
		field string
		value string
		code  int
	}{
		"barred": {barred, "", "", 403}, "nobody": {Person{Token: "csrf-of-ann"}, "", "", 403}, "no token": {ann(), "csrf", "", 403},
		"no job": {ann(), "job", "", 400}, "path": {ann(), "process", "../x", 400}, "session": {ann(), "session", "x", 400},
	} {
		other := url.Values{}
		for k, v := range form {
			other[k] = v
		}
		if c.field != "" {
			other.Set(c.field, c.value)
		}
		if w := stop(working(c.who, x), other); w.Code != c.code || len(x.stopped) != 1 {
			t.Errorf("%s: %d, stopped %v", name, w.Code, x.stopped)
		}
	}
	x.err = ErrNotRunning
	if w := stop(working(ann(), x), form); w.Header().Get("Location") != "../activity?done=over" {
		t.Errorf("one that is over: %d %s", w.Code, w.Header().Get("Location"))
	}
}

// TestCalls: what ran is listed with its outcome, narrowed as the links say, escaped and cut; names of a query that are none
// of ours do nothing.
func TestCalls(t *testing.T) {
	t.Parallel()
	seven, at := 7, time.Date(2026, 11, 28, 23, 0, 0, 5, time.UTC)
	evil := "<script>\u202e" + strings.Repeat("x", 1<<20)
	x := &work{calls: Calls{More: true, List: []PastCall{
		{Time: at, Session: "00000001", Tool: "run_shell", Summary: evil, Client: evil, Exit: &seven, Code: "COMMAND_FAILED", Took: 90 * time.Second, Decision: "you allowed it"},
		{ID: strings.Repeat("e", 16), Time: at, Session: "00000002", Tool: "edit_file", Summary: "a.go", Took: 5 * time.Millisecond, Files: 1},
		{Time: at, Session: "00000002", Tool: "run_shell", Summary: "rm x", Code: "PERMISSION_DENIED", Decision: "by rule Bash(rm *)"},
		{Time: at, Session: "00000002", Tool: "run_shell", Summary: "make", Open: true},
	}}}
	text := get(working(ann(), x), "/activity?session=00000001&failed=1&before=2026-11-29T00:00:00Z&limit=9").Body.String()
	for _, want := range []string{"exit 7", "1m30s", "you allowed it", "1 file changed", "5 ms", "PERMISSION_DENIED", "by rule Bash(rm *)", "not finished",
		`href="./changes/eeeeeeeeeeeeeeee">1 file`, `name="until" value="2026-11-29T00:00"`, `<input type="hidden" name="failed" value="1">`, "before=2026-11-28T23%3A00%3A00.000000005Z&amp;failed=1&amp;session=00000001"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(text, "<script>\\") || strings.Contains(text, "\u202e") || strings.Contains(text, "data-live") {
		t.Error(text[:5_000])
	}
	if want := (CallQuery{Before: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), Session: "00000001", Failed: true, Limit: callsShown}); x.asked[0] != want {
		t.Errorf("asked %+v", x.asked)
	}
	get(working(ann(), x), "/activity?session=%22&failed=yes&before=tomorrow")
	if want := (CallQuery{Limit: callsShown}); x.asked[1] != want {
		t.Errorf("asked %+v", x.asked)
	}
	get(working(ann(), x), "/activity?until=2026-11-29T02:00")
	if want := (CallQuery{Before: time.Date(2026, 11, 29, 2, 1, 0, 0, time.UTC), Limit: callsShown}); x.asked[2] != want {
		t.Errorf("until a minute: asked %+v", x.asked)
	}
	x.calls = Calls{Said: "Calls are not recorded."}
	if text := get(working(ann(), x), "/activity").Body.String(); !strings.Contains(text, "Calls are not recorded.") || !strings.Contains(text, "data-live") {
		t.Error(text)
	}
}

// TestActivityTellsOfQuestions: who looks at what ran has the page open, so calls wait; the page says that one does.
func TestActivityTellsOfQuestions(t *testing.T) {
	t.Parallel()
	d := &desk{list: []asking.Waiting{{ID: "abc"}}}
	c := site(ann(), d)
	text := get(c, "/activity").Body.String()
	if !strings.Contains(text, `<a href="./">A call waits for your approval</a>`) || !strings.Contains(text, "Approvals (1)") || len(d.opened) == 0 {
		t.Errorf("opened %q: %s", d.opened, text)
	}
	fresh := get(c, "/console/activity?seen=other").Body.String()
	if !strings.Contains(fresh, "A call waits for your approval") || len(d.opened) < 2 {
		t.Errorf("opened %q: %s", d.opened, fresh)
	}
	barred := ann()
	barred.Bars = "Not here."
	other := &desk{list: d.list}
	if text := get(site(barred, other), "/activity").Body.String(); strings.Contains(text, "waits for your approval") || len(other.opened) > 0 {
		t.Errorf("who may not answer: opened %q: %s", other.opened, text)
	}
}

// TestTwoSessions: two sessions of clients with one name looked like one. Each has a row with its name and its times, and
// one that clients share since they name none says so. The list of one session has no such table.
func TestTwoSessions(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 11, 28, 23, minute, 0, 0, time.UTC) }
	call := func(minute int, session, client string) PastCall {
		return PastCall{Time: at(minute), Session: session, Client: client, Tool: "run_shell", Shared: session == "00000003"}
	}
	x := &work{calls: Calls{List: []PastCall{
		call(9, "00000001", "<b>/1"), call(8, "00000002", "<b>/1"), call(7, "00000003", "c/1"), call(6, "00000003", "d/1"), call(5, "00000001", "<b>/1"),
	}}}
	text := get(working(ann(), x), "/activity").Body.String()
	_, rows, _ := strings.Cut(text, "Sessions of these calls")
	rows, _, _ = strings.Cut(rows, "</table>")
	all := strings.Split(rows, "<tr>")[2:]
	want := [][]string{{"00000001", "23:05:00", "23:09:00", ">2<"}, {"00000002", "23:08:00", ">1<"}, {"00000003", "shared", "c/1"}, {"00000003", "shared", "d/1"}}
	if len(all) != len(want) {
		t.Fatalf("%d rows: %s", len(all), rows)
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(all[i], part) {
				t.Errorf("row %d has no %q: %s", i, part, all[i])
			}
		}
	}
	if strings.Contains(text, "<b>") {
		t.Error(text)
	}
	if text := get(working(ann(), x), "/activity?session=00000001").Body.String(); strings.Contains(text, "Sessions of these calls") {
		t.Error(text)
	}
}

// TestLiveActivity: a script that has seen what there is waits, and is answered with the list when something changes; who
// is not signed in is not.
func TestLiveActivity(t *testing.T) {
	t.Parallel()
	x := &work{stamp: "1"}
	c := working(ann(), x)
	first := get(c, "/console/activity?seen=nothing").Body.String()
	if !strings.Contains(first, `id="activity"`) || strings.Contains(first, "<html") {
		t.Error(first)
	}
	x.list = []RunningCommand{{CommandID: CommandID{Session: "00000001", Job: "job_a"}, Text: "make", Since: time.Now()}}
	_, seen, _ := strings.Cut(first, `data-stamp="`)
	seen, _, _ = strings.Cut(seen, `"`)
	if second := get(c, "/console/activity?seen="+seen).Body.String(); !strings.Contains(second, "make") {
		t.Error(second)
	}
	if w := get(working(Person{}, x), "/console/activity?seen=x"); w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	_, seen, _ = strings.Cut(get(c, "/console/activity?seen=x").Body.String(), `data-stamp="`)
	seen, _, _ = strings.Cut(seen, `"`)
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/activity?seen="+seen, nil).WithContext(ctx))
	if w.Body.Len() != 0 {
		t.Errorf("without news: %s", w.Body)
	}
}

// TestWordMarks: where lines were replaced, the words that differ are marked; lines with little in common, of unlike
// number, or too long are not.
func TestWordMarks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxMarked)
	for text, want := range map[string]string{
		"-port = 8080\n+port = 8081\n":                   "-port = [8080]|+port = [8081]",
		"-a b c\n-d e f\n+a x c\n+d e f g\n c\n":         "-a [b] c|-d e f[]|+a [x] c|+d e f[ g]| c",
		"-a b c\n+a x c\n+more\n":                        "-a b c|+a x c|+more",
		"-nothing alike\n+other words\n":                 "-nothing alike|+other words",
		"-größe_alt = 1000\n+größe_neu = 1000\n":         "-[größe_alt] = 1000|+[größe_neu] = 1000",
		"-" + long + "a\n+" + long + "b\n":               "-" + long + "a|+" + long + "b",
		"@@ -1 +1 @@\n-\n+\n":                            "@@ -1 +1 @@|-[]|+[]",
		"+a b\n-a c\n":                                   "+a b|-a c",
		"-a b c\n\\ No newline at end of file\n+a x c\n": "-a b c|\\ No newline at end of file|+a x c",
	} {
		got := []string{}
		for _, l := range lines(text) {
			s := ""
			for _, p := range l.Parts {
				if p.Marked {
					p.Text = "[" + p.Text + "]"
				}
				s += p.Text
			}
			got = append(got, s)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%.60q: %.200q, want %.200q", text, strings.Join(got, "|"), want)
		}
	}
}
