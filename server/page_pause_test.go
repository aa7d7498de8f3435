package server

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/pauses"
	"codehand/server/replaytest"
)

// press sends a form of the page with these headers in place of those of the page.
func (b *pageBrowser) press(what string, form url.Values, headers ...string) (status int, at string) {
	b.t.Helper()
	q, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/console/"+what, strings.NewReader(form.Encode()))
	must(b.t, err)
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Origin", b.url)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	r, _ := b.read(b.Do(q))
	return r.StatusCode, r.Header.Get("Location")
}

// csrf is the token of the forms of a page.
func (b *pageBrowser) csrf() string {
	b.t.Helper()
	_, text := b.get("/")
	m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(text)
	if m == nil {
		b.t.Fatalf("no form: %s", text)
	}
	return m[1]
}

// TestPagePauses: while a person has paused everything, a call of a client that cannot ask waits and says so by progress;
// it runs when they resume. The page itself, and its undo, go on.
func TestPagePauses(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http/legacy", "http/modern"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			x := serveHTTP(t, siteSetup{proven: confined})
			b := browserOn(t, x)
			caps, more := replaytest.Undeclared, `,"_meta":{"progressToken":"p"}`
			if kind == "http/modern" {
				caps, more = caps+`,"progressToken":"p"`, ""
			}
			c := onHTTP(t, x, "", kind == "http/modern", caps)
			if a := c.Call("write_file", `{"file_path":"a.txt","content":"one\n"}`, replaytest.Never(t)); a.Failed {
				t.Fatalf("%+v", a)
			}
			form := url.Values{"csrf": {b.csrf()}}
			if status, at := b.press("pause", form, "Origin", "http://127.0.0.1:1"); status != http.StatusForbidden {
				t.Errorf("another port pauses: %d, %s", status, at)
			}
			if status, at := b.press("pause", form); status != http.StatusSeeOther || !strings.HasSuffix(at, "done=paused") {
				t.Fatalf("%d, %s", status, at)
			}
			answer := make(chan replaytest.ElicitAnswer, 1)
			go func() {
				answer <- c.CallWith("write_file", `{"file_path":"b.txt","content":"two\n"}`, more, replaytest.Never(t))
			}()
			replaytest.Until(t, "the call waits", func() bool {
				c.Mu.Lock()
				defer c.Mu.Unlock()
				return strings.Contains(strings.Join(c.Wire, "\n"), "paused by a person on the page")
			})
			_, text := b.get("/changes")
			change := regexp.MustCompile(`changes/([a-z0-9]+)"`).FindStringSubmatch(text)
			if !strings.Contains(text, "All calls are paused") || change == nil {
				t.Fatalf("the page says %s", text)
			}
			if status, _ := b.press("undo", url.Values{"csrf": form["csrf"], "change": {change[1]}}); status >= 400 {
				t.Errorf("the person's undo: %d", status)
			}
			if _, err := os.Stat(filepath.Join(x.work, "a.txt")); !os.IsNotExist(err) {
				t.Errorf("it is not taken back: %v", err)
			}
			if _, err := os.Stat(filepath.Join(x.work, "b.txt")); !os.IsNotExist(err) {
				t.Errorf("a paused call ran: %v", err)
			}
			form.Set("of", "")
			if status, at := b.press("resume", form, "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
				t.Errorf("another site resumes: %d, %s", status, at)
			}
			if status, at := b.press("resume", form); status != http.StatusSeeOther || !strings.HasSuffix(at, "done=resumed") {
				t.Errorf("%d, %s", status, at)
			}
			if a := <-answer; a.Failed {
				t.Errorf("%+v", a)
			}
			if text, err := os.ReadFile(filepath.Join(x.work, "b.txt")); err != nil || string(text) != "two\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestPagePauseLasts: a pause outlives serve, also where the next one has no page, and a call that its client cannot be
// kept waiting for is refused with what to do: at once while the server stops, which it does not hold up.
func TestPagePauseLasts(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), settings: askingSettings(), proven: confined})
	b := browserOn(t, x)
	b.press("pause", url.Values{"csrf": {b.csrf()}})
	answer := make(chan replaytest.ElicitAnswer, 1)
	c := onHTTP(t, x, "", false, replaytest.Undeclared)
	go func() { answer <- c.Call("change", `{"text":"one"}`, replaytest.Never(t)) }()
	replaytest.Until(t, "the call waits", func() bool { return x.server.team.Endpoint.Load().Count()[""] > 0 })
	must(t, x.stop())
	const refused = "PAUSED: The user paused all calls at "
	if a := <-answer; !a.Failed || !strings.HasPrefix(a.Text, refused) || !strings.Contains(a.Text, "they resume on "+x.url+"/. Make exactly this call again") {
		t.Errorf("%+v", a)
	}
	next := serveHTTP(t, siteSetup{tools: oneChange(runs), data: x.data, work: x.work, settings: askingSettings("permissions.ask_timeout_ms", "1000"), principals: []string{"ann"}})
	a := onHTTP(t, next, "ann", false, replaytest.Undeclared).CallWith("change", `{"text":"one"}`, `,"_meta":{"progressToken":"p"}`, replaytest.Never(t))
	if !a.Failed || !strings.HasPrefix(a.Text, "PAUSED: The administrator local paused all calls at ") || !strings.Contains(a.Text, "they resume on the page of codehand serve, which auth.mode none,") {
		t.Errorf("%+v", a)
	}
	must(t, next.stop())
	last := serveHTTP(t, siteSetup{tools: oneChange(runs), data: x.data, work: x.work, settings: askingSettings("auth.mode", "none", "permissions.ask_timeout_ms", "1000"), proven: confined})
	b = browserOn(t, last)
	if status, at := b.press("resume", url.Values{"csrf": {b.csrf()}, "of": {""}}); status != http.StatusSeeOther || !strings.HasSuffix(at, "done=resumed") {
		t.Errorf("%d, %s", status, at)
	}
	if runs.count() != 0 {
		t.Error("a paused call ran")
	}
	if a := onHTTP(t, last, "", false, replaytest.Undeclared).Call("change", `{"text":"one"}`, replaytest.Never(t)); !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE") {
		t.Errorf("%+v", a)
	}
}

// TestPausesStdio: what `codehand page` paused holds in processes on stdio that it cannot reach, from the next call on, and
// the refusal says how to resume. Our own command line goes on.
func TestPausesStdio(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		runs := &runCount{}
		f := start(t, setup{tools: oneChange(runs), settings: askingSettings("permissions.ask_fallback", "client", "permissions.ask_timeout_ms", "1000"), silent: true})
		c := replaytest.OnPipe(t, f.Wire, modern, replaytest.Undeclared+`,"progressToken":"p"`)
		dir := pauses.Dir(f.server.engines.Dir)
		more := ""
		if !modern {
			more = `,"_meta":{"progressToken":"p"}`
		}
		call := func() replaytest.ElicitAnswer {
			return c.CallWith("change", `{"text":"one"}`, more, replaytest.Never(t))
		}
		if a := call(); a.Failed || runs.count() != 1 {
			t.Fatalf("%+v", a)
		}
		must(t, dir.Pause(t.Context(), "local", false))
		if a := call(); !strings.HasPrefix(a.Text, "PAUSED: The user paused all calls at ") || !strings.Contains(a.Text, "they resume with `codehand page`.") || runs.count() != 1 {
			t.Errorf("%+v", a)
		}
		if text, failed, err := f.server.Call(t.Context(), "change", []byte(`{"text":"two"}`)); err != nil || failed || runs.count() != 2 {
			t.Errorf("the person's own command line: %s, %v", text, err)
		}
		must(t, dir.Resume(t.Context(), "local", "local", false))
		if a := call(); a.Failed || runs.count() != 3 {
			t.Errorf("%+v", a)
		}
	}
}
