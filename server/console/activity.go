package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/sessions"
)

// Activity is what runs and ran on behalf of a principal, and how it is ended.
type Activity interface {
	// Calls returns calls that are over, the newest first; for an administrator those of all.
	Calls(ctx context.Context, who auth.Principal, q CallQuery) (Calls, error)
	// Stamp is another text when Calls may have others. It is asked often while somebody watches, and never else.
	Stamp(ctx context.Context, who auth.Principal) string
	// Running returns the commands that run for a principal, the oldest first; for an administrator those of all.
	Running(ctx context.Context, who auth.Principal) ([]RunningCommand, error)
	// Stop ends one with its whole tree, and waits for that. ErrNotRunning: it is over, or never was that principal's.
	Stop(ctx context.Context, who auth.Principal, id CommandID) error
	// Rights returns what the sessions of that name may do which are in use; for an administrator those of all.
	Rights(ctx context.Context, who auth.Principal, session string) ([]sessions.Rights, error)
	// SetMode sets the mode of such a session, "" the operator's. sessions.ErrNotOpen, ErrMode.
	SetMode(ctx context.Context, who auth.Principal, id SessionID, mode string) error
	// AddRule sets a rule for such a session. sessions.ErrNotOpen, ErrMode, *RuleError.
	AddRule(ctx context.Context, who auth.Principal, id SessionID, rule sessions.NamedRule) error
	// TakeBack ends a rule of such a session. sessions.ErrNotOpen.
	TakeBack(ctx context.Context, who auth.Principal, id SessionID, rule sessions.NamedRule) error
}

// ErrNotRunning says that a command is not there to be stopped.
var ErrNotRunning = errors.New("this command does not run any more")

// A CommandID names a command that runs.
type CommandID struct {
	Process string // that runs it; "": this one
	Session string // a short name
	Job     string
}

// A RunningCommand is one that runs. Its texts come from clients and models.
type RunningCommand struct {
	CommandID
	Principal  string
	Text       string
	Dir        string // in which it runs; "": not known
	Since      time.Time
	Background bool
}

// A CallQuery says which calls are wanted.
type CallQuery struct {
	Before  time.Time // only older ones; zero: all
	Session string    // a short name; "": of all
	Failed  bool      // only those that were refused or failed
	Limit   int
	Of      string // of this principal, for an administrator; "": of all
}

// Calls are some calls.
type Calls struct {
	List []PastCall
	More bool   // there are older ones
	Said string // what else is to be known, as why there are none; "": nothing
}

// A PastCall is one call of a tool. Its texts come from clients and models.
type PastCall struct {
	ID        string    // also of what it changed; "": not known
	Time      time.Time // it ended
	Session   string    // a short name
	Shared    bool      // clients that name no session share this one
	Principal string
	Client    string // and its version; "": not known
	Tool      string
	Summary   string // the command, the file: what it was about
	Decision  string // "": it was just allowed
	Code      string // why it failed; "": it did not
	Exit      *int   // of a command
	Took      time.Duration
	Files     int  // that it changed
	Open      bool // its end is not on record: it runs, or its process was killed
}

// Outcome says what became of a call, in a few words.
func (c PastCall) Outcome() string {
	switch {
	case c.Open:
		return "not finished"
	case c.Exit != nil && (c.Code == "" || c.Code == "COMMAND_FAILED"):
		return "exit " + strconv.Itoa(*c.Exit)
	case c.Code != "":
		return c.Code
	}
	return "done"
}

// Failed says whether a person who looks for trouble wants to see the call.
func (c PastCall) Failed() bool { return c.Code != "" || c.Open || c.Exit != nil && *c.Exit != 0 }

// Span is how long it took.
func (c PastCall) Span() string {
	if c.Took < time.Second {
		return strconv.FormatInt(c.Took.Milliseconds(), 10) + " ms"
	}
	return c.Took.Round(100 * time.Millisecond).String()
}

// An activityView is what the page of activity shows.
type activityView struct {
	Running []RunningCommand
	Calls
	Query  CallQuery
	Stamp  string
	Rights []sessions.Rights // of the session that the page is about
	Limits []limited         // of the person, for all sessions
}

// A listedSession is a session of which calls are listed. Two of one client differ in their names and times.
type listedSession struct {
	PastCall           // the newest one listed
	First    time.Time // of the oldest one listed
	Count    int
}

// Sessions are those of the listed calls, the one last used first.
func (v *activityView) Sessions() (all []*listedSession) {
	type key struct{ principal, session, client string }
	found := map[key]*listedSession{}
	for _, c := range v.List {
		k := key{c.Principal, c.Session, ""}
		if c.Shared { // its clients have nothing else that tells them apart
			k.client = c.Client
		}
		s := found[k]
		if s == nil {
			s = &listedSession{PastCall: c}
			found[k], all = s, append(all, s)
		}
		s.First = c.Time
		s.Count++
	}
	return all
}

// older is the query of the next page.
func older(v *activityView) CallQuery {
	q := v.Query
	if len(v.List) > 0 {
		q.Before = v.List[len(v.List)-1].Time
	}
	return q
}

// only is the query of a session.
func only(v *activityView, session string) CallQuery {
	return CallQuery{Session: session, Failed: v.Query.Failed}
}

// other is the query with or without those that did not fail.
func other(v *activityView) CallQuery {
	return CallQuery{Session: v.Query.Session, Failed: !v.Query.Failed}
}

const (
	// callsShown is how many calls a page lists.
	callsShown = 100
	// stampEvery is how often it is looked for news while somebody watches.
	stampEvery = 300 * time.Millisecond
)

// link is the query of a page of activity.
func link(p Person, c CallQuery) string {
	if q := fields(p, c); len(q) > 0 {
		return "?" + q.Encode()
	}
	return ""
}

// fields are those of that query.
func fields(p Person, c CallQuery) url.Values {
	q, _ := url.ParseQuery(strings.TrimPrefix(p.Query, "?")) // it is ours
	if !c.Before.IsZero() {
		q.Set("before", c.Before.UTC().Format(time.RFC3339Nano))
	}
	if c.Session != "" {
		q.Set("session", c.Session)
	}
	if c.Failed {
		q.Set("failed", "1")
	}
	return q
}

// queryOf reads what link wrote. What is none of ours counts as not there.
func queryOf(r *http.Request) CallQuery {
	v := r.URL.Query()
	q := CallQuery{Failed: v.Get("failed") == "1", Limit: callsShown}
	if s := v.Get("session"); sessionName().MatchString(s) {
		q.Session = s
	}
	if t, err := time.Parse(time.RFC3339Nano, v.Get("before")); err == nil {
		q.Before = t
	} else if t, err := time.Parse(minuteLayout, v.Get("until")); err == nil {
		q.Before = t.Add(time.Minute) // all calls of that minute
	}
	return q
}

// seeActivity is what runs and ran now.
func (c *Console) seeActivity(r *http.Request, p Person) (v *activityView, err error) {
	defer c.o.opened(p)()
	v = &activityView{Query: queryOf(r)}
	v.Query.Of = p.Of
	v.Stamp = c.stamp(r, p) // before it is read, so that nothing is missed
	if v.Running, err = c.o.Activity.Running(r.Context(), p.Who); err != nil {
		return nil, err
	}
	v.Running = slices.DeleteFunc(v.Running, func(x RunningCommand) bool { return p.Of != "" && x.Principal != p.Of })
	if v.Query.Session != "" {
		if v.Rights, err = c.o.Activity.Rights(r.Context(), p.Who, v.Query.Session); err != nil {
			return nil, err
		}
	}
	v.Calls, err = c.o.Activity.Calls(r.Context(), p.Who, v.Query)
	return v, err
}

// opened notes that a person looks at a page that says what waits, until close.
func (o *Options) opened(p Person) (close func()) {
	if o.Questions == nil || !p.In || p.Bars != "" {
		return func() {}
	}
	return o.Questions.Open(p.Who.ID)
}

// stamp is another text when the page would show other things.
func (c *Console) stamp(r *http.Request, p Person) string {
	s := c.o.Activity.Stamp(r.Context(), p.Who)
	for _, one := range c.o.waiting(p) {
		s += "-" + one.ID
	}
	for _, one := range c.o.Pauses.Of(p.Who.ID, p.Who.Admin) {
		s += "-" + one.Of + one.Since.String()
	}
	if running, err := c.o.Activity.Running(r.Context(), p.Who); err == nil {
		for _, one := range running {
			s += "-" + one.Job
		}
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// liveActivity answers a script when something changes, or after a while, with what is to be seen then.
func (c *Console) liveActivity(w http.ResponseWriter, r *http.Request, p Person) {
	if !p.In {
		c.fail(w, r, p, http.StatusForbidden, "Not signed in", "Sign in first.")
		return
	}
	defer c.o.opened(p)()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * pollTime))
	seen, late := r.URL.Query().Get("seen"), time.NewTimer(pollTime)
	defer late.Stop()
	again := time.NewTicker(stampEvery)
	defer again.Stop()
	for over := false; !over && c.stamp(r, p) == seen; {
		select {
		case <-again.C:
		case <-late.C:
			over = true
		case <-r.Context().Done():
			return
		}
	}
	var ok bool
	if p, ok = c.person(w, r, ""); !ok { // whose rights may have ended meanwhile
		return
	}
	v := view{Title: "Activity", Person: p, Now: time.Now(), Fragment: true}
	if p.In {
		var err error
		if v.Activity, err = c.seeActivity(r, p); err != nil {
			c.broken(w, r, err)
			return
		}
	}
	c.show(w, r, http.StatusOK, v)
}

var (
	jobID       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^job_[a-z0-9]{1,32}$`) })
	processName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]{0,32}$`) })
)

// activity shows what runs.
func (c *Console) activity(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Activity", Person: p, Now: time.Now(), pages: pages{Activity: &activityView{}}}
	switch r.URL.Query().Get("done") {
	case "stopped":
		v.Done = "The command was stopped."
	case "over":
		v.Done = "Nothing was done: this command does not run any more."
	default:
		v.Done = cmp.Or(pauseDone(r), rightsDone(r))
	}
	if p.In {
		var err error
		if v.Activity, err = c.seeActivity(r, p); err != nil {
			c.broken(w, r, err)
			return
		}
		if v.Refresh = v.Activity.Query.Before.IsZero(); v.Refresh && v.Activity.Query.Session == "" {
			v.Activity.Limits = limitsOf(c.o, p)
		}
	}
	c.show(w, r, http.StatusOK, v)
}

// stop ends a command.
func (c *Console) stop(w http.ResponseWriter, r *http.Request, p Person) {
	if c.barred(w, r, p) {
		return
	}
	id := CommandID{r.PostForm.Get("process"), r.PostForm.Get("session"), r.PostForm.Get("job")}
	if !processName().MatchString(id.Process) || !sessionName().MatchString(id.Session) ||
		!jobID().MatchString(id.Job) {
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "This form cannot be read.")
		return
	}
	done := "stopped"
	switch err := c.o.Activity.Stop(r.Context(), p.Who, id); {
	case errors.Is(err, ErrNotRunning):
		done = "over"
	case err != nil:
		c.broken(w, r, err)
		return
	}
	c.redirect(w, p, "../activity", done)
}
