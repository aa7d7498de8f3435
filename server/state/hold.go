package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// holdKey is the record of the process that has a Store which others could reach, too.
const holdKey = Replica + ".only"

const (
	holdLife  = 6 * time.Second // of family rep
	holdEvery = 2 * time.Second

	// holdGood is how long a process may use the Store after it renewed its record: then a write that just began ends
	// before the record does.
	holdGood = 4 * time.Second
)

// A HeldError says that another process has the Store.
type HeldError struct {
	Host  string
	PID   int
	Since time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("codehand serve on %s (pid %d, since %s) uses it. One server can use a store at a time: stop "+
		"that one, or give this one another store.nats.prefix", e.Host, e.PID,
		e.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// A holder is what the record says.
type holder struct {
	V     int       `json:"v"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	ID    string    `json:"id"`
}

// A hold keeps a Store for one process: a record with a short life, which it renews. Safe for concurrent use.
type hold struct {
	store Store
	own   []byte

	renewing sync.Mutex // one at a time
	mu       sync.Mutex
	rev      uint64    // of our record; 0: we have none
	good     time.Time // until when the Store is ours for sure
	why      error     // the last renewal failed
}

func newHold(s Store) *hold {
	host, _ := os.Hostname() // it is for people
	own, _ := json.Marshal(holder{V: 1, Host: host, PID: os.Getpid(), Since: time.Now(), ID: rand.Text()})
	return &hold{store: s, own: own}
}

// take waits until the record of a process that died has ended. *HeldError: it lives.
func (h *hold) take(ctx context.Context) error {
	deadline := time.NewTimer(holdLife + holdEvery)
	defer deadline.Stop()
	var seen uint64
	for {
		err := h.renew(ctx)
		if err == nil {
			return nil
		}
		held, ok := errors.AsType[*HeldError](err)
		if !ok {
			return err
		}
		_, rev, err := h.store.Get(ctx, holdKey)
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

// renew writes our record again, or takes the place of one that has ended.
func (h *hold) renew(ctx context.Context) error {
	h.renewing.Lock()
	defer h.renewing.Unlock()
	began := time.Now()
	h.mu.Lock()
	rev := h.rev
	h.mu.Unlock()
	rev, err := h.write(ctx, rev)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why = err; err == nil {
		h.rev, h.good = rev, began.Add(holdGood)
	}
	return err
}

// write writes over the record at rev, our own, or where there is none, and returns the new revision.
func (h *hold) write(ctx context.Context, rev uint64) (uint64, error) {
	ok, err := h.store.Swap(ctx, holdKey, h.own, rev)
	if err != nil {
		return 0, err
	}
	for range 2 {
		value, now, err := h.store.Get(ctx, holdKey)
		switch {
		case err != nil:
			return 0, err
		case ok && string(value) == string(h.own):
			return now, nil
		case now != 0 && string(value) != string(h.own):
			other := holder{}
			_ = json.Unmarshal(value, &other) // a newer one says less
			return 0, &HeldError{Host: other.Host, PID: other.PID, Since: other.Since}
		}
		// It ended while the servers were away, or an answer of ours was lost.
		if ok, err = h.store.Swap(ctx, holdKey, h.own, now); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w: the record of this server changes too fast", ErrDown)
}

// keep renews until stop, and gives the record back.
func (h *hold) keep(stop <-chan struct{}) {
	ticker := time.NewTicker(holdEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), holdEvery)
		_ = h.renew(ctx) // check says that it failed
		cancel()
	}
}

// giveBack ends the record, so that the next process need not wait.
func (h *hold) giveBack(ctx context.Context) {
	h.renewing.Lock()
	defer h.renewing.Unlock()
	h.mu.Lock()
	ours := h.rev != 0 && time.Now().Before(h.good)
	h.rev, h.good = 0, time.Time{}
	h.mu.Unlock()
	if ours {
		_ = h.store.Delete(ctx, holdKey) // else it ends by itself
	}
}

// check returns why this process may not use the Store now.
func (h *hold) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.good) {
		return nil
	}
	why := errors.New("it was away for long")
	if h.why != nil {
		why = h.why
	}
	return fmt.Errorf("%w: this server could not renew its record: %s", ErrDown, plain(why))
}

// heldStore is a natsStore that works only while this process has it. Reads are refused, too: a process that was
// stopped and goes on must not change files for people whom another one serves now, and each call begins with a read.
type heldStore struct {
	*natsStore
	hold  *hold
	close sync.Once
}

func (s *heldStore) mine(ctx context.Context) error {
	if ended := ctx.Err() != nil || s.isClosed(); ended {
		return nil // the operation says so
	}
	return s.hold.check()
}

func (s *heldStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := s.mine(ctx); err != nil {
		return nil, 0, err
	}
	return s.natsStore.Get(ctx, key)
}

func (s *heldStore) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	if err := s.mine(ctx); err != nil {
		return nil, nil, err
	}
	return s.natsStore.GetAll(ctx, keys...)
}

func (s *heldStore) Set(ctx context.Context, key string, value []byte) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.natsStore.Set(ctx, key, value)
}

func (s *heldStore) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	if err := s.mine(ctx); err != nil {
		return false, err
	}
	return s.natsStore.Swap(ctx, key, value, rev)
}

func (s *heldStore) Delete(ctx context.Context, key string) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.natsStore.Delete(ctx, key)
}

func (s *heldStore) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := s.mine(ctx); err != nil {
		return nil, err
	}
	return s.natsStore.Keys(ctx, prefix)
}

func (s *heldStore) Append(ctx context.Context, name string, value []byte) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.natsStore.Append(ctx, name, value)
}

func (s *heldStore) Tail(ctx context.Context, name string, after uint64, most int) ([][]byte, uint64, error) {
	if err := s.mine(ctx); err != nil {
		return nil, after, err
	}
	return s.natsStore.Tail(ctx, name, after, most)
}

func (s *heldStore) Ping(ctx context.Context) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.natsStore.Ping(ctx)
}

// Stats also says whether this process has it.
func (s *heldStore) Stats() Stats {
	stats := s.natsStore.Stats()
	if stats.Down == nil {
		stats.Down = s.hold.check()
	}
	return stats
}

// Close gives the Store to the next process.
func (s *heldStore) Close() error {
	s.close.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), min(s.timeout, time.Second))
		defer cancel()
		s.hold.giveBack(ctx)
	})
	return s.natsStore.Close()
}
