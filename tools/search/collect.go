package search

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

const (
	minLineCost = 16 // bytes that a line counts for at least
	spanCost    = 16 // bytes that a match in a line counts for
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
// The answer is the first entries in order, no matter which worker finds them first. So what is kept is a heap with the
// last entry on top, which goes as soon as those before it are enough, or their texts too large. What was dropped can
// never be in the answer again: more entries before it can only make it come later.
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
	dirs    tally    // all entries
	nFiles  int
	nLines  int
	late    bool // CountFor is over
	closed  bool
	ranking *ranking               // nil: the order is by path, or by time
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
	if !c.byLine {
		c.dirs.add(e.rel, 1)
	}
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
	if c.ranking != nil && c.nLines > c.ranking.Lines {
		c.unrank()
	}
	if c.byLine {
		c.dirs.add(e.rel, hits)
	}
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

// cost is what a line counts for: short lines and matches take memory, too.
func (l Line) cost() int64 { return int64(max(len(l.Text), minLineCost) + len(l.Spans)*spanCost) }

// account adds one line to the sums, or takes it off. mu is held.
func (c *collector) account(e *entry, l Line, sign int) {
	n := int64(sign) * l.cost()
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
		case c.text > c.maxText && c.ranking != nil:
			c.unrank()
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
