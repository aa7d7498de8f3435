package page

import (
	"bytes"
	"sort"
	"sync"
)

// markEvery is how much text lies between two marks at least, in bytes: a page begins at most so far behind one.
const markEvery = 1 << 20

// Marks remember where lines of one text begin, some 16 bytes for each MiB, so that a page far behind need not read all
// that is before it again. They are good for as long as the text does not change, which the caller must know. The zero
// value has none. It is safe for concurrent use.
type Marks struct {
	mu    sync.Mutex
	list  []mark // by place
	total int    // lines of the whole text; 0: not known
}

// A mark is the beginning of a line.
type mark struct {
	at   int64
	line int // from 1
}

// before returns the last mark that is not behind a line. nil has none.
func (m *Marks) before(line int) mark {
	if m == nil {
		return mark{0, 1}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := sort.Search(len(m.list), func(i int) bool { return m.list[i].line > line })
	if n == 0 {
		return mark{0, 1}
	}
	return m.list[n-1]
}

// known is the number of lines of the whole text; 0: not known.
func (m *Marks) known() int {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

// add takes a chunk that begins at a place and ends in line next: where that line begins is a new mark, if the last one
// is far enough before it.
func (m *Marks) add(chunk []byte, at int64, next int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := int64(0)
	if n := len(m.list); n > 0 {
		last = m.list[n-1].at
	}
	if at+int64(len(chunk)) < last+markEvery {
		return
	}
	if lf := bytes.LastIndexByte(chunk, '\n'); lf >= 0 && at+int64(lf)+1 >= last+markEvery {
		m.list = append(m.list, mark{at + int64(lf) + 1, next})
	}
}

// whole notes that a text was read to its end.
func (m *Marks) whole(total int) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.total = total
	}
}
