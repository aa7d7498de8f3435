package wording

import (
	"time"

	"codehand/tools/results"
	"codehand/tools/tool"
)

// slowAfter is how long something may take before the client is told of it.
const slowAfter = 50 * time.Millisecond

// TellIfSlow tells the client what is going on if it is still going on after a while. done ends it, and waits for what
// is being told.
func TellIfSlow(env tool.Env, what string) (done func()) {
	told := make(chan struct{})
	timer := time.AfterFunc(slowAfter, func() {
		defer close(told)
		env.Progress(0, 0, what)
	})
	return func() {
		if !timer.Stop() {
			<-told
		}
	}
}

// Counting tells the client how long a search has taken, what it has come through, and what it looks for: 42 s, 3,977
// files, pattern "x". The search begins now.
func Counting(env tool.Env, one, many, pattern string) func(n, _ int64) {
	start := time.Now()
	return func(n, _ int64) {
		env.Progress(float64(n), 0, Whole(time.Since(start))+", "+Plural(int(n), one, many)+", pattern \""+
			LineOf(pattern, 80)+"\"")
	}
}

// Whole is a time in whole seconds.
func Whole(d time.Duration) string { return results.Seconds(d.Round(time.Second)) }
