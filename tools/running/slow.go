package running

import (
	"time"

	"codehand/tools/bash"
)

// slowAfter is how long a build may take before it is worth a line that its cache was empty.
const slowAfter = 20 * time.Second

// slowBuild notes why a build took as long as that, or was ended at its deadline: commands have caches of their own,
// which were empty when it began, and those that only read have others.
func (o *Outcome) slowBuild(took time.Duration, timedOut bool) {
	if took < slowAfter && !timedOut || o.Env.Analysis == nil {
		return
	}
	reads := o.Env.Analysis.Class == bash.ReadOnly
	first := len(o.Confined.Empty) > 0 && runs(o.Env.Analysis, o.Confined.Empty...)
	switch {
	case first && reads && timedOut:
		o.Notes = append(o.Notes, "[the first build of commands: those that only read have a cache of their own, "+
			"which was empty; what was built so far stays there, so call again]")
	case first && reads:
		o.Notes = append(o.Notes, "[the first build of commands: those that only read have a cache of their own, "+
			"which was empty; the next one is faster]")
	case first:
		o.Notes = append(o.Notes, "[the first build of commands: they have caches of their own, which were empty; the "+
			"next one is faster]")
	case reads && timedOut && runs(o.Env.Analysis, "go"):
		o.Notes = append(o.Notes, "[what was built so far stays in the cache of commands that only read, so call "+
			"again]")
	}
}
