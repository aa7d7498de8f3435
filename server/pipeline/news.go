package pipeline

import (
	"context"
	"strings"
)

// News returns lines about what the session was not told yet: what happened since, and what concerns the call. claim
// takes the first n lines, and returns those that no other call has taken meanwhile. No lines: there is nothing, and
// claim may be nil.
type News func(ctx context.Context, about About) (lines []string, claim func(n int) []string)

// An About says what a call is about itself.
type About struct {
	Job   string   // "": none
	Paths []string // that the call named, absolute
}

// add puts the news under the text of a call, as far as there is room; the rest waits for the next call. It skips inner
// calls, whose text the model may never see, and calls whose client has left.
func (news News) add(ctx context.Context, r *ran) {
	if news == nil || r.arrival.inside != nil || r.arrival.Lost != nil && r.arrival.Lost() {
		return
	}
	var about About
	if j := r.meta().Job; j != nil {
		about.Job = j.ID
	}
	for _, t := range r.bound.Targets {
		if namesFile(t) {
			about.Paths = append(about.Paths, t.Value)
		}
	}
	lines, claim := news(ctx, about)
	if len(lines) == 0 {
		return
	}
	a := r.room(lines)
	n := 0
	for fits := a; n < len(lines); n++ {
		if fits.say(lines[n]); fits.none || fits.cut {
			break
		}
	}
	a.say(strings.Join(claim(n), "\n"))
	r.join(ctx, a)
}
