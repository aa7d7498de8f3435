package server

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/people"
	"codehand/server/replaytest"
	"codehand/server/userpage"
)

// A decider is a client whose person has the page open on which its questions wait, if it cannot ask itself.
type decider struct {
	*replaytest.ElicitClient

	t       *testing.T
	runs    *runCount
	calls   int
	browser *pageBrowser
	cancel  func(id string)
	end     func() // the process that asks ends
}

// deciders are the ways in which a client connects, each with the page of its person: that of serve, or codehand page.
var deciders = map[string]func(t *testing.T, caps string, more ...string) *decider{
	"stdio/legacy": func(t *testing.T, caps string, more ...string) *decider { return onStdioPage(t, false, caps, more) },
	"stdio/modern": func(t *testing.T, caps string, more ...string) *decider { return onStdioPage(t, true, caps, more) },
	"http/legacy": func(t *testing.T, caps string, more ...string) *decider {
		return onServePage(t, "http", false, caps, more)
	},
	"http/modern": func(t *testing.T, caps string, more ...string) *decider {
		return onServePage(t, "http", true, caps, more)
	},
	"sse/legacy": func(t *testing.T, caps string, more ...string) *decider {
		return onServePage(t, "sse", false, caps, more)
	},
}

func onServePage(t *testing.T, transport string, modern bool, caps string, more []string) *decider {
	d := &decider{t: t, runs: &runCount{}}
	x := pageSite(t, d.runs, more...)
	d.browser, d.end = browserOn(t, x), func() { must(t, x.stop()) }
	if transport == "sse" {
		d.ElicitClient, _ = onSSE(t, x, "", caps)
		d.cancel = func(id string) {
			d.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
		return d
	}
	h := x.client("")
	d.ElicitClient, d.cancel = replaytest.OverHTTP(t, h, modern, caps), func(id string) { h.Cancel(id, "") }
	return d
}

func onStdioPage(t *testing.T, modern bool, caps string, more []string) *decider {
	d := &decider{t: t, runs: &runCount{}}
	f := start(t, setup{tools: oneChange(d.runs), settings: askingSettings(more...), silent: true, onPage: true})
	d.ElicitClient = replaytest.OnPipe(t, f.Wire, modern, caps)
	d.end = func() {
		must(t, f.In.Close())
		d.browser.wait(0) // it has seen the end of its input
	}
	d.cancel = func(id string) {
		meta := ""
		if modern {
			meta = `,"_meta":{` + d.Meta() + `}`
		}
		d.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + meta + `}}`)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- userpage.Serve(ctx, l, userpage.Options{StateDir: f.server.engines.Dir, Approvals: true}, func(url string) { at <- url })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("codehand page: %v", err)
		}
	})
	jar, err := cookiejar.New(nil)
	must(t, err)
	opened, err := url.Parse(<-at)
	must(t, err)
	d.browser = &pageBrowser{t: t, url: "http://" + opened.Host, Client: http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	d.browser.get("/?" + opened.RawQuery)
	// A process can be reached from its first call on.
	if a := <-d.asks("first"); !a.Failed && caps == replaytest.Undeclared {
		t.Fatalf("%+v", a)
	}
	replaytest.Until(t, "the page reaches the process", func() bool {
		d.browser.get("/console/live")
		_, open := f.server.calls.Desk.Page("local")
		return open
	})
	return d
}

// asks makes a call that needs a person.
func (d *decider) asks(text string) <-chan replaytest.ElicitAnswer {
	d.calls++
	answer := make(chan replaytest.ElicitAnswer, 1)
	go func() {
		answer <- d.Call("change", replaytest.AsJSON(d.t, "text", text), replaytest.Always(replaytest.SayDeny))
	}()
	return answer
}

// ran says how often the tool has run.
func (d *decider) ran(want int) {
	d.t.Helper()
	if got := d.runs.count(); got != want {
		d.t.Errorf("it ran %d times, want %d", got, want)
	}
}

// over answers a question that takes no answer any more.
func (d *decider) over(c card) {
	d.t.Helper()
	if status, at := d.browser.post(c, "allow once", ""); status != http.StatusSeeOther || !strings.HasSuffix(at, "done=over") {
		d.t.Errorf("an answer that comes too late: %d, %s", status, at)
	}
}

// decisions are what may happen to a question. In each exactly one answer counts, or none.
var decisions = map[string]struct {
	caps string
	more []string // settings
	do   func(d *decider)
}{
	"browsers race": {replaytest.Undeclared, nil, func(d *decider) {
		answer := d.asks("one")
		asked := d.browser.wait(1)[0]
		var wg sync.WaitGroup
		said, counts := make([]string, 6), &runCount{}
		for i := range said {
			b := &pageBrowser{t: d.t, url: d.browser.url, Client: http.Client{Jar: d.browser.Jar, Transport: &http.Transport{DisableKeepAlives: true},
				CheckRedirect: d.browser.CheckRedirect}}
			decision := []string{"allow once", "deny"}[i%2]
			wg.Go(func() {
				if status, at := b.post(asked, decision, ""); status == http.StatusSeeOther && answerCounts(at) {
					counts.add()
					said[i] = decision
				}
			})
		}
		wg.Wait()
		a := <-answer
		if counts.count() != 1 {
			d.t.Errorf("%d answers count", counts.count())
		}
		allowed := strings.Contains(strings.Join(said, ""), "allow")
		if allowed == a.Failed {
			d.t.Errorf("%q, and the call says %+v", said, a)
		}
		if allowed {
			d.ran(1)
		} else {
			d.ran(0)
		}
	}},
	"replayed": {replaytest.Undeclared, nil, func(d *decider) {
		answer := d.asks("one")
		asked := d.browser.wait(1)[0]
		d.browser.says(asked, "allow once", "")
		if a := <-answer; a.Failed {
			d.t.Errorf("%+v", a)
		}
		answer = d.asks("one") // exactly this call again
		again := d.browser.wait(1)[0]
		d.over(asked)
		d.ran(1)
		d.browser.says(again, "deny", "")
		if a := <-answer; !a.Failed {
			d.t.Errorf("%+v", a)
		}
		d.ran(1)
	}},
	"of another call": {replaytest.Undeclared, nil, func(d *decider) {
		answer := d.asks("one")
		asked := d.browser.wait(1)[0]
		wrong := asked
		wrong.id = strings.Repeat("a", len(asked.id))
		d.over(wrong)
		d.ran(0)
		d.browser.says(asked, "deny", "no")
		if a := <-answer; !strings.HasPrefix(a.Text, "USER_DECLINED: ") {
			d.t.Errorf("%+v", a)
		}
		answer = d.asks("two")
		d.over(asked)
		d.ran(0)
		d.browser.says(d.browser.wait(1)[0], "allow once", "")
		if a := <-answer; a.Text != "did two" {
			d.t.Errorf("%+v", a)
		}
		d.ran(1)
	}},
	"expired": {replaytest.Undeclared, []string{"permissions.ask_timeout_ms", "1000"}, func(d *decider) {
		answer := d.asks("one")
		asked := d.browser.wait(1)[0]
		if a := <-answer; !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: ") || !strings.Contains(a.Text, "in time") {
			d.t.Errorf("%+v", a)
		}
		d.over(asked)
		d.ran(0)
	}},
	"withdrawn": {replaytest.Undeclared, nil, func(d *decider) {
		d.asks("one")
		asked := d.browser.wait(1)[0]
		d.cancel(fmt.Sprint(d.calls))
		d.browser.wait(0)
		d.over(asked)
		d.ran(0)
	}},
	"its process ends": {replaytest.Undeclared, nil, func(d *decider) {
		d.asks("one")
		asked := d.browser.wait(1)[0]
		d.end()
		q, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.browser.url+"/console/answer",
			strings.NewReader(url.Values{"csrf": {asked.csrf}, "id": {asked.id}, "f-decision": {"allow once"}}.Encode()))
		must(d.t, err)
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", d.browser.url)
		if r, err := d.browser.Do(q); err == nil { // else the page ended with it
			_ = r.Body.Close()
			if at := r.Header.Get("Location"); !strings.HasSuffix(at, "done=over") {
				d.t.Errorf("%d, %s", r.StatusCode, at)
			}
		}
		d.ran(0)
	}},
	"forged": {replaytest.Undeclared, nil, func(d *decider) {
		answer := d.asks("one")
		asked := d.browser.wait(1)[0]
		for what, try := range map[string]struct {
			c       card
			headers []string
		}{
			"another port":  {asked, []string{"Origin", "http://127.0.0.1:1"}},
			"a null origin": {asked, []string{"Origin", "null"}},
			"a frame":       {asked, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe"}},
			"no token":      {card{asked.id, "", ""}, nil},
			"another token": {card{asked.id, asked.csrf + "x", ""}, nil},
		} {
			if status, at := d.browser.post(try.c, "allow once", "", try.headers...); status != http.StatusForbidden {
				d.t.Errorf("%s: %d, %s", what, status, at)
			}
		}
		r, _ := d.browser.read(d.browser.Get(d.browser.url + "/"))
		if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || r.Header.Get("X-Frame-Options") != "DENY" {
			d.t.Errorf("the page can be framed: %s", csp)
		}
		d.ran(0)
		d.browser.says(d.browser.wait(1)[0], "allow once", "")
		if a := <-answer; a.Failed {
			d.t.Errorf("%+v", a)
		}
		d.ran(1)
	}},
	"asked by its client": {replaytest.Declared, nil, func(d *decider) {
		before := d.runs.count()
		asked := make(chan struct{})
		answer := make(chan replaytest.ElicitAnswer, 1)
		go func() {
			answer <- d.Call("change", `{"text":"one"}`, func(string) string { close(asked); return replaytest.SayOnce })
		}()
		<-asked
		d.browser.wait(0)
		if a := <-answer; a.Failed || a.Asked != 1 {
			d.t.Errorf("%+v", a)
		}
		d.ran(before + 1)
	}},
}

// TestPageDecides: whatever happens to a question of a client, on each transport and in both eras, exactly one decision
// counts, and none that comes too late, for another call, or from another page.
func TestPageDecides(t *testing.T) {
	t.Parallel()
	for i, kind := range slices.Sorted(maps.Keys(deciders)) {
		for j, what := range slices.Sorted(maps.Keys(decisions)) {
			if !leaktest.Picked(i+j, 3) { // each transport, and each that may happen, is in each part
				continue
			}
			t.Run(kind+"/"+what, func(t *testing.T) {
				t.Parallel()
				c := decisions[what]
				c.do(deciders[kind](t, c.caps, c.more...))
			})
		}
	}
}

// TestPageRevoked: a person whose sign-in the operator ends while a question waits decides nothing any more, in no browser;
// who signs in anew does.
func TestPageRevoked(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	x := serveHTTP(t, siteSetup{tools: oneChange(runs), principals: []string{"ann"}, proven: confined,
		settings: askingSettings("auth.mode", "team", "console.approvals", "always")})
	signIn := func(password string, browsers ...*pageBrowser) {
		t.Helper()
		hash, err := people.NewHasher(people.Cost{Memory: 64, Passes: 1, Threads: 1}).Hash(t.Context(), password)
		must(t, err)
		must(t, people.Open(x.data, nil).SetPassword("ann", hash, true))
		for _, b := range browsers {
			_, text := b.get("/signin/")
			m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(text)
			r, _ := b.read(b.PostForm(b.url+"/signin/login", url.Values{"csrf": {m[1]}, "name": {"ann"}, "password": {password}}))
			at, err := r.Location()
			must(t, err)
			b.query = "?" + at.RawQuery
		}
	}
	one, two, late := browserOn(t, x), browserOn(t, x), browserOn(t, x)
	signIn("planted pass phrase of ann", one, two)
	answer := make(chan replaytest.ElicitAnswer, 1)
	go func() {
		answer <- onHTTP(t, x, "ann", false, replaytest.Undeclared).Call("change", `{"text":"one"}`, replaytest.Never(t))
	}()
	cards := map[*pageBrowser]card{one: one.wait(1)[0], two: two.wait(1)[0]}
	signIn("another pass phrase of ann", late)
	for b, asked := range cards {
		if status, at := b.post(asked, "allow once", ""); status != http.StatusForbidden {
			t.Errorf("%d, %s", status, at)
		}
		if _, text := b.get("/" + b.query); strings.Contains(text, asked.id) {
			t.Error("who is not signed in any more sees what waits")
		}
	}
	if runs.count() != 0 {
		t.Error("it ran")
	}
	late.says(late.wait(1)[0], "allow once", "")
	if a := <-answer; a.Failed || runs.count() != 1 {
		t.Errorf("%+v", a)
	}
}
