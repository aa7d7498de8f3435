// Package progress tells a client how far one of its calls is.
package progress

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"codehand/server/clients"
	"codehand/tools/results"
)

const (
	// noteEvery is the shortest time between two progress notes of one call: 4 per second.
	noteEvery = 250 * time.Millisecond
	// maxNote bounds a note, in characters.
	maxNote = 200
	// StreamHold is how long the first note of a call over HTTP waits, which makes the answer a stream. A proxy that is
	// built on Go's net/http, as Caddy is, cuts an answer that begins before it has noticed the end of the request's
	// body: of some hundred calls with a note at once one was cut, and the command with it.
	StreamHold = 50 * time.Millisecond
)

// A Note is one state of a call's progress: whole numbers and one line of text.
type Note struct {
	done, total float64 // total 0: unknown
	text        string
}

// A Ticker sends the progress of one call: the first note at once, or after hold, then the newest of each window, and
// what is pending when it is stopped. When the call is silent for clients.Beat it says that it still runs. Clients show
// the numbers to people, so they are whole. A Ticker is safe for concurrent use.
type Ticker struct {
	send func(Note)    // writes one notification; its error is not ours
	hold time.Duration // before the first note

	mu      sync.Mutex
	any     bool   // set was called
	told    bool   // the first note of the call was taken
	newest  Note   // what set stored last
	pending []Note // to be sent: the newest, and before it the first of the call
	wake    chan struct{}
	quit    chan struct{}
	ended   chan struct{}
}

// Start starts the goroutine of a Ticker, which calls send with one note at a time. hold is how long the first note
// waits. Stop ends the goroutine and waits for it.
func Start(hold time.Duration, send func(Note)) *Ticker {
	t := &Ticker{send: send, hold: hold, wake: make(chan struct{}, 1), quit: make(chan struct{}),
		ended: make(chan struct{})}
	go t.run(time.Now())
	return t
}

// Set stores the newest state and never blocks. total 0: unknown. It has the shape of tool.Progress.
func (t *Ticker) Set(done, total float64, text string) {
	if math.IsNaN(done) || math.IsInf(done, 0) { // JSON has no such numbers, and nothing grows beyond them
		done = 0
	}
	if math.IsNaN(total) || math.IsInf(total, 0) {
		total = 0
	}
	n := Note{math.Floor(done), math.Floor(total), oneLine(text)}
	t.mu.Lock()
	if t.any && n == t.newest { // a call that was asked about runs again from its beginning
		t.mu.Unlock()
		return
	}
	t.newest, t.any = n, true
	// The first note of a call is never overwritten, however fast the next one comes.
	if n := len(t.pending); n == 0 || n == 1 && !t.told {
		t.pending = append(t.pending, t.newest)
	} else {
		t.pending[n-1] = t.newest
	}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // the sender is already on its way, and will take the newest
	}
}

// Stop sends what is pending and ends the sender. No note is sent after it returns.
func (t *Ticker) Stop() {
	close(t.quit)
	<-t.ended
}

func (t *Ticker) take() []Note {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.pending
	t.pending, t.told = nil, t.told || len(ns) > 0
	return ns
}

func (t *Ticker) run(start time.Time) {
	defer close(t.ended)
	last := -1.0
	emit := func(n Note) {
		// The value must grow, whatever the tool says. One that has outgrown its total has none.
		n.done = max(n.done, last+1)
		last = n.done
		if n.done > n.total {
			n.total = 0
		}
		t.send(n)
	}
	flush := func() {
		for _, n := range t.take() {
			emit(n)
		}
	}
	beat := time.NewTimer(clients.Beat)
	defer beat.Stop()
	if t.hold > 0 {
		held := time.NewTimer(t.hold)
		defer held.Stop()
		select {
		case <-t.quit:
			flush()
			return
		case <-held.C:
		}
	}
	for {
		select {
		case <-t.quit:
			flush()
			return
		case <-beat.C:
			t.mu.Lock()
			text := t.newest.text
			t.mu.Unlock()
			emit(Note{text: stillRunning(time.Since(start), text)})
			beat.Reset(clients.Beat)
			continue
		case <-t.wake:
		}
		flush()
		beat.Reset(clients.Beat)
		window := time.NewTimer(noteEvery)
		select {
		case <-t.quit:
			window.Stop()
			flush()
			return
		case <-window.C:
		}
	}
}

func stillRunning(since time.Duration, text string) string {
	s := "still running, " + results.Seconds(since.Round(time.Second))
	if text != "" {
		s += ": " + text
	}
	return oneLine(s)
}

// oneLine makes s fit into a progress message.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	if utf8.RuneCountInString(s) <= maxNote {
		return s
	}
	n := 0
	for i := range s {
		if n == maxNote-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// Method is that of the notification of a note.
const Method = "notifications/progress"

// Params is a note as it is sent. Token is the client's, echoed byte for byte.
type Params struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    float64         `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// Params makes the parameters of the notification; token is the client's, as it came.
func (n Note) Params(token json.RawMessage) Params {
	return Params{token, n.done, n.total, n.text}
}
