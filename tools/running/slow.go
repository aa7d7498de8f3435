package running

import "time"

// slowAfter is how long a build may take before it is worth a line that its cache was empty.
const slowAfter = 20 * time.Second

// slowBuild notes why a build took as long as that: commands have caches of their own, which were empty when it began.
func (o *Outcome) slowBuild(took time.Duration) {
	if took < slowAfter || len(o.Confined.Empty) == 0 || o.Env.Analysis == nil {
		return
	}
	if runs(o.Env.Analysis, o.Confined.Empty...) {
		o.Notes = append(o.Notes, "[the first build of commands: they have caches of their own, which were empty; the "+
			"next one is faster]")
	}
}
