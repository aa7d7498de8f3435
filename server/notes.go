package server

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
)

const (
	// progressEvery is the shortest time between two progress notes of one call: 4 per second.
	progressEvery = 250 * time.Millisecond
	// maxNote bounds a note, in characters.
	maxNote = 200
)

// A note is one state of a call's progress.
type note struct {
	done, total float64 // total 0: unknown
	text        string
}

// A ticker sends the progress of one call: the first note at once, then the newest of each window, and what is
// pending when it is stopped. When the call is silent for beat it says that it still runs. Set never blocks.
type ticker struct {
	send func(note) // writes one notification; its error is not ours
	beat time.Duration

	mu      sync.Mutex
	told    bool   // the first note of the call was taken
	newest  note   // what set stored last
	pending []note // to be sent: the newest, and before it the first of the call
	wake    chan struct{}
	quit    chan struct{}
	ended   chan struct{}
}

// startTicker starts the sender's goroutine; stop ends it and waits for it.
func startTicker(beat time.Duration, send func(note)) *ticker {
	t := &ticker{send: send, beat: beat, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	go t.run(time.Now())
	return t
}

// set stores the newest state. It has the shape of tool.Progress.
func (t *ticker) set(done, total float64, text string) {
	if math.IsNaN(done) || math.IsInf(done, 0) { // JSON has no such numbers, and nothing grows beyond them
		done = 0
	}
	if math.IsNaN(total) || math.IsInf(total, 0) {
		total = 0
	}
	t.mu.Lock()
	t.newest = note{done, total, oneLine(text)}
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

// stop sends what is pending and ends the sender. No note is sent after it returns.
func (t *ticker) stop() {
	close(t.quit)
	<-t.ended
}

func (t *ticker) take() []note {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.pending
	t.pending, t.told = nil, t.told || len(ns) > 0
	return ns
}

func (t *ticker) run(start time.Time) {
	defer close(t.ended)
	last := 0.0
	emit := func(n note) {
		// The value must grow, whatever the tool says.
		n.done = max(n.done, last+0.001)
		last = n.done
		t.send(n)
	}
	flush := func() {
		for _, n := range t.take() {
			emit(n)
		}
	}
	beat := time.NewTimer(t.beat)
	defer beat.Stop()
	for {
		select {
		case <-t.quit:
			flush()
			return
		case <-beat.C:
			t.mu.Lock()
			text := t.newest.text
			t.mu.Unlock()
			emit(note{done: last + 0.001, text: stillRunning(time.Since(start), text)})
			beat.Reset(t.beat)
			continue
		case <-t.wake:
		}
		flush()
		beat.Reset(t.beat)
		window := time.NewTimer(progressEvery)
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
	s := "still running, " + since.Round(time.Second).String()
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

// progressNotification returns the line of a progress note. token is the client's, echoed byte for byte.
func progressNotification(token json.RawMessage, n note) []byte {
	params := struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
		Message  string  `json:"message,omitempty"`
	}{n.done, n.total, n.text}
	rest, _ := jsonrpc.Marshal(params) // finite numbers and a string
	b := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), token...)
	b = append(b, ',')
	b = append(b, rest[1:]...)
	return append(b, "}\n"...)
}

// notificationLine encodes a notification, with the id of a listen in its _meta if it has one.
func notificationLine(n mcp.JSONRPCNotification, subscription json.RawMessage) ([]byte, error) {
	if subscription != nil {
		meta := map[string]any{}
		for k, v := range n.Params.Meta {
			meta[k] = v
		}
		meta[mcp.MetaKeySubscriptionID] = subscription
		n.Params.Meta = meta
	}
	b, err := jsonrpc.Marshal(n)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(b), '\n'), nil
}
