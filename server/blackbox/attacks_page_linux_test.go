package blackbox

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asked brings a person, signed in, to the page that asks about a client.
func (x *siege) asked(a *app) (p *person, f *webForm, at page) {
	x.t.Helper()
	p = x.owner()
	p.button = signsIn // not further than this
	last := p.send(http.MethodGet, a.authorizeURL(a.wish()), "", nil)
	for range 8 {
		if last.status >= 300 && last.status < 400 {
			last = p.send(http.MethodGet, p.resolve(last.url, last.header.Get("Location")), last.url, nil)
			continue
		}
		for _, f := range formsOf(x.t, last.body) {
			if slices.ContainsFunc(f.buttons, func(b button) bool { return allows.MatchString(b.text) }) {
				return p, f, last
			}
		}
		f, b := p.next(last)
		last = p.send(f.method, p.resolve(last.url, f.action), last.url, withButton(f, b))
	}
	x.t.Fatalf("no page asks; the last is %s:\n%s", last.url, last.body)
	return nil, nil, page{}
}

// withButton are the values of a form when a button is pressed.
func withButton(f *webForm, b button) url.Values {
	v := changed(f.values)
	if b.name != "" {
		v.Set(b.name, b.value)
	}
	return v
}

// approval are the values of a form when the button that approves is pressed.
func approval(f *webForm) url.Values {
	i := slices.IndexFunc(f.buttons, func(b button) bool { return allows.MatchString(b.text) })
	return withButton(f, f.buttons[i])
}

// as sends a request as the browser of p would, with other headers.
func (x *siege) as(p *person, r *http.Request) string {
	x.t.Helper()
	u, err := url.Parse(x.s.url)
	must(x.t, err)
	for _, c := range p.client.Jar.Cookies(u) {
		r.AddCookie(c)
	}
	return x.said(r)
}

var ownPage = []string{"Content-Type", "application/x-www-form-urlencoded"}

// pageAttacks are tried at the pages, by other sites and by people who are not the owner.
func pageAttacks(a *app) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"page: " + name, want, do})
	}
	// decide posts a changed approval, with headers in the place of the browser's own.
	decide := func(change []string, header ...string) func(x *siege) string {
		return func(x *siege) string {
			p, f, at := x.asked(a)
			usual := slices.Concat(ownPage, []string{"Origin", x.s.url, "Sec-Fetch-Site", "same-origin"})
			if len(header) > 0 {
				usual = slices.Concat(ownPage, header)
			}
			got := x.as(p, x.request(http.MethodPost, at.url, changed(approval(f), change...).Encode(), usual...))
			if strings.HasPrefix(got, "to") || strings.HasPrefix(got, "back") {
				x.t.Errorf("it was approved")
			}
			return got
		}
	}
	row("no CSRF token", "403 page", decide([]string{"csrf", "-"}))
	row("empty CSRF token", "403 page", decide([]string{"csrf", ""}))
	row("wrong CSRF token", "403 page", decide([]string{"csrf", strings.Repeat("a", 52)}))
	row("form of another site", "403 page", decide(nil, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"))
	row("form of the same site", "403 page", decide(nil, "Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"))
	row("form of another site without Fetch Metadata", "403 page", decide(nil, "Origin", "https://evil.example"))
	row("form of no origin", "403 page", decide(nil, "Origin", "null"))
	row("form of two origins", "403 page", func(x *siege) string {
		return decide(nil, "Origin", x.s.url, "Origin", "https://evil.example")(x)
	})
	row("mode above the operator's", "422 page", decide([]string{"mode", "bypassPermissions"}))
	row("unknown mode", "422 page", decide([]string{"mode", "root"}))
	row("no mode", "422 page", decide([]string{"mode", "-"}))
	row("root of somebody else", "422 page", decide([]string{"root", "/etc"}))
	row("root above", "422 page", decide([]string{"root", "/"}))
	row("unknown access", "422 page", decide([]string{"access", "admin"}))
	row("no access", "422 page", decide([]string{"access", "-"}))
	row("life without end", "422 page", decide([]string{"life", "99999999"}))
	row("negative life", "422 page", decide([]string{"life", "-1"}))
	row("life that is no number", "422 page", decide([]string{"life", "x"}))
	row("decision that is none", "400 page", decide([]string{"decision", "x"}))
	row("no decision", "400 page", decide([]string{"decision", "-"}))
	row("CSRF token of another browser", "403 page", func(x *siege) string {
		_, mine, _ := x.asked(a)
		return decide([]string{"csrf", mine.values.Get("csrf")})(x)
	})
	row("approval as JSON", "415", func(x *siege) string {
		p, f, at := x.asked(a)
		return x.as(p, x.request(http.MethodPost, at.url, approval(f).Encode(), "Content-Type", "application/json", "Origin", x.s.url))
	})
	row("approval as text", "403 page", func(x *siege) string {
		p, f, at := x.asked(a)
		return x.as(p, x.request(http.MethodPost, at.url, approval(f).Encode(), "Content-Type", "text/plain", "Origin", x.s.url))
	})
	row("approval that is huge", "400 page", func(x *siege) string {
		p, f, at := x.asked(a)
		return x.as(p, x.request(http.MethodPost, at.url, changed(approval(f), "x", strings.Repeat("x", 4<<20)).Encode(), slices.Concat(ownPage, []string{"Origin", x.s.url})...))
	})
	row("approval by a link", "200 page", func(x *siege) string { // it is shown, and nothing is decided
		p, f, at := x.asked(a)
		return x.as(p, x.request(http.MethodGet, at.url+"?"+approval(f).Encode(), ""))
	})
	row("approval by nobody", "403 page", func(x *siege) string { // no cookie
		_, f, at := x.asked(a)
		return x.form(at.url, approval(f), "Origin", x.s.url)
	})
	row("sign-in begun in another browser", "403 page", func(x *siege) string { // fixation: the owner is sent the attacker's page
		_, _, at := x.asked(a)
		owner, _, _ := x.asked(a)
		return x.as(owner, x.request(http.MethodGet, at.url, ""))
	})
	row("decision about a sign-in of another browser", "403 page", func(x *siege) string {
		_, _, at := x.asked(a)
		owner, f, _ := x.asked(a)
		return x.as(owner, x.request(http.MethodPost, at.url, approval(f).Encode(), slices.Concat(ownPage, []string{"Origin", x.s.url})...))
	})
	for name, id := range map[string]string{"unknown": strings.Repeat("a", 26), "path": "..%2f..%2ftokens", "NUL": "a%00b", "long": strings.Repeat("a", 5000)} {
		row("sign-in that is none: "+name, "410 page", func(x *siege) string {
			p, _, _ := x.asked(a)
			return x.as(p, x.request(http.MethodGet, "/signin/ask/"+id, ""))
		})
	}
	// The page says what was decided, and nothing is redirected any more.
	row("second decision", "200 page", func(x *siege) string {
		p, f, at := x.asked(a)
		p.send(http.MethodPost, at.url, at.url, approval(f))
		return x.as(p, x.request(http.MethodPost, at.url, approval(f).Encode(), slices.Concat(ownPage, []string{"Origin", x.s.url})...))
	})
	row("approval after a refusal", "200 page", func(x *siege) string {
		p, f, at := x.asked(a)
		if got := p.send(http.MethodPost, at.url, at.url, changed(approval(f), "decision", "refuse")); !strings.Contains(got.header.Get("Location"), "error=access_denied") {
			x.t.Errorf("a refusal: %d %s", got.status, got.header.Get("Location"))
		}
		return x.as(p, x.request(http.MethodPost, at.url, approval(f).Encode(), slices.Concat(ownPage, []string{"Origin", x.s.url})...))
	})
	row("race of approvals", "1 of 20", func(x *siege) string {
		p, f, at := x.asked(a)
		return x.race(p, func(int) url.Values { return approval(f) }, at)
	})
	row("race of approval and refusal", "1 of 20", func(x *siege) string {
		p, f, at := x.asked(a)
		return x.race(p, func(i int) url.Values {
			return changed(approval(f), "decision", []string{"approve", "refuse"}[i%2])
		}, at)
	})
	return append(all, loginAttacks(a)...)
}

// race posts 20 decisions at once and says how many were carried out.
func (x *siege) race(p *person, values func(i int) url.Values, at page) string {
	x.t.Helper()
	u, err := url.Parse(x.s.url)
	must(x.t, err)
	done := make(chan bool, 20)
	var all sync.WaitGroup
	for i := range cap(done) {
		r := x.request(http.MethodPost, at.url, values(i).Encode(), slices.Concat(ownPage, []string{"Origin", x.s.url})...)
		for _, c := range p.client.Jar.Cookies(u) {
			r.AddCookie(c)
		}
		all.Go(func() {
			resp, err := x.via.Do(r)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			if strings.HasPrefix(resp.Header.Get("Location"), "http://127.0.0.1:33419/callback?") {
				done <- true
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d of 20", len(done))
}

// loginAttacks run before a person has signed in.
func loginAttacks(a *app) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"login: " + name, want, do})
	}
	// arrived brings a new browser to the page with the password.
	arrived := func(x *siege) (*person, *webForm, page) {
		p := x.owner()
		last := p.send(http.MethodGet, a.authorizeURL(a.wish()), "", nil)
		for last.status >= 300 && last.status < 400 {
			last = p.send(http.MethodGet, p.resolve(last.url, last.header.Get("Location")), last.url, nil)
		}
		f, _ := p.next(last)
		return p, f, last
	}
	post := func(change []string, header ...string) func(x *siege) string {
		return func(x *siege) string {
			p, f, at := arrived(x)
			usual := slices.Concat(ownPage, []string{"Origin", x.s.url})
			if len(header) > 0 {
				usual = slices.Concat(ownPage, header)
			}
			return x.as(p, x.request(http.MethodPost, p.resolve(at.url, f.action), changed(f.values, change...).Encode(), usual...))
		}
	}
	row("no CSRF token", "403 page", post([]string{"csrf", "-"}))
	row("wrong CSRF token", "403 page", post([]string{"csrf", "x"}))
	row("form of another site", "403 page", post(nil, "Origin", "https://evil.example"))
	row("without a cookie", "403 page", func(x *siege) string {
		_, f, at := arrived(x)
		return x.form(newPerson(x.t, x.s.url, "").resolve(at.url, f.action), f.values, "Origin", x.s.url)
	})
	row("password in the URL", "400 page", func(x *siege) string {
		p, f, at := arrived(x)
		return x.as(p, x.request(http.MethodPost, p.resolve(at.url, f.action)+"?password="+x.password, f.values.Encode(), slices.Concat(ownPage, []string{"Origin", x.s.url})...))
	})
	for name, target := range map[string]string{"URL": "https://evil.example/", "host": "//evil.example/", "backslash": `/\evil.example`, "script": "javascript:alert(1)"} {
		row("open redirect by a "+name, "stayed", func(x *siege) string {
			got := post([]string{"ask", target, "next", target, "return_to", target, "redirect", target})(x)
			if strings.Contains(got, "evil") || strings.HasPrefix(got, "back") {
				return got
			}
			return "stayed"
		})
	}
	row("session from before", "new session", func(x *siege) string { // fixation
		p, f, at := arrived(x)
		u, err := url.Parse(x.s.url)
		must(x.t, err)
		before := map[string]string{}
		for _, c := range p.client.Jar.Cookies(u) {
			before[c.Name] = c.Value
		}
		p.send(http.MethodPost, p.resolve(at.url, f.action), at.url, f.values)
		planted := newPerson(x.t, x.s.url, "")
		planted.client.Jar.SetCookies(u, cookiesOf(before))
		if got := planted.send(http.MethodGet, at.url, "", nil); len(formsOf(x.t, got.body)) > 0 && strings.Contains(got.body, `name="decision"`) {
			return "the session from before is signed in"
		}
		return "new session"
	})
	row("after signing out", "signed out", func(x *siege) string {
		p, f, at := x.asked(a)
		jar, err := cookiejar.New(nil)
		must(x.t, err)
		u, err := url.Parse(x.s.url)
		must(x.t, err)
		jar.SetCookies(u, p.client.Jar.Cookies(u))
		p.send(http.MethodPost, x.s.url+"/signin/logout", at.url, url.Values{"csrf": {f.values.Get("csrf")}})
		p.client.Jar = jar // an attacker had copied them
		got := p.send(http.MethodGet, at.url, "", nil)
		if strings.Contains(got.body, `name="decision"`) {
			return "the copied cookie is good"
		}
		return "signed out"
	})
	for _, path := range []string{"", "ask/" + strings.Repeat("a", 26), "login", "invite", "nothing"} {
		row("framed /signin/"+path, "not framed", func(x *siege) string {
			r, err := x.via.Do(x.request(http.MethodGet, "/signin/"+path, ""))
			must(x.t, err)
			defer r.Body.Close()
			csp := r.Header.Get("Content-Security-Policy")
			if !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") || r.Header.Get("X-Content-Type-Options") != "nosniff" {
				return fmt.Sprintf("%d %q", r.StatusCode, r.Header)
			}
			return "not framed"
		})
	}
	row("foreign Host", "403 forbidden_host", func(x *siege) string { return x.get("/signin/", "Host", "evil.example") })
	return all
}

func cookiesOf(values map[string]string) (all []*http.Cookie) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, &http.Cookie{Name: name, Value: values[name], Path: "/"})
	}
	return all
}

// TestPasswordGuesses: the server slows down every guesser of passwords, and its answers tell nothing else. A browser
// in which the owner signed in before is not.
func TestPasswordGuesses(t *testing.T) {
	t.Parallel()
	d := opened(t, nil)
	a := d.register("http://127.0.0.1:33419/callback")
	known := d.person()
	a.code(known)
	guess := func(p *person, password string) page {
		p.password = password
		last := p.send(http.MethodGet, a.authorizeURL(a.wish()), "", nil)
		for last.status >= 300 && last.status < 400 {
			last = p.send(http.MethodGet, p.resolve(last.url, last.header.Get("Location")), last.url, nil)
		}
		f, b := p.next(last)
		return p.send(f.method, p.resolve(last.url, f.action), last.url, withButton(f, b))
	}
	refused, wrong := 0, 0
	for i := range 12 {
		got := guess(d.besieged(t).owner(), fmt.Sprint("guess ", i))
		switch got.status {
		case http.StatusTooManyRequests:
			refused++
			if got.header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		case http.StatusSeeOther:
			t.Fatalf("guess %d: %s", i, got.header.Get("Location"))
		default:
			wrong++
		}
	}
	if wrong > 6 || refused < 6 {
		t.Errorf("%d guesses were looked at, %d refused; each came from an address of its own", wrong, refused)
	}
	if got := guess(d.besieged(t).owner(), d.password); got.status != http.StatusTooManyRequests {
		t.Errorf("the right password, while it is guessed: %d", got.status)
	}
	known.password = d.password
	if a.code(known) == "" {
		t.Error("the owner's own browser is shut out")
	}
}
