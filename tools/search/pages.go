package search

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"codehand/filestate/disk"
	"codehand/tools/search/index"
	"codehand/tools/search/page"
)

const (
	markedTexts = 64      // texts whose marks are kept: those used last
	markedSize  = 1 << 20 // shorter ones are read again as quickly
)

// A pages remembers where lines begin in the texts that were read last. The zero value is ready.
type pages struct {
	mu    sync.Mutex
	texts []marked // the one used last at the end
}

type marked struct {
	stamp index.Stamp
	marks *page.Marks
}

// Page is page.Read of an open file, whose stamp was taken before it was read. Where its lines begin is remembered, so
// that a further page of a large file is read from nearby. It is good for one stamp, which must be so old that no later
// change can have the same (see remember.go); nothing is remembered where Options.Memory is 0.
func (e *Engine) Page(ctx context.Context, r io.ReaderAt, of disk.Stamp, q page.Query) (page.Page, error) {
	q.Marks = nil
	stamp := index.Stamp{ID: index.ID{Dev: of.Dev, Ino: of.Ino}, Size: of.Size, Mtime: of.Mtime, Ctime: of.Ctime}
	if e.table != nil && of.Size >= markedSize && !of.Racy && stamp.Before(time.Now().Add(-e.care.files).UnixNano()) {
		q.Marks = e.pages.of(stamp)
	}
	return page.Read(ctx, r, of.Size, q)
}

// of returns the marks of a text.
func (p *pages) of(stamp index.Stamp) *page.Marks {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := marked{stamp, &page.Marks{}}
	if i := slices.IndexFunc(p.texts, func(m marked) bool { return m.stamp == stamp }); i >= 0 {
		m = p.texts[i]
		p.texts = slices.Delete(p.texts, i, i+1)
	}
	if p.texts = append(p.texts, m); len(p.texts) > markedTexts {
		p.texts = slices.Delete(p.texts, 0, 1)
	}
	return m.marks
}

// clear forgets all.
func (p *pages) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts = nil
}
