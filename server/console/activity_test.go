package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
)

// A work is what runs in a test. It remembers what was stopped.
type work struct {
	list    []RunningCommand
	err     error
	stopped []CommandID
}

func (x *work) Running(context.Context, auth.Principal) ([]RunningCommand, error) {
	return x.list, x.err
}

func (x *work) Stop(_ context.Context, _ auth.Principal, id CommandID) error {
	x.stopped = append(x.stopped, id)
	return x.err
}

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
