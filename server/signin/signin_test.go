package signin

import (
	"flag"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/people"
)

var update = flag.Bool("update", false, "write golden files")

// Without a script: open, sign in, decide, and go where the client waits.
func TestDecisions(t *testing.T) {
	t.Parallel()
	all := auth.Read | auth.Write | auth.Shell // what is asked for and the operator gives
	for name, c := range map[string]struct {
		fields []string
		want   oauth.Decision
		wrong  string
	}{
		"everything": {[]string{"access", "all", "root", "/srv/ws/one", "root", "/srv/ws/two", "mode", "acceptEdits", "life", "720", "offered", "as shown"},
			oauth.Decision{Scopes: all, Mode: "default", MaxMode: "acceptEdits", Life: 30 * 24 * time.Hour}, ""},
		"everything, of a page that nobody showed": {[]string{"access", "all", "root", "/srv/ws/two", "root", "/srv/ws/one", "mode", "acceptEdits", "life", "720"},
			oauth.Decision{Scopes: all, Roots: []string{"/srv/ws/one", "/srv/ws/two"}, Mode: "default", MaxMode: "acceptEdits", Life: 30 * 24 * time.Hour}, ""},
		"one root twice": {[]string{"access", "all", "root", "/srv/ws/one", "root", "/srv/ws/one", "mode", "acceptEdits", "life", "720", "offered", "as shown"},
			oauth.Decision{Scopes: all, Roots: []string{"/srv/ws/one"}, Mode: "default", MaxMode: "acceptEdits", Life: 30 * 24 * time.Hour}, ""},
		"read only, one root, an hour": {[]string{"access", "read", "root", "/srv/ws/two", "mode", "plan", "life", "1", "offered", "as shown"},
			oauth.Decision{Scopes: auth.Read, Roots: []string{"/srv/ws/two"}, Mode: "plan", MaxMode: "plan", Life: time.Hour}, ""},
		"of another page": {[]string{"access", "all", "root", "/srv/ws/one", "mode", "default", "life", "1", "offered", "x"}, oauth.Decision{}, "have changed"},
		"a mode above":    {[]string{"access", "all", "root", "/srv/ws/one", "mode", "bypassPermissions", "life", "1"}, oauth.Decision{}, "permission mode"},
		"no mode":         {[]string{"access", "all", "root", "/srv/ws/one", "life", "1"}, oauth.Decision{}, "permission mode"},
		"a foreign root":  {[]string{"access", "all", "root", "/etc", "mode", "default", "life", "1"}, oauth.Decision{}, "directories"},
		"a root above":    {[]string{"access", "all", "root", "/srv/ws", "mode", "default", "life", "1"}, oauth.Decision{}, "directories"},
		"no root":         {[]string{"access", "all", "mode", "default", "life", "1"}, oauth.Decision{}, "at least one"},
		"a longer life":   {[]string{"access", "all", "root", "/srv/ws/one", "mode", "default", "life", "99999"}, oauth.Decision{}, "how long"},
		"a negative one":  {[]string{"access", "all", "root", "/srv/ws/one", "mode", "default", "life", "-1"}, oauth.Decision{}, "how long"},
		"other access":    {[]string{"access", "admin", "root", "/srv/ws/one", "mode", "default", "life", "1"}, oauth.Decision{}, "what it may do"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, nil)
			b := s.browser()
			form := b.get("/signin/ask/"+askID).want(t, 200, "Example App")
			b.post("/signin/login", form.token(), "ask", askID, "name", "alice", "password", planted).location(t, "./ask/"+askID)
			form = b.get("/signin/ask/"+askID).want(t, 200, "Allow access?")
			if at := slices.Index(c.fields, "as shown"); at > 0 {
				c.fields[at] = form.field("offered")
			}
			answer := b.post("/signin/ask/"+askID, form.token(), append(c.fields, "decision", "approve")...)
			if c.wrong != "" {
				answer.want(t, http.StatusUnprocessableEntity, c.wrong)
				if len(s.asks.decided) != 0 {
					t.Errorf("decided %+v", s.asks.decided)
				}
				return
			}
			answer.location(t, "https://app.example/callback?code=chc_planted-code&iss=x")
			if answer.body != "" || answer.header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("the redirect says %q, %v", answer.body, answer.header)
			}
			c.want.Principal = "alice"
			got := s.asks.decided[0]
			if got.Principal != c.want.Principal || got.Scopes != c.want.Scopes || !slices.Equal(got.Roots, c.want.Roots) ||
				got.Mode != c.want.Mode || got.MaxMode != c.want.MaxMode || got.Life != c.want.Life {
				t.Errorf("decided %+v, want %+v", got, c.want)
			}
			b.get("/signin/ask/"+askID).want(t, 200, "You allowed this.")
			b.post("/signin/ask/"+askID, form.token(), append(c.fields, "decision", "approve")...).want(t, 200, "You allowed this.")
			if len(s.asks.decided) != 1 {
				t.Error("decided twice")
			}
			s.browser().get("/signin/ask/unknown").want(t, http.StatusGone, "expired")
		})
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted)
	form := b.get("/signin/ask/" + askID)
	b.post("/signin/ask/"+askID, form.token(), "decision", "refuse").location(t, "https://app.example/callback?error=access_denied")
	b.get("/signin/ask/"+askID).want(t, 200, "You refused this.")
	if s.asks.refused != 1 || len(s.asks.decided) != 0 {
		t.Errorf("%+v", s.asks)
	}
}

// A person who was sent the address of a sign-in that another browser began cannot decide it.
func TestOtherBrowser(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted)
	form := b.get("/signin/ask/" + askID)
	s.asks.elsewhere = true
	b.get("/signin/ask/"+askID).want(t, 403, "another browser")
	b.post("/signin/ask/"+askID, form.token(), "decision", "approve", "access", "read", "root", "/srv/ws/one", "mode", "plan",
		"life", "1").want(t, 403, "another browser")
	if len(s.asks.decided) != 0 {
		t.Error("decided")
	}
}

// Only a signed-in person decides, and grants no more than the page shows.
func TestNobodyDecides(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	form := b.get("/signin/ask/" + askID)
	for _, path := range []string{"ask/" + askID, "revoke", "passkey/remove"} {
		b.post("/signin/"+path, form.token(), "decision", "approve", "access", "all", "grant", "g1", "mode", "plan", "life", "1",
			"root", "/srv/ws/one").want(t, 200, "Sign in")
	}
	if len(s.asks.decided)+len(s.asks.revoked) != 0 {
		t.Errorf("%+v", s.asks)
	}
}

func TestForgedForms(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted)
	mine := b.get("/signin/ask/" + askID).token()
	foreign := s.browser().get("/signin/").token()
	s.asks.grants = []oauth.Grant{{ID: "g1", Decision: oauth.Decision{Principal: "alice"}}}
	fields := []string{"decision", "approve", "access", "read", "root", "/srv/ws/one", "mode", "plan", "life", "1", "grant", "g1", "key", "k"}
	paths := []string{"/signin/ask/" + askID, "/signin/revoke", "/signin/logout", "/signin/passkey/remove", "/signin/login", "/signin/invite"}
	for name, c := range map[string]struct {
		token   string
		headers map[string]string
		status  int
	}{
		"no token":           {"", nil, 403},
		"of another browser": {foreign, nil, 403},
		"another site":       {mine, map[string]string{"Origin": "https://evil.example"}, 403},
		"a null origin":      {mine, map[string]string{"Origin": "null"}, 403},
		"another port":       {mine, map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
		"https for http":     {mine, map[string]string{"Origin": strings.Replace(s.url, "http:", "https:", 1)}, 403},
		"cross-site":         {mine, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"same-site":          {mine, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"typed in":           {mine, map[string]string{"Sec-Fetch-Site": "none"}, 403},
	} {
		for _, path := range paths {
			b.headers = c.headers
			if got := b.post(path, c.token, fields...); got.status != c.status {
				t.Errorf("%s, %s: status %d", name, path, got.status)
			}
		}
	}
	b.headers = nil
	for _, path := range paths {
		for kind, body := range map[string]string{
			"application/json": `{"csrf":"` + mine + `","decision":"approve"}`, "text/plain": "csrf=" + mine + "&decision=approve",
		} {
			if got := b.send("POST", path, kind, body); got.status != 403 && got.status != 415 {
				t.Errorf("%s as %s: status %d", path, kind, got.status)
			}
		}
		if got := b.send("POST", path+"?csrf="+mine+"&decision=approve", "application/x-www-form-urlencoded", "csrf="+mine); got.status != 400 {
			t.Errorf("%s with a query: status %d", path, got.status)
		}
		if got := b.get(path + "?csrf=" + mine + "&decision=approve&grant=g1"); got.status == 303 {
			t.Errorf("%s by GET: status %d", path, got.status)
		}
	}
	if len(s.asks.decided)+len(s.asks.revoked) != 0 || !b.signedIn() {
		t.Errorf("something was done: %+v", s.asks)
	}
	b.headers = map[string]string{"Origin": s.url, "Sec-Fetch-Site": "same-origin"}
	b.post("/signin/revoke", mine, "grant", "g1").location(t, "./")
	if !slices.Equal(s.asks.revoked, []string{"g1"}) {
		t.Errorf("the true form: %v", s.asks.revoked)
	}
}

// Every answer forbids framing, caching and sniffing.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted)
	for _, path := range []string{"/signin", "/signin/", "/signin/ask/" + askID, "/signin/ask/none", "/signin/invite", "/signin/invite/chi_x",
		"/signin/nothing", "/signin/login", "/signin/signin.css", "/signin/passkey.js", "/signin/icon.svg"} {
		h := b.get(path).header
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %s lacks %s", path, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*;") {
			t.Errorf("%s: policy %s", path, csp)
		}
		cache := "no-store"
		if strings.Contains(filepath.Ext(path), ".") {
			cache = "no-cache"
		}
		for key, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": cache,
			"Cross-Origin-Opener-Policy": "", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := h.Get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want)
			}
		}
		if got := h.Get("Referrer-Policy"); got != "same-origin" && got != "no-referrer" {
			t.Errorf("%s: referrer %q", path, got)
		}
	}
}

// Browsers hold the policy also against what the answer to a form redirects to.
func TestFormTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client oauth.ClientInfo
		want   string
	}{
		{oauth.ClientInfo{RedirectHost: "app.example"}, "https://app.example:* app.example:"},
		{oauth.ClientInfo{RedirectHost: "app.example:8443"}, "https://app.example:* app.example:"},
		{oauth.ClientInfo{RedirectHost: "cursor"}, "https://cursor:* cursor:"},
		{oauth.ClientInfo{Loopback: true}, "http:"},
		{oauth.ClientInfo{RedirectHost: "x; script-src *"}, ""},
		{oauth.ClientInfo{}, ""},
	} {
		if got := formTargets(c.client); got != c.want {
			t.Errorf("%+v: %q, want %q", c.client, got, c.want)
		}
	}
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted)
	if csp := b.get("/signin/ask/" + askID).header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' https://app.example:* app.example:") ||
		strings.Contains(csp, "script-src") {
		t.Errorf("policy %s", csp)
	}
}

// A cookie that an attacker planted before is worth nothing after the sign-in.
func TestFixation(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	attacker, victim := s.browser(), s.browser()
	attacker.get("/signin/")
	planted1 := attacker.cookies[browserCookie]
	victim.cookies[browserCookie] = planted1
	victim.login("alice", planted).location(t, "./")
	if victim.cookies[browserCookie] == planted1 || !victim.signedIn() {
		t.Error("the name of the browser stays")
	}
	attacker.cookies[browserCookie] = planted1
	if attacker.signedIn() {
		t.Error("the attacker is signed in")
	}
	before := victim.cookies[browserCookie]
	victim.login("alice", planted)
	old := s.browser()
	old.cookies[browserCookie] = before
	if old.signedIn() {
		t.Error("the session before a new sign-in goes on")
	}
}

func TestCookies(t *testing.T) {
	t.Parallel()
	s := begin(t, func(o *Options) { o.PublicURL = "https://tools.example.com/team" })
	b := s.browser()
	b.headers["Host"] = "tools.example.com"
	b.get("/signin/invite/chi_abc")
	got := b.login("alice", planted)
	lines := append(got.header["Set-Cookie"], b.get("/signin/invite/chi_abc").header["Set-Cookie"]...)
	if len(lines) < 3 {
		t.Errorf("cookies %q", lines)
	}
	for _, line := range lines {
		for _, part := range []string{"__Host-codehand-", "; Path=/;", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
			if !strings.Contains(line, part) {
				t.Errorf("%s lacks %s", line, part)
			}
		}
	}
	plain := s.browser() // by the loopback address
	for _, line := range plain.get("/signin/").header["Set-Cookie"] {
		if strings.Contains(line, "Secure") || strings.Contains(line, "__Host-") || !strings.Contains(line, "HttpOnly") {
			t.Errorf("over http: %s", line)
		}
	}
	b.headers["Origin"] = "https://tools.example.com"
	b.post("/signin/logout", b.get("/signin/").token()).want(t, 200, "signed out")
}

// Proxies name the host with its port, without, or as the address behind them; pages of other origins stay out.
func TestOrigins(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"https://Tools.example.com:443/team", "https://tools.example.com"} {
		s := begin(t, func(o *Options) { o.PublicURL = public })
		for _, host := range []string{"tools.example.com", "tools.example.com:443", strings.TrimPrefix(s.url, "http://")} {
			b := s.browser()
			b.headers["Host"] = host
			for origin, status := range map[string]int{"https://tools.example.com": 303, "https://tools.example.com.evil.example": 403,
				"http://tools.example.com": 403, "https://tools.example.com:8443": 403, "https://evil.example": 403} {
				b.headers["Origin"] = origin
				if got := b.login("alice", planted); got.status != status {
					t.Errorf("%s, Host %s, Origin %s: status %d", public, host, origin, got.status)
				}
			}
		}
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*site, *browser){
		"after 12 hours":     func(s *site, _ *browser) { s.move(sessionLife) },
		"by a new password":  func(s *site, _ *browser) { _ = s.book.SetPassword("alice", "x", false) },
		"by the operator":    func(s *site, _ *browser) { s.mu.Lock(); s.disabled["alice"] = true; s.mu.Unlock() },
		"by signing out":     func(s *site, b *browser) { b.post("/signin/logout", b.get("/signin/").token()) },
		"with a wrong clock": func(s *site, _ *browser) { s.move(-time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, nil)
			b := s.browser()
			b.login("alice", planted)
			was := b.cookies[browserCookie]
			if !b.signedIn() {
				t.Fatal("not signed in")
			}
			end(s, b)
			b.cookies[browserCookie] = was
			if b.signedIn() {
				t.Error("still signed in")
			}
		})
	}
}

func TestSessionSurvivesRestart(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted)
	form := b.get("/signin/ask/" + askID)
	again, err := New(t.Context(), s.pages.o)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.pages = again
	s.mu.Unlock()
	b.post("/signin/ask/"+askID, form.token(), "decision", "refuse").location(t, "https://app.example/callback?error=access_denied")
}

// Guessing gets slower, costs no hashing meanwhile, and shuts no person out for ever.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	known := s.browser()
	known.login("alice", planted)
	b := s.browser()
	for i := range freeFailures {
		b.login("alice", "guess "+strconv.Itoa(i)).want(t, 401, "wrong")
	}
	runs := s.pages.hasher.Runs()
	var waits []int
	for range 8 {
		got := b.login("alice", planted) // even with the right one
		n, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != 429 || err != nil {
			t.Fatalf("status %d, %v", got.status, err)
		}
		if s.pages.hasher.Runs() != runs {
			t.Error("a refused guess was hashed")
		}
		waits = append(waits, n)
		s.move(time.Duration(n) * time.Second)
		b.login("alice", "guess").want(t, 401, "wrong")
		runs = s.pages.hasher.Runs()
	}
	if !slices.Equal(waits, []int{1, 2, 4, 8, 16, 32, 60, 60}) {
		t.Errorf("waits %v", waits)
	}
	known.login("alice", planted).location(t, "./") // a browser that was signed in before has its own count
	s.ip = netip.MustParseAddr("198.51.100.1")
	s.browser().login("alice", planted).want(t, 429, "Too many") // the name counts from everywhere
	s.ip = netip.MustParseAddr("192.0.2.7")
	s.browser().login("owner", planted).location(t, "./") // other names are not concerned
	hash, _ := s.pages.hasher.Hash(t.Context(), planted)
	if err := s.book.SetPassword("alice", hash, false); err != nil {
		t.Fatal(err)
	}
	s.browser().login("alice", planted).location(t, "./") // a new password forgets it all
	s.move(2 * time.Minute)
	b.login("alice", planted).location(t, "./")
}

// Many names from one network: the network slows down, another one does not.
func TestSpraying(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.ip = netip.MustParseAddr("2001:db8::1")
	for i := range freeNetwork {
		s.browser().login("name "+strconv.Itoa(i), "guess").want(t, 401, "wrong")
	}
	s.ip = netip.MustParseAddr("2001:db8::2") // of the same network
	s.browser().login("alice", planted).want(t, 429, "Too many")
	s.ip = netip.MustParseAddr("2001:db8:1::1")
	s.browser().login("alice", planted).location(t, "./")
}

func TestLimitsAreBounded(t *testing.T) {
	t.Parallel()
	var l limits
	now := time.Now()
	for i := range maxLimits + 100 {
		l.reserve([]limitKey{{key: strconv.Itoa(i)}}, now)
	}
	if len(l.by) != maxLimits || l.all.Len() != maxLimits {
		t.Errorf("%d, %d", len(l.by), l.all.Len())
	}
	l.reserve([]limitKey{{key: "later"}}, now.Add(forgetAfter+time.Second))
	if len(l.by) != 1 {
		t.Errorf("%d stay", len(l.by))
	}
	var c ceremonies
	for i := range maxCeremonies + 100 {
		c.put(strconv.Itoa(i), ceremony{kind: toLogin})
	}
	var d decided
	for i := range maxDecided + 100 {
		d.note(strconv.Itoa(i), "approved")
	}
	if len(c.by) != maxCeremonies || len(d.how) != maxDecided {
		t.Errorf("%d ceremonies, %d decided", len(c.by), len(d.how))
	}
}

// Who does not exist, is shut out or has no password gets the same answer for the same work.
func TestEnumeration(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.disabled["mallory"] = true
	hash, _ := s.pages.hasher.Hash(t.Context(), planted)
	if err := s.book.SetPassword("mallory", hash, false); err != nil {
		t.Fatal(err)
	}
	if err := s.book.SetPassword("keyonly", "", false); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]bool{}
	for _, c := range []struct{ name, password string }{{"alice", "wrong"}, {"nobody", planted}, {"mallory", planted}, {"keyonly", planted},
		{"keyonly", ""}, {"", ""}, {strings.Repeat("x", 300), "wrong"}} {
		before := s.pages.hasher.Runs()
		got := s.browser().login(c.name, c.password)
		if got.status != 401 || s.pages.hasher.Runs() != before+1 {
			t.Errorf("%.20q: status %d, %d runs", c.name, got.status, s.pages.hasher.Runs()-before)
		}
		body := tokenField.ReplaceAllString(got.body, "TOKEN")
		body = strings.ReplaceAll(body, `value="`+c.name+`"`, "NAME")
		body = strings.ReplaceAll(strings.ReplaceAll(body, `value=""`, "NAME"), " autofocus", "")
		bodies[body] = true
	}
	if len(bodies) != 1 {
		t.Errorf("%d different pages", len(bodies))
	}
}

// Where the browser goes is never what a request says.
func TestOpenRedirects(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	for _, ask := range []string{"//evil.example", "https://evil.example", "/\\evil.example", "../../evil", "x/../../evil", "javascript:alert(1)",
		"%2f%2fevil.example", "a\r\nLocation: https://evil.example", strings.Repeat("a", 300), "x?next=//evil.example"} {
		b := s.browser()
		b.post("/signin/login", b.get("/signin/").token(), "ask", ask, "next", "https://evil.example", "name", "alice", "password", planted).location(t, "./")
	}
}

func TestOwnerAlone(t *testing.T) {
	t.Parallel()
	s := begin(t, func(o *Options) { o.Alone = true })
	b := s.browser()
	form := b.get("/signin/")
	if strings.Contains(form.body, `for="name"`) {
		t.Error("the owner is asked for a name")
	}
	b.post("/signin/login", form.token(), "name", "alice", "password", "wrong").want(t, 401, "The password is wrong.")
	b.post("/signin/login", form.token(), "password", planted).location(t, "./")
	b.get("/signin/").want(t, 200, people.Owner)
}

// Only one's own grants are shown and ended.
func TestGrants(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.asks.grants = []oauth.Grant{
		{ID: "mine", Decision: oauth.Decision{Principal: "alice"}, Client: oauth.ClientInfo{Name: "My App"}},
		{ID: "other", Decision: oauth.Decision{Principal: "bob"}, Client: oauth.ClientInfo{Name: "Bob's App"}},
	}
	b := s.browser()
	b.login("alice", planted)
	home := b.get("/signin/").want(t, 200, "My App")
	if strings.Contains(home.body, "Bob") {
		t.Error("a foreign grant is shown")
	}
	for _, id := range []string{"other", "unknown", ""} {
		b.post("/signin/revoke", home.token(), "grant", id).want(t, 404, "not allowed any more")
	}
	b.post("/signin/revoke", home.token(), "grant", "mine").location(t, "./")
	if !slices.Equal(s.asks.revoked, []string{"mine"}) {
		t.Errorf("revoked %v", s.asks.revoked)
	}
}

// What a client says of itself is text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	ask := s.asks.asks[askID]
	ask.Client = oauth.ClientInfo{Name: `<script>alert(1)</script>"onload=x`, RedirectHost: `"><b>`, Kind: oauth.Registered}
	s.asks.asks[askID] = ask
	s.rights.Roots = []string{`/srv/"><script>`, "/srv/b"}
	s.asks.grants = []oauth.Grant{{ID: `"><script>`, Decision: oauth.Decision{Principal: "alice", Roots: []string{"<script>"}}, Client: ask.Client}}
	b := s.browser()
	for range 2 {
		for _, path := range []string{"/signin/ask/" + askID, "/signin/"} {
			if body := b.get(path).body; strings.Contains(body, "<script>") || strings.Contains(body, `"onload`) || strings.Contains(body, `"><b>`) {
				t.Errorf("%s: %s", path, body)
			}
		}
		b.get("/signin/ask/"+askID).want(t, 200, "&lt;script&gt;")
		b.login(`"><script>alert(1)</script>`, "wrong").want(t, 401, "&lt;script&gt;")
		b.login("alice", planted)
	}
	b.get("/signin/ask/"+askID).want(t, 200, "not verified")
}

// Secrets are in no page, log, event or file.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	_, code, err := s.book.Invite("carol")
	if err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	note := func(p page) page {
		h := p.header.Clone()
		h.Del("Set-Cookie") // the browser's own
		_ = h.Write(&seen)
		seen.WriteString(p.body)
		return p
	}
	b := s.browser()
	note(b.get("/signin/invite/" + code))
	form := note(b.get("/signin/invite"))
	note(b.post("/signin/invite", form.token(), "password", planted, "again", planted+"x"))
	note(b.post("/signin/invite", form.token(), "password", planted, "again", planted))
	cookie := b.cookies[browserCookie]
	note(b.get("/signin/ask/" + askID))
	note(s.browser().login("carol", planted+"y"))
	note(s.browser().login("carol", planted))
	form = note(b.get("/signin/ask/" + askID))
	approved := b.post("/signin/ask/"+askID, form.token(), "decision", "approve", "access", "read", "root", "/srv/ws/one", "mode", "plan", "life", "1")
	seen.WriteString(approved.body)
	note(b.get("/signin/ask/" + askID))
	note(b.get("/signin/"))
	where := map[string]string{"pages": seen.String(), "log, events and files": s.everywhere()}
	for place, text := range where {
		for what, secret := range map[string]string{"password": planted, "invitation": code[4:], "cookie": cookie, "code": "chc_planted-code"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s is in %s", what, place)
			}
		}
	}
	if !strings.Contains(where["log, events and files"], "$argon2id$") || !strings.Contains(s.events.String(), "signin.login") {
		t.Error("the hash and the events are missing, so this test sees nothing")
	}
}

// Golden files show what a person reads. -update writes them.
func TestPages(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	s.asks.grants = []oauth.Grant{{ID: "g1", Client: s.asks.asks[askID].Client, Created: s.now, LastUse: s.now.Add(time.Hour), Expires: s.now.Add(720 * time.Hour),
		Decision: oauth.Decision{Principal: "alice", Scopes: auth.Read | auth.Write, Roots: []string{"/srv/ws/one"}, MaxMode: "acceptEdits"}},
		{ID: "g2", Client: s.asks.asks[askID].Client, Created: s.now, Expires: s.now.Add(720 * time.Hour),
			Decision: oauth.Decision{Principal: "alice", Scopes: auth.Read, MaxMode: "acceptEdits"}}}
	golden(t, "login", b.get("/signin/"))
	golden(t, "login_ask", b.get("/signin/ask/"+askID))
	golden(t, "login_wrong", b.login("alice", "wrong"))
	b.login("alice", planted)
	golden(t, "ask", b.get("/signin/ask/"+askID))
	golden(t, "account", b.get("/signin/"))
	_, code, err := s.book.Invite("carol")
	if err != nil {
		t.Fatal(err)
	}
	c := s.browser()
	c.get("/signin/invite/" + code)
	golden(t, "invite", c.get("/signin/invite"))
	golden(t, "over", c.get("/signin/ask/none"))
}

// TestUsedInvitation: who opened the link again, to sign in, was told to ask for a new one.
func TestUsedInvitation(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	_, code, err := s.book.Invite("carol")
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	b.get("/signin/invite/" + code)
	b.post("/signin/invite", b.get("/signin/invite").token(), "password", planted, "again", planted).location(t, "./")
	again := s.browser()
	again.get("/signin/invite/"+code).location(t, "../invite")
	again.get("/signin/invite").want(t, 410, `<a href="./">Sign in</a>`)
}

// TestSignsInForApprovals: who signed in to see what waits for an approval was led to the page of what they allowed.
func TestSignsInForApprovals(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"", "https://code.example"} {
		s := begin(t, func(o *Options) { o.PublicURL = public })
		b := s.browser()
		if public != "" {
			b.headers["Host"] = "code.example"
		}
		form := b.get("/signin/?for=approvals").want(t, 200, "Password")
		wrong := b.post("/signin/login", form.token(), "ask", form.field("ask"), "name", "alice", "password", "wrong").want(t, 401, "wrong")
		b.post("/signin/login", wrong.token(), "ask", wrong.field("ask"), "name", "alice", "password", planted).location(t, "./../")
		b.get("/signin/?for=approvals&"+inQuery(b.ticket)).location(t, "./../") // who is signed in already
	}
	b := begin(t, nil).browser()
	if form := b.get("/signin/?for=//evil.example").want(t, 200, "Password"); form.field("ask") != "" {
		t.Errorf("the form leads to %q", form.field("ask"))
	}
}

// TestSaysWhyAgain: who had signed in was asked for the password again, and not told why.
func TestSaysWhyAgain(t *testing.T) {
	t.Parallel()
	const why = "You sign in each time"
	for public, told := range map[string]bool{"": true, "https://code.example": false} {
		s := begin(t, func(o *Options) { o.PublicURL = public })
		b := s.browser()
		if public != "" {
			b.headers["Host"] = "code.example"
		}
		if first := b.get("/signin/").want(t, 200, "Password"); strings.Contains(first.body, why) {
			t.Errorf("%q: a new browser is told so, too", public)
		}
		b.login("alice", planted)
		b.ticket = ""
		s.move(sessionLife) // over https it ends, too
		if page := b.get("/signin/").want(t, 200, "Password"); strings.Contains(page.body, why) != told {
			t.Errorf("%q: the page says %s", public, page.body)
		}
	}
}

func golden(t *testing.T, name string, p page) {
	t.Helper()
	got := tokenField.ReplaceAllString(p.body, `name="csrf" value="TOKEN"`)
	got = regexp.MustCompile(`ticket=[\w-]+`).ReplaceAllString(got, "ticket=TICKET")
	if offered := p.field("offered"); offered != "" {
		got = strings.ReplaceAll(got, offered, "SIGNED")
	}
	path := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from its golden file; go test ./server/signin -update writes it:\n%s", name, got)
	}
}

// TestCookieAloneIsWorthNothing: cookies know no port, so over plain http every server on 127.0.0.1 that the person
// opened, as the dev server of a job, had the cookie of who was signed in here, and could approve a client with it.
func TestCookieAloneIsWorthNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	b := s.browser()
	b.login("alice", planted).location(t, "./")
	if !b.signedIn() {
		t.Fatal("alice is not signed in")
	}
	thief := s.browser()
	maps.Copy(thief.cookies, b.cookies)
	if thief.signedIn() {
		t.Error("who has the cookie is signed in")
	}
	form := thief.get("/signin/ask/"+askID).want(t, 200, "Sign in")
	thief.post("/signin/ask/"+askID, form.token(), "decision", "approve", "access", "all", "root", "/srv/ws/one",
		"mode", "plan", "life", "1").want(t, 200, "Sign in")
	thief.post("/signin/revoke", form.token(), "grant", "mine").want(t, 200, "Sign in")
	own := s.browser() // a ticket that the thief chose, or has of a sign-in of its own
	own.login("alice", planted)
	for _, ticket := range []string{"", "x", own.ticket} {
		thief.ticket = ticket
		if thief.signedIn() {
			t.Errorf("who has the cookie and the ticket %q is signed in", ticket)
		}
	}
	if len(s.asks.decided) != 0 {
		t.Errorf("decided: %+v", s.asks.decided)
	}
	_, code, err := s.book.Invite("dora")
	if err != nil {
		t.Fatal(err)
	}
	invited := s.browser()
	invited.get("/signin/invite/"+code).location(t, "../invite")
	for name, value := range invited.cookies {
		if value == code {
			t.Errorf("the cookie %s has the code of an invitation", name)
		}
	}
	invited.get("/signin/invite").want(t, 200, "dora")
}

// Over https the cookie is kept to our host, and pages have no ticket.
func TestNoTicketOverHTTPS(t *testing.T) {
	t.Parallel()
	s := begin(t, func(o *Options) { o.PublicURL = "https://code.example" })
	b := s.browser()
	b.headers["Host"] = "code.example"
	b.login("alice", planted).location(t, "./")
	if !b.signedIn() || b.ticket != "" {
		t.Errorf("ticket %q", b.ticket)
	}
	for name := range b.cookies {
		if !strings.HasPrefix(name, "__Host-") {
			t.Errorf("cookie %s", name)
		}
	}
}
