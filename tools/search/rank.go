package search

import (
	"cmp"
	"slices"
	"time"
)

const (
	rankedLines = 10_000          // more of them are no search for one thing, and are shown by path
	rankedFiles = 20_000          // some 0.3 s of two cores; a larger tree is not searched to its end for an order
	rankedFor   = 2 * time.Second // for a slow disk
)

// A Rank says how lines are ordered if there are more of them than an answer shows: definitions of what the pattern
// finds before all others, then files that First names, then the newest files, then by path. With lines of context, or
// Multiline, whole files are ordered so.
//
// The order needs all lines, so it is by path as ever if there are too many of them, or too many files, or if they take
// too long. An order is the same on each page: the answer at Offset 0 is by path only if it shows every line.
type Rank struct {
	First func(path string) bool // absolute; nil: no file. From the caller's goroutine
	// above which the order is by path; 0: 10,000, 20,000, 2 s
	Lines, Files int
	For          time.Duration
}

// A ranking is a Rank at work.
type ranking struct {
	Rank
	need  int  // the collector's, once there is no ranking
	whole bool // files are ordered, not lines
}

// rank has the collector keep all lines, as long as a ranking of them is possible. stop must be called at the end.
func (c *collector) rank(q GrepQuery) (stop func() bool) {
	if q.Rank == nil || q.Mode != Lines || q.Newest || q.Limit == 0 && q.Offset == 0 {
		return func() bool { return true }
	}
	by := &ranking{Rank: *q.Rank, need: c.need, whole: q.Multiline || q.Before+q.After > 0}
	by.Lines = cmp.Or(by.Lines, rankedLines)
	c.ranking, c.need = by, 0
	return time.AfterFunc(cmp.Or(by.For, rankedFor), c.byPath).Stop
}

// most is how many lines of one file the answer can need; 0: all.
func (q *GrepQuery) most() int {
	switch {
	case q.Limit == 0:
		return 0
	case q.Rank == nil:
		return q.Offset + q.Limit
	}
	return max(q.Offset+q.Limit, cmp.Or(q.Rank.Lines, rankedLines))
}

// byPath gives up ranking.
func (c *collector) byPath() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unrank()
	c.trim()
}

// unrank goes back to the order by path, in which fewer lines are needed. mu is held.
func (c *collector) unrank() {
	if c.ranking != nil {
		c.need, c.ranking = c.ranking.need, nil
	}
}

// order is a Rank's, of entries in path order. An entry with definitions and other lines becomes two.
func (r *ranking) order(entries []*entry) []*entry {
	type ranked struct {
		*entry
		class int
	}
	var all []ranked
	for _, e := range entries {
		class := 0
		if r.First == nil || !r.First(e.hits.Path) {
			class = 1
		}
		defs, uses := *e, *e
		if r.whole {
			if !slices.ContainsFunc(e.hits.Lines, func(l Line) bool { return l.Defines }) {
				class += 2
			}
			all = append(all, ranked{e, class})
			continue
		}
		defs.hits.Lines, uses.hits.Lines = nil, nil
		for _, l := range e.hits.Lines {
			if l.Defines {
				defs.hits.Lines = append(defs.hits.Lines, l)
			} else {
				uses.hits.Lines = append(uses.hits.Lines, l)
			}
		}
		if defs.shown = len(defs.hits.Lines); defs.shown > 0 {
			all = append(all, ranked{&defs, class})
		}
		if uses.shown = len(uses.hits.Lines); uses.shown > 0 {
			all = append(all, ranked{&uses, class + 2})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(a.class-b.class, b.hits.ModTime.Compare(a.hits.ModTime))
	})
	out := make([]*entry, len(all))
	for i, e := range all {
		out[i] = e.entry
	}
	return out
}
