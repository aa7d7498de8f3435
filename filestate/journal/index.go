package journal

import (
	"cmp"
	"iter"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"codehand/filestate/disk"
)

const (
	// indexBytes is how much memory the indexes of a process take at most: for 250,000 notes of some hundred files, or
	// 70,000 each of its own. The oldest days have no place then, and are read at every query. Without it, a workspace
	// that has the 1 GiB that a journal keeps of one full of the smallest notes, of 700 bytes each, would take 200 MB.
	indexBytes = 32 << 20
	noteCost   = 128 // bytes of memory for a note: its name, and where that leads
	aboutCost  = 256 // bytes of memory for an about, besides its texts
)

// Indexes is the memory that the journals of a process have together for what their notes are about. Losing some of it
// costs the reading of these notes at the next query and nothing else. It is safe for concurrent use.
type Indexes struct {
	mu    sync.Mutex // for all below, and for all in the indexes and their days, but for what notes are about
	most  int        // of bytes
	bytes int        // of all indexes
	full  []*index   // those that have any days, used longest ago first
}

// NewIndexes is memory of at most maxBytes; 0: 32 MiB. The journal not used for longest loses its share first.
func NewIndexes(maxBytes int) *Indexes { return &Indexes{most: cmp.Or(maxBytes, indexBytes)} }

// An index remembers what notes are about, so that a query reads those that it may be about and no others. It says
// neither which notes there are nor how they ended: that is in the names, which are read anew at every query, unless
// the directory proves that nothing was done in it since. And no query is answered from it: what is found is read from
// its note. So the only thing that it must be right in is what a note is not about; and a note never changes once it is
// whole.
//
// It is in memory only, filled by the queries themselves. It is safe for concurrent use.
type index struct {
	all  *Indexes
	days map[string]*dayIndex
}

// A dayIndex are the notes of one day. What notes there are does not change.
type dayIndex struct {
	name  string
	stamp disk.Stamp // of the directory, noted before its names were read
	notes []indexed  // newest first
	known int        // how many of them were read
	ones  map[string]*about
	bytes int
}

type indexed struct {
	noteName
	about atomic.Pointer[about] // nil: it was not read, or is not whole
}

// An about is what a note says of itself that queries ask for. Notes of one file each share it, by the path, in ones.
type about struct {
	paths  []string
	undoes []string
	part   string // id of the change of which it takes these files back; "": it does not
}

func (h *Header) about() *about {
	a := &about{paths: h.paths()}
	if h.Kind == KindChange {
		a.undoes = h.Undoes
	}
	if h.Portion.Whole() {
		a.part = h.Portion.ID
	}
	return a
}

// takes says whether the note takes back anything but hunks.
func (a *about) takes() bool { return len(a.undoes) > 0 || a.part != "" }

// A pick is a note that a query looks at.
type pick struct {
	noteName
	passed bool      // only what it takes back matters, and that is in about
	about  *about    // nil: it must be read
	day    *dayIndex // that the note is of; nil: none, it need not be remembered
	at     int       // in the notes of the day
}

// picks goes over the notes that a query must look at, newest first, as walk does: for one that names no file and no
// change, all of them. The newest of all is among them in any case, and so are those that are open: how these end,
// their names do not tell for long.
func (j *Journal) picks(q *Query, left *unread) iter.Seq2[pick, *os.Root] {
	return func(yield func(pick, *os.Root) bool) {
		if q.Path == "" && len(q.Below) == 0 && q.ID == "" {
			for n, dir := range j.walk(left) {
				if !yield(pick{noteName: n}, dir) {
					return
				}
			}
			return
		}
		there := make(map[string]bool)
		newest := true
		for name, dir := range j.days(left) {
			there[name] = true
			day, err := j.index.refresh(name, dir)
			left.add(err)
			for p := range day.picks(q, &newest) {
				if !yield(p, dir) {
					return
				}
			}
		}
		if left.cause == nil {
			j.index.keep(there)
		}
	}
}

// picks goes over those of one day. newest says that no note came before them.
func (d *dayIndex) picks(q *Query, newest *bool) iter.Seq[pick] {
	return func(yield func(pick) bool) {
		for i := range d.notes {
			n := &d.notes[i]
			p := pick{noteName: n.noteName, about: n.about.Load(), day: d, at: i}
			p.passed = p.about != nil && n.state != stateOpen && !q.mayBe(n.id, p.about)
			if p.passed && !p.about.takes() && !*newest {
				continue
			}
			if *newest = false; !yield(p) {
				return
			}
		}
	}
}

// refresh returns the notes of a day as they are now. With an error, those that could be read.
func (x *index) refresh(day string, dir *os.Root) (*dayIndex, error) {
	f, err := dir.Open(".")
	if err != nil {
		return &dayIndex{name: day}, err
	}
	defer func() { _ = f.Close() }() // nothing is written to it
	stamp, err := disk.Restamp(f)
	if err != nil {
		stamp.Racy = true
	}
	x.all.mu.Lock()
	old := x.days[day]
	x.all.touch(x)
	x.all.mu.Unlock()
	if old != nil && old.stamp.Proves(stamp) {
		return old, nil
	}
	names, err := listNotes(day, f)
	now := &dayIndex{name: day, stamp: stamp, notes: make([]indexed, len(names)), bytes: len(names) * noteCost}
	for i, n := range names {
		now.notes[i].noteName = n
	}
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	now.carry(x.days[day])
	if err == nil {
		x.put(now)
	}
	return now, err
}

// carry takes over what is known of the notes that are still there. old may be nil.
func (d *dayIndex) carry(old *dayIndex) {
	d.ones = make(map[string]*about)
	if old == nil {
		return
	}
	i := 0
	for k := range d.notes {
		n := &d.notes[k]
		for i < len(old.notes) && (old.notes[i].at > n.at || old.notes[i].at == n.at && old.notes[i].id > n.id) {
			i++
		}
		if i == len(old.notes) || old.notes[i].at != n.at || old.notes[i].id != n.id {
			continue
		}
		if a := old.notes[i].about.Load(); a != nil {
			n.about.Store(a)
			d.known++
		}
	}
	if d.known >= old.known { // nothing that was known has gone
		d.ones, d.bytes = old.ones, d.bytes+old.bytes-len(old.notes)*noteCost
		return
	}
	for i := range d.notes {
		if a := d.notes[i].about.Load(); a != nil {
			d.bytes += d.cost(a)
			d.share(a)
		}
	}
}

// share lets other notes have an about, if they may.
func (d *dayIndex) share(a *about) {
	if a.shared() {
		d.ones[a.paths[0]] = a
	}
}

// cost is what an about takes of memory that was not counted yet.
func (d *dayIndex) cost(a *about) int {
	if a.shared() && d.ones[a.paths[0]] == a {
		return 0
	}
	bytes := aboutCost
	for _, text := range slices.Concat(a.paths, a.undoes, []string{a.part}) {
		bytes += len(text) + 16 // of its header
	}
	return bytes
}

// shared says whether notes may have an about in common.
func (a *about) shared() bool { return len(a.paths) == 1 && !a.takes() }

// touch says that x is used now.
func (all *Indexes) touch(x *index) {
	if i := slices.Index(all.full, x); i >= 0 {
		all.full = append(slices.Delete(all.full, i, i+1), x)
	}
}

// put takes a day in, if there is room.
func (x *index) put(d *dayIndex) {
	x.drop(d.name)
	if !x.room(d.name, d.bytes) {
		return
	}
	if len(x.days) == 0 {
		x.days = make(map[string]*dayIndex)
		x.all.full = append(x.all.full, x)
	}
	x.days[d.name] = d
	x.all.bytes += d.bytes
}

// room says whether there is room for so much more of a day, and makes it at the expense of other journals, then of
// older days.
func (x *index) room(day string, bytes int) bool {
	x.all.touch(x)
	for x.all.bytes+bytes > x.all.most {
		victim := x
		if len(x.all.full) > 0 {
			victim = x.all.full[0]
		}
		oldest := victim.oldest()
		if victim == x && (oldest == "" || oldest >= day) {
			return false
		}
		victim.drop(oldest)
	}
	return true
}

// oldest is the name of the oldest day; "": there is none.
func (x *index) oldest() string {
	if len(x.days) == 0 {
		return ""
	}
	return slices.Min(slices.Collect(maps.Keys(x.days)))
}

func (x *index) drop(day string) {
	if d := x.days[day]; d != nil {
		x.all.bytes -= d.bytes
		delete(x.days, day)
		if len(x.days) == 0 {
			x.all.full = slices.DeleteFunc(x.all.full, func(other *index) bool { return other == x })
		}
	}
}

// close gives up all of it.
func (x *index) close() { x.keep(nil) }

// keep drops all days but these, because the others are gone.
func (x *index) keep(days map[string]bool) {
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	for day := range x.days {
		if !days[day] {
			x.drop(day)
		}
	}
}

// learn remembers what a note is about that was read for a query.
func (x *index) learn(p pick, h *Header) {
	if p.day == nil || p.about != nil || h.ID != p.id {
		return
	}
	a := h.about()
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	d := p.day
	if x.days[d.name] != d || d.notes[p.at].about.Load() != nil {
		return
	}
	if one := d.ones[a.paths[0]]; one != nil && a.shared() {
		a = one
	}
	bytes := d.cost(a)
	if !x.room(d.name, bytes) {
		return
	}
	d.share(a)
	d.notes[p.at].about.Store(a)
	d.known++
	d.bytes += bytes
	x.all.bytes += bytes
}
