package search

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An entry is a file with matches.
type entry struct {
	rel   string
	hits  FileHits
	size  int64 // of the file
	shown int   // lines in hits that are no context
	text  int64 // bytes of their texts
	full  bool  // lines were taken off its end: none may follow
}

// A collector keeps the entries that can be in the answer and counts all others.
//
// The answer is the first entries in order, whoever finds them first. So what is kept is a heap with the last entry on top,
// which goes as soon as those before it are enough, or their texts too large. What was dropped can never be in the
// answer again: more entries before it can only make it come later.
type collector struct {
	need    int   // entries up to Offset+Limit; 0: all
	maxText int64 // bytes
	byLine  bool  // need counts lines, not files
	newest  bool
	toEnd   bool // totals are always exact
	around  struct{ before, after int }
	halt    *halt

	mu      sync.Mutex
	kept    []*entry // a heap
	edge    *entry   // what comes behind it is only counted; nil: nothing is
	shown   int      // lines kept that are no context
	text    int64    // bytes kept
	overran bool     // texts were left out for their size
	nFiles  int
	nLines  int
	late    bool // CountFor is over
	closed  bool
	cut     atomic.Pointer[string] // edge's path, where order is by path
}

func (c *collector) before(a, b *entry) bool {
	if c.newest && !a.hits.ModTime.Equal(b.hits.ModTime) {
		return a.hits.ModTime.After(b.hits.ModTime)
	}
	return comparePaths(a.rel, b.rel) < 0
}

// Len, Less, Swap, Push and Pop are the heap of kept; the last entry in order is on top.
func (c *collector) Len() int           { return len(c.kept) }
func (c *collector) Less(i, j int) bool { return c.before(c.kept[j], c.kept[i]) }
func (c *collector) Swap(i, j int)      { c.kept[i], c.kept[j] = c.kept[j], c.kept[i] }

// Push is of the heap.
func (c *collector) Push(x any) { c.kept = append(c.kept, x.(*entry)) }

// Pop is of the heap.
func (c *collector) Pop() any {
	last := c.kept[len(c.kept)-1]
	c.kept = c.kept[:len(c.kept)-1]
	return last
}

// behind says that a path and all below it come after what the answer needs.
func (c *collector) behind(rel string) bool {
	cut := c.cut.Load()
	return cut != nil && comparePaths(rel, *cut) > 0
}

// open takes a file at its first match, give its lines. It reports whether lines of the file are wanted.
func (c *collector) open(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.nFiles++
	if c.edge != nil && c.before(c.edge, e) {
		e.full = true
		return false
	}
	heap.Push(c, e)
	c.trim()
	return !e.full
}

// give adds matching lines to a file that was opened. It reports whether more of its lines are wanted.
func (c *collector) give(e *entry, hits int, lines []Line) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.nLines += hits
	e.hits.NLines += hits
	if !e.full && len(lines) > 0 {
		e.hits.Lines = append(e.hits.Lines, lines...)
		for _, l := range lines {
			c.account(e, l, 1)
		}
		c.trim()
	}
	c.stopIfEnough()
	return !e.full
}

// account adds one line to the sums, or takes it off. mu is held.
func (c *collector) account(e *entry, l Line, sign int) {
	n := int64(sign * len(l.Text))
	e.text += n
	c.text += n
	if !l.Context {
		e.shown += sign
		c.shown += sign
	}
}

// trim drops what can no longer be in the answer. mu is held.
func (c *collector) trim() {
	for len(c.kept) > 0 {
		top := c.kept[0]
		switch {
		case c.need > 0 && !c.byLine && len(c.kept) > c.need, c.need > 0 && c.byLine && c.shown-top.shown >= c.need:
			c.drop()
			continue
		case c.text > c.maxText:
			c.shorten(top)
			if len(top.hits.Lines) == 0 {
				c.drop()
			}
			continue
		case c.need > 0 && !c.byLine && len(c.kept) == c.need, c.need > 0 && c.byLine && c.shown >= c.need:
			c.limit(top)
		}
		return
	}
}

// drop takes the last entry out.
func (c *collector) drop() {
	e := heap.Pop(c).(*entry)
	for _, l := range e.hits.Lines {
		c.account(e, l, -1)
	}
	e.hits.Lines, e.full = nil, true
	if len(c.kept) > 0 {
		c.limit(c.kept[0])
	} else {
		c.limit(e)
	}
}

// shorten takes lines off the end of the last entry until the texts fit.
func (c *collector) shorten(e *entry) {
	lines := e.hits.Lines
	for len(lines) > 0 && c.text > c.maxText {
		c.account(e, lines[len(lines)-1], -1)
		lines = lines[:len(lines)-1]
	}
	clear(e.hits.Lines[len(lines):])
	e.hits.Lines, e.full, c.overran = lines, true, true
	c.limit(e)
}

// limit notes that what comes behind e is only counted.
func (c *collector) limit(e *entry) {
	if c.edge == nil || c.before(e, c.edge) {
		c.edge = e
		if !c.newest {
			c.cut.Store(&e.rel)
		}
	}
}

// countUntil lets the counting go on for a while, now that the answer is fixed. It ends early only if more entries are
// known to follow, so that More does not depend on speed.
func (c *collector) countUntil(d time.Duration) (stop func() bool) {
	return time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.late = true
		c.stopIfEnough()
	}).Stop
}

func (c *collector) stopIfEnough() {
	if c.late && !c.toEnd && c.need > 0 && c.entries() > c.need {
		c.halt.stop(enough, nil)
	}
}

// entries counts what Limit is about.
func (c *collector) entries() int {
	if c.byLine {
		return c.nLines
	}
	return c.nFiles
}

// answer cuts out what was asked for. What late workers bring afterwards is dropped.
func (c *collector) answer(offset, limit int) GrepAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	out := GrepAnswer{NFiles: c.nFiles, NLines: c.nLines, More: c.overran || c.need > 0 && c.entries() > c.need}
	for _, e := range c.inOrder() {
		f := e.hits
		n := 1
		if c.byLine {
			f.Lines, n = c.cutLines(f.Lines, offset, limit)
			offset -= min(offset, e.shown)
		} else if offset > 0 {
			offset--
			continue
		}
		if n > 0 || f.Binary {
			out.Files = append(out.Files, f)
		}
		if limit -= n; limit <= 0 && c.need > 0 {
			break
		}
	}
	return out
}

func (c *collector) inOrder() []*entry {
	kept := slices.Clone(c.kept)
	slices.SortFunc(kept, func(a, b *entry) int {
		switch {
		case c.before(a, b):
			return -1
		case c.before(b, a):
			return 1
		}
		return 0
	})
	return kept
}

// tooMuch says that texts were left out for their size.
func (c *collector) tooMuch() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overran
}

// cutLines leaves out the first matching lines and, if bounded, all after limit more; those that stay keep their own context.
// n is how many they are.
func (c *collector) cutLines(lines []Line, offset, limit int) (out []Line, n int) {
	bounded := c.need > 0
	if offset == 0 && !bounded {
		for _, l := range lines {
			if !l.Context {
				n++
			}
		}
		return slices.Clip(lines), n
	}
	from, to, seen := -1, 0, 0
	for i, l := range lines {
		if l.Context {
			continue
		}
		if seen++; seen <= offset || bounded && seen > offset+limit {
			continue
		}
		if from < 0 {
			from = i
		}
		n, to = n+1, i+1
	}
	if from < 0 {
		return nil, 0
	}
	first, last := lines[from].N, lines[to-1].N
	for from > 0 && lines[from-1].Context && lines[from-1].N >= first-c.around.before {
		from--
	}
	for to < len(lines) && lines[to].Context && lines[to].N <= last+c.around.after {
		to++
	}
	return slices.Clip(lines[from:to]), n
}
