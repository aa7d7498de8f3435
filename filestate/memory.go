package filestate

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	maxFiles = 5000   // paths that a ledger remembers; the one not used for longest is forgotten
	family   = "seen" // first token of a record's key
	stripes  = 64     // locks of a ledger for its records: reads of different files do not wait for each other
	noView   = "-"    // a record's View when nothing was shown since the content came to be
)

// Memory keeps what was seen. Any Store narrowed to a session will do.
type Memory interface {
	// Get returns nil, 0, nil for a key that is not there.
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Set(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix and a dot.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// A record is what a session knows of one path.
type record struct {
	Path   string   `json:"path"`
	Hash   digest   `json:"hash"`             // of the whole content that was seen; none: only parts of it are known
	Parts  []part   `json:"parts,omitempty"`  // of a large file, as they were shown
	Size   int64    `json:"size"`             // of that content
	Spans  []Span   `json:"spans"`            // of it, what was shown; normal
	Stamp  Stamp    `json:"stamp"`            // of the file when it held that content
	View   string   `json:"view"`             // the last view, as viewOf writes it
	Again  int      `json:"again"`            // how often in a row that view was seen before
	Own    []digest `json:"own"`              // contents that this session replaced since anybody else did, oldest first
	Ranges []ranged `json:"ranges,omitempty"` // the same for versions of parts
}

// shown says whether anything of the content was shown, or the session itself made it out of one of which that holds: what
// of it was seen is not known any more where that was too large to be compared. Without that a record licenses nothing.
func (r *record) shown() bool { return r != nil && (r.Size == 0 || len(r.Spans) > 0 || len(r.Own) > 0) }

func (r *record) whole() bool { return isWhole(r.Spans, r.Size) }

func (r *record) version() Version {
	if !r.hashed() {
		return longest(r.Parts).version(r.Size)
	}
	return r.Hash.version(r.whole())
}

// viewOf names a set of normal spans in few bytes.
func viewOf(spans []Span) string {
	h := sha256.New()
	for _, s := range spans {
		fmt.Fprintf(h, "%d-%d,", s.From, s.To)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// keyOf is the key of a path's record. A path is free text, so its hash stands for it.
func keyOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return family + "." + hex.EncodeToString(sum[:16])
}

// records are the records of one ledger. The truth is in the Memory; in RAM is only the order of use.
type records struct {
	memory Memory
	locks  [stripes]sync.Mutex // each covers changes of the records whose keys fall on it

	mu   sync.Mutex               // covers the rest
	byID map[string]*list.Element // of *use, by key; nil: not asked for yet
	age  *list.List               // most recently used first
}

// A use is a record in the order of use.
type use struct {
	key  string
	path string // "": not asked for yet
}

func newRecords(m Memory) *records {
	if m == nil {
		m = &processMemory{values: make(map[string][]byte)}
	}
	return &records{memory: m, age: list.New()}
}

// lock lets one goroutine change the record of path.
func (r *records) lock(path string) (unlock func()) { return r.lockKey(keyOf(path)) }

// lockKey is lock for the record with a key. A key that is none of ours falls on any lock.
func (r *records) lockKey(key string) (unlock func()) {
	sum, _ := hex.DecodeString(key[min(len(family)+1, len(key)):])
	mu := &r.locks[0]
	if len(sum) > 0 {
		mu = &r.locks[sum[0]%stripes]
	}
	mu.Lock()
	return mu.Unlock
}

// load returns the record of path, or nil. Errors are ErrMemory.
func (r *records) load(ctx context.Context, path string) (*record, error) {
	return r.get(ctx, keyOf(path))
}

func (r *records) get(ctx context.Context, key string) (*record, error) {
	value, _, err := r.memory.Get(ctx, key)
	if err != nil {
		return nil, lost(err)
	}
	if value == nil {
		return nil, nil
	}
	rec := new(record)
	if err := json.Unmarshal(value, rec); err != nil {
		return nil, nil //nolint:nilerr // written by another version of this program: as good as forgotten
	}
	return rec, nil
}

// save writes a record, and forgets the oldest if there are too many. Errors are ErrMemory.
func (r *records) save(ctx context.Context, rec *record) error {
	value, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record of %s: %w", rec.Path, err)
	}
	key := keyOf(rec.Path)
	if err := r.memory.Set(ctx, key, value); err != nil {
		return lost(err)
	}
	old, err := r.touch(ctx, key, rec.Path)
	for _, key := range old {
		err = errors.Join(err, r.memory.Delete(ctx, key))
	}
	if err != nil {
		return lost(err)
	}
	return nil
}

// touch notes that key, of path, was used, and returns the keys that must go.
func (r *records) touch(ctx context.Context, key, path string) (old []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		keys, err := r.memory.Keys(ctx, family)
		if err != nil {
			return nil, err
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
		old = append(old, last.key)
	}
	return old, nil
}

// adopt takes over the records of an earlier process, or of another replica. Their order is not known; all count as older
// than what this process uses. The caller holds mu.
func (r *records) adopt(keys []string) {
	if r.byID == nil {
		r.byID = make(map[string]*list.Element, len(keys))
	}
	for _, key := range keys {
		if r.byID[key] == nil {
			r.byID[key] = r.age.PushBack(&use{key: key})
		}
	}
}

// forget drops the record of path. Errors are ErrMemory.
func (r *records) forget(ctx context.Context, path string) error {
	return r.forgetKey(ctx, keyOf(path))
}

// forgetKey drops the record with a key. Errors are ErrMemory.
func (r *records) forgetKey(ctx context.Context, key string) error {
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

// all returns every record, sorted by path. Errors are ErrMemory.
func (r *records) all(ctx context.Context) ([]*record, error) {
	keys, err := r.memory.Keys(ctx, family)
	if err != nil {
		return nil, lost(err)
	}
	var recs []*record
	for _, key := range keys {
		rec, err := r.get(ctx, key)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			recs = append(recs, rec)
		}
	}
	slices.SortFunc(recs, func(a, b *record) int { return strings.Compare(a.Path, b.Path) })
	return recs, nil
}

func lost(err error) error { return fmt.Errorf("%w: %w", ErrMemory, err) }

// processMemory is a Memory that ends with the process.
type processMemory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *processMemory) Get(_ context.Context, key string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], 0, nil
}

func (m *processMemory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

func (m *processMemory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

func (m *processMemory) Keys(_ context.Context, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for key := range maps.Keys(m.values) {
			if strings.HasPrefix(key, prefix+".") && !yield(key) {
				return
			}
		}
	}), nil
}
