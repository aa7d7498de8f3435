package signin

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/server/oauth"
	"codehand/server/people"
)

// A sign-in leaves few bytes, and nothing once its grant has ended; what hashing the password took is garbage.
func TestManySignIns(t *testing.T) {
	many := 200
	if os.Getenv("CODEHAND_LONG") != "" {
		many = 1000
	}
	s := begin(t, nil)
	server, err := oauth.New(t.Context(), oauth.Options{Store: s.store, Now: s.clock, ClientIP: func(*http.Request) netip.Addr { return s.ip }})
	if err != nil {
		t.Fatal(err)
	}
	clients := 0
	s.pages.o.Asks = server
	do := func(method, path, kind, body string, cookies map[string]string) page {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "127.0.0.1"
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		for k, v := range cookies {
			r.AddCookie(&http.Cookie{Name: k, Value: v})
		}
		w := httptest.NewRecorder()
		if strings.HasPrefix(path, "/signin") {
			s.pages.ServeHTTP(w, r)
		} else {
			server.Handler(r.URL.Path).ServeHTTP(w, r)
		}
		a := w.Result()
		for _, c := range a.Cookies() {
			cookies[c.Name] = c.Value
		}
		return page{a.StatusCode, a.Header, w.Body.String()}
	}
	const formType = "application/x-www-form-urlencoded"
	sum := sha256.Sum256([]byte(strings.Repeat("v", 50)))
	heap := func() int64 {
		t.Helper()
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	signIn := func() {
		t.Helper()
		clients++
		c := map[string]string{}
		s.move(40 * time.Second)
		made := do("POST", "/oauth/register", "application/json", `{"client_name":"Whole App","redirect_uris":["http://127.0.0.1/cb"]}`, c)
		_, id, _ := strings.Cut(made.body, `"client_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		at := do("GET", "/oauth/authorize?"+url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {"http://127.0.0.1:5555/cb"},
			"scope": {"mcp:read mcp:write"}, "state": {"st"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}.Encode(), "", "", c).header.Get("Location")
		form := do("GET", at, "", "", c)
		in := do("POST", "/signin/login", formType, url.Values{"csrf": {form.token()}, "ask": {at}, "name": {"alice"}, "password": {planted}}.Encode(), c)
		_, ticket, _ := strings.Cut(in.header.Get("Location"), "?")
		form = do("GET", at+"?"+ticket, "", "", c)
		answer := do("POST", at, formType, url.Values{"csrf": {form.token()}, "decision": {"approve"}, "access": {"all"}, "root": {"/srv/ws/one"}, "mode": {"plan"}, "life": {"24"}}.Encode(), c)
		to, _ := url.Parse(answer.header.Get("Location"))
		tokens := do("POST", "/oauth/token", formType, url.Values{"grant_type": {"authorization_code"},
			"client_id": {id}, "code": {to.Query().Get("code")}, "redirect_uri": {"http://127.0.0.1:5555/cb"}, "code_verifier": {strings.Repeat("v", 50)}}.Encode(), c)
		if tokens.status != 200 {
			t.Fatal(tokens.body, answer.body, made.body)
		}
	}
	for range 20 { // what is made once
		signIn()
	}
	before := heap()
	for range many {
		signIn()
	}
	if each := (heap() - before) / int64(many); each > 5<<10 {
		t.Errorf("a sign-in keeps %d bytes", each)
	} else {
		t.Logf("a sign-in keeps %d bytes", each)
	}
	grants, err := server.Grants(t.Context())
	if err != nil || len(grants) != clients {
		t.Fatalf("%d grants of %d sign-ins, %v", len(grants), clients, err)
	}
	for _, g := range grants {
		if err := server.RevokeGrant(t.Context(), g.ID); err != nil {
			t.Fatal(err)
		}
	}
	grants = nil
	left := (heap() - before) / int64(many)
	t.Logf("once its grant has ended, it keeps %d bytes", left) // the browser's session, for 12 hours, and the client
	if left > 2<<10 {
		t.Errorf("once its grant has ended, a sign-in keeps %d bytes", left)
	}
	runtime.KeepAlive(server)
}

// A refresh never waits for passwords that are hashed: it takes no slot of theirs. They are all in the queue before it
// and take far longer, so it is done first.
func TestRefreshBesideHashing(t *testing.T) {
	hasher := people.NewHasher(people.Cost{Memory: 32 << 10, Passes: 4, Threads: 1})
	s := begin(t, func(o *Options) { o.Hasher = hasher })
	server, err := oauth.New(t.Context(), oauth.Options{Store: s.store, Now: s.clock, ClientIP: func(*http.Request) netip.Addr { return s.ip }})
	if err != nil {
		t.Fatal(err)
	}
	began := hasher.Runs()
	var hashing sync.WaitGroup
	waits := make(chan struct{})
	for range 8 {
		hashing.Go(func() { s.browser().login("alice", "wrong") })
	}
	go func() {
		hashing.Wait()
		close(waits)
	}()
	for hasher.Runs() == began {
		runtime.Gosched()
	}
	body := "grant_type=refresh_token&client_id=x&refresh_token=chr_aaaaaaaaaaaa_" + strings.Repeat("A", 65)
	for range 20 {
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		server.Handler("/oauth/token").ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	}
	select {
	case <-waits:
		t.Error("the refresh waited for all that hash")
	default:
	}
	<-waits
}
