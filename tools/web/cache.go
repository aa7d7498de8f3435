package web

import (
	"container/list"
	"sync"
	"time"
)

// A cache remembers pages for a while. What was not used longest goes first. All principals share its room, and none
// sees a page of another.
type cache struct {
	most int64 // bytes
	life time.Duration
	now  func() time.Time

	mu    sync.Mutex
	bytes int64
	at    map[cacheKey]*list.Element
	order list.List // of cached, the last used one in front
}

type cacheKey struct{ principal, url string }

type cached struct {
	key   cacheKey
	page  Page
	until time.Time
}

// entrySize is what an entry weighs besides its text.
const entrySize = 1 << 10

func (p *Page) size() int64 { return int64(entrySize + len(p.Text) + len(p.Body)) }

func (c *cache) get(key cacheKey) (Page, bool) {
	if key.principal == "" {
		return Page{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.at[key]
	if e == nil {
		return Page{}, false
	}
	if entry := e.Value.(*cached); entry.until.After(c.now()) {
		c.order.MoveToFront(e)
		return entry.page, true
	}
	c.drop(e)
	return Page{}, false
}

func (c *cache) put(key cacheKey, p Page) {
	if p.size() > c.most {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[key]; e != nil {
		c.drop(e)
	}
	if c.at == nil {
		c.at = map[cacheKey]*list.Element{}
	}
	c.at[key] = c.order.PushFront(&cached{key, p, c.now().Add(c.life)})
	c.bytes += p.size()
	for c.bytes > c.most {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	entry := c.order.Remove(e).(*cached)
	delete(c.at, entry.key)
	c.bytes -= entry.page.size()
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.bytes = nil, 0
	c.order.Init()
}
