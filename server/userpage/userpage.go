package userpage

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"codehand/server/audit"
	"codehand/server/auth"
	"codehand/server/auth/peers"
	"codehand/server/console"
	"codehand/server/live"
	"codehand/server/pauses"
	"codehand/server/sessions"
)

// A Workspace is a server over the files of one workspace. *server.Server is one.
type Workspace interface {
	// CallByPerson calls a tool for a person who clicked on the page.
	CallByPerson(ctx context.Context, name string, args json.RawMessage) (text string, failed bool, err error)
	Close() error
}

// Options of the page. Log may be nil.
type Options struct {
	StateDir string
	// Open opens a workspace with these roots.
	Open func(ctx context.Context, roots []string) (Workspace, error)
	// Approvals: questions wait here.
	Approvals bool
	// Calls is the directory in which processes on stdio record their calls; "": none does.
	Calls string
	Log   *slog.Logger
}

// headerTime is how long a browser may take to send the head of a request.
const headerTime = 10 * time.Second

// A page serves one person until its Serve ends.
type page struct {
	o       Options
	host    string // of the listener, as browsers name it
	cookie  string // its name: browsers keep one jar for all ports
	secret  string // what the cookie holds
	csrf    string
	callers *peers.Peers // nil: the system does not say who connects
	hub     *live.Hub
	history *history
	site    *console.Console

	mu  sync.Mutex
	key string // opens the page once; "": it has
}

// Serve serves the page on a loopback listener until ctx ends. ready is called with its address, which holds the
// one-time key, once it answers.
func Serve(ctx context.Context, l net.Listener, o Options, ready func(url string)) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p, err := newPage(l.Addr().String(), o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer p.hub.Close()
	defer p.history.close()
	if p.callers != nil {
		l = p.callers.Listener(l)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: headerTime, ReadTimeout: 2 * headerTime,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ready("http://" + p.host + "/?key=" + p.key)
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newPage(address string, o Options) (*page, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	h, err := openHistory(o)
	if err != nil {
		return nil, err
	}
	p := &page{o: o, host: address, cookie: "codehand_page_" + port, key: rand.Text(), secret: rand.Text(),
		callers: peers.New(), hub: live.NewHub(o.StateDir, "http://"+address+"/"), history: h}
	m := hmac.New(sha256.New, []byte(p.secret))
	m.Write([]byte("csrf|1"))
	p.csrf = base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	c := console.Options{Person: p.person, Changes: h, Activity: activity{p.hub, o.Calls}, Notes: p.hub.Barred,
		Pauses: pauses.Dir(o.StateDir), Log: o.Log}
	if o.Approvals && live.Available() {
		c.Questions = p.hub
	}
	p.site = console.New(c)
	return p, nil
}

// ServeHTTP lets in whose browser was given the key.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, port, _ := net.SplitHostPort(p.host)
	if r.Host != p.host && r.Host != "localhost:"+port { // a name of another site that leads here
		w.WriteHeader(http.StatusMisdirectedRequest)
		return
	}
	if key := r.URL.Query().Get("key"); key != "" && r.Method == http.MethodGet && r.URL.Path == "/" {
		p.unlock(w, r, key)
		return
	}
	p.site.ServeHTTP(w, r)
}

// unlock takes the one-time key for a cookie.
func (p *page) unlock(w http.ResponseWriter, r *http.Request, key string) {
	if p.stranger(r) != nil {
		p.site.ServeHTTP(w, r) // it says why not
		return
	}
	p.mu.Lock()
	opens := p.key != "" && subtle.ConstantTimeCompare([]byte(key), []byte(p.key)) == 1
	if opens {
		p.key = ""
	}
	p.mu.Unlock()
	if opens {
		http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: p.secret, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	// A page that leads on, and no redirect: after that a strict cookie of this very answer counts, whatever led here.
	w.Header().Set("Refresh", "0; url=/")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>codehand</title><p><a href="/">codehand</a></p>`))
}

// stranger says why a connection gets no page; nil: it does.
func (p *page) stranger(r *http.Request) error {
	if p.callers == nil {
		return nil // the cookie decides
	}
	switch p.callers.Caller(r.RemoteAddr) {
	case peers.Ours:
		return nil
	case peers.Confined:
		return &auth.Error{Status: http.StatusForbidden, Code: "confined_caller",
			Message: "This connection comes from a command that codehand runs in a sandbox."}
	case peers.Hidden:
		return &auth.Error{Status: http.StatusForbidden, Code: "hidden_caller",
			Message: "Commands run in a sandbox of codehand's, and the system does not say that this connection is " +
				"not one of theirs. Load this page again when they have ended."}
	}
	return &auth.Error{Status: http.StatusForbidden, Code: "not_local_user",
		Message: "Only the user who started this page may use it."}
}

// person is console.Options.Person.
func (p *page) person(_ http.ResponseWriter, r *http.Request, posted string) (console.Person, error) {
	if err := p.stranger(r); err != nil {
		return console.Person{}, err
	}
	c, err := r.Cookie(p.cookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(p.secret)) != 1 {
		return console.Person{}, &auth.Error{Status: http.StatusForbidden, Code: "no_key",
			Message: "Open the address that codehand page printed. It works once: for another browser, start " +
				"codehand page again."}
	}
	if r.Method == http.MethodPost && subtle.ConstantTimeCompare([]byte(posted), []byte(p.csrf)) != 1 {
		return console.Person{}, console.ErrForged
	}
	who := auth.Principal{ID: auth.LocalID, Via: auth.ModeNone}
	return console.Person{Who: who, In: true, Token: p.csrf}, nil
}

// activity is the console.Activity of all processes of the user.
type activity struct {
	hub *live.Hub
	dir string // of the record
}

// Calls is console.Activity.Calls.
func (a activity) Calls(_ context.Context, _ auth.Principal, q console.CallQuery) (console.Calls, error) {
	if a.dir == "" {
		return console.Calls{Said: "Calls are not recorded: console.record is false."}, nil
	}
	return console.Recorded(a.dir, auth.LocalID, sessions.ByWorkspace, q)
}

// Stamp is console.Activity.Stamp.
func (a activity) Stamp(context.Context, auth.Principal) string {
	if a.dir == "" {
		return ""
	}
	return audit.Stamp(a.dir)
}

// Running is console.Activity.Running.
func (a activity) Running(ctx context.Context, _ auth.Principal) (all []console.RunningCommand, err error) {
	defer a.hub.Open("")()
	for _, c := range a.hub.Running(ctx) {
		all = append(all, console.RunningCommand{
			CommandID: console.CommandID{Process: c.Process, Session: c.Session, Job: c.ID},
			Text:      c.Command, Dir: c.Cwd, Since: c.Since, Background: c.Background,
		})
	}
	return all, nil
}

// Stop is console.Activity.Stop.
func (a activity) Stop(ctx context.Context, _ auth.Principal, id console.CommandID) error {
	defer a.hub.Open("")()
	err := a.hub.Stop(ctx, id.Process, id.Session, id.Job)
	if errors.Is(err, live.ErrGone) {
		return console.ErrNotRunning
	}
	return err
}

// Rights is console.Activity.Rights.
func (a activity) Rights(ctx context.Context, _ auth.Principal, name string) ([]sessions.Rights, error) {
	defer a.hub.Open("")()
	return a.hub.Rights(ctx, name), nil
}

// SetMode is console.Activity.SetMode.
func (a activity) SetMode(ctx context.Context, who auth.Principal, id console.SessionID, mode string) error {
	defer a.hub.Open("")()
	return a.hub.SetRights(ctx, live.Wish{Session: id.Session, By: who.ID, Mode: mode})
}

// AddRule is console.Activity.AddRule.
func (a activity) AddRule(ctx context.Context, who auth.Principal, id console.SessionID, r sessions.NamedRule) error {
	defer a.hub.Open("")()
	return a.hub.SetRights(ctx, live.Wish{Session: id.Session, By: who.ID, Add: &r})
}

// TakeBack is console.Activity.TakeBack.
func (a activity) TakeBack(ctx context.Context, who auth.Principal, id console.SessionID, r sessions.NamedRule) error {
	defer a.hub.Open("")()
	return a.hub.SetRights(ctx, live.Wish{Session: id.Session, By: who.ID, Take: &r})
}
