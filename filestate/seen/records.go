package seen

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	maxFiles = 5000   // paths that a ledger remembers; the one not used for longest is forgotten
	family   = "seen" // first token of a record's key
	stripes  = 64     // locks of a ledger for its records: reads of different files do not wait for each other

	// forgetRounds is how often ForgetAll looks for what is left: a memory lists its keys up to a limit, and other
	// ledgers of the session may add some meanwhile.
	forgetRounds = 3
)

// keyOf is the key of a path's record. A path is free text, so its hash stands for it.
func keyOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return family + "." + hex.EncodeToString(sum[:16])
}

// Records are the records of one session as one process sees them. The truth is in the Memory; in RAM is only the order
// of use. They are safe for concurrent use; who changes a record holds its lock from the loading to the saving.
type Records struct {
	memory Memory
	locks  [stripes]stripe // each covers changes of the records whose keys fall on it

	mu   sync.Mutex               // covers the rest
	byID map[string]*list.Element // of *use, by key; nil: not asked for yet
	age  *list.List               // most recently used first
}

// A stripe is the lock of some records.
type stripe struct {
	mu    sync.Mutex
	turns atomic.Uint64 // how often mu was released: each holder may have changed a record
}

// A Look is a record as it was found without its lock. The zero Look has found nothing out.
type Look struct {
	Record *Record // nil: there is none
	turns  uint64  // of its stripe, before the Memory was asked
	known  bool    // the Memory answered
}

// A use is a record in the order of use.
type use struct {
	key  string
	path string // "": not asked for yet
}

// NewRecords are those in a Memory; nil: one of their own, which ends with them.
func NewRecords(m Memory) *Records {
	if m == nil {
		m = &processMemory{values: make(map[string][]byte)}
	}
	return &Records{memory: m, age: list.New()}
}

// Lock lets one goroutine change the record of path. It is not reentrant, and two paths may share a lock: who holds one
// takes no other.
func (r *Records) Lock(path string) (unlock func()) { return r.lockKey(keyOf(path)) }

// lockKey is Lock for the record with a key.
func (r *Records) lockKey(key string) (unlock func()) {
	s := r.stripe(key)
	s.mu.Lock()
	return func() {
		s.turns.Add(1)
		s.mu.Unlock()
	}
}

// stripe is where the record with a key falls. A key that is none of ours falls anywhere.
func (r *Records) stripe(key string) *stripe {
	sum, _ := hex.DecodeString(key[min(len(family)+1, len(key)):])
	if len(sum) == 0 {
		return &r.locks[0]
	}
	return &r.locks[sum[0]%stripes]
}

// Look loads the record of path without its lock. If the Memory fails, the Look is zero; LoadAgain then asks again and
// returns the error.
func (r *Records) Look(ctx context.Context, path string) Look {
	key := keyOf(path)
	turns := r.stripe(key).turns.Load()
	record, err := r.get(ctx, key)
	return Look{record, turns, err == nil}
}

// LoadAgain is Load for a caller that holds the lock of path and has called Look before. It asks the Memory again only
// if another goroutine has held the lock since the Look: otherwise no change made through these Records can have come
// between. A change by another process may have; it is lost then, as it is between Load and Save. So the caller must
// not let much time pass after a Look.
func (r *Records) LoadAgain(ctx context.Context, path string, before Look) (*Record, error) {
	if before.known && r.stripe(keyOf(path)).turns.Load() == before.turns {
		return before.Record, nil
	}
	return r.Load(ctx, path)
}

// Load returns the record of path, or nil. Errors are ErrMemory.
func (r *Records) Load(ctx context.Context, path string) (*Record, error) {
	return r.get(ctx, keyOf(path))
}

func (r *Records) get(ctx context.Context, key string) (*Record, error) {
	value, _, err := r.memory.Get(ctx, key)
	if err != nil {
		return nil, lost(err)
	}
	if value == nil {
		return nil, nil
	}
	rec := new(Record)
	if err := json.Unmarshal(value, rec); err != nil {
		return nil, nil //nolint:nilerr // written by another version of this program: as good as forgotten
	}
	return rec, nil
}

// Save writes a record, and forgets the oldest if there are too many. Errors are ErrMemory.
func (r *Records) Save(ctx context.Context, rec *Record) error {
	value, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record of %s: %w", rec.Path, err)
	}
	key := keyOf(rec.Path)
	// In this order, so that the record is not the oldest any more when it is written.
	err = r.touch(ctx, key, rec.Path)
	if err = errors.Join(err, r.memory.Set(ctx, key, value)); err != nil {
		return lost(err)
	}
	return nil
}

// touch notes that key, of path, was used, and drops what must go for it. It does so under mu and not under the locks
// of those records, since its caller holds a lock already: a Save of one of them begins with touch, so it writes its
// record after the old one has gone.
func (r *Records) touch(ctx context.Context, key, path string) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		keys, err := r.memory.Keys(ctx, family)
		if err != nil {
			return err
		}
		r.adopt(keys)
	}
	if e, ok := r.byID[key]; ok {
		r.age.MoveToFront(e)
		e.Value.(*use).path = path
	} else {
		r.byID[key] = r.age.PushFront(&use{key, path})
	}
	for r.age.Len() > maxFiles {
		last := r.age.Remove(r.age.Back()).(*use)
		delete(r.byID, last.key)
		err = errors.Join(err, r.memory.Delete(ctx, last.key))
	}
	return err
}

// adopt takes over the records of an earlier process, or of another replica. Their order is not known; all count as
// older than what this process uses. The caller holds mu.
func (r *Records) adopt(keys []string) {
	if r.byID == nil {
		r.byID = make(map[string]*list.Element, len(keys))
	}
	for _, key := range keys {
		if r.byID[key] == nil {
			r.byID[key] = r.age.PushBack(&use{key: key})
		}
	}
}

// Forget drops the record of path. Errors are ErrMemory.
func (r *Records) Forget(ctx context.Context, path string) error {
	return r.forgetKey(ctx, keyOf(path))
}

// forgetKey drops the record with a key. Errors are ErrMemory.
func (r *Records) forgetKey(ctx context.Context, key string) error {
	if err := r.memory.Delete(ctx, key); err != nil {
		return lost(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byID[key]; ok {
		r.age.Remove(e)
		delete(r.byID, key)
	}
	return nil
}

// ForgetAll drops every record, and returns how many. A record that is saved meanwhile may be dropped, too. Errors are
// ErrMemory and the cause of ctx; what comes before it is dropped nevertheless.
func (r *Records) ForgetAll(ctx context.Context) (int, error) {
	n := 0
	for range forgetRounds {
		keys, err := r.memory.Keys(ctx, family)
		if err != nil {
			return n, lost(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			if err := context.Cause(ctx); err != nil {
				return n, err
			}
			if err := r.forgetLocked(ctx, key); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

func (r *Records) forgetLocked(ctx context.Context, key string) error {
	defer r.lockKey(key)()
	return r.forgetKey(ctx, key)
}

// All returns every record, sorted by path. Errors are ErrMemory.
func (r *Records) All(ctx context.Context) ([]*Record, error) {
	keys, err := r.memory.Keys(ctx, family)
	if err != nil {
		return nil, lost(err)
	}
	var recs []*Record
	for _, key := range keys {
		rec, err := r.get(ctx, key)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			recs = append(recs, rec)
		}
	}
	slices.SortFunc(recs, func(a, b *Record) int { return strings.Compare(a.Path, b.Path) })
	return recs, nil
}

func lost(err error) error { return fmt.Errorf("%w: %w", ErrMemory, err) }
