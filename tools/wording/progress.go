package wording

import (
	"time"

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
