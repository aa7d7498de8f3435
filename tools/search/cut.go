package search

import "slices"

// answer cuts out what was asked for. What late workers bring afterwards is dropped. whole: the walk came to its end.
func (c *collector) answer(offset, limit int, whole bool) GrepAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	by := c.ranking
	c.unrank()
	out := GrepAnswer{NFiles: c.nFiles, NLines: c.nLines, More: c.overran || c.need > 0 && c.entries() > c.need}
	entries := c.inOrder()
	if out.Ranked = by != nil && whole && (offset > 0 || c.need > 0 && c.nLines > c.need); out.Ranked {
		entries = by.order(entries)
	}
	for _, e := range entries {
		f := e.hits
		n := 1
		if c.byLine {
			f.Lines, n = c.cutLines(f.Lines, offset, limit)
			c.dirs.add(e.rel, -n-min(offset, e.shown))
			offset -= min(offset, e.shown)
		} else if offset > 0 {
			offset--
			c.dirs.add(e.rel, -1)
			continue
		} else {
			c.dirs.add(e.rel, -1)
		}
		if n > 0 || f.Binary {
			out.Files = append(out.Files, f)
		}
		if limit -= n; limit <= 0 && c.need > 0 {
			break
		}
	}
	if out.More {
		out.Rest = c.dirs.groups()
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

// cutLines leaves out the first matching lines and, if bounded, all after limit more; those that stay keep their own
// context. n is how many they are.
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
