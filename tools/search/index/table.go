package index

import (
	"cmp"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// An ID is a directory or file of this machine, as long as it exists.
type ID struct{ Dev, Ino uint64 }

// A Stamp changes when a file or directory does: it is compared for equality, never for age. Times are nanoseconds
// since 1970.
type Stamp struct {
	ID
	Size, Mtime, Ctime int64
}

// Before says that nothing has happened to the file since t, in nanoseconds since 1970: both of its times are earlier.
// A stamp that is younger proves nothing, since another change may give it the same times.
func (s Stamp) Before(t int64) bool { return s.Mtime < t && s.Ctime < t }

// A Listed is a name in a directory.
type Listed struct {
	Name string
	Kind fs.FileMode // type bits
}

// A Content says what a file is to a search.
type Content uint8

// What a content is.
const (
	Unknown Content = iota // nothing was read
	Unfit                  // it must be read each time
	Text                   // without NUL; it has a summary
	Binary                 // a NUL in its head; it has a summary
	Large                  // a NUL in its head and longer than one buffer: searches do not read it to its end
)

// A Dir is the listing of one directory. Its Entries must not be changed.
type Dir struct {
	Stamp   Stamp
	Entries []Listed // by name

	known atomic.Pointer[known]
	calm  atomic.Pointer[Calm]
	used  atomic.Int64 // the round that it was last used in
	kept  atomic.Bool
	cost  int64 // bytes; under the Table's mutex
}

// known is what is remembered of the files of a directory. It is never changed.
type known struct {
	marks []mark // by the number of the entry
	bits  []byte // the summaries
}

// A mark is what is remembered of one file.
type mark struct {
	stamp Stamp
	at, n uint32 // its summary in bits
	kind  Content
}

// A Lesson is what was read of a file.
type Lesson struct {
	Number  int // of its entry
	Stamp   Stamp
	Kind    Content
	Summary []byte
}

// Known says what is remembered of a file: it holds if the file still has that stamp. The summary must not be changed.
func (d *Dir) Known(number int) (Stamp, Content, []byte) {
	k := d.known.Load()
	if k == nil {
		return Stamp{}, Unknown, nil
	}
	m := &k.marks[number]
	return m.stamp, m.kind, k.bits[m.at : m.at+m.n]
}

// Kept says whether Put ever remembered the listing. Learn ignores any other.
func (d *Dir) Kept() bool { return d.kept.Load() }

const (
	dirCost   = 600 // bytes of a directory beside its entries, with its places in maps and its Calm
	entryCost = 24  // bytes of an entry beside its name
	markCost  = 56  // bytes of a mark
)

func (d *Dir) size() int64 {
	n := int64(dirCost)
	for _, e := range d.Entries {
		n += entryCost + int64(len(e.Name))
	}
	if k := d.known.Load(); k != nil {
		n += int64(len(k.marks)*markCost + cap(k.bits))
	}
	return n
}

// A Table is the listings of directories, by identity. It is safe for concurrent use.
type Table struct {
	limit int64

	mu    sync.RWMutex
	dirs  map[ID]*Dir
	bytes int64
	round atomic.Int64
}

// NewTable returns a Table that holds about limit bytes at most; 0: it remembers nothing.
func NewTable(limit int64) *Table { return &Table{limit: limit, dirs: map[ID]*Dir{}} }

// Begin begins a round, as a search is. What was used longest ago goes first when the Table is full.
func (t *Table) Begin() { t.round.Add(1) }

// Find returns the listing of a directory that has this stamp now; nil: there is none.
func (t *Table) Find(now Stamp) *Dir {
	t.mu.RLock()
	d := t.dirs[now.ID]
	t.mu.RUnlock()
	if d == nil || d.Stamp != now {
		return nil
	}
	if round := t.round.Load(); d.used.Load() != round {
		d.used.Store(round)
	}
	return d
}

// Put takes a new listing, which is not shared yet: what is remembered of its files is added to it. If it lasts, it is
// remembered itself, if there is room.
func (t *Table) Put(d *Dir, lasts bool) {
	d.used.Store(t.round.Load())
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.dirs[d.Stamp.ID]
	if old != nil {
		d.inherit(old)
	}
	size := d.size()
	if !lasts || !t.fits(size) {
		return
	}
	if old = t.dirs[d.Stamp.ID]; old != nil { // fits may have dropped it
		t.bytes -= old.cost
	}
	d.cost = size
	d.kept.Store(true)
	t.dirs[d.Stamp.ID] = d
	t.bytes += size
}

// inherit takes over what is remembered of the files of an older listing: each has a stamp of its own.
func (d *Dir) inherit(old *Dir) {
	k := old.known.Load()
	if k == nil {
		return
	}
	next := &known{marks: make([]mark, len(d.Entries)), bits: make([]byte, 0, len(k.bits))}
	for i, e := range d.Entries {
		at, found := slices.BinarySearchFunc(old.Entries, e.Name,
			func(e Listed, name string) int { return cmp.Compare(e.Name, name) })
		if found {
			next.copy(i, k, at)
		}
	}
	d.known.Store(next)
}

func (k *known) copy(number int, from *known, at int) {
	m := from.marks[at]
	k.set(number, m, from.bits[m.at:m.at+m.n])
}

func (k *known) set(number int, m mark, summary []byte) {
	m.at, m.n = uint32(len(k.bits)), uint32(len(summary))
	k.bits = append(k.bits, summary...)
	k.marks[number] = m
}

// Learn remembers files of a listing, if there is room. What was known of others of it stays.
func (t *Table) Learn(d *Dir, files []Lesson) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirs[d.Stamp.ID] != d {
		return
	}
	old := d.known.Load()
	next := &known{marks: make([]mark, len(d.Entries))}
	size := 0
	if old != nil {
		size = len(old.bits)
	}
	for _, f := range files {
		size += len(f.Summary)
	}
	if !t.fits(int64(size)) || t.dirs[d.Stamp.ID] != d { // it may itself be what made room
		return
	}
	next.bits = make([]byte, 0, size)
	for _, f := range files {
		next.set(f.Number, mark{stamp: f.Stamp, kind: f.Kind}, f.Summary)
	}
	if old != nil {
		for i := range old.marks {
			if next.marks[i].kind == Unknown {
				next.copy(i, old, i)
			}
		}
	}
	d.known.Store(next)
	t.bytes -= d.cost
	d.cost = d.size()
	t.bytes += d.cost
}

// Drop forgets a listing that turned out to be wrong.
func (t *Table) Drop(d *Dir) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirs[d.Stamp.ID] == d {
		delete(t.dirs, d.Stamp.ID)
		t.bytes -= d.cost
	}
}

// Full says that the Table has no room for more of what is in use now.
func (t *Table) Full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.fits(blockSize)
}

// fits makes room for so many bytes, if it can: what this round uses stays. mu is held.
func (t *Table) fits(more int64) bool {
	if t.bytes+more <= t.limit {
		return true
	}
	var old []*Dir
	round := t.round.Load()
	for _, d := range t.dirs {
		if d.used.Load() < round {
			old = append(old, d)
		}
	}
	slices.SortFunc(old, func(a, b *Dir) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, d := range old {
		if t.bytes+more <= t.limit-t.limit/8 { // an eighth at once, or each call would sort again
			break
		}
		delete(t.dirs, d.Stamp.ID)
		t.bytes -= d.cost
	}
	return t.bytes+more <= t.limit
}

// Empty says that nothing is remembered.
func (t *Table) Empty() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.dirs) == 0
}

// Clear forgets everything.
func (t *Table) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs, t.bytes = map[ID]*Dir{}, 0
}

// Stats are figures of a Table.
type Stats struct {
	Dirs, Files int   // that it knows; Files have a summary
	Bytes       int64 // of all that is remembered, about
	Summaries   int64 // of these, the summaries
}

// Stats counts.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := Stats{Dirs: len(t.dirs), Bytes: t.bytes}
	for _, d := range t.dirs {
		if k := d.known.Load(); k != nil {
			for i := range k.marks {
				if k.marks[i].n > 0 {
					s.Files++
					s.Summaries += int64(k.marks[i].n)
				}
			}
		}
	}
	return s
}
