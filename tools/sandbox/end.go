package sandbox

import (
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// firstStep and lastStep are the pauses between two looks at a tree that was asked to end: short at first, since
	// most programs obey at once.
	firstStep, lastStep = time.Millisecond, 20 * time.Millisecond
	// quietRounds is how many looks in a row must find nothing: a process that forks while /proc is listed can be
	// missed by one look.
	quietRounds = 3
	// forceFor bounds the rounds of SIGKILL: what is left then cannot be ended by us. Time counts only together with
	// forceRounds: after a pause of the machine time has passed, but no signal was sent.
	forceFor, forceRounds = 300 * time.Millisecond, 10
	// lastWait is how long End waits for the child to be collected after that, while a process is left.
	lastWait = 100 * time.Millisecond
	// slowWait is how long it waits when none is: then only a busy machine, or its disk, can keep it.
	slowWait = 10 * time.Second
)

// An id names a process for good: its number alone is used again after its end.
type id struct {
	pid   int
	start uint64 // clock ticks since boot; 0 where the system does not tell
}

// A member is a living process of a tree.
type member struct {
	id
	group int
}

// An ending is one run of End. It belongs to one goroutine.
type ending struct {
	look  func() []member
	cut   func() // makes the helper end everything; nil: there is none
	child id
	rush  *atomic.Pointer[time.Time] // of its Process
	asked map[id]bool                // got SIGTERM
	ended map[id]bool                // got any signal
}

// ask sends SIGTERM to every member, also to those that appear meanwhile, and waits up to grace for them to end, or
// until the tree is hastened.
func (e *ending) ask(grace time.Duration) {
	step, deadline := firstStep, time.Now().Add(grace)
	for members := e.look(); len(members) > 0 && time.Now().Before(deadline); members = e.look() {
		if rush := e.rush.Load(); rush != nil && !time.Now().Before(*rush) {
			return
		}
		// The child first: a shell that loses the command it waits for before it is asked itself runs the next one.
		if i := slices.IndexFunc(members, func(m member) bool { return m.id == e.child }); i > 0 {
			members[0], members[i] = members[i], members[0]
		}
		for _, m := range members {
			if !e.asked[m.id] {
				e.asked[m.id], e.ended[m.id] = true, true
				m.signal(syscall.SIGTERM)
				m.wake()
			}
		}
		time.Sleep(min(step, time.Until(deadline)))
		step = min(2*step, lastStep)
	}
}

// force kills in rounds until quietRounds of them found nothing. What the helper cannot end is what killed it.
func (e *ending) force() {
	if e.cut != nil {
		for _, m := range e.look() {
			e.ended[m.id] = true
		}
		e.cut()
	}
	step, deadline := firstStep, time.Now().Add(forceFor)
	for quiet, rounds := 0, 0; quiet < quietRounds && (rounds < forceRounds || time.Now().Before(deadline)); rounds++ {
		members := e.look()
		if len(members) == 0 {
			quiet++
			continue
		}
		quiet = 0
		groups := map[int]bool{}
		for _, m := range members {
			e.ended[m.id] = true
			if !groups[m.group] {
				groups[m.group] = true
				m.killGroup()
			}
			m.signal(syscall.SIGKILL)
		}
		time.Sleep(step)
		step = min(2*step, lastStep)
	}
}
