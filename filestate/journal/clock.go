package journal

import (
	"math"
	"sync"
	"time"
)

// lastTime is the latest time of a note, in nanoseconds since 1970, that others can come after.
const lastTime = math.MaxInt64 - int64(24*time.Hour)

// clockSlack is by how much the clock may seem to be set back by nothing but the time between two looks at it.
const clockSlack = time.Millisecond

// A clock knows whether that of the system was set back while this process ran. The zero clock takes it to be so. Its
// owner holds mu.
type clock struct {
	mu    sync.Mutex
	began time.Time     // of the first look; its monotonic reading is what counts
	ahead time.Duration // of the time of day to the time since then, at the last look
}

// setBack says whether the time of day has gone back since the last look.
func (c *clock) setBack(now time.Time) bool {
	first := c.began.IsZero()
	if first {
		c.began = now
	}
	ahead := time.Duration(now.UnixNano()) - now.Sub(c.began)
	back := first || ahead < c.ahead-clockSlack
	c.ahead = ahead
	return back
}

// goOn lets the next note of this process come after those that are there. These are of a later time if the clock was
// set back, here or on another machine. To look at the newest costs more, the more notes its day has, so it is done
// only where there is a sign of that: at the first note, when the clock of this process goes back, as long as notes are
// ahead of it, and when there are notes of a day to come. No sign is left by a clock that was ahead for a while, within
// a day and while this process noted nothing: what others noted then stays newer than what this one notes until that
// time has come.
func (j *Journal) goOn() {
	j.clock.mu.Lock() // until the notes were looked at: no other note of this process may come before that
	defer j.clock.mu.Unlock()
	now := time.Now()
	back := j.clock.setBack(now)
	j.mu.Lock()
	back = back || now.UnixNano() <= j.last
	j.mu.Unlock()
	if !back && !j.hasNoteAfter(now) {
		return
	}
	left := new(unread)
	for n := range j.walk(left) {
		if n.at <= lastTime {
			j.mu.Lock()
			j.last = max(j.last, n.at)
			j.mu.Unlock()
			break
		}
	}
	if left.cause != nil { // a later one may be among them
		j.clock.began = time.Time{}
	}
}

// OthersNoted says that another machine may have noted changes meanwhile, whose clock may be ahead: the next note of
// this process comes after those.
func (j *Journal) OthersNoted() {
	j.clock.mu.Lock()
	defer j.clock.mu.Unlock()
	j.clock.began = time.Time{}
}

// hasNoteAfter says whether there is a note of a later day.
func (j *Journal) hasNoteAfter(now time.Time) bool {
	today := now.UTC().Format(dayForm)
	for day, dir := range j.days(new(unread)) { // those that can be read
		if day <= today {
			return false
		}
		if notes, _ := notesOf(day, dir); len(notes) > 0 {
			return true
		}
	}
	return false
}
