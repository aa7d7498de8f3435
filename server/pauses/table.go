package pauses

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/pipeline"
	"codehand/server/state"
)

// A Table keeps pauses in the Store, and follows what other processes write there. It is safe for concurrent use.
type Table struct {
	store state.Store
	event func(name string, fields map[string]any)
	log   *slog.Logger

	stop func()
	work sync.WaitGroup

	// turn is held while a record is read or written and taken into memory, so that an old one never wins over a newer
	// one; it is taken before mu
	turn sync.Mutex

	any     atomic.Bool // something is paused: calls ask for nothing else while nothing is
	mu      sync.Mutex
	by      map[string]Pause // by key
	revs    map[string]uint64
	where   string
	closing bool
}

// everybody is the token of the key for everybody's calls; those of principals are hashes.
const everybody = "all"

// written is what the Store holds. The end of a pause is written and not deleted, so that no process misses it.
type written struct {
	Pause

	On bool `json:"on"`
}

// again is after how long a record is read once more that could not be read.
const again = time.Second

// NewTable reads what is paused, and follows it until Close. event takes what the audit records.
func NewTable(ctx context.Context, store state.Store, event func(string, map[string]any),
	log *slog.Logger) (*Table, error) {
	t := &Table{store: store, event: event, log: log, by: map[string]Pause{}, revs: map[string]uint64{}}
	keys, err := store.Keys(ctx, state.Pause)
	if err != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	for _, key := range keys {
		if err := t.read(ctx, key); err != nil {
			return nil, fmt.Errorf("read what is paused: %w", err)
		}
	}
	watching, end := context.WithCancel(context.Background())
	t.stop = end
	t.work.Go(func() {
		// it ends with us or with the Store
		_ = store.Watch(watching, state.Pause, func(key string) { t.follow(watching, key) })
	})
	return t, nil
}

// follow reads a record that has changed, until that succeeds.
func (t *Table) follow(ctx context.Context, key string) {
	for ctx.Err() == nil {
		err := t.read(ctx, key)
		if err == nil {
			return
		}
		t.log.Warn("cannot read whose calls are paused", "err", err)
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// read takes a record of the Store, if it is newer than what is known.
func (t *Table) read(ctx context.Context, key string) error {
	t.turn.Lock()
	defer t.turn.Unlock()
	r, rev, err := recordOf(ctx, t.store, key)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if rev == 0 || rev > t.revs[key] {
		t.revs[key] = rev
		t.note(key, r)
	}
	return nil
}

// recordOf reads a record. One that does not parse was written by a newer version, and pauses.
func recordOf(ctx context.Context, store state.Store, key string) (r written, rev uint64, err error) {
	value, rev, err := store.Get(ctx, key)
	if err != nil || rev == 0 {
		return r, rev, err
	}
	if json.Unmarshal(value, &r) != nil {
		r = written{On: true}
	}
	return r, rev, nil
}

// In returns what is paused in a Store that no Table of this process follows.
func In(ctx context.Context, store state.Store) (all []Pause, err error) {
	keys, err := store.Keys(ctx, state.Pause)
	if err != nil {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	for _, key := range keys {
		r, _, err := recordOf(ctx, store, key)
		if err != nil {
			return nil, fmt.Errorf("read what is paused: %w", err)
		}
		if r.On {
			all = append(all, r.Pause)
		}
	}
	return ordered(all), nil
}

// note is what the Table knows from then on. mu is held.
func (t *Table) note(key string, r written) {
	delete(t.by, key)
	if r.On {
		t.by[key] = r.Pause
	}
	t.any.Store(len(t.by) > 0)
}

func keyOf(principal string) string {
	if principal == "" {
		return state.Key(state.Pause, everybody)
	}
	return state.Key(state.Pause, state.Hash(principal))
}

// Paused is pipeline.Pipeline.Paused.
func (t *Table) Paused(principal string) *pipeline.Pause {
	if !t.any.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.by[keyOf("")]
	if !ok {
		p, ok = t.by[keyOf(principal)]
	}
	if !ok {
		return nil
	}
	return &pipeline.Pause{By: p.By, Since: p.Since, Where: cmp.Or(t.where, nowhere), Closing: t.closing}
}

// Of returns the pauses that hold for a principal, or all that there are.
func (t *Table) Of(principal string, all bool) (list []Pause) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.by {
		if all || p.Of == "" || p.Of == principal {
			list = append(list, p)
		}
	}
	return ordered(list)
}

// Pause pauses the calls of a principal; of an administrator everybody's. It holds at once. An error means that it may
// end with this process.
func (t *Table) Pause(ctx context.Context, by string, admin bool) error {
	p := Pause{Of: by, By: by, Since: time.Now()}
	if admin {
		p.Of = ""
	}
	key := keyOf(p.Of)
	t.turn.Lock()
	defer t.turn.Unlock()
	t.mu.Lock()
	_, known := t.by[key]
	if !known {
		t.note(key, written{Pause: p, On: true})
	}
	t.mu.Unlock()
	if known {
		return nil
	}
	if err := t.write(ctx, key, written{Pause: p, On: true}); err != nil {
		return fmt.Errorf("keep a pause: %w", err)
	}
	t.event("page.pause", map[string]any{"p": p.Of, "by": by})
	return nil
}

// Resume ends the pause of a principal's calls; "" is everybody's. ErrNotYours: it may not be ended by this one.
func (t *Table) Resume(ctx context.Context, of, by string, admin bool) error {
	t.turn.Lock()
	defer t.turn.Unlock()
	p, key, known := t.find(of)
	if !known || !p.Ends(by, admin) {
		return ErrNotYours
	}
	if err := t.write(ctx, key, written{Pause: p}); err != nil {
		return fmt.Errorf("end a pause: %w", err)
	}
	t.mu.Lock()
	t.note(key, written{})
	t.mu.Unlock()
	t.event("page.resume", map[string]any{"p": of, "by": by})
	return nil
}

// find finds a pause by whose calls it holds.
func (t *Table) find(of string) (p Pause, key string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, p := range t.by {
		if p.Of == of {
			return p, key, true
		}
	}
	return Pause{}, "", false
}

func (t *Table) write(ctx context.Context, key string, r written) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return t.store.Set(ctx, key, text)
}

// nowhere is where people resume calls of a server without a page: they were paused when it had one.
const nowhere = "on the page of codehand serve, which auth.mode none, owner and team have"

// Serve sets the address of the page on which people resume calls; "": there is none.
func (t *Table) Serve(url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.where = ""; url != "" {
		t.where = "on " + url
	}
}

// Stop says that this process stops: no call waits any more for the end of a pause.
func (t *Table) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// Close ends the following. t may be nil.
func (t *Table) Close() {
	if t == nil {
		return
	}
	t.stop()
	t.work.Wait()
}
