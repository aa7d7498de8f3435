package seen

import (
	"container/list"
	"sync"

	"codehand/filestate/disk"
)

// MaxHeld is the most bytes of one content that is held: a larger one would push out all others.
const MaxHeld = 4 << 20

const (
	contentsBudget = 25 << 20 // bytes of old contents that a process holds for diffs, unless told
	heldCost       = 256      // bytes that holding a content costs besides itself
)

// Contents holds file contents that were seen, so that a refusal can show what changed since. Losing
// one costs the diff and nothing else. One is made per process and given to all ledgers. It is safe
// for concurrent use.
type Contents struct {
	budget int

	mu   sync.Mutex // covers the rest
	used int
	byID map[disk.Digest]*list.Element // of held
	age  *list.List                    // most recently used first
}

type held struct {
	id      disk.Digest
	content []byte
}

// NewContents holds at most maxBytes; 0: 25 MiB. The content not used for longest goes first.
func NewContents(maxBytes int) *Contents {
	if maxBytes == 0 {
		maxBytes = contentsBudget
	}
	return &Contents{budget: maxBytes, byID: make(map[disk.Digest]*list.Element), age: list.New()}
}

// Put keeps content, which must not change afterwards. One that is too large is passed over.
func (c *Contents) Put(id disk.Digest, content []byte) {
	if len(content) > min(MaxHeld, c.budget-heldCost) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byID[id]; ok {
		c.age.MoveToFront(e)
		return
	}
	c.byID[id] = c.age.PushFront(held{id, content})
	c.used += len(content) + heldCost
	for c.used > c.budget {
		last := c.age.Remove(c.age.Back()).(held)
		delete(c.byID, last.id)
		c.used -= len(last.content) + heldCost
	}
}

// Get returns a content, or nil if it is not held. An empty content is not nil. It is only read.
func (c *Contents) Get(id disk.Digest) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if !ok {
		return nil
	}
	c.age.MoveToFront(e)
	return e.Value.(held).content
}
