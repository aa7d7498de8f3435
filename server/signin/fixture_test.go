package signin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/oauth"
	"codehand/server/people"
	"codehand/server/state"
)

// A fakeAsks remembers what was decided. It is safe for concurrent use.
type fakeAsks struct {
	mu        sync.Mutex
	asks      map[string]oauth.Ask
	decided   []oauth.Decision
	refused   int
	grants    []oauth.Grant
	revoked   []string
	elsewhere bool
}

func (f *fakeAsks) Pending(_ context.Context, id string) (oauth.Ask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.asks[id]
	if !ok {
		return a, oauth.ErrNoAsk
	}
	return a, nil
}

func (f *fakeAsks) HoldAsk(string) {}

func (f *fakeAsks) SameBrowser(*http.Request, string) bool { return !f.elsewhere }

func (f *fakeAsks) take(id string) (oauth.Ask, error) {
	a, ok := f.asks[id]
	if !ok {
		return a, oauth.ErrNoAsk
	}
	delete(f.asks, id)
	return a, nil
}

func (f *fakeAsks) Approve(_ context.Context, id string, d oauth.Decision) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.take(id); err != nil {
		return "", err
	}
	f.decided = append(f.decided, d)
	return "https://app.example/callback?code=chc_planted-code&iss=x", nil
}

func (f *fakeAsks) Refuse(_ context.Context, id string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.take(id); err != nil {
		return "", err
	}
	f.refused++
	return "https://app.example/callback?error=access_denied", nil
}

func (f *fakeAsks) Grants(context.Context) ([]oauth.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]oauth.Grant(nil), f.grants...), nil
}

func (f *fakeAsks) RevokeGrant(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, id)
	return nil
}

const (
	planted = "planted-secret-pass-phrase"
	askID   = "ask-1"
)

// A site is a server of pages in this process.
type site struct {
	t      *testing.T
	dir    string
	asks   *fakeAsks
	book   *people.Book
	store  state.Store
	pages  *Pages
	url    string
	log    lockedBuffer
	events lockedBuffer
	ip     netip.Addr // of every browser

	mu       sync.Mutex
	now      time.Time
	disabled map[string]bool
	rights   auth.Principal
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *site) move(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// everyPrincipal is what the operator gives.
func everyPrincipal() auth.Principal {
	return auth.Principal{Roots: []string{"/srv/ws/one", "/srv/ws/two"}, Mode: "default", MaxMode: "acceptEdits",
		Scopes: auth.Read | auth.Write | auth.Shell}
}

// begin serves the pages of a team in which alice has a password, or of the owner alone.
func begin(t *testing.T, change func(*Options)) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), now: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), disabled: map[string]bool{},
		rights: everyPrincipal(), ip: netip.MustParseAddr("192.0.2.7")}
	s.asks = &fakeAsks{asks: map[string]oauth.Ask{askID: {
		ID: askID, Scopes: auth.Read | auth.Write | auth.Shell | auth.Web,
		Client:  oauth.ClientInfo{ID: "https://app.example/c.json", Name: "Example App", Host: "app.example", RedirectHost: "app.example", Kind: oauth.Document},
		Created: s.now, Expires: s.now.Add(10 * time.Minute)}}}
	s.book = people.Open(s.dir, s.clock)
	var err error
	if s.store, err = state.Open(t.Context(), "embedded:", state.Options{Dir: filepath.Join(s.dir, "store"), Sync: time.Hour}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	o := Options{Asks: s.asks, People: s.book, Store: s.store, Now: s.clock,
		Hasher: people.NewHasher(people.Cost{Memory: 64, Passes: 1, Threads: 1}),
		Rights: func(id string) (auth.Principal, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			who := s.rights
			who.ID = id
			return who, !s.disabled[id]
		},
		Commands: func() string { return "Commands are confined to these directories." },
		ClientIP: func(*http.Request) netip.Addr { return s.ip },
		Event:    func(name string, f map[string]any) { fmt.Fprintln(&s.events, name, f) },
		Log:      slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	if s.pages, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alice", people.Owner} {
		hash, err := s.pages.hasher.Hash(t.Context(), planted)
		if err == nil {
			err = s.book.SetPassword(name, hash, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		pages := s.pages
		s.mu.Unlock()
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// A browser keeps cookies and follows nothing by itself.
type browser struct {
	*site
	cookies map[string]string
	ticket  string // in the address bar
	base    string
	headers map[string]string
}

func (s *site) browser() *browser {
	return &browser{site: s, cookies: map[string]string{}, base: s.url, headers: map[string]string{}}
}

// A page is an answer.
type page struct {
	status int
	header http.Header
	body   string
}

func (b *browser) send(method, path, kind, body string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for k, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	for k, v := range b.headers {
		r.Header.Set(k, v)
		if k == "Host" {
			r.Host = v
		}
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range answer.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	if at := answer.Header.Get("Location"); strings.HasPrefix(at, ".") {
		at, b.ticket, _ = strings.Cut(at, "?ticket=")
		answer.Header.Set("Location", at)
	}
	said := string(text)
	if m := ticketNext.FindStringSubmatch(said); m != nil { // the script goes there
		b.ticket, said = m[1], strings.Replace(said, "?ticket="+m[1], "", 1)
	}
	return page{answer.StatusCode, answer.Header, said}
}

func (b *browser) get(path string) page {
	if b.ticket != "" && !strings.Contains(path, "?") {
		path += "?ticket=" + b.ticket
	}
	return b.send(http.MethodGet, path, "", "")
}

var ticketNext = regexp.MustCompile(`"next":"[^"?]*\?ticket=([^"]+)"`)

var tokenField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// field is the value of a hidden field.
func (p page) field(name string) string {
	_, rest, _ := strings.Cut(p.body, `name="`+name+`" value="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func (p page) token() string {
	if m := tokenField.FindStringSubmatch(p.body); m != nil {
		return m[1]
	}
	return ""
}

// post sends a form with fields as pairs.
func (b *browser) post(path, token string, fields ...string) page {
	b.t.Helper()
	form := url.Values{"csrf": {token}}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return b.send(http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode())
}

// login signs in with a password, from the page that the browser would see.
func (b *browser) login(name, password string) page {
	b.t.Helper()
	return b.post("/signin/login", b.get("/signin/").token(), "name", name, "password", password)
}

func (b *browser) signedIn() bool { return strings.Contains(b.get("/signin/").body, "Sign out") }

// want fails if the answer has another status, or does not say text.
func (p page) want(t *testing.T, status int, text string) page {
	t.Helper()
	if p.status != status || !strings.Contains(p.body, text) {
		t.Errorf("status %d, want %d with %q: %s", p.status, status, text, p.body)
	}
	return p
}

func (p page) location(t *testing.T, want string) {
	t.Helper()
	if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != want {
		t.Errorf("status %d to %q, want 303 to %q: %s", p.status, got, want, p.body)
	}
}

// everywhere is all that the site wrote: log, events, files.
func (s *site) everywhere() string {
	all := s.log.String() + s.events.String()
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			all += string(text)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}
