package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/pauses"
)

// A valve is what is paused in a test. It remembers who did what.
type valve struct {
	list []pauses.Pause
	err  error
	did  []string
}

func (v *valve) Of(string, bool) []pauses.Pause { return v.list }

func (v *valve) Pause(_ context.Context, by string, admin bool) error {
	v.did = append(v.did, "pause "+by+asAdmin(admin))
	return v.err
}

func (v *valve) Resume(_ context.Context, of, by string, admin bool) error {
	v.did = append(v.did, "resume "+of+" by "+by+asAdmin(admin))
	return v.err
}

func asAdmin(admin bool) string {
	if admin {
		return " as admin"
	}
	return ""
}

func valved(who Person, v *valve) (*Console, *work) {
	x := &work{}
	c := working(who, x)
	c.o.Pauses = v
	return c, x
}

func press(c *Console, what string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/console/"+what, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// TestPauses: a person pauses and resumes by forms of the page, an administrator as one, and stops what runs by the same
// press if they want.
func TestPauses(t *testing.T) {
	t.Parallel()
	root := ann()
	root.Who.ID, root.Who.Admin = "root", true
	running := []RunningCommand{{CommandID: CommandID{"p", "00000001", "job_a"}}, {CommandID: CommandID{"p", "00000001", "job_b"}}}
	for name, x := range map[string]struct {
		who           Person
		what          string
		form          url.Values
		err, stopping error
		did, at       string
		stopped       int
	}{
		"pause":                   {ann(), "pause", url.Values{}, nil, nil, "pause ann", "../?done=paused", 0},
		"pause from Activity":     {root, "pause", url.Values{"from": {"activity"}}, nil, nil, "pause root as admin", "../activity?done=paused", 0},
		"a foreign place":         {ann(), "pause", url.Values{"from": {"https://example.com"}}, nil, nil, "pause ann", "../?done=paused", 0},
		"and stop":                {ann(), "pause", url.Values{"stop": {"1"}}, nil, nil, "pause ann", "../?done=halted", 2},
		"and one is over":         {ann(), "pause", url.Values{"stop": {"1"}}, nil, ErrNotRunning, "pause ann", "../?done=halted", 2},
		"and one cannot":          {ann(), "pause", url.Values{"stop": {"1"}}, nil, errors.New("stuck"), "pause ann", "../?done=unhalted", 2},
		"it cannot be kept":       {ann(), "pause", url.Values{"stop": {"1"}}, errors.New("down"), nil, "pause ann", "503", 0},
		"resume":                  {ann(), "resume", url.Values{"of": {"ann"}}, nil, nil, "resume ann by ann", "../?done=resumed", 0},
		"resume everybody":        {root, "resume", url.Values{"from": {"activity"}}, nil, nil, "resume  by root as admin", "../activity?done=resumed", 0},
		"not theirs":              {ann(), "resume", url.Values{"of": {"bob"}}, pauses.ErrNotYours, nil, "resume bob by ann", "../?done=unpaused", 0},
		"resume cannot be kept":   {ann(), "resume", url.Values{"of": {"ann"}}, errors.New("down"), nil, "resume ann by ann", "503", 0},
		"a field that says admin": {ann(), "pause", url.Values{"admin": {"1"}, "by": {"root"}}, nil, nil, "pause ann", "../?done=paused", 0},
	} {
		v := &valve{err: x.err}
		c, work := valved(x.who, v)
		work.list = running
		x.form.Set("csrf", x.who.Token)
		c.o.Activity = stopper{work, x.stopping}
		w := press(c, x.what, x.form)
		at := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther {
			at = w.Result().Status[:3]
		}
		if at != x.at || strings.Join(v.did, "|") != x.did || len(work.stopped) != x.stopped {
			t.Errorf("%s: %s, did %q, stopped %v", name, at, v.did, work.stopped)
		}
	}
}

// A stopper is a work whose Stop fails.
type stopper struct {
	*work
	err error
}

func (s stopper) Stop(ctx context.Context, who auth.Principal, id CommandID) error {
	_ = s.work.Stop(ctx, who, id)
	return s.err
}

// TestPausesForged: what no page of ours sent, a person who is not signed in or one who may decide nothing here neither
// pauses nor resumes.
func TestPausesForged(t *testing.T) {
	t.Parallel()
	out, barred := ann(), ann()
	out.In, barred.Bars = false, "Not here."
	for name, x := range map[string]struct {
		who     Person
		csrf    string
		headers []string
		code    int
	}{
		"no token":       {ann(), "", nil, 403},
		"a wrong token":  {ann(), "csrf-of-bob", nil, 403},
		"another site":   {ann(), "csrf-of-ann", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another port":   {ann(), "csrf-of-ann", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"another origin": {ann(), "csrf-of-ann", []string{"Sec-Fetch-Site", "", "Origin", "http://example.com:1"}, 403},
		"JSON":           {ann(), "csrf-of-ann", []string{"Content-Type", "application/json"}, 400},
		"not signed in":  {out, "csrf-of-ann", nil, 403},
		"barred":         {barred, "csrf-of-ann", nil, 403},
	} {
		for _, what := range []string{"pause", "resume"} {
			v := &valve{}
			c, work := valved(x.who, v)
			work.list = []RunningCommand{{CommandID: CommandID{"p", "00000001", "job_a"}}}
			if w := press(c, what, url.Values{"csrf": {x.csrf}, "stop": {"1"}}, x.headers...); w.Code != x.code || len(v.did)+len(work.stopped) > 0 {
				t.Errorf("%s %s: %d, did %q %v", name, what, w.Code, v.did, work.stopped)
			}
			if w := get(c, "/console/"+what+"?csrf="+x.csrf); w.Code < 400 || len(v.did) > 0 {
				t.Errorf("GET %s: %d, did %q", what, w.Code, v.did)
			}
		}
	}
}

// TestPausesShown: every page says what is paused, since when and by whom, escaped, with a way to resume for those who
// may; the button to pause is there for those who have not.
func TestPausesShown(t *testing.T) {
	t.Parallel()
	root, barred := ann(), ann()
	root.Who.ID, root.Who.Admin = "root", true
	barred.Bars = "Start serve with --auth-mode owner."
	evil := `<script>alert(1)</script>` + "\u202e"
	since := time.Now()
	own, all := pauses.Pause{Of: "ann", By: "ann", Since: since}, pauses.Pause{By: "root", Since: since}
	const press, resume = "console/pause", "console/resume"
	for name, x := range map[string]struct {
		who   Person
		list  []pauses.Pause
		says  []string
		lacks []string
	}{
		"nothing":               {ann(), nil, []string{press, "Pause everything", "Pause and stop commands"}, []string{resume, "paused"}},
		"barred":                {barred, nil, nil, []string{press, resume}},
		"own":                   {ann(), []pauses.Pause{own}, []string{resume, "Calls are paused", "By ann.", `name="of" value="ann"`}, []string{press}},
		"everybody's":           {ann(), []pauses.Pause{all}, []string{"All calls are paused", "By root.", "Only an administrator can resume them."}, []string{press, resume + `" class="paused"><button`, `name="of"`}},
		"both":                  {ann(), []pauses.Pause{all, own}, []string{"All calls are paused", "Calls are paused", `name="of" value="ann"`}, []string{press, `name="of" value=""`}},
		"an administrator":      {root, []pauses.Pause{all, own}, []string{`name="of" value=""`, `name="of" value="ann"`, "Resume ann", "Calls of ann are paused"}, []string{press}},
		"somebody else's":       {root, []pauses.Pause{own}, []string{press, "Resume ann"}, []string{"All calls are paused"}},
		"barred, all paused":    {barred, []pauses.Pause{all}, []string{"All calls are paused", barred.Bars}, []string{press, `name="of"`}},
		"escaped":               {root, []pauses.Pause{{Of: "<i>", By: evil}}, []string{"&lt;script&gt;alert(1)&lt;/script&gt;\\u202e"}, []string{"<script>a", "\u202e", "<i>"}},
		"of a damaged record":   {ann(), []pauses.Pause{{Of: "ann"}}, []string{"Calls are paused", resume}, []string{"By .", "Since"}},
		"not signed in, paused": {Person{}, []pauses.Pause{all}, nil, []string{"paused", press, resume}},
	} {
		v := &valve{list: x.list}
		c, _ := valved(x.who, v)
		for _, path := range []string{"/", "/activity", "/console/live"} {
			text := get(c, path).Body.String()
			for _, want := range x.says {
				if !strings.Contains(text, want) {
					t.Errorf("%s, %s lacks %q", name, path, want)
				}
			}
			for _, no := range x.lacks {
				if strings.Contains(text, no) {
					t.Errorf("%s, %s has %q", name, path, no)
				}
			}
		}
	}
	c, _ := valved(ann(), &valve{list: []pauses.Pause{own}})
	c.o.Changes = &journal{}
	if text := get(c, "/changes").Body.String(); !strings.Contains(text, "../console/resume") && !strings.Contains(text, "console/resume") || strings.Contains(text, press) {
		t.Errorf("changes: %s", text)
	}
	for done, want := range map[string]string{"paused": "Paused. Calls that had begun", "halted": "were stopped", "unhalted": "could not be stopped", "resumed": "Calls run again.", "unpaused": "not yours to end"} {
		for _, path := range []string{"/", "/activity"} {
			if text := get(c, path+"?done="+done).Body.String(); !strings.Contains(text, want) {
				t.Errorf("%s after %s lacks %q", path, done, want)
			}
		}
	}
	before, _ := valved(ann(), &valve{})
	stamp := func(c *Console) string {
		text := get(c, "/activity").Body.String()
		return text[strings.Index(text, "data-stamp"):][:40]
	}
	if stamp(before) == stamp(c) {
		t.Error("an open page is not told of a pause")
	}
}
