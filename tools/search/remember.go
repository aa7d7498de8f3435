package search

import (
	"sync"
	"time"

	"codehand/tools/search/index"
)

// This file is what a query takes from memory, and learn.go what is put there.
//
// A walk opens each directory and looks at each file as it does without a memory. Only what it would read again is
// taken from there: the listing of a directory, and that a file's content cannot match. Both count only if the stamp is
// that of the moment when they were read. So rules, ignore files and roots are asked by each query itself, and doubt
// costs time, never a hit.

// A care is what must hold before something is remembered.
type care struct {
	dirs, files time.Duration // how long ago a directory or file must have changed last, so that its stamp is the truth
	least       int64         // files that a query must have searched: fewer are quickly read again
	// how long a file that was looked at need not be looked at again, if inotify tells of nothing in its directory
	calm time.Duration
}

// usualCare: a second change within one tick of the file system's clock has the same stamp as the first. Writes through
// a mapping have the time of the first write to each page until the kernel has written that page back, which it does
// after some 35 seconds.
var usualCare = care{dirs: 2 * time.Second, files: 45 * time.Second, least: 200, calm: 10 * time.Second}

const (
	// maxLearned is the longest content that is learned, in bytes; longer files are read each time.
	maxLearned = 8 << 20
	// smallBinary is the size from which on a binary file is not read to its end.
	smallBinary = chunkSize + maxBefore
)

// A memory is one query's view of the table. A nil one remembers nothing.
type memory struct {
	table *index.Table
	care  care
	used  *usage
	began time.Time // before the first stamp was taken
	watch *watcher  // nil: nothing tells of changes

	mu      sync.Mutex
	trusted map[uint64]trust // by device
	wanted  []wanted
}

// A trust says what is known of a file system: its stamps are the truth, and inotify tells of each change.
type trust struct{ stamps, events bool }

// A wanted is some files of a directory whose contents are to be learned.
type wanted struct {
	rel     string // of the directory
	in      *index.Dir
	numbers []int
}

// remember begins a query.
func (e *Engine) remember() *memory {
	if e.table == nil {
		return nil
	}
	e.table.Begin()
	watch := e.watching()
	watch.drain()
	return &memory{table: e.table, care: e.care, used: &e.usage, began: time.Now(), watch: watch,
		trusted: map[uint64]trust{}}
}

// listing gives the stamp of an open directory and its listing, if it is known. It notes in d whether the directory is
// on a file system whose stamps are the truth.
func (m *memory) listing(d *shared) (index.Stamp, *index.Dir) {
	if m == nil {
		return index.Stamp{}, nil
	}
	stamp, err := d.stamp()
	if err != nil {
		return index.Stamp{}, nil
	}
	m.mu.Lock()
	trusted, asked := m.trusted[stamp.Dev]
	if !asked {
		trusted = trust{stamps: d.trusts(), events: d.tells()}
		m.trusted[stamp.Dev] = trusted
	}
	m.mu.Unlock()
	if d.trusted = trusted.stamps; !d.trusted {
		return stamp, nil
	}
	since := uint64(0)
	if trusted.events {
		since = m.watch.since(d.folder, stamp.ID)
	}
	known := m.table.Find(stamp)
	if known != nil {
		m.used.listings.Add(1)
		d.calm = known.Calm(since, m.began, m.care.calm)
	}
	return stamp, known
}

// keep remembers a listing. whole: it is all of the directory. The stamp was taken before the names were read: a change
// in between makes another.
func (m *memory) keep(d *shared, in *index.Dir, whole bool) {
	if m != nil && d.trusted && whole {
		m.table.Put(in, in.Stamp.Before(m.began.Add(-m.care.dirs).UnixNano()))
	}
}

// gone is told of a file that is listed and cannot be found. If its directory has not changed since, the listing was
// wrong, as it may be where names have another form until a key is known. It is forgotten, and the file is noted.
func (w *walk) gone(d *shared, in *index.Dir, at listed) {
	if w.memory == nil || !in.Kept() {
		return
	}
	if now, err := d.stamp(); err == nil && now == in.Stamp {
		w.memory.table.Drop(in)
		w.note(ofUnreadable, at.rel)
	}
}

// want notes a file that was read, to be learned.
func (m *memory) want(in *index.Dir, at listed, now stat) {
	if m == nil || !in.Kept() {
		return
	}
	stamp := now.stamp()
	was, known, _ := in.Known(at.number)
	if known != index.Unknown && was == stamp || !stamp.Before(m.began.Add(-m.care.files).UnixNano()) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.wanted); n > 0 && m.wanted[n-1].in == in {
		m.wanted[n-1].numbers = append(m.wanted[n-1].numbers, at.number)
		return
	}
	name := in.Entries[at.number].Name
	dir := at.rel[:max(0, len(at.rel)-len(name)-1)]
	m.wanted = append(m.wanted, wanted{rel: dir, in: in, numbers: []int{at.number}})
}

// ruledOut says that a file need not be read, and counts it as searched: it is what it was when it was read, and its
// content cannot match.
func (g *grep) ruledOut(d *shared, in *index.Dir, at listed) bool {
	m := g.walk.memory
	if m == nil || !d.trusted {
		return false
	}
	// What may match is opened anyway, so only the others are looked at.
	was, content, summary := in.Known(at.number)
	noted := content == index.Large || content == index.Binary && g.q.Multiline // see scanner.file
	switch {
	case noted:
	case content != index.Text && content != index.Binary, g.ask == nil, g.ask.May(summary):
		return false
	}
	if d.calm.Holds(at.number) {
		m.used.calm.Add(1)
	} else {
		now, err := d.lstat(in.Entries[at.number].Name)
		if err != nil || !now.regular || now.stamp() != was {
			return false // opening it says what that means
		}
		if now.links == 1 { // else it may change in another directory
			d.calm.Note(at.number)
		}
	}
	size := was.Size
	if noted {
		g.walk.note(ofBinary, at.rel)
		size = min(was.Size, smallBinary)
	}
	m.used.ruledOut.Add(1)
	g.log.searched(1, size)
	return true
}
