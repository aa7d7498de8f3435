package asking

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// linger is how long a page counts as open after its last request: it asks again at once, or is loaded anew.
	linger = 20 * time.Second
	// unseenTime is how long a question waits that no page has shown, unless it is always left to the page: the person
	// closed the page just before.
	unseenTime = time.Minute
	// mostWaiting is how many questions of one principal wait at once.
	mostWaiting = 64
)

var (
	// ErrOver says that a question does not wait for this person: it was answered, withdrawn or never theirs.
	ErrOver = errors.New("this question was answered, is over, or was never yours")
	// ErrChoice says that an answer is none of those that were offered.
	ErrChoice = errors.New("this answer was not offered")
)

// A Desk holds the questions of one process that clients cannot show, until a person answers them on the page of serve.
// Each ends with its call, so none survives the process. It is safe for concurrent use. A nil Desk has no page.
type Desk struct {
	// Told is called for each question that begins to wait, with the address of its page, and must not block. It is
	// set before the first one; nil: nobody is told.
	Told func(w Waiting, url string)

	// Start says with which command the user opens a page that could answer here; "": none could. It is set before the
	// first call; nil: nothing is started for that.
	Start func() string

	always bool // also while no page is open
	event  func(name string, fields map[string]any)

	mu      sync.Mutex
	url     string
	visited bool // by the page of another process, which may end at any time
	waiting map[string]*waitingQuestion
	open    map[string]*openPages // by principal
	version uint64                // grows with each change of waiting
	changed chan struct{}         // closed with the next change
	closed  bool
}

// openPages are the pages of a principal.
type openPages struct {
	n    int
	last time.Time // when the last of them ended a request
}

// A Waiting is one question, as a page shows it. All texts come from clients and models: a page escapes them.
type Waiting struct {
	ID        string // names it; random
	Principal string // on whose behalf the call is made
	Session   string // a short name of the session
	Client    string // and its version, as it calls itself
	Agent     string // the kind of sub-agent that makes the call; "": none
	Tool      string
	Call      string // id of the call
	Question  tool.Question
	Since     time.Time
	Until     time.Time // then the call goes on without an answer
	// Chat: it is about the session and not about the call. Such questions of a session are one for people: the page
	// shows the oldest, and one answer is that of all.
	Chat bool `json:",omitempty"`
}

// together says that a person answers two questions at once.
func (w *Waiting) together(other *Waiting) bool {
	return w.Chat && other.Chat && w.Principal == other.Principal && w.Session == other.Session
}

// A Said is what a person answered on a page.
type Said struct {
	Elicited
	By string // their principal
}

// A Notice is what a program of the operator is told of a question that waits.
type Notice struct {
	Principal string    `json:"principal"`
	Client    string    `json:"client"`
	Tool      string    `json:"tool"`
	Title     string    `json:"title"` // of the question
	URL       string    `json:"url"`   // of the page that shows it
	Until     time.Time `json:"until"` // then the call goes on without an answer
}

// Notice is what is told of w, which waits at url.
func (w Waiting) Notice(url string) Notice {
	return Notice{w.Principal, w.Client, w.Tool, w.Question.Title, url, w.Until}
}

type waitingQuestion struct {
	Waiting
	answer chan *Said    // gets one; nil: nobody answers
	seen   chan struct{} // closed when a page has shown it
	shown  bool
}

// NewDesk makes a Desk. always: questions wait also while no page of their principal is open. event takes what the
// audit records.
func NewDesk(always bool, event func(name string, fields map[string]any)) *Desk {
	return &Desk{always: always, event: event, waiting: map[string]*waitingQuestion{}, open: map[string]*openPages{},
		changed: make(chan struct{})}
}

// Serve sets where the page is; "": nowhere any more, and then all questions end without an answer.
func (d *Desk) Serve(url string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.url = url; url != "" {
		return
	}
	d.closed = true
	for _, w := range d.waiting {
		d.end(w, nil)
	}
	d.tell()
}

// Page says where a person answers for a principal, "" for nowhere, and whether questions may wait there now.
func (d *Desk) Page(principal string) (url string, open bool) {
	if d == nil {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.url == "" {
		return "", false
	}
	p := d.open[principal]
	if d.visited && (p == nil || p.n == 0 && time.Since(p.last) >= linger) {
		return "", false // who knows whether it is still there
	}
	return d.url, d.always || p != nil && (p.n > 0 || time.Since(p.last) < linger)
}

// Visit notes that the page of another process, at url, is open for a principal, until leave is called and a little
// longer. Then the Desk knows of no page again. It is for a Desk that nobody has told to Serve.
func (d *Desk) Visit(principal, url string) (leave func()) {
	d.mu.Lock()
	d.url, d.visited = url, true
	d.mu.Unlock()
	return d.Open(principal)
}

// Open notes that a page of a principal is open, until close is called and a little longer.
func (d *Desk) Open(principal string) (close func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.open[principal]
	if p == nil {
		p = &openPages{}
		d.open[principal] = p
	}
	p.n++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		p.n--
		p.last = time.Now()
	})
}

// Put lets a question wait until a person answers, its time is over, ctx ends or gone is closed. nil: no person
// answered. w needs no ID and no times: it waits for life.
func (d *Desk) Put(ctx context.Context, w Waiting, life time.Duration, gone <-chan struct{}) *Said {
	w.ID = strings.ToLower(rand.Text())
	w.Since = time.Now()
	w.Until = w.Since.Add(life)
	q := &waitingQuestion{Waiting: w, answer: make(chan *Said, 1), seen: make(chan struct{})}
	first, ok := d.begin(q)
	if !ok {
		return nil
	}
	defer d.withdraw(q)
	if first && d.Told != nil {
		url, _ := d.Page(w.Principal)
		d.Told(q.Waiting, url)
	}
	late := time.NewTimer(life)
	defer late.Stop()
	unseen := time.NewTimer(unseenTime)
	defer unseen.Stop()
	notSeen, seen := unseen.C, q.seen
	if d.always {
		notSeen = nil
	}
	for {
		select {
		case said := <-q.answer:
			return said
		case <-seen:
			notSeen, seen = nil, nil
		case <-notSeen:
			return nil
		case <-late.C:
			return nil
		case <-gone:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// begin adds a question. first: none of its kind waits already. ok is false if there are too many of its principal, or
// the page is closed.
func (d *Desk) begin(q *waitingQuestion) (first, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, first := 0, true
	for _, w := range d.waiting {
		if w.Principal == q.Principal {
			n++
		}
		first = first && !w.together(&q.Waiting)
	}
	if d.closed || n >= mostWaiting {
		return false, false
	}
	d.waiting[q.ID] = q
	d.tell()
	return first, true
}

// withdraw takes a question away that waits no longer.
func (d *Desk) withdraw(q *waitingQuestion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[q.ID] == q {
		d.end(q, nil)
		d.tell()
	}
}

// end answers a question and takes it away. mu is held.
func (d *Desk) end(q *waitingQuestion, said *Said) {
	q.answer <- said
	delete(d.waiting, q.ID)
}

// tell says that something has changed. mu is held.
func (d *Desk) tell() {
	d.version++
	close(d.changed)
	d.changed = make(chan struct{})
}

// Waits returns what waits for a principal, the oldest first, for who is no person: it does not count as shown.
func (d *Desk) Waits(principal string) (list []Waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.waiting {
		if q.Principal == principal {
			list = append(list, q.Waiting)
		}
	}
	slices.SortFunc(list, oldestFirst)
	return list
}

func oldestFirst(a, b Waiting) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) }

// Of returns what waits for a principal, the oldest first; all: for anybody. They count as shown to a person from then
// on. version names this state, and changed is closed with the next one.
func (d *Desk) Of(principal string, all bool) (list []Waiting, version uint64, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.waiting {
		if !all && q.Principal != principal {
			continue
		}
		if !q.shown {
			q.shown = true
			close(q.seen)
		}
		list = append(list, q.Waiting)
	}
	slices.SortFunc(list, oldestFirst)
	for i := 1; i < len(list); i++ {
		if slices.ContainsFunc(list[:i], func(older Waiting) bool { return older.together(&list[i]) }) {
			list = slices.Delete(list, i, i+1)
			i--
		}
	}
	return list, d.version, d.changed
}

// Answer gives a question its one answer: the values of its fields. by is who answers; admin: that person may answer
// for others. ErrOver: it does not wait, or not for this person. ErrChoice: it waits on, since a value is no choice of
// it.
func (d *Desk) Answer(id, by string, admin bool, values map[string]string) error {
	content := map[string]any{}
	for name, value := range values {
		content[name] = value
	}
	said := &Said{By: by}
	said.Action, said.Content = mcp.ElicitationResponseActionAccept, content
	d.mu.Lock()
	q := d.waiting[id]
	switch {
	case q == nil || q.Principal != by && !admin:
		d.mu.Unlock()
		return ErrOver
	case !fits(q.Question.Fields, values):
		d.mu.Unlock()
		return ErrChoice
	}
	d.end(q, said)
	for _, w := range d.waiting {
		if w.together(&q.Waiting) {
			d.end(w, said)
		}
	}
	d.tell()
	d.mu.Unlock()
	event := map[string]any{"p": q.Principal, "by": by, "call": q.Call, "tool": q.Tool}
	addDecision(event, q.Question.Decides, values[q.Question.Decides])
	d.event("page.answer", event)
	return nil
}

// fits says whether each choice that must be made is one that was offered.
func fits(fields []tool.Field, values map[string]string) bool {
	for _, f := range fields {
		if v := values[f.Name]; len(f.Choices) > 0 && !(v == "" && f.Optional) && !slices.Contains(f.Choices, v) {
			return false
		}
	}
	return true
}

// ShortName is what people are shown of a session: its key may be what a client proves itself with.
func ShortName(k session.Key) string {
	sum := sha256.Sum256([]byte(k.Session))
	return hex.EncodeToString(sum[:4])
}

// OnPage is the client of a question that the page shows: it has every kind of field, and none of the oddities of the
// client that called.
func OnPage(st *session.State) *session.State {
	page := *st
	page.Client = session.Client{Name: st.Client.Name, Version: st.Client.Version, Revision: namedChoices}
	return &page
}
