package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"codehand/server/asking"
	"codehand/server/sessions"
)

const (
	// scanEvery is how often a page that is open looks for new processes, and which commands run.
	scanEvery = time.Second
	// lookTime bounds the first look at a process.
	lookTime = 2 * time.Second
	// linger is how long a page counts as open after its last request: without its script it is loaded anew.
	linger = 20 * time.Second
)

// ErrGone says that a command does not run any more, or never did.
var ErrGone = errors.New("this command does not run any more")

// A Hub follows the processes of a user while a page is open. It is safe for concurrent use.
type Hub struct {
	dir  string
	url  string // of the page
	work sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	open    int         // pages
	late    *time.Timer // ends the following after the last one; nil: nothing is followed, or a page is open
	end     func()      // ends the following; nil: nothing is followed
	seen    map[string]*followed
	version uint64
	changed chan struct{}
}

// A followed process is what it said last.
type followed struct {
	look look
	web  *http.Client
}

// NewHub makes a Hub for a page at url over the processes of a state directory.
func NewHub(stateDir, url string) *Hub {
	return &Hub{dir: filepath.Join(stateDir, socketsDir), url: url, seen: map[string]*followed{},
		changed: make(chan struct{})}
}

// Open notes that a page is open, until close. The first one waits until the processes that there are have answered.
func (h *Hub) Open(string) (close func()) {
	h.mu.Lock()
	h.open++
	if h.late != nil {
		h.late.Stop()
		h.late = nil
	}
	first := h.end == nil && !h.closed
	var ctx context.Context
	if first {
		ctx, h.end = context.WithCancel(context.Background())
	}
	h.mu.Unlock()
	if first {
		h.scan(ctx)
		h.work.Go(func() { h.follow(ctx) })
	}
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.open--; h.open == 0 && !h.closed {
			h.late = time.AfterFunc(linger, h.rest)
		}
	})
}

// rest ends the following, if no page came back.
func (h *Hub) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open > 0 || h.end == nil {
		return
	}
	h.end()
	h.end, h.late = nil, nil
	clear(h.seen)
	unmarkOpen(h.dir)
}

// Close ends all.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	if h.late != nil {
		h.late.Stop()
	}
	if h.end != nil {
		h.end()
	}
	h.mu.Unlock()
	h.work.Wait()
	unmarkOpen(h.dir)
}

// follow looks for processes until ctx ends.
func (h *Hub) follow(ctx context.Context) {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.scan(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// scan follows each process that is new, and waits for what it says first.
func (h *Hub) scan(ctx context.Context) {
	markOpen(h.dir)
	var first sync.WaitGroup
	for _, name := range sockets(h.dir) {
		h.mu.Lock()
		known := h.seen[name] != nil
		h.mu.Unlock()
		if known {
			continue
		}
		f := &followed{web: clientOf(h.dir, name)}
		first.Go(func() {
			l, err := h.ask(ctx, f, "", lookTime)
			if err != nil {
				buryDead(h.dir, name, err)
				return
			}
			if !h.note(ctx, name, f, l) {
				return
			}
			h.work.Go(func() { h.trail(ctx, name, f) })
		})
	}
	first.Wait()
}

// trail asks a process for news until it ends or ctx does.
func (h *Hub) trail(ctx context.Context, name string, f *followed) {
	defer f.web.CloseIdleConnections()
	for ctx.Err() == nil {
		h.mu.Lock()
		seen := fmt.Sprint(f.look.Version)
		waits := f.look.Waits
		h.mu.Unlock()
		if !waits && !pause(ctx, scanEvery) { // it answers at once
			break
		}
		l, err := h.ask(ctx, f, seen, pollTime+answerTime)
		if err != nil {
			break
		}
		h.note(ctx, name, f, l)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[name] == f {
		delete(h.seen, name)
		h.tell()
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note keeps what a process said; false: it is followed no more.
func (h *Hub) note(ctx context.Context, name string, f *followed, l look) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	news := h.seen[name] == nil || f.look.Version != l.Version
	f.look = l
	h.seen[name] = f
	if news {
		h.tell()
	}
	return true
}

// tell says that what waits has changed. mu is held.
func (h *Hub) tell() {
	h.version++
	close(h.changed)
	h.changed = make(chan struct{})
}

func clientOf(dir, name string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir, name) },
	}}
}

// buryDead removes the socket of a process that was killed: nobody listens there.
func buryDead(dir, name string, err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(filepath.Join(dir, name)) // the next look tries again
	}
}

// ask asks a process what is new.
func (h *Hub) ask(ctx context.Context, f *followed, seen string, limit time.Duration) (l look, err error) {
	err = h.get(ctx, f, "/look?seen="+seen, limit, &l)
	return l, err
}

// get asks a process for what stands at path.
func (h *Hub) get(ctx context.Context, f *followed, path string, limit time.Duration, to any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://live"+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set(pageHeader, h.url)
	a, err := f.web.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return errors.New(a.Status)
	}
	return json.NewDecoder(io.LimitReader(a.Body, maxSaid)).Decode(to)
}

// post tells a process what a person wants, and returns its status and what else it says.
func post(ctx context.Context, f *followed, path string, what any) (status int, said string, err error) {
	body, err := json.Marshal(what)
	if err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://live"+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	a, err := f.web.Do(r)
	if err != nil {
		return 0, "", err
	}
	_ = json.NewDecoder(io.LimitReader(a.Body, maxSaid)).Decode(&said) // most say nothing
	return a.StatusCode, said, a.Body.Close()
}

// Of returns what waits in all processes, the oldest first, and a channel that is closed when that changes. The Hub is
// one person's, so whose it is makes no difference.
func (h *Hub) Of(string, bool) (list []asking.Waiting, version uint64, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.seen {
		list = append(list, f.look.Waiting...)
	}
	slices.SortFunc(list, func(a, b asking.Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return list, h.version, h.changed
}

// Answer gives a question its one answer, as asking.Desk.Answer does, where it waits.
func (h *Hub) Answer(id, by string, _ bool, values map[string]string) error {
	h.mu.Lock()
	var at *followed
	for _, f := range h.seen {
		if slices.ContainsFunc(f.look.Waiting, func(w asking.Waiting) bool { return w.ID == id }) {
			at = f
		}
	}
	h.mu.Unlock()
	if at == nil {
		return asking.ErrOver
	}
	status, _, err := post(context.Background(), at, "/answer", saying{ID: id, By: by, Values: values})
	switch {
	case err != nil, status == http.StatusGone, status == http.StatusForbidden:
		return asking.ErrOver // its process has ended, or takes no answers any more
	case status == http.StatusUnprocessableEntity:
		return asking.ErrChoice
	case status != http.StatusOK:
		return fmt.Errorf("the process answers with status %d", status)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at.look.Waiting = slices.DeleteFunc(slices.Clone(at.look.Waiting),
		func(w asking.Waiting) bool { return w.ID == id })
	h.tell()
	return nil
}

// each calls do for each process at once, and waits for all.
func (h *Hub) each(do func(name string, f *followed)) {
	h.mu.Lock()
	procs := maps.Clone(h.seen)
	h.mu.Unlock()
	var asked sync.WaitGroup
	for name, f := range procs {
		asked.Go(func() { do(name, f) })
	}
	asked.Wait()
}

// Running returns the commands of all processes, the oldest first, as they are now.
func (h *Hub) Running(ctx context.Context) (all []RunningCommand) {
	var mu sync.Mutex
	h.each(func(name string, f *followed) {
		l, err := h.ask(ctx, f, "", lookTime)
		if err != nil {
			return // it has ended; the trail says so
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range l.Running {
			c.Process = strings.TrimSuffix(name, suffix)
			all = append(all, c)
		}
	})
	slices.SortFunc(all, func(a, b RunningCommand) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Rights returns what the sessions of a short name may do that are in use in any process, as it is now.
func (h *Hub) Rights(ctx context.Context, session string) (all []sessions.Rights) {
	var mu sync.Mutex
	h.each(func(_ string, f *followed) {
		var found []sessions.Rights
		if h.get(ctx, f, "/rights?session="+session, lookTime, &found) != nil {
			return // it has ended; the trail says so
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
	})
	return all
}

// SetRights does what a person wants in each process that has the session in use: sessions.ErrNotOpen if none has it,
// ErrMode, *RuleError.
func (h *Hub) SetRights(ctx context.Context, w Wish) error {
	var mu sync.Mutex
	var errs []error
	done := false
	h.each(func(_ string, f *followed) {
		status, said, err := post(ctx, f, "/rights", w)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case status == http.StatusOK:
			done = true
		case status == http.StatusGone, err != nil: // it has ended, or other sessions
		case status == http.StatusBadRequest:
			errs = append(errs, sessions.ErrMode)
		case status == http.StatusUnprocessableEntity, status == http.StatusForbidden:
			errs = append(errs, &sessions.RuleError{Text: said})
		default:
			errs = append(errs, fmt.Errorf("the process answers with status %d", status))
		}
	})
	if len(errs) == 0 && !done {
		return sessions.ErrNotOpen
	}
	return errors.Join(errs...)
}

// Stop ends a command of Running. ErrGone: it does not run any more.
func (h *Hub) Stop(ctx context.Context, process, session, id string) error {
	h.mu.Lock()
	f := h.seen[process+suffix]
	h.mu.Unlock()
	if f == nil {
		return ErrGone
	}
	status, _, err := post(ctx, f, "/stop", RunningCommand{Session: session, ID: id})
	switch {
	case status == http.StatusGone:
		return ErrGone
	case err == nil && status != http.StatusOK:
		return fmt.Errorf("the process answers with status %d", status)
	}
	return err
}

// Barred returns why the questions of some processes do not wait here, each reason once, with the roots of the first
// process.
func (h *Hub) Barred() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.seen)) {
		if l := h.seen[name].look; l.Bars != "" && !said[l.Bars] {
			said[l.Bars] = true
			all = append(all, strings.Join(l.Roots, ", ")+": "+l.Bars)
		}
	}
	return all
}
