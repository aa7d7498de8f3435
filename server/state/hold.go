package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// holdKey is the record of the process that has a Store which others could reach, too.
const holdKey = Replica + ".only"

// NodeRecords is what the keys of the records of processes that share a Store begin with.
const NodeRecords = Replica + ".node"

const (
	holdLife  = 6 * time.Second // of family rep
	holdEvery = 2 * time.Second

	// holdGood is how long a process may use the Store after it renewed its record: then a write that just began ends
	// before the record does.
	holdGood = 4 * time.Second

	// giveBackTime is how long a process that ends tries to end its record.
	giveBackTime = time.Second
)

// A HeldError says that another process has the Store.
type HeldError struct {
	Host  string
	PID   int
	Since time.Time
	Node  string // as which it is one of several that share the Store; "": it has the Store alone
}

func (e *HeldError) Error() string {
	by := fmt.Sprintf("codehand serve on %s (pid %d, since %s) uses it", e.Host, e.PID,
		e.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
	if e.Node != "" {
		return by + " as node " + e.Node + ". Give this one a cluster.node, too, or another store.nats.prefix"
	}
	return by + ". One server can use a store at a time, unless each has a cluster.node: stop that one, or give this " +
		"one another store.nats.prefix"
}

// A Holder says in a record which process keeps it.
type Holder struct {
	V     int       `json:"v"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	ID    string    `json:"id"` // of the process
}

// A Hold is a record with a short life that one process renews: others see by it that the process lives, and the
// process itself how long it may act as if it did. It is safe for concurrent use.
type Hold struct {
	store Store
	key   string
	self  Holder
	value func(Holder) any

	renewing sync.Mutex // one at a time; covers over
	over     bool       // given back for good
	mu       sync.Mutex // covers the rest
	rev      uint64     // of our record; 0: we have none
	term     uint64     // counts the times from which on the record did not end, as far as that is known
	since    time.Time  // when the term began
	good     time.Time  // until when the record is ours for sure
	why      error      // the last renewal failed
}

// NewHold makes a Hold that keeps nothing yet. key is of family rep. value makes the record, which encodes as JSON and
// embeds the Holder that it gets.
func NewHold(s Store, key string, value func(Holder) any) *Hold {
	host, _ := os.Hostname() // it is for people
	return &Hold{store: s, key: key, value: value, self: Holder{
		V: 1, Host: host, PID: os.Getpid(), Since: time.Now(), ID: rand.Text(),
	}}
}

// newHold is the Hold of a process that has a Store for itself.
func newHold(s Store) *Hold { return NewHold(s, holdKey, func(h Holder) any { return h }) }

// Take writes the record, and waits before that until the one of a process that died has ended. *HeldError: it lives.
func (h *Hold) Take(ctx context.Context) error {
	deadline := time.NewTimer(holdLife + holdEvery)
	defer deadline.Stop()
	var seen uint64
	for {
		err := h.Renew(ctx)
		if err == nil {
			return nil
		}
		held, ok := errors.AsType[*HeldError](err)
		if !ok {
			return err
		}
		_, rev, err := h.store.Get(ctx, h.key)
		if err != nil {
			return err
		}
		if seen != 0 && rev != 0 && rev != seen { // it was renewed
			return held
		}
		if rev != 0 {
			seen = rev
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return held
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Renew writes the record again, or takes the place of one that has ended. *HeldError: another process has it.
func (h *Hold) Renew(ctx context.Context) error {
	h.renewing.Lock()
	defer h.renewing.Unlock()
	if h.over {
		return ErrClosed
	}
	began := time.Now()
	h.mu.Lock()
	rev := h.rev
	h.mu.Unlock()
	rev, goesOn, err := h.write(ctx, rev)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why = err; err == nil {
		h.rev, h.good = rev, began.Add(holdGood)
		if !goesOn {
			h.term, h.since = h.term+1, began
		}
	}
	return err
}

// write writes over the record at rev, our own, or where there is none, and returns the new revision. goesOn says that
// the record did not end since rev.
func (h *Hold) write(ctx context.Context, rev uint64) (_ uint64, goesOn bool, _ error) {
	own, err := json.Marshal(h.value(h.self))
	if err != nil {
		return 0, false, err
	}
	ok, err := h.store.Swap(ctx, h.key, own, rev)
	if err != nil {
		return 0, false, err
	}
	goesOn = ok && rev != 0
	for range 2 {
		value, now, err := h.store.Get(ctx, h.key)
		other := Holder{}
		_ = json.Unmarshal(value, &other) // a newer one says less
		switch {
		case err != nil:
			return 0, false, err
		case ok && other.ID == h.self.ID:
			return now, goesOn, nil
		case now != 0 && other.ID != h.self.ID:
			return 0, false, &HeldError{Host: other.Host, PID: other.PID, Since: other.Since}
		}
		// It ended while the servers were away, or an answer of ours was lost.
		goesOn = false
		if ok, err = h.store.Swap(ctx, h.key, own, now); err != nil {
			return 0, false, err
		}
	}
	return 0, false, fmt.Errorf("%w: the record of this server changes too fast", ErrDown)
}

// Keep renews the record until stop, and calls renewed after each renewal.
func (h *Hold) Keep(stop <-chan struct{}, renewed func()) {
	ticker := time.NewTicker(holdEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), holdEvery)
		if h.Renew(ctx) == nil { // else Check says that it failed
			renewed()
		}
		cancel()
	}
}

// GiveBack ends the record for good, so that the next process need not wait.
func (h *Hold) GiveBack(ctx context.Context) {
	h.renewing.Lock()
	defer h.renewing.Unlock()
	h.over = true
	h.mu.Lock()
	ours := h.rev != 0 && time.Now().Before(h.good)
	h.rev, h.good = 0, time.Time{}
	h.mu.Unlock()
	if ours {
		_ = h.store.Delete(ctx, h.key) // else it ends by itself
	}
}

// Check returns why this process may not act as the one that keeps the record now: others may take it for dead.
func (h *Hold) Check() error {
	_, _, err := h.Term()
	return err
}

// Term returns the number of the time, and its beginning, since which the record did not end: within it nobody took
// this process for dead. A record that ended and was written anew begins another term, and so does one of which that is
// not known. The error is that of Check.
func (h *Hold) Term() (number uint64, since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Round: else the time is that of a clock which stands still while the machine sleeps.
	if now := time.Now(); now.Before(h.good) && now.Round(0).Before(h.good.Round(0)) {
		return h.term, h.since, nil
	}
	why := errors.New("it was away for long")
	if h.why != nil {
		why = h.why
	}
	return 0, time.Time{}, fmt.Errorf("%w: this server could not renew its record: %s", ErrDown, plain(why))
}

// takeAlone takes a Store for one process, unless nodes share it. Each side writes its record before it looks for that
// of the other, so of two that begin at once at least one gives way.
func takeAlone(ctx context.Context, h *Hold) error {
	if err := h.Take(ctx); err != nil {
		return err
	}
	err := ended(ctx, func() (*HeldError, uint64, error) {
		if err := h.Renew(ctx); err != nil {
			return nil, 0, err
		}
		keys, err := h.store.Keys(ctx, NodeRecords)
		if err != nil || len(keys) == 0 {
			return nil, 0, err
		}
		held, rev, err := heldBy(ctx, h.store, keys[0])
		if held != nil {
			held.Node = strings.TrimPrefix(keys[0], NodeRecords+".")
		}
		return held, rev, err
	})
	if err != nil {
		h.GiveBack(context.WithoutCancel(ctx))
	}
	return err
}

// Unheld says whether no process has a Store for itself. *HeldError: one has.
func Unheld(ctx context.Context, s Store) error {
	return ended(ctx, func() (*HeldError, uint64, error) { return heldBy(ctx, s, holdKey) })
}

// heldBy reads a record; nil: there is none.
func heldBy(ctx context.Context, s Store, key string) (*HeldError, uint64, error) {
	value, rev, err := s.Get(ctx, key)
	if err != nil || rev == 0 {
		return nil, 0, err
	}
	by := Holder{}
	_ = json.Unmarshal(value, &by) // a newer one says less
	return &HeldError{Host: by.Host, PID: by.PID, Since: by.Since}, rev, nil
}

// ended waits until look finds no record any more, as long as that of a process that died lives. *HeldError: it does
// not end, or was renewed.
func ended(ctx context.Context, look func() (*HeldError, uint64, error)) error {
	var seen uint64
	deadline := time.NewTimer(holdLife + holdEvery)
	defer deadline.Stop()
	for {
		held, rev, err := look()
		if err != nil || held == nil {
			return err
		}
		if seen != 0 && seen != rev {
			return held
		}
		seen = rev
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return held
		case <-time.After(250 * time.Millisecond):
		}
	}
}
