package server

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"codehand/server/people"
	"codehand/server/replaytest"
	"codehand/tools/sandbox"
)

// confined says that commands are confined, so that who connects can be told from one.
func confined() sandbox.Report { return sandbox.Report{Level: sandbox.LevelFull} }

// A pageBrowser is a person's browser on the page of serve.
type pageBrowser struct {
	t     *testing.T
	url   string // of the site, without a path
	query string // of the page: "" or "?ticket=..."
	http.Client
}

func browserOn(t *testing.T, x *httpSite) *pageBrowser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &pageBrowser{t: t, url: x.url, Client: http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (b *pageBrowser) read(r *http.Response, err error) (*http.Response, string) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return r, string(text)
}

func (b *pageBrowser) get(path string) (status int, text string) {
	b.t.Helper()
	r, text := b.read(b.Get(b.url + path))
	return r.StatusCode, text
}

// A card is a question on the page.
type card struct{ id, csrf, text string }

var cardForm = regexp.MustCompile(`(?s)<article class="card" id="q-(\w+)".*?name="csrf" value="([^"]*)".*?</article>`)

// wait returns what waits when these are n questions.
func (b *pageBrowser) wait(n int) []card {
	b.t.Helper()
	seen := ""
	for {
		query := "?"
		if b.query != "" {
			query = b.query + "&"
		}
		status, text := b.get("/console/live" + query + "seen=" + seen)
		if status != http.StatusOK {
			b.t.Fatalf("%d: %s", status, text)
		}
		var all []card
		for _, m := range cardForm.FindAllStringSubmatch(text, -1) {
			all = append(all, card{m[1], m[2], html.UnescapeString(m[0])})
		}
		if len(all) == n {
			return all
		}
		seen = regexp.MustCompile(`data-version="(\d+)"`).FindStringSubmatch(text)[1]
	}
}

// post sends an answer with these headers in place of those of the page.
func (b *pageBrowser) post(c card, decision, reason string, headers ...string) (status int, at string) {
	b.t.Helper()
	form := url.Values{"csrf": {c.csrf}, "id": {c.id}, "f-decision": {decision}, "f-reason": {reason}}
	q, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/console/answer", strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Origin", b.url)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Del(headers[i])
		if headers[i+1] != "" {
			q.Header.Set(headers[i], headers[i+1])
		}
	}
	r, _ := b.read(b.Do(q))
	return r.StatusCode, r.Header.Get("Location")
}

// answerCounts says whether the page leads to what it says of an answer that counts.
func answerCounts(at string) bool {
	return regexp.MustCompile(`[?&]done=(answered|allowed|denied)$`).MatchString(at)
}

// says answers, and fails if that does not count.
func (b *pageBrowser) says(c card, decision, reason string) {
	b.t.Helper()
	if status, at := b.post(c, decision, reason); status != http.StatusSeeOther || !answerCounts(at) {
		b.t.Errorf("%s: %d, %s", decision, status, at)
	}
}

// pageSite is a server whose page a person has open, in mode none.
func pageSite(t *testing.T, runs *runCount, more ...string) *httpSite {
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings(more...), proven: confined})
	t.Cleanup(x.server.team.Desk.Open("local"))
	return x
}

// TestPageApproves: a client that cannot ask has its calls approved on the page: on each transport and in both eras, with
// and without a progress token.
func TestPageApproves(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http/legacy", "http/modern", "sse/legacy"} {
		for _, token := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", kind, token), func(t *testing.T) {
				t.Parallel()
				runs := &runCount{}
				x := pageSite(t, runs)
				b := browserOn(t, x)
				caps, more := replaytest.Undeclared, ""
				switch {
				case token && kind == "http/modern":
					caps += `,"progressToken":"p"`
				case token:
					more = `,"_meta":{"progressToken":"p"}`
				}
				var c *replaytest.ElicitClient
				if kind == "sse/legacy" {
					c, _ = onSSE(t, x, "", caps)
				} else {
					c = onHTTP(t, x, "", kind == "http/modern", caps)
				}
				call := func(text string) <-chan replaytest.ElicitAnswer {
					answer := make(chan replaytest.ElicitAnswer, 1)
					go func() {
						answer <- c.CallWith("change", replaytest.AsJSON(t, "text", text), more, replaytest.Never(t))
					}()
					return answer
				}

				answer := call("<script>one</script>")
				asked := b.wait(1)[0]
				for _, want := range []string{"Allow change", "<script>one</script>", "Asked because: mode default asks before this.", "ask-test 1", "local, session "} {
					if !strings.Contains(asked.text, want) {
						t.Errorf("%q is missing in %s", want, asked.text)
					}
				}
				b.says(asked, "allow once", "")
				if a := <-answer; a.Failed || a.Text != "did <script>one</script>" || runs.count() != 1 {
					t.Errorf("%+v", a)
				}
				if status, at := b.post(asked, "allow once", ""); status != http.StatusSeeOther || !strings.HasSuffix(at, "done=over") {
					t.Errorf("a replay: %d, %s", status, at)
				}

				answer = call("two")
				b.says(b.wait(1)[0], "deny", "not\u202e on\x1b[31m Fridays")
				if a := <-answer; !a.Failed || !strings.HasPrefix(a.Text, "USER_DECLINED: The user declined this action. They said: not\\u202e on Fridays") || runs.count() != 1 {
					t.Errorf("%+v", a)
				}

				answer = call("three")
				if kind != "http/modern" { // whose calls share a session without a handle
					b.says(b.wait(1)[0], "allow for this session", "")
					if a := <-answer; a.Failed || runs.count() != 2 {
						t.Errorf("%+v", a)
					}
					if a := <-call("four"); a.Failed || runs.count() != 3 {
						t.Errorf("after a grant for the session: %+v", a)
					}
				} else {
					b.says(b.wait(1)[0], "allow once", "")
					<-answer
				}
				c.AsksNobody()
				c.Mu.Lock()
				defer c.Mu.Unlock()
				told := strings.Contains(strings.Join(c.Wire, "\n"), "waiting for approval at "+x.url+"/")
				if told != token {
					t.Errorf("told by progress: %t, want %t", told, token)
				}
			})
		}
	}
}

// TestPageClosed: where nobody has the page open, or it is off, the call does not wait; the first refusal says where the
// page is.
func TestPageClosed(t *testing.T) {
	t.Parallel()
	for how, at := range map[string]bool{"open": true, "off": false} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			runs := &runCount{}
			x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings("console.approvals", how), proven: confined})
			a := onHTTP(t, x, "", false, replaytest.Undeclared).Call("change", `{"text":"one"}`, replaytest.Never(t))
			if !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: ") || runs.count() != 0 || strings.Contains(a.Text, x.url+"/") != at {
				t.Errorf("%+v", a)
			}
		})
	}
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		runs := &runCount{}
		x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings("console.approvals", "always", "permissions.ask_timeout_ms", "1000"), proven: confined})
		a := onHTTP(t, x, "", false, replaytest.Undeclared).Call("change", `{"text":"one"}`, replaytest.Never(t))
		if !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: ") || !strings.Contains(a.Text, "No person answered on "+x.url+"/ in time") || runs.count() != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// TestPageStops: a question that waits when the server stops says so, and the audit says that no person denied it. What a
// person decides is in the audit, without the reason.
func TestPageStops(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := pageSite(t, runs)
	c, b := onHTTP(t, x, "", false, replaytest.Undeclared), browserOn(t, x)
	answer := make(chan replaytest.ElicitAnswer, 1)
	call := func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)) }
	go call()
	b.says(b.wait(1)[0], "deny", "planted-reason")
	if a := <-answer; !strings.HasPrefix(a.Text, "USER_DECLINED: ") {
		t.Errorf("%+v", a)
	}
	go func() { answer <- c.Call("change", `{"text":"two"}`, replaytest.Never(t)) }()
	b.wait(1)
	must(t, x.stop())
	if a := <-answer; !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: ") || !strings.Contains(a.Text, "codehand stopped before a person answered.") || runs.count() != 0 {
		t.Errorf("%+v", a)
	}
	files, err := filepath.Glob(filepath.Join(x.data, "audit", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	must(t, err)
	var got []string
	for l := range strings.Lines(string(text)) {
		var m struct{ Ev, Outcome, Decision, Dec, By, Code string }
		must(t, json.Unmarshal([]byte(l), &m))
		switch {
		case m.Ev == "page.answer", m.Ev == "answer":
			got = append(got, m.Ev+" "+m.Outcome+" "+m.Decision)
		case m.Ev == "call.done" && m.Code != "PENDING":
			got = append(got, m.Dec+" "+m.By+" "+m.Code)
		}
	}
	want := "page.answer  deny|answer accept deny|ask.deny user USER_DECLINED|answer none |ask.deny client ASK_UNAVAILABLE"
	if strings.Join(got, "|") != want || strings.Contains(string(text), "planted-reason") {
		t.Errorf("the audit says\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}
}

// TestPageApprovesPlans: with plan.approval_fallback = "console" a plan of a client that cannot ask waits on the page, and
// where nobody has that open the answer says where it is.
func TestPageApprovesPlans(t *testing.T) {
	t.Parallel()
	settings := askingSettings("plan.approval_fallback", "console")
	x := serveHTTP(t, siteSetup{settings: settings, proven: confined})
	c, b := onHTTP(t, x, "", false, replaytest.Undeclared), browserOn(t, x)
	if a := c.Call("enter_plan_mode", `{}`, replaytest.Never(t)); a.Failed {
		t.Fatalf("%+v", a)
	}
	a := c.Call("exit_plan_mode", `{"plan":"1. Think."}`, replaytest.Never(t))
	if !strings.HasPrefix(a.Text, "Plan mode stays on: no person has approved the plan. The user is asked on "+x.url+"/ as long as") {
		t.Errorf("%+v", a)
	}
	t.Cleanup(x.server.team.Desk.Open("local"))
	for _, say := range []struct{ decision, reason, want string }{
		{"keep planning", "think more", "The user wants to keep planning."},
		{"approve, ask for edits", "", "User has approved your plan."},
	} {
		answer := make(chan replaytest.ElicitAnswer, 1)
		go func() { answer <- c.Call("exit_plan_mode", `{"plan":"1. Think.\n2. Write."}`, replaytest.Never(t)) }()
		asked := b.wait(1)[0]
		if !strings.Contains(asked.text, "approve this plan?") || !strings.Contains(asked.text, "2. Write.") {
			t.Error(asked.text)
		}
		b.says(asked, say.decision, say.reason)
		if a := <-answer; a.Failed || !strings.HasPrefix(a.Text, say.want) {
			t.Errorf("%+v", a)
		}
	}
}

// TestPageAsksInstead: a client that can ask does, also while the page is open.
func TestPageAsksInstead(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := pageSite(t, runs)
	c := onHTTP(t, x, "", false, replaytest.Declared)
	if a := c.Call("change", `{"text":"one"}`, replaytest.Always(replaytest.SayOnce)); a.Asked != 1 || a.Failed {
		t.Errorf("%+v", a)
	}
}

// TestPageForged: an answer that no page of ours sent, or one that was not offered, does nothing; the question waits on.
func TestPageForged(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := pageSite(t, runs)
	b := browserOn(t, x)
	c := onHTTP(t, x, "", false, replaytest.Undeclared)
	answer := make(chan replaytest.ElicitAnswer, 1)
	go func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)) }()
	asked := b.wait(1)[0]
	for name, try := range map[string]struct {
		c        card
		decision string
		headers  []string
		status   int
	}{
		"another port":         {asked, "allow once", []string{"Origin", "http://127.0.0.1:1"}, 403},
		"another site":         {asked, "allow once", []string{"Origin", "https://example.com"}, 403},
		"a null origin":        {asked, "allow once", []string{"Origin", "null"}, 403},
		"no origin":            {asked, "allow once", []string{"Origin", ""}, 403},
		"another port of ours": {asked, "allow once", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"typed":                {asked, "allow once", []string{"Sec-Fetch-Site", "none"}, 403},
		"no token":             {card{asked.id, "", ""}, "allow once", nil, 403},
		"a wrong token":        {card{asked.id, asked.csrf[1:] + "A", ""}, "allow once", nil, 403},
		"JSON":                 {asked, "allow once", []string{"Content-Type", "application/json"}, 400},
		"plain text":           {asked, "allow once", []string{"Content-Type", "text/plain"}, 400},
		"not offered":          {asked, "allow everything", nil, 400},
		"nothing":              {asked, "", nil, 400},
		"another question":     {card{strings.Repeat("a", 26), asked.csrf, ""}, "allow once", nil, 303},
	} {
		if status, at := b.post(try.c, try.decision, "", try.headers...); status != try.status || answerCounts(at) {
			t.Errorf("%s: %d, %s", name, status, at)
		}
	}
	if r, _ := b.read(b.Get(b.url + "/console/answer?id=" + asked.id + "&csrf=" + asked.csrf + "&f-decision=allow+once")); r.StatusCode < 400 {
		t.Errorf("GET: %d", r.StatusCode)
	}
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/", nil)
	q.Host = "evil.example"
	if r, _ := b.read(b.Do(q)); r.StatusCode != http.StatusForbidden {
		t.Errorf("a foreign host: %d", r.StatusCode)
	}
	for _, mode := range []string{"cors", "no-cors"} { // a script of another port of this machine reads it
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/", nil)
		q.Header.Set("Sec-Fetch-Site", "same-site")
		q.Header.Set("Sec-Fetch-Mode", mode)
		if r, text := b.read(b.Do(q)); r.StatusCode != http.StatusForbidden || strings.Contains(text, asked.csrf) {
			t.Errorf("%s: %d", mode, r.StatusCode)
		}
	}
	if runs.count() != 0 {
		t.Error("it ran")
	}
	b.says(b.wait(1)[0], "allow once", "")
	if a := <-answer; a.Failed || runs.count() != 1 {
		t.Errorf("%+v", a)
	}
}

// TestPageRace: of two browsers that answer at once one counts.
func TestPageRace(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := pageSite(t, runs)
	c := onHTTP(t, x, "", false, replaytest.Undeclared)
	answer := make(chan replaytest.ElicitAnswer, 1)
	go func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)) }()
	asked := browserOn(t, x).wait(1)[0]
	var wg sync.WaitGroup
	counts := &runCount{}
	for range 8 {
		b := browserOn(t, x)
		wg.Go(func() {
			if status, at := b.post(asked, "allow once", ""); status == http.StatusSeeOther && answerCounts(at) {
				counts.add()
			}
		})
	}
	wg.Wait()
	if a := <-answer; a.Failed || runs.count() != 1 || counts.count() != 1 {
		t.Errorf("%+v, ran %d times, %d answers count", a, runs.count(), counts.count())
	}
}

// TestPageWithdrawn: a call that its client cancels waits no more, and an answer to it does nothing; so it is when the
// server ends.
func TestPageWithdrawn(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := pageSite(t, runs)
	b := browserOn(t, x)
	h := x.client("").Hello()
	done := h.Launch(t.Context(), "7", "change", "one", "")
	asked := b.wait(1)[0]
	h.Cancel("7", "")
	b.wait(0)
	if status, at := b.post(asked, "allow once", ""); status != http.StatusSeeOther || !strings.HasSuffix(at, "done=over") {
		t.Errorf("withdrawn: %d, %s", status, at)
	}
	<-done
	done = h.Launch(t.Context(), "8", "change", "two", "")
	asked = b.wait(1)[0]
	stopped := make(chan error, 1)
	go func() { stopped <- x.stop() }()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	<-done
	if runs.count() != 0 {
		t.Error("it ran")
	}
	// The next process knows nothing of it.
	again := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings(), proven: confined, data: x.data, work: x.work})
	b = browserOn(t, again)
	if status, at := b.post(asked, "allow once", ""); status != http.StatusForbidden {
		t.Errorf("after a restart: %d, %s", status, at)
	}
}

// TestPageBarred: where an agent's command could answer, nobody can, and no call waits.
func TestPageBarred(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings("sandbox.policy", "off")})
	b := browserOn(t, x)
	status, text := b.get("/")
	if status != http.StatusOK || !strings.Contains(text, "Commands are not confined here, so a command of an agent could answer") {
		t.Errorf("%d: %s", status, text)
	}
	if _, open := x.server.team.Desk.Page("local"); open {
		t.Error("a page that may not answer counts as open")
	}
	csrf := "x"
	if m := regexp.MustCompile(`name="csrf" value="([^"]*)"`).FindStringSubmatch(text); m != nil {
		csrf = m[1]
	}
	if status, _ := b.post(card{"x", csrf, ""}, "allow once", ""); status != http.StatusForbidden {
		t.Errorf("status %d", status)
	}
}

// TestPageHeaders: each page has them, and what is no page of ours is none.
func TestPageHeaders(t *testing.T) {
	t.Parallel()
	x := pageSite(t, &runCount{})
	b := browserOn(t, x)
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/", nil)
	q.Header.Set("Accept", "application/json, text/event-stream")
	if r, text := b.read(b.Do(q)); r.StatusCode != http.StatusNotFound || !strings.Contains(text, "MCP is at /mcp") {
		t.Errorf("a client of MCP: %d, %s", r.StatusCode, text)
	}
	for path, status := range map[string]int{"/": 200, "/console/live": 200, "/console/style.css": 200, "/console/script.js": 200,
		"/console/": 404, "/console": 404, "/other": 404} {
		r, text := b.read(b.Get(b.url + path))
		if r.StatusCode != status {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		if path == "/other" {
			continue
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if strings.Contains(text, "style=") || strings.Contains(text, "<script>") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// TestPageOfTeam: people see and answer what waits for themselves; without a sign-in there is nothing.
func TestPageOfTeam(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), principals: []string{"ann", "bob"}, proven: confined,
		settings: askingSettings("auth.mode", "team", "console.approvals", "always")})
	const password = "planted pass phrase of two"
	browsers := map[string]*pageBrowser{}
	for _, name := range []string{"ann", "bob"} {
		hash, err := people.NewHasher(people.Cost{Memory: 64, Passes: 1, Threads: 1}).Hash(t.Context(), password)
		if err != nil {
			t.Fatal(err)
		}
		if err := people.Open(x.data, nil).SetPassword(name, hash, true); err != nil {
			t.Fatal(err)
		}
		b := browserOn(t, x)
		if _, text := b.get("/"); !strings.Contains(text, `href="./signin/?for=approvals"`) || strings.Contains(text, "article") {
			t.Errorf("without a sign-in: %s", text)
		}
		_, text := b.get("/signin/")
		m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(text)
		r, _ := b.read(b.PostForm(b.url+"/signin/login", url.Values{"csrf": {m[1]}, "name": {name}, "password": {password}}))
		at, err := r.Location()
		if err != nil {
			t.Fatal(err)
		}
		b.query = "?" + at.RawQuery
		browsers[name] = b
	}
	ann, bob := browsers["ann"], browsers["bob"]
	answer := make(chan replaytest.ElicitAnswer, 1)
	go func() {
		answer <- onHTTP(t, x, "ann", false, replaytest.Undeclared).Call("change", `{"text":"one"}`, replaytest.Never(t))
	}()
	asked := ann.wait(1)[0]
	if got := bob.wait(0); len(got) != 0 {
		t.Error("another principal sees it")
	}
	// bob's own token, with the name of ann's question
	_, text := bob.get("/" + bob.query)
	if strings.Contains(text, asked.id) || !strings.Contains(text, "Nothing waits for your approval.") {
		t.Errorf("bob sees %s", text)
	}
	for name, c := range map[string]card{"ann's token": asked, "no token": {asked.id, "", ""}} {
		if status, at := bob.post(c, "allow once", ""); status != http.StatusForbidden {
			t.Errorf("%s: %d, %s", name, status, at)
		}
	}
	// Over plain http the cookie alone proves nothing.
	if status, text := ann.get("/"); status != http.StatusOK || strings.Contains(text, asked.id) {
		t.Errorf("the cookie alone: %d, %s", status, text)
	}
	if runs.count() != 0 {
		t.Error("it ran")
	}
	ann.says(asked, "allow once", "")
	if a := <-answer; a.Failed || runs.count() != 1 {
		t.Errorf("%+v", a)
	}
}

// TestPageChanges: what a model changed is seen on the page and taken back, by the undo that models have: never over what
// somebody wrote since.
func TestPageChanges(t *testing.T) {
	t.Parallel()
	// In this mode a person must allow each edit: the click does.
	x := serveHTTP(t, siteSetup{proven: confined, settings: map[string]string{"permissions.mode": "default", "permissions.ask_fallback": "client"}})
	b := browserOn(t, x)
	h := x.client("").Hello()
	write := func(name, content string) {
		t.Helper()
		h.Does("write_file", replaytest.AsJSON(t, "file_path", x.work+"/"+name, "content", content))
	}
	holds := func(name, want string) {
		t.Helper()
		if got, _ := os.ReadFile(filepath.Join(x.work, name)); string(got) != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	write("a.txt", "one\n")
	write("a.txt", "two\n")
	write("b.txt", "b\n")
	_, text := b.get("/changes")
	ids := regexp.MustCompile(`href="\./changes/([a-z0-9]{16})"`).FindAllStringSubmatch(text, -1)
	session := regexp.MustCompile(`\?session=([0-9a-f]{8})"`).FindStringSubmatch(text)
	if len(ids) != 3 || session == nil {
		t.Fatalf("%d changes: %s", len(ids), text)
	}
	_, text = b.get("/changes/" + ids[1][1])
	if !strings.Contains(text, `<span class="minus">-one</span>`) || !strings.Contains(text, `<span class="plus">&#43;two</span>`) {
		t.Errorf("the diff: %s", text)
	}
	csrf := regexp.MustCompile(`name="csrf" value="([^"]*)"`).FindStringSubmatch(text)[1]
	undo := func(status int, form ...string) string {
		t.Helper()
		values := url.Values{"csrf": {csrf}}
		for i := 0; i < len(form); i += 2 {
			values.Set(form[i], form[i+1])
		}
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/console/undo", strings.NewReader(values.Encode()))
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", b.url)
		r, text := b.read(b.Do(q))
		if r.StatusCode != status {
			t.Errorf("%q: %d: %s", form, r.StatusCode, text)
		}
		return text
	}
	undo(http.StatusOK, "change", ids[1][1])
	holds("a.txt", "one\n")
	undo(http.StatusConflict, "change", ids[1][1]) // it is taken back already
	undo(http.StatusForbidden, "change", ids[0][1], "csrf", "x")
	undo(http.StatusConflict, "change", strings.Repeat("a", 16))

	must(t, os.WriteFile(filepath.Join(x.work, "a.txt"), []byte("mine\n"), 0o600))
	text = undo(http.StatusConflict, "session", session[1])
	if !strings.Contains(text, "1 change was taken back, 1 could not be") || !strings.Contains(text, "UNDO_CONFLICT") {
		t.Errorf("a session with a conflict: %s", text)
	}
	holds("a.txt", "mine\n")
	if _, err := os.Stat(filepath.Join(x.work, "b.txt")); err == nil {
		t.Error("b.txt is still there")
	}
	must(t, os.WriteFile(filepath.Join(x.work, "a.txt"), []byte("one\n"), 0o600))
	undo(http.StatusOK, "session", session[1])
	if left, err := os.ReadDir(x.work); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
