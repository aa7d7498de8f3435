package limits

import (
	"math"
	"time"
)

// A bucket counts what was used, which drains at the rate. It has no size of its own: tokens of one principal may have
// different numbers, and what one of them used counts for the other, neither more nor less. (golang.org/x/time/rate
// keeps what is left, has no debts, and cannot take more at once than its size.) The zero value is empty. Its owner
// locks.
type bucket struct {
	used float64
	at   time.Time
}

// A pace is what a bucket lets through.
type pace struct {
	perMinute float64 // 0: everything
	most      float64 // at once
}

// slack makes up for rounding: who comes back exactly when he was told must not be a millionth too early.
const slack = 1e-6

// drain brings a bucket up to now.
func (b *bucket) drain(now time.Time, p pace) {
	if past := now.Sub(b.at); past > 0 {
		b.used = max(0, b.used-past.Minutes()*p.perMinute)
		b.at = now
	}
	if p.perMinute == 0 {
		b.used = 0
	}
}

// wait says after what time n more fit; 0: now. What is more than fits at once passes an empty bucket.
func (b *bucket) wait(now time.Time, p pace, n float64) time.Duration {
	b.drain(now, p)
	over := b.used + min(n, p.most) - p.most
	if p.perMinute == 0 || over <= slack {
		return 0
	}
	return time.Duration(math.Ceil(over / p.perMinute * float64(time.Minute)))
}

// giveBack uncounts n.
func (b *bucket) giveBack(now time.Time, p pace, n float64) {
	b.drain(now, p)
	b.used = max(0, b.used-n)
}

// take counts n, whether it fits or not.
func (b *bucket) take(now time.Time, p pace, n float64) {
	b.drain(now, p)
	if p.perMinute > 0 {
		b.used += n
	}
}
