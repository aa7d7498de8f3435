package state

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	snapshotQuiet = 2 * time.Second // without a change, after which one is written
	snapshotEvery = 5 * time.Second // between two of them, at least, and from a change to its writing, at most
	// maxSnapshot is how many bytes of keys and values are written. Beyond it the read states go that were noted first.
	maxSnapshot     = 16 << 20
	snapshotVersion = 1
	lockTries       = 11 // that a lock which is held gets: 100 ms
	lockPause       = 10 * time.Millisecond
	readStates      = "seen." // the keys, as filestate names them, of what a session has read
)

// SnapshotOptions of a Snapshot.
type SnapshotOptions struct {
	Dir  string // made with mode 0700 if it is missing
	Name string // whose it is: one of another name is not read
	// Lasting is what of a value the file keeps and gives back; nil: nothing. It is called from any goroutine, must be
	// quick, and is nil itself if all values are kept as they are.
	Lasting func(key string, value []byte) []byte
	// Failed receives errors of reading and writing, from any goroutine; nil: they are dropped. The Store works on
	// without the snapshot.
	Failed func(error)
}

// A Snapshot keeps what a Store has below a prefix, as far as it is to last, in a file, state.json in its directory,
// for a Store in memory whose process ends or is killed: what the file holds is put into the Store when it is opened,
// and it is written whole, 2 s after the last change and at most every 5 s. One process writes it; another that opens
// it meanwhile starts from what is there, and writes nothing. It is safe for concurrent use.
type Snapshot struct {
	store Store // below the prefix
	o     SnapshotOptions
	lock  *flock.Flock // nil: another process writes
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu   sync.Mutex // held while the file is written
	last []byte     // what the file holds
}

// snapshotFile is the content of the file.
type snapshotFile struct {
	Version int             `json:"v"`
	Name    string          `json:"name"`
	Values  []snapshotValue `json:"values"` // the one written first is first
}

type snapshotValue struct {
	Key   string `json:"k"`
	Value []byte `json:"b"`
}

// OpenSnapshot reads the file into s, which is scoped to the prefix, and begins to write. Values that the Store has
// already stay. The error is that of the directory. OpenSnapshot tells Failed of a file that is damaged, has another
// name or comes from a later version; it overwrites all of these but the last.
func OpenSnapshot(ctx context.Context, s Store, o SnapshotOptions) (*Snapshot, error) {
	l, err := lockSnapshot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	p := &Snapshot{store: s, o: o, lock: l}
	err = p.load(ctx)
	if err != nil {
		p.failed(err)
	}
	if p.lock == nil || errors.Is(err, ErrNewer) {
		return p, nil
	}
	p.sweep()
	run, stop := context.WithCancel(context.Background())
	p.stop = stop
	changed := make(chan struct{}, 1)
	p.done.Go(func() {
		_ = s.Watch(run, "", func(string) { // it ends with run or with the Store
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	p.done.Go(func() { p.run(run, changed) })
	return p, nil
}

// lockSnapshot makes the directory and takes the lock in it; nil: another process holds it. Who asks whether the
// snapshot is in use has it for a moment, and may then remove the directory: so it is tried again for a while, each
// time from the beginning.
func lockSnapshot(dir string) (*flock.Flock, error) {
	for try := 1; ; try++ {
		err := os.MkdirAll(dir, 0o700)
		l, got := snapshotLock(dir), false
		if err == nil {
			got, err = l.TryLock()
		}
		switch {
		case got:
			return l, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist), try == lockTries:
			return nil, err
		}
		time.Sleep(lockPause)
	}
}

// snapshotLock is held by the process that writes the file.
func snapshotLock(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, lockName), flock.SetFlag(lockFlags), flock.SetPermissions(0o600))
}

const lockName = "state.lock"

// SnapshotInUse says whether a process writes the file in dir, also if that cannot be known. Nothing is made there.
func SnapshotInUse(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, lockName)); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	l := snapshotLock(dir)
	got, err := l.TryLock()
	if got {
		err = l.Unlock()
	}
	return err != nil || !got
}

// Close writes what has changed, before the Store is closed, and lets others write.
func (p *Snapshot) Close() error {
	if p.lock == nil {
		return nil
	}
	var err error
	if p.stop != nil {
		p.stop()
		p.done.Wait()
		err = p.write(context.Background())
	}
	return errors.Join(err, p.lock.Unlock())
}

// Keep writes now what has changed, so that it lasts whatever happens to this process. It does nothing where another
// process writes the file.
func (p *Snapshot) Keep(ctx context.Context) error {
	if p.stop == nil {
		return nil
	}
	return p.write(ctx)
}

func (p *Snapshot) failed(err error) {
	if p.o.Failed != nil {
		p.o.Failed(err)
	}
}

func (p *Snapshot) lasting(key string, value []byte) []byte {
	if value == nil || p.o.Lasting == nil {
		return value
	}
	return p.o.Lasting(key, value)
}

// snapshotBase is the name of the file.
const snapshotBase = "state.json"

func (p *Snapshot) path() string { return filepath.Join(p.o.Dir, snapshotBase) }

// load puts what the file holds into the Store.
func (p *Snapshot) load(ctx context.Context) error {
	raw, content, err := readSnapshot(p.o.Dir, p.o.Name)
	if raw == nil {
		return err
	}
	for _, v := range content.Values {
		// written by an earlier version, or by another program
		if v.Value = p.lasting(v.Key, v.Value); v.Value == nil {
			continue
		}
		if _, err := p.store.Swap(ctx, v.Key, v.Value, 0); err != nil {
			return fmt.Errorf("snapshot %s: %s: %w", p.path(), v.Key, err)
		}
	}
	p.last = raw
	return nil
}

// ReadSnapshot returns what the file in a directory holds of these keys, without a Store; nil: it holds nothing under a
// key. Errors: those of OpenSnapshot about a file.
func ReadSnapshot(dir, name string, keys ...string) (values [][]byte, err error) {
	_, content, err := readSnapshot(dir, name)
	values = make([][]byte, len(keys))
	for _, v := range content.Values {
		if i := slices.Index(keys, v.Key); i >= 0 {
			values[i] = v.Value
		}
	}
	return values, err
}

// readSnapshot reads the file in a directory, if it is of that name. raw nil: there is none, or the error says why it
// counts for nothing.
func readSnapshot(dir, name string) (raw []byte, content snapshotFile, err error) {
	path := filepath.Join(dir, snapshotBase)
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, content, nil
	}
	if err != nil {
		return nil, content, fmt.Errorf("snapshot: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	raw, err = io.ReadAll(io.LimitReader(f, 2*maxSnapshot))
	if err != nil {
		return nil, content, fmt.Errorf("snapshot: %w", err)
	}
	var form struct {
		Version int `json:"v"` // which says what else there is
	}
	err = json.Unmarshal(raw, &form)
	if err == nil && form.Version > snapshotVersion {
		return nil, content, fmt.Errorf("snapshot %s: %w", path, ErrNewer)
	}
	if err == nil {
		err = json.Unmarshal(raw, &content)
	}
	switch {
	case err != nil:
		return nil, snapshotFile{}, fmt.Errorf("snapshot %s is damaged: %w", path, err)
	case content.Name != name:
		return nil, snapshotFile{}, fmt.Errorf("snapshot %s is of another name", path)
	}
	return raw, content, nil
}

// run writes when it is time.
func (p *Snapshot) run(ctx context.Context, changed <-chan struct{}) {
	var written, first time.Time // first: of the changes that are not written; zero: there is none
	timer := time.NewTimer(0)
	<-timer.C
	for {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			due := now.Add(snapshotQuiet)
			if late := first.Add(snapshotEvery); due.After(late) {
				due = late
			}
			if soon := written.Add(snapshotEvery); due.Before(soon) {
				due = soon
			}
			timer.Reset(due.Sub(now))
		case <-timer.C:
			written, first = time.Now(), time.Time{}
			if err := p.write(ctx); err != nil && ctx.Err() == nil {
				p.failed(err)
				first = written
				timer.Reset(snapshotEvery)
			}
		}
	}
}

// write gives the file the content that the Store has now, by way of a second file, so that a crash leaves one of both.
func (p *Snapshot) write(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, err := p.content(ctx)
	if err != nil || bytes.Equal(raw, p.last) {
		return err
	}
	if none, _ := json.Marshal(p.none()); p.last == nil && bytes.Equal(raw, none) { // plain fields
		return nil // a session of which nothing lasts needs no file
	}
	temp := filepath.Join(p.o.Dir, "state-"+strings.ToLower(rand.Text())+".tmp")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp, p.path())
	}
	if err != nil {
		_ = os.Remove(temp) // the next start sweeps what stays
		return fmt.Errorf("snapshot: %w", err)
	}
	p.last = raw
	if err := syncDir(p.o.Dir); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// content is all that lasts of what the Store has below the prefix, or if that is too much, without the oldest read
// states.
func (p *Snapshot) content(ctx context.Context) ([]byte, error) {
	keys, err := p.store.Keys(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	type entry struct {
		key   string
		value []byte
		rev   uint64
	}
	var all []entry
	size := 0
	for _, key := range keys {
		value, rev, err := p.store.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
		if value = p.lasting(key, value); value != nil {
			all = append(all, entry{key, value, rev})
			size += len(key) + len(value)
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.rev, b.rev) }) // revisions grow with every write
	out := p.none()
	for _, e := range all {
		if size > maxSnapshot && strings.HasPrefix(e.key, readStates) {
			size -= len(e.key) + len(e.value)
			continue
		}
		out.Values = append(out.Values, snapshotValue{e.key, e.value})
	}
	if size > maxSnapshot {
		return nil, fmt.Errorf("snapshot: %w: %d bytes besides what was read", ErrSize, size)
	}
	return json.Marshal(out)
}

// none is what the file holds if nothing lasts.
func (p *Snapshot) none() snapshotFile {
	return snapshotFile{Version: snapshotVersion, Name: p.o.Name, Values: []snapshotValue{}}
}

// sweep removes what a writer that was killed left.
func (p *Snapshot) sweep() {
	left, _ := filepath.Glob(filepath.Join(p.o.Dir, "state-*.tmp")) // the pattern is good
	for _, name := range left {
		_ = os.Remove(name) // it is only in the way
	}
}
