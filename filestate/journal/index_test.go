package journal

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/disk"
)

// seed repeats the random tests of an earlier run.
var seed = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

// A query that names files or a change finds what a look at every note finds, whatever this and another process do to the
// journal between two queries. A directory of a day is listed anew in one run, and in the other its times prove that it
// need not be: there all of this happens in a time when its changes are long past.
func TestIndexFindsWhatAWalkFinds(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", *seed)
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		p := newProcesses(t, *seed)
		for range 60 {
			p.act()
			p.compare()
		}
		if p.found == 0 {
			t.Error("no query has found anything")
		}
	})
	t.Run("at rest", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(100 * 365 * 24 * time.Hour) // from 2000 on
			p := newProcesses(t, *seed+1)
			for range 40 {
				p.act()
				p.tick()
				p.compare()
			}
			if p.found == 0 || p.rested == 0 {
				t.Errorf("%d changes were found, and %d directories had rested", p.found, p.rested)
			}
		})
	})
}

// processes are two that work on one journal, and one that knows nothing of it and reads it whole.
type processes struct {
	*testing.T
	rng    *rand.Rand
	js     []*Journal
	slow   *Journal
	open   []Pending
	ids    []string
	found  int // entries
	rested int // days that were not listed anew
}

func newProcesses(t *testing.T, seed uint64) *processes {
	dir := filepath.Join(t.TempDir(), "journal")
	p := &processes{T: t, rng: rand.New(rand.NewPCG(seed, 1)), ids: []string{"aaaaaaaaaaaaaaaa"}}
	for range 3 {
		j, err := Open(dir, Options{Fast: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		p.js = append(p.js, j)
	}
	p.slow, p.js = p.js[2], p.js[:2]
	p.js[1].index.all.most = 20 * (noteCost + aboutCost) // not enough for all
	return p
}

// one is any of some.
func one[T any](p *processes, some []T) T { return some[p.rng.IntN(len(some))] }

func (p *processes) path() string {
	return one(p, []string{"/w/a", "/w/b", "/w/dir/c", "/w/dir/d", "/w/dirt", "/v/a"})
}

// act does some random things to the journal.
func (p *processes) act() {
	for range 1 + p.rng.IntN(4) {
		j := one(p, p.js)
		switch p.rng.IntN(12) {
		case 0, 1, 2, 3, 4:
			p.begin(j)
		case 5, 6, 7:
			p.end()
		case 8:
			if err := j.Keep(KindExternal, p.by(), p.path(), []byte("kept")); err != nil {
				p.Fatal(err)
			}
		case 9:
			p.move(time.Duration(1+p.rng.IntN(3)) * 24 * time.Hour)
		case 10:
			p.spoil()
		case 11:
			if p.rng.IntN(10) == 0 {
				j.o.KeepDays = 1 + p.rng.IntN(3)
				j.tidy(p.Context())
				p.forget()
			}
		}
	}
}

func (p *processes) by() By {
	return By{Workspace: one(p, []string{"/w", "/v"}), Session: one(p, []string{"s", "t"})}
}

func (p *processes) begin(j *Journal) {
	var parts []Part
	for range 1 + p.rng.IntN(2) {
		text := fmt.Append(nil, p.rng.IntN(100))
		parts = append(parts, Part{Path: p.path(), New: text, After: disk.DigestOf(text)})
	}
	var undoes []string
	for range p.rng.IntN(6) / 4 {
		undoes = append(undoes, one(p, p.ids))
	}
	h := Header{Undoes: undoes}
	if p.rng.IntN(6) == 0 {
		h = Header{Portion: &Portion{ID: one(p, p.ids)}}
	}
	pending, err := j.begin(h, p.by(), parts)
	if err != nil {
		p.Fatal(err)
	}
	p.open, p.ids = append(p.open, pending), append(p.ids, pending.ID)
}

// end ends a change, in any of the ways.
func (p *processes) end() {
	if len(p.open) == 0 {
		return
	}
	i := p.rng.IntN(len(p.open))
	pending := p.open[i]
	p.open = append(p.open[:i], p.open[i+1:]...)
	switch p.rng.IntN(5) {
	case 0:
		pending.Drop()
	case 1:
		pending.Unsure()
	default:
		pending.Done(p.Context())
	}
}

// any is some note that ended.
func (p *processes) any() (found noteName, ok bool) {
	var all []noteName
	for n := range p.slow.names() {
		if n.state != stateOpen {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return found, false
	}
	return one(p, all), true
}

// move makes a note older, as if it had been made on another day.
func (p *processes) move(by time.Duration) {
	n, ok := p.any()
	if !ok {
		return
	}
	to := n
	to.at -= int64(by)
	if err := p.slow.makeDay(to.day()); err != nil {
		p.Fatal(err)
	}
	if err := p.slow.root.Rename(n.path(), to.path()); err != nil {
		p.Fatal(err)
	}
	p.forget()
}

// forget makes every journal look for the place of a page again: between two pages of a history no note is moved or lost,
// so a walk may find another one where that has happened.
func (p *processes) forget() {
	for _, j := range p.js {
		j.page = page{}
	}
}

// spoil damages a note, unless it takes something back: what is known of that stays in force.
func (p *processes) spoil() {
	n, ok := p.any()
	if !ok {
		return
	}
	day, err := p.slow.root.OpenRoot(n.day())
	if err != nil {
		p.Fatal(err)
	}
	defer day.Close()
	h, err := n.header(day)
	if err != nil || h.about().takes() || p.rng.IntN(4) > 0 {
		return
	}
	path := filepath.Join(p.slow.dir, n.path())
	info, err := os.Lstat(path)
	if err != nil {
		p.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		p.Fatal(err)
	}
	p.forget()
}

// tick waits until the clock of the file system has moved on since the journal was changed.
func (p *processes) tick() {
	scratch := filepath.Join(p.TempDir(), "clock")
	clock := func() time.Time {
		_ = os.Remove(scratch) // there may be none
		if err := os.WriteFile(scratch, nil, 0o600); err != nil {
			p.Fatal(err)
		}
		info, err := os.Stat(scratch)
		if err != nil {
			p.Fatal(err)
		}
		return info.ModTime()
	}
	for began := clock(); !clock().After(began); {
	}
}

// compare asks each process some questions, and the slow one as well.
func (p *processes) compare() {
	p.Helper()
	for _, j := range p.js {
		q := Query{Kept: p.rng.IntN(2) == 0, Limit: p.rng.IntN(4)}
		switch p.rng.IntN(4) {
		case 0:
			q.ID = one(p, p.ids)
		case 1:
			q.Below = []string{one(p, []string{"/w/dir", "/w", "/v/a", "/none"})}
		default:
			q.Path = p.path()
		}
		if p.rng.IntN(3) == 0 {
			q.Before = one(p, p.ids)
		}
		if p.rng.IntN(3) == 0 {
			q.Session = one(p, []string{"s", "t"})
		}
		before := make(map[*dayIndex]bool)
		for _, day := range j.index.days {
			before[day] = true
		}
		got, err := j.History(p.Context(), q)
		for _, day := range j.index.days {
			if before[day] {
				p.rested++
			}
		}
		want, slowErr := p.walked(q)
		if fmt.Sprint(err) != fmt.Sprint(slowErr) || shown(got) != shown(want) {
			p.Fatalf("%+v finds\n%+v, %v, want\n%+v, %v", q, got, err, want, slowErr)
		}
		p.found += len(got)
		p.bounded(j)
	}
}

// shown is entries as text, without the addresses of portions.
func shown(entries []Entry) string {
	var text strings.Builder
	for _, e := range entries {
		if e.Portion != nil {
			fmt.Fprintf(&text, "of %+v: ", *e.Portion)
		}
		e.Portion = nil
		fmt.Fprintf(&text, "%+v\n", e)
	}
	return text.String()
}

// walked is what a look at every note finds: the question names nothing by which a note need not be looked at.
func (p *processes) walked(q Query) ([]Entry, error) {
	all, limit := q, q.Limit
	all.ID, all.Path, all.Below, all.Limit = "", "", nil, 0
	all.Fits = func(e Entry) bool {
		var paths []string
		for _, f := range e.Files {
			paths = append(paths, f.Path)
		}
		return (q.ID == "" || q.ID == e.ID) && q.names(paths)
	}
	found, err := p.slow.History(p.Context(), all)
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	return found, err
}

// bounded fails the test unless an index counts what it holds.
func (p *processes) bounded(j *Journal) {
	p.Helper()
	sum := 0
	for _, day := range j.index.days {
		want, known := len(day.notes)*noteCost, 0
		counted := make(map[*about]bool)
		for i := range day.notes {
			a := day.notes[i].about.Load()
			if a == nil {
				continue
			}
			known++
			if !counted[a] {
				want += new(dayIndex).cost(a)
			}
			counted[a] = true
		}
		if known != day.known || day.bytes < want {
			p.Errorf("%s counts %d notes and %d bytes, want %d and at least %d", day.name, day.known, day.bytes, known, want)
		}
		sum += day.bytes
	}
	if most := j.index.all.most; sum != j.index.all.bytes || sum > most {
		p.Errorf("the index counts %d bytes, and its days %d, of %d at most", j.index.all.bytes, sum, most)
	}
}
