package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/auth"
	"codehand/server/state"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site is what clients call the server of a rig.
const site = "https://tools.example.com"

// back is where the answers of the usual client go.
const back = "http://127.0.0.1:7777/callback"

// A rig is a Server with a clock, a Store that can be opened again, and a client.
type rig struct {
	t     testing.TB
	store state.Store
	dir   string // of the Store; "": it is in memory
	s     *Server
	o     Options

	mu     sync.Mutex
	now    time.Time
	events []event
	from   netip.Addr
	ended  int // calls of Revoked
}

type event struct {
	name   string
	fields map[string]any
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	x := &rig{t: t, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), from: netip.MustParseAddr("192.0.2.1")}
	x.store = state.NewMemory(state.MemoryOptions{})
	t.Cleanup(func() { _ = x.store.Close() })
	x.o = Options{PublicURL: site, SSE: true, Now: x.clock, ClientIP: func(*http.Request) netip.Addr { return x.from },
		Event: x.event, Revoked: func() { x.ended++ }}
	for _, c := range change {
		c(&x.o)
	}
	x.start()
	return x
}

// durable makes the rig's Store one that outlives a process.
func (x *rig) durable() *rig {
	x.dir = x.t.TempDir()
	x.again()
	return x
}

func (x *rig) start() {
	x.t.Helper()
	x.o.Store = x.store
	var err error
	x.s, err = New(context.Background(), x.o)
	must(x.t, err)
}

// again is a new process with the same Store.
func (x *rig) again() {
	x.t.Helper()
	if x.dir != "" {
		must(x.t, x.store.Close())
		var err error
		x.store, err = state.Open(context.Background(), "embedded:", state.Options{Dir: filepath.Clean(x.dir),
			Timeout: 10 * time.Second, SessionLife: time.Hour, MaxBytes: 64 << 20})
		must(x.t, err)
	}
	x.start()
}

func (x *rig) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *rig) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func (x *rig) event(name string, fields map[string]any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.events = append(x.events, event{name, fields})
}

// happened are the names of all events, and the reason of the last.
func (x *rig) happened() (names, reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []string
	for _, e := range x.events {
		all = append(all, e.name)
		reason, _ = e.fields["reason"].(string)
	}
	return strings.Join(all, " "), reason
}

// An answered is an answer of the server.
type answered struct {
	*http.Response
	body string
}

func (a answered) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	must(t, json.Unmarshal([]byte(a.body), &v))
	return v
}

// problem is the code of an error in an answer; "": it is none.
func (a answered) problem() string {
	var v struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.body), &v)
	return v.Error
}

func (x *rig) do(r *http.Request) answered {
	x.t.Helper()
	h := x.s.Handler(r.URL.Path)
	if h == nil {
		x.t.Fatalf("nothing serves %s", r.URL.Path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := w.Result()
	body, err := io.ReadAll(a.Body)
	must(x.t, err)
	return answered{a, string(body)}
}

func (x *rig) path(p string) string { return x.s.prefix + p }

func (x *rig) get(path string) answered {
	x.t.Helper()
	return x.do(httptest.NewRequest(http.MethodGet, path, nil))
}

func (x *rig) post(path string, v url.Values) answered {
	x.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return x.do(r)
}

func (x *rig) postJSON(path, body string) answered {
	x.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return x.do(r)
}

// register registers a client and returns its id.
func (x *rig) register(redirects ...string) string {
	x.t.Helper()
	if len(redirects) == 0 {
		redirects = []string{back}
	}
	body, _ := json.Marshal(map[string]any{"client_name": "Testing", "redirect_uris": redirects})
	a := x.postJSON(x.path(pathRegister), string(body))
	if a.StatusCode != http.StatusCreated {
		x.t.Fatalf("register: %d %s", a.StatusCode, a.body)
	}
	return a.json(x.t)["client_id"].(string)
}

const verifier = "a-verifier-of-some-forty-three-characters-0"

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// asks are the parameters of a sign-in.
func asks(client string) url.Values {
	return url.Values{"client_id": {client}, "redirect_uri": {back}, "response_type": {"code"}, "state": {"st&te"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}}
}

// authorize begins a sign-in and returns the id of the Ask.
func (x *rig) authorize(v url.Values) (id string) {
	x.t.Helper()
	a := x.get(x.path(pathAuthorize) + "?" + v.Encode())
	id, ok := strings.CutPrefix(a.Header.Get("Location"), x.path(pathAsk))
	if a.StatusCode != http.StatusSeeOther || !ok {
		x.t.Fatalf("authorize: %d %s %s", a.StatusCode, a.Header.Get("Location"), a.body)
	}
	return id
}

func usual() Decision {
	return Decision{Principal: "owner", Scopes: auth.Read | auth.Write, Life: DefaultLife}
}

// approve decides and returns the code.
func (x *rig) approve(id string, d Decision) (code string) {
	x.t.Helper()
	to, err := x.s.Approve(x.t.Context(), id, d)
	must(x.t, err)
	u, err := url.Parse(to)
	must(x.t, err)
	return u.Query().Get("code")
}

// tokens are what a client has.
type tokens struct{ client, access, refresh string }

func exchange(client, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code},
		"code_verifier": {verifier}, "redirect_uri": {back}}
}

func refreshing(t tokens) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {t.client}, "refresh_token": {t.refresh}}
}

func (x *rig) tokens(client string, a answered) tokens {
	x.t.Helper()
	if a.StatusCode != http.StatusOK {
		x.t.Fatalf("no tokens: %d %s", a.StatusCode, a.body)
	}
	v := a.json(x.t)
	refresh, _ := v["refresh_token"].(string)
	return tokens{client, v["access_token"].(string), refresh}
}

// signIn goes the whole way.
func (x *rig) signIn(d Decision) tokens {
	x.t.Helper()
	client := x.register()
	code := x.approve(x.authorize(asks(client)), d)
	return x.tokens(client, x.post(x.path(pathToken), exchange(client, code)))
}

func (x *rig) refresh(t tokens) (answered, tokens) {
	x.t.Helper()
	a := x.post(x.path(pathToken), refreshing(t))
	if a.StatusCode != http.StatusOK {
		return a, tokens{}
	}
	return a, x.tokens(t.client, a)
}

// works says whether an access token is good.
func (x *rig) works(access string) bool {
	x.t.Helper()
	_, mine, err := x.s.Find(access, x.clock())
	if !mine {
		x.t.Fatal("the token is not of this source")
	}
	return err == nil
}
