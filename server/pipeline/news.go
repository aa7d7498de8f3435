package pipeline

import (
	"context"
	"strings"
)

// News returns lines about what happened to the session since it was last told, but not about job, which the call
// itself is about ("": none). claim takes the first n lines, and returns those that no other call has taken meanwhile.
// No lines: there is nothing, and claim may be nil.
type News func(ctx context.Context, job string) (lines []string, claim func(n int) []string)

// add puts under the text of a call what there is to tell, as far as there is room; the rest waits for the next call.
// What a call from within another shows may not be shown to anybody, and a client that left reads nothing.
func (news News) add(ctx context.Context, c *call, o *outcome) {
	if news == nil || c.arrival.inside != nil || c.arrival.Lost != nil && c.arrival.Lost() {
		return
	}
	job := ""
	if j := o.meta().Job; j != nil {
		job = j.ID
	}
	lines, claim := news(ctx, job)
	if len(lines) == 0 {
		return
	}
	a := c.room(o, lines)
	n := 0
	for fits := a; n < len(lines); n++ {
		if fits.say(lines[n]); fits.none || fits.cut {
			break
		}
	}
	a.say(strings.Join(claim(n), "\n"))
	c.join(ctx, o, a)
}
