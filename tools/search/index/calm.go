package index

import (
	"sync/atomic"
	"time"
)

// A Calm says which files of a listing were found to have the stamps that are remembered, for as long as nothing
// happens in their directory. It is safe for concurrent use.
type Calm struct {
	since uint64 // the caller's name of the time in which nothing has happened
	until time.Time
	files []atomic.Uint32 // bits, by the number of the entry
}

// Calm returns the Calm of that time, which ends at its until; a new one, with nothing found yet, if the last one was
// of another time or has ended. since 0 is no time: nil, in which nothing is found.
func (d *Dir) Calm(since uint64, now time.Time, lasts time.Duration) *Calm {
	if since == 0 {
		return nil
	}
	old := d.calm.Load()
	if old != nil && old.since == since && now.Before(old.until) {
		return old
	}
	c := &Calm{since: since, until: now.Add(lasts), files: make([]atomic.Uint32, (len(d.Entries)+31)/32)}
	if d.calm.CompareAndSwap(old, c) {
		return c
	}
	return nil // another query was faster, and it may be of a later time
}

// Note says that a file has its stamp.
func (c *Calm) Note(number int) {
	if c != nil {
		c.files[number/32].Or(1 << (number % 32))
	}
}

// Holds says that Note was told of a file.
func (c *Calm) Holds(number int) bool {
	return c != nil && c.files[number/32].Load()&(1<<(number%32)) != 0
}
