package state

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a change does.
const (
	opSet byte = iota + 1
	opDelete
	opAppend
)

// overhead is what a value costs beside its name and its bytes. It is what the record of it costs in a log, so one
// figure limits memory and disk.
const overhead = recordHead + bodyHead

// sweepStep is how many deadlines one operation looks at, so that a million keys which end together delay no operation.
const sweepStep = 256

// A change is one write: first prepared, which settles whether it happens, then applied, which cannot fail. Between the
// two it may be written down.
type change struct {
	op    byte
	name  string
	value []byte
	life  time.Duration // 0: for ever
	most  int           // values of the stream
	swap  bool          // only if the revision is still rev
	rev   uint64

	at   uint64 // revision or position that it gets
	end  int64  // nanoseconds of the Unix clock; 0: never
	void bool   // it changes nothing: a lost Swap, a Delete of what is not there

	ok   bool
	err  error
	done chan struct{} // nil: no caller waits
}

// An entry is one value. It is replaced, never changed.
type entry struct {
	value []byte
	rev   uint64
	end   int64 // as in change
}

// A stream is the last values that were appended.
type stream struct {
	items []item
	end   int64
}

type item struct {
	at    uint64
	value []byte
}

// A deadline says that a key or stream may be over; what it holds decides.
type deadline struct {
	at     int64
	name   string
	stream bool
}

type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// A table is what a Store holds. Its users must lock it.
type table struct {
	plan     plan
	maxBytes int64

	last     uint64                      // revision or position
	groups   map[string]map[string]entry // by plan.group and key, so that Keys of one principal does not look at all
	keys     int
	streams  map[string]*stream
	ends     deadlines
	due      map[string]bool // keys that have a deadline in ends: one each, however often they are written
	dueToo   map[string]bool // streams that have one
	used     int64           // bytes, those of what is over but not yet removed included
	promised int64           // bytes of changes that are prepared and not yet applied
}

func newTable(p plan, maxBytes int64, last uint64) *table {
	return &table{
		plan: p, maxBytes: maxBytes, last: last,
		groups: map[string]map[string]entry{}, streams: map[string]*stream{}, due: map[string]bool{},
		dueToo: map[string]bool{},
	}
}

func cost(name string, value []byte) int64 { return int64(overhead + len(name) + len(value)) }

func over(end, now int64) bool { return end != 0 && end <= now }

// value returns what a key holds; the zero entry if it is absent or over.
func (t *table) value(key string, now int64) entry {
	e := t.groups[t.plan.group(key)][key]
	if over(e.end, now) {
		return entry{}
	}
	return e
}

// stream returns the values of a stream; none if it is absent or over.
func (t *table) stream(name string, now int64) []item {
	if s := t.streams[name]; s != nil && !over(s.end, now) {
		return s.items
	}
	return nil
}

// prepare settles what becomes of a change: c.ok and c.void, its number and its end. It changes nothing that can be
// read. Of two changes of one name the first must be applied before the second is prepared.
func (t *table) prepare(c *change, now int64) error {
	var grow int64
	switch c.op {
	case opSet:
		old := t.value(c.name, now)
		if c.swap && old.rev != c.rev {
			c.void = true
			return nil
		}
		grow = cost(c.name, c.value)
		if old.rev != 0 {
			grow -= cost(c.name, old.value)
		}
	case opDelete:
		c.ok, c.void = true, t.value(c.name, now).rev == 0
		return nil
	case opAppend:
		grow = cost(c.name, c.value)
		if items := t.stream(c.name, now); len(items) >= c.most {
			grow -= cost(c.name, items[0].value)
		}
	}
	if err := t.room(grow, now); err != nil {
		return err
	}
	t.promised += max(0, grow)
	t.last++
	c.ok, c.at = true, t.last
	if c.life > 0 {
		c.end = now + int64(c.life)
	}
	return nil
}

// room refuses a change that would exceed the limit. One that makes the value smaller is welcome even above it.
func (t *table) room(grow, now int64) error {
	if grow <= 0 || t.used+t.promised+grow <= t.maxBytes {
		return nil
	}
	for t.expire(now) == sweepStep { // what is over still counts until it is removed
		continue
	}
	if t.used+t.promised+grow <= t.maxBytes {
		return nil
	}
	return fmt.Errorf("%w: %d bytes of %d are in use", ErrFull, t.used, t.maxBytes)
}

// apply makes a prepared change.
func (t *table) apply(c *change) {
	switch c.op {
	case opSet:
		t.put(c.name, entry{c.value, c.at, c.end})
	case opDelete:
		t.remove(c.name)
	case opAppend:
		t.append(c.name, item{c.at, c.value}, c.end, c.life, c.most)
	}
}

// restore makes a change that was written down. Records of a stream may come twice, once from a snapshot and once from
// the log beside it.
func (t *table) restore(r record, now int64) {
	t.last = max(t.last, r.at)
	switch {
	case r.op == opSet && !over(r.end, now):
		t.put(r.name, entry{r.value, r.at, r.end})
	case r.op == opSet || r.op == opDelete:
		t.remove(r.name)
	case r.op == opAppend && !over(r.end, now):
		f, ok := t.plan.streams[family(r.name)]
		if !ok { // of another version of this program: kept for it
			f = streamFamily{length: maxStream, life: day}
		}
		if s := t.streams[r.name]; s == nil || s.items[len(s.items)-1].at < r.at {
			t.append(r.name, item{r.at, r.value}, r.end, f.life, f.length)
		}
	}
}

func (t *table) put(key string, e entry) {
	g := t.plan.group(key)
	group := t.groups[g]
	if group == nil {
		group = map[string]entry{}
		t.groups[g] = group
	}
	if old, ok := group[key]; ok {
		t.used -= cost(key, old.value)
	} else {
		t.keys++
	}
	group[key] = e
	t.used += cost(key, e.value)
	t.await(deadline{e.end, key, false})
}

func (t *table) remove(key string) {
	g := t.plan.group(key)
	e, ok := t.groups[g][key]
	if !ok {
		return
	}
	t.used -= cost(key, e.value)
	t.keys--
	delete(t.groups[g], key)
	if len(t.groups[g]) == 0 {
		delete(t.groups, g)
	}
}

// append adds a value to a stream. One that was over when the value came begins anew: end - life is that moment.
func (t *table) append(name string, i item, end int64, life time.Duration, most int) {
	if s := t.streams[name]; s != nil && over(s.end, end-int64(life)) {
		t.removeStream(name)
	}
	s := t.streams[name]
	if s == nil {
		s = &stream{}
		t.streams[name] = s
	}
	for len(s.items) >= most {
		t.used -= cost(name, s.items[0].value)
		s.items[0] = item{} // the array outlives the slice
		s.items = s.items[1:]
	}
	s.items, s.end = append(s.items, i), end
	t.used += cost(name, i.value)
	t.await(deadline{end, name, true})
}

func (t *table) removeStream(name string) {
	if s := t.streams[name]; s != nil {
		for _, i := range s.items {
			t.used -= cost(name, i.value)
		}
		delete(t.streams, name)
	}
}

// await adds a deadline if its name has none yet.
func (t *table) await(d deadline) {
	if due := t.awaited(d.stream); d.at != 0 && !due[d.name] {
		due[d.name] = true
		heap.Push(&t.ends, d)
	}
}

func (t *table) awaited(stream bool) map[string]bool {
	if stream {
		return t.dueToo
	}
	return t.due
}

// expire removes what has reached its end, after at most sweepStep deadlines, and returns how many there were. What was
// written again since gets a new deadline.
func (t *table) expire(now int64) int {
	for n := range sweepStep {
		if len(t.ends) == 0 || t.ends[0].at > now {
			return n
		}
		d := heap.Pop(&t.ends).(deadline)
		delete(t.awaited(d.stream), d.name)
		var end int64
		if d.stream {
			if s := t.streams[d.name]; s != nil {
				end = s.end
			}
		} else {
			end = t.groups[t.plan.group(d.name)][d.name].end
		}
		switch {
		case end > now:
			t.await(deadline{end, d.name, d.stream})
		case d.stream:
			t.removeStream(d.name)
		case end != 0:
			t.remove(d.name)
		}
	}
	return sweepStep
}

// below returns the keys that begin with prefix and a dot, sorted, without those that are over.
func (t *table) below(prefix string, now int64) []string {
	var keys []string
	for k, e := range t.groups[t.plan.group(prefix)] {
		if len(k) > len(prefix) && k[len(prefix)] == '.' && strings.HasPrefix(k, prefix) && !over(e.end, now) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// tail returns up to most values after a position, and the position of the last of them.
func (t *table) tail(name string, after uint64, most int, now int64) ([][]byte, uint64) {
	items := t.stream(name, now)
	from, found := slices.BinarySearchFunc(items, after, func(i item, at uint64) int { return cmp.Compare(i.at, at) })
	if found {
		from++
	}
	items = items[from:]
	if most < len(items) {
		items = items[:max(0, most)]
	}
	var values [][]byte
	for _, i := range items {
		values, after = append(values, slices.Clone(i.value)), i.at
	}
	return values, after
}
