// Package console is the page of serve for people, in a browser: what waits for their approval, at `/`, and what tools
// changed in their files.
//
// It owns the pages, and what a request must bring before anything is shown or done. It keeps nothing: who sent a
// request, and what waits, it asks of others. Every page is whole without its script, which only keeps an open page up
// to date. All that comes from clients, models and files goes through html/template.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/asking"
	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/pauses"
	"codehand/server/signin"
	"codehand/tools/results"
	"codehand/tools/tool"
)

// Questions are what waits for people. *asking.Desk is one.
type Questions interface {
	// Of returns what waits for a principal, or for anybody, and a channel that is closed when that changes.
	Of(principal string, all bool) (list []asking.Waiting, version uint64, changed <-chan struct{})
	// Open notes that the page of a principal is open, until close.
	Open(principal string) (close func())
	// Answer gives a question its one answer; asking.ErrOver, asking.ErrChoice.
	Answer(id, by string, admin bool, values map[string]string) error
}

// A Person is who sent a request, as far as that can be known.
type Person struct {
	Who   auth.Principal // of In
	In    bool           // it is a person with rights here
	Fresh bool           // who signed in a short time ago
	Token string         // CSRF, for the forms of a page
	Query string         // ends links to pages of ours
	Bars  string         // why this person may not answer here, and what would help; "": nothing bars it
	Of    string         // the principal whose calls and changes an administrator looks at; "": all, and their own
}

// Other says whether a principal is somebody else, whose calls only an administrator sees.
func (p Person) Other(principal string) bool { return principal != "" && principal != p.Who.ID }

// For is the person looking at a principal's calls and changes, where links lead on to those; "": at all.
func (p Person) For(principal string) Person {
	q, _ := url.ParseQuery(strings.TrimPrefix(p.Query, "?")) // it is ours
	q.Del(ofField)
	if p.Of = ""; p.Other(principal) && p.Who.Admin {
		p.Of = principal
		q.Set(ofField, principal)
	}
	if p.Query = ""; len(q) > 0 {
		p.Query = "?" + q.Encode()
	}
	return p
}

// ofField names in queries and forms the principal that an administrator looks at.
const ofField = "principal"

// ErrForged says that a form is none of a page that this browser has open.
var ErrForged = errors.New("a form that is not of this page")

// Options of a Console. All but Notes and Log are needed.
type Options struct {
	// Person finds out who sent a request; posted is the CSRF token of its form, "" for a GET. ErrForged: nothing may
	// be done. An *auth.Error: this caller gets no page. Any other error is a fault of ours.
	Person    func(w http.ResponseWriter, r *http.Request, posted string) (Person, error)
	Questions Questions // nil: there are none, by the settings
	Changes   Changes
	// ChangesOf returns those of another principal, as they are taken back by an administrator. ok is false if there
	// is no such principal. nil: there are no others.
	ChangesOf func(admin auth.Principal, principal string) (of Changes, ok bool)
	Activity  Activity
	People    People // nil: nobody sees to them here
	Pauses    Pauses
	Limits    func(auth.Principal) []limits.Use // what is used of them now; nil: there are none
	Notes     func() []string                   // what else is said above what waits; nil: nothing
	SignIn    bool                              // people sign in below signin/
	Connects  bool                              // clients connect at this address with /mcp behind it
	Public    string                            // the address as others know it; "": as the browser names it
	Log       *slog.Logger
}

// A Console is the page. It is safe for concurrent use.
type Console struct {
	o      Options
	routes *http.ServeMux
}

const (
	// pollTime is how long a script waits for news in one request.
	pollTime = 25 * time.Second
	// maxForm is how many bytes a form has: one reason and names of ours.
	maxForm = 64 << 10
	// maxReason is how many characters of a text are taken.
	maxReason = 1_000
)

//go:embed pages
var files embed.FS

type asset struct{ kind, text string }

// assets are what pages load: each name has a digest of its text, so that browsers may keep it. They and page are made
// when a page is: most processes of this program show none, and should not wait 2 ms for them as they start.
var assets = sync.OnceValue(func() map[string]asset {
	own := func(name string) string {
		text, err := files.ReadFile("pages/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		return string(text)
	}
	return map[string]asset{
		"style.css": {"text/css; charset=utf-8", string(signin.Style()) + own("console.css")},
		"script.js": {"text/javascript; charset=utf-8", own("console.js")},
		"icon.svg":  {"image/svg+xml", string(signin.Icon())},
	}
})

// named is how pages name an asset.
func named(name string) string {
	sum := sha256.Sum256([]byte(assets()[name].text))
	return name + "?" + hex.EncodeToString(sum[:6])
}

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Funcs(template.FuncMap{
		"asset": named, "shown": shown, "clock": clock, "day": day, "full": full, "ago": ago, "left": left, "iso": iso,
		"minute": minute, "label": label, "fields": fields,
		"choices": choices, "texts": texts, "yes": yes, "no": no, "narrowed": narrowed, "whole": whole,
		"within": within,
		"brief":  brief, "link": link, "form": formOf, "of": memberQuery, "older": older, "only": only, "other": other,
		"at": func(now, t time.Time) moment { return moment{now, t} },
	}).ParseFS(files, "pages/*.html"))
})

// New makes a Console.
func New(o Options) *Console {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Console{o: o, routes: http.NewServeMux()}
	c.routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !wantsPage(r) {
			elsewhere(w)
			return
		}
		c.get(c.approvals)(w, r)
	})
	c.routes.HandleFunc("GET /console/live", c.get(c.live))
	c.routes.HandleFunc("POST /console/answer", c.post(c.answer))
	if o.Connects {
		c.routes.HandleFunc("GET /connect", c.get(c.connect))
	}
	c.routes.HandleFunc("GET /activity", c.get(c.activity))
	c.routes.HandleFunc("GET /console/activity", c.get(c.liveActivity))
	c.routes.HandleFunc("POST /console/stop", c.post(c.stop))
	c.routes.HandleFunc("POST /console/rights", c.post(c.rights))
	c.routes.HandleFunc("POST /console/pause", c.post(c.pause))
	c.routes.HandleFunc("POST /console/resume", c.post(c.resume))
	c.routes.HandleFunc("GET /changes", c.get(c.changes))
	c.routes.HandleFunc("GET /changes/{id}", c.get(c.change))
	c.routes.HandleFunc("POST /console/undo", c.post(c.undo))
	c.routes.HandleFunc("GET /handover", c.get(c.handOver))
	if o.People != nil {
		x := peoplePages{c}
		c.routes.HandleFunc("GET /people", c.get(x.people))
		c.routes.HandleFunc("POST /console/invite", c.post(x.invite))
		c.routes.HandleFunc("POST /console/end", c.post(x.endAccess))
	}
	for name, a := range assets() {
		c.routes.HandleFunc("GET /console/"+name, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", a.kind)
			h.Set("Cache-Control", "max-age=3600")
			_, _ = w.Write([]byte(a.text)) // a browser that is gone needs no answer
		})
	}
	c.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			elsewhere(w)
			return
		}
		c.fail(w, r, Person{}, http.StatusNotFound, "Not found", "There is no such page here.")
	})
	return c
}

// wantsPage says whether a browser asks, or a program that takes anything: a client of MCP that was given the wrong
// path names what it takes.
func wantsPage(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header["Accept"], ","))
	return accept == "" || strings.Contains(accept, "text/html") ||
		strings.Contains(accept, "*/*") && !strings.Contains(accept, "text/event-stream")
}

// elsewhere answers a client of MCP that has the wrong path.
func elsewhere(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"error":{"code":"not_found","message":"there is nothing here; MCP is at /mcp"}}`)
}

// Serves says whether a path, without that of http.public_url, is one of ours.
func Serves(path string) bool {
	path, rooted := strings.CutPrefix(path, "/")
	page, _, below := strings.Cut(path, "/")
	switch page {
	case "console", "changes":
		return rooted
	case "", "activity", "connect", "handover", "people":
		return rooted && !below
	}
	return false
}

// ServeHTTP serves a request for a path that Serves.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	// Our forms need their Origin, which no-referrer would make null; other hosts learn nothing either way.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	c.routes.ServeHTTP(w, r)
}

// get serves a page to a person.
func (c *Console) get(serve func(http.ResponseWriter, *http.Request, Person)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// A link on a page of another origin, also of another port of this machine, may lead here, but its script, its
		// frame or its picture may not.
		if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") &&
			r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			c.fail(w, r, Person{}, http.StatusForbidden, "Not from here", "Another site asked for this.")
			return
		}
		if p, ok := c.person(w, r, ""); ok {
			serve(w, r, p.For(r.URL.Query().Get(ofField)))
		}
	}
}

// post carries out a form of a page of ours.
func (c *Console) post(serve func(http.ResponseWriter, *http.Request, Person)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			c.fail(w, r, Person{}, http.StatusForbidden, "Not from here",
				"This form was sent by another site, so nothing was done.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		if strings.TrimSpace(kind) != "application/x-www-form-urlencoded" || r.ParseForm() != nil || repeats(r) {
			c.fail(w, r, Person{}, http.StatusBadRequest, "Not understood", "This form cannot be read.")
			return
		}
		if p, ok := c.person(w, r, r.PostForm.Get("csrf")); ok {
			if !p.In {
				c.fail(w, r, p, http.StatusForbidden, "Not signed in", "Sign in first. Nothing was done.")
				return
			}
			serve(w, r, p.For(r.PostForm.Get(ofField)))
		}
	}
}

// repeats says whether a field stands twice in a form: the one that is checked and the one that counts might differ.
func repeats(r *http.Request) bool {
	for _, all := range r.PostForm {
		if len(all) > 1 {
			return true
		}
	}
	return false
}

// sameOrigin says whether the browser vouches that a page of ours sent r. What says nothing is no browser. A browser
// that says no more than the Origin came over plain http, where no proxy has changed the Host.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	all := r.Header["Origin"]
	if len(all) != 1 {
		return false
	}
	_, host, ok := strings.Cut(all[0], "://")
	return ok && strings.EqualFold(host, r.Host)
}

// person finds out who sent r. If ok is false, r was answered.
func (c *Console) person(w http.ResponseWriter, r *http.Request, posted string) (p Person, ok bool) {
	p, err := c.o.Person(w, r, posted)
	if err == nil {
		return p, true
	}
	refused, known := errors.AsType[*auth.Error](err)
	switch {
	case errors.Is(err, ErrForged):
		c.fail(w, r, p, http.StatusForbidden, "Out of date", "This page was open for too long, or cookies are "+
			"blocked. Nothing was done. Go back, reload it and try again.")
	case known:
		c.fail(w, r, Person{}, refused.Status, "Not for you", refused.Message)
	default:
		c.broken(w, r, err)
	}
	return p, false
}

// A view is what a page is made of.
type view struct {
	Title   string
	Base    string // leads to /
	Person  Person
	options *Options
	pages
	waitingView
	Now      time.Time
	Text     string // of a page that says one thing; "": the page shows what waits
	Done     string // what the last form did
	Refresh  bool   // a page without a script loads itself anew
	Fragment bool   // only what changes
	Paused   []pauses.Pause
	Notes    []string // of the page that shows what waits
	Asks     int      // how many calls wait for the person's approval
}

// pages are what a page shows, one of these; all nil: it shows what waits.
type pages struct {
	Changes  *changesView
	Activity *activityView
	HandOver *handOverView
	Connect  *connecting
	People   *peopleView
}

// A waitingView is what waits for a person's answer.
type waitingView struct {
	Waiting []asking.Waiting
	Off     bool // nothing waits here, by the settings
	Version uint64
}

// SignIn says whether people sign in, Connects whether clients connect at this address, Manages whether the person sees
// to people.
func (v view) SignIn() bool   { return v.options.SignIn }
func (v view) Connects() bool { return v.options.Connects }
func (v view) Manages() bool  { return v.options.People != nil && v.Person.Who.Admin }

// Home says whether the page shows what waits.
func (v view) Home() bool {
	return v.Text == "" && v.pages == (pages{})
}

// A moment is a time, seen from now.
type moment struct{ Now, Time time.Time }

func (c *Console) approvals(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Approvals", Person: p, Now: time.Now()}
	switch r.URL.Query().Get("done") {
	case "allowed":
		v.Done = "You allowed it: the call goes on."
	case "denied":
		v.Done = "You denied it: the call is refused."
	case "answered":
		v.Done = "Your answer counts."
	case "over":
		v.Done = "Nothing was done: this question was answered before, or its call has ended."
	default:
		v.Done = pauseDone(r)
	}
	c.fill(&v, p)
	if c.o.Notes != nil && p.In {
		v.Notes = c.o.Notes()
	}
	v.Refresh = p.In && len(v.Waiting) == 0 && !v.Off
	c.show(w, r, http.StatusOK, v)
}

// fill puts what waits for a person into a view, and notes that the person sees it.
func (c *Console) fill(v *view, p Person) (changed <-chan struct{}) {
	if v.Off = c.o.Questions == nil; v.Off || !p.In || p.Bars != "" {
		return nil
	}
	defer c.o.Questions.Open(p.Who.ID)()
	v.Waiting, v.Version, changed = c.o.Questions.Of(p.Who.ID, p.Who.Admin)
	return changed
}

// waiting is what waits for a person; nothing, where their answer would not count.
func (o *Options) waiting(p Person) []asking.Waiting {
	if o.Questions == nil || !p.In || p.Bars != "" {
		return nil
	}
	list, _, _ := o.Questions.Of(p.Who.ID, p.Who.Admin)
	return list
}

// live answers a script when something changes, or after a while, with what waits then.
func (c *Console) live(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Approvals", Person: p, Now: time.Now(), Fragment: true}
	changed := c.fill(&v, p)
	if changed != nil && r.URL.Query().Get("seen") == strconv.FormatUint(v.Version, 10) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * pollTime))
		late := time.NewTimer(pollTime)
		defer late.Stop()
		stop := c.o.Questions.Open(p.Who.ID)
		defer stop()
		select {
		case <-changed:
		case <-late.C:
		case <-r.Context().Done():
			return
		}
		if p, ok := c.person(w, r, ""); !ok { // whose rights may have ended meanwhile
			return
		} else if v = (view{Title: "Approvals", Person: p, Now: time.Now(), Fragment: true}); p.In {
			c.fill(&v, p)
		}
	}
	if !p.In {
		c.fail(w, r, p, http.StatusForbidden, "Not signed in", "Sign in first.")
		return
	}
	c.show(w, r, http.StatusOK, v)
}

// answer takes what a person says to a question.
func (c *Console) answer(w http.ResponseWriter, r *http.Request, p Person) {
	if c.o.Questions == nil || p.Bars != "" {
		c.fail(w, r, p, http.StatusForbidden, "Not here", "Nothing was done. "+p.Bars)
		return
	}
	values := map[string]string{}
	for name, all := range r.PostForm {
		if field, ok := strings.CutPrefix(name, "f-"); ok {
			values[field] = cut(all[0])
		}
	}
	done := says(c.o.waiting(p), r.PostForm.Get("id"), values)
	switch err := c.o.Questions.Answer(r.PostForm.Get("id"), p.Who.ID, p.Who.Admin, values); {
	case errors.Is(err, asking.ErrOver):
		done = "over"
	case errors.Is(err, asking.ErrChoice):
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "Choose one of the answers that are offered.")
		return
	case err != nil:
		c.broken(w, r, err)
		return
	}
	if r.Header.Get("Accept") == "application/json" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"done":%q}`, done)
		return
	}
	c.redirect(w, p, "../", done)
}

// says is what the answer to a question means: answered, where its choices do not say.
func says(waiting []asking.Waiting, id string, values map[string]string) string {
	for _, w := range waiting {
		if w.ID != id {
			continue
		}
		for _, f := range choices(w.Question) {
			switch last := f.Choices[no(f)]; {
			case last != "deny": // a plan is neither
			case values[f.Name] == last:
				return "denied"
			default:
				return "allowed"
			}
		}
	}
	return "answered"
}

// redirect leads from a form to a page of ours that says what it did.
func (c *Console) redirect(w http.ResponseWriter, p Person, to, done string) {
	query := "?"
	if p.Query != "" {
		query = p.Query + "&"
	}
	w.Header().Set("Location", to+query+"done="+done)
	w.WriteHeader(http.StatusSeeOther)
}

// cut bounds a text that a person typed.
func cut(text string) string {
	if r := []rune(text); len(r) > maxReason {
		return string(r[:maxReason-1]) + "…"
	}
	return text
}

func (c *Console) broken(w http.ResponseWriter, r *http.Request, err error) {
	c.o.Log.Error("the page", "path", r.Pattern, "err", err)
	c.fail(w, r, Person{}, http.StatusServiceUnavailable, "Not possible now", "The server cannot do this at the "+
		"moment. Try again in a minute; its operator finds the reason in the log.")
}

// fail shows why nothing was done.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, p Person, status int, title, text string) {
	c.show(w, r, status, view{Title: title, Person: p, Text: text, Now: time.Now()})
}

func (c *Console) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.options = &c.o
	if v.Person.In {
		v.Paused = c.o.Pauses.Of(v.Person.Who.ID, v.Person.Who.Admin)
		v.Asks = len(c.o.waiting(v.Person))
	}
	v.Base = "./"
	if n := strings.Count(strings.TrimPrefix(r.URL.Path, "/"), "/"); n > 0 && !v.Fragment {
		v.Base = strings.Repeat("../", n)
	}
	name := "page.html"
	switch {
	case v.Fragment && v.Activity != nil:
		name = "calls"
	case v.Fragment:
		name = "live"
	}
	var b strings.Builder
	if err := page().ExecuteTemplate(&b, name, v); err != nil {
		c.o.Log.Error("the page", "path", r.Pattern, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String())) // a browser that is gone needs no answer
}

// shown is a text without anything that a person could not see.
func shown(text string) string {
	text, _ = results.Show(text)
	return text
}

// maxBrief is how many characters of a text a row of a table has.
const maxBrief = 500

// brief is what a row of a table shows of a text.
func brief(text string) string {
	if r := []rune(text[:min(len(text), 4*maxBrief)]); len(r) > maxBrief {
		return shown(string(r[:maxBrief-1])) + "…"
	}
	return shown(text)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// day is a time, with its date if that is not today's.
func day(now, t time.Time) string {
	if t.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return clock(t)
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func full(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// minute is a time as a field of a form has it.
func minute(t time.Time) string { return t.UTC().Format(minuteLayout) }

const minuteLayout = "2006-01-02T15:04"

// left is how long it is until something ends.
func left(now, t time.Time) string {
	d := max(0, t.Sub(now)).Round(time.Second)
	if d < 2*time.Minute {
		return strconv.Itoa(int(d/time.Second)) + " s left"
	}
	return strconv.Itoa(int(d/time.Minute)) + " min left"
}

// ago is how long before now something was.
func ago(now, t time.Time) string {
	switch d := max(0, now.Sub(t)).Round(time.Second); {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s ago"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + " days ago"
	}
}

// label is what stands on the button of the i-th choice of a field.
func label(f tool.Field, i int) string {
	text := f.Choices[i]
	if i < len(f.Titles) {
		text = f.Titles[i]
	}
	text = shown(text)
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// choices are the fields of a question that buttons answer: one, in all that go to a page.
func choices(q tool.Question) (all []tool.Field) {
	for _, f := range q.Fields {
		if len(f.Choices) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// yes are the choices of a field but the last, which says no. The no has a form of its own, with what a person types:
// who presses Enter there must not say yes.
func yes(f tool.Field) (all []int) {
	for i := range len(f.Choices) - 1 {
		all = append(all, i)
	}
	return all
}

// no is the last choice.
func no(f tool.Field) int { return len(f.Choices) - 1 }

// texts are those that a person types.
func texts(q tool.Question) (all []tool.Field) {
	for _, f := range q.Fields {
		if len(f.Choices) == 0 {
			all = append(all, f)
		}
	}
	return all
}
