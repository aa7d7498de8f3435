// Package doctor looks for what keeps codehand from working on a machine, in a client or behind a URL, and says what to
// do about it.
//
// A Check is an id and a function; Run runs checks side by side, each with a limit of its own, and returns what they
// found in their order. Machine.Checks are those of this machine and its clients, Remote.Checks those of an endpoint.
// Each failure has a fix, and a test that provokes the failure follows the fix until the check is content.
//
// Nothing is changed: what a check writes to try whether it can, it removes. The package prints nothing, and reads
// neither the environment nor the settings: both are arguments.
package doctor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A Level says how bad a finding is.
type Level string

// The levels. Note is for what may be as it should be, Fail for what keeps something from working or from being safe.
const (
	OK   Level = "ok"
	Note Level = "note"
	Warn Level = "warn"
	Fail Level = "FAIL"
)

// A Finding is what a check found. Text may quote what other programs said: who prints it must make it harmless.
type Finding struct {
	ID    string `json:"id"` // of the check
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do; "" where nothing is wrong
}

// A Check looks at one thing.
type Check struct {
	ID string
	// Limit is how long Run waits for it; 0: 10 s.
	Limit time.Duration
	// Run returns what it found. It may be left behind when ctx ends, so it must not need to be waited for.
	Run func(ctx context.Context) []Finding
}

// usualLimit bounds one check.
const usualLimit = 10 * time.Second

// leastParallel is how many checks run at a time on a machine with few processors: most of them wait for a disk or for
// another process. More would make servers that are started look slow.
const leastParallel = 4

// Run runs all checks, some at the same time, and returns their findings in the order of the checks. A check that does
// not end within its limit is a finding, and is left behind: a dead network mount can hold it for ever.
func Run(ctx context.Context, checks []Check) []Finding {
	all := make([][]Finding, len(checks))
	places := make(chan struct{}, max(leastParallel, runtime.NumCPU()))
	var wg sync.WaitGroup
	for i, check := range checks {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			all[i] = check.run(ctx)
		})
	}
	wg.Wait()
	return slices.Concat(all...)
}

func (c Check) run(ctx context.Context) []Finding {
	limit := c.Limit
	if limit == 0 {
		limit = usualLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case found := <-done:
		return found
	case <-ctx.Done():
	}
	select {
	case found := <-done: // it ended because ctx did, and says more
		return found
	default:
		return []Finding{{c.ID, Fail, fmt.Sprintf("did not end within %s", limit),
			"look for a network mount or a server that does not answer"}}
	}
}

// one makes a check of a function that finds one thing.
func one(id string, find func(context.Context) Finding) Check {
	return Check{ID: id, Run: func(ctx context.Context) []Finding {
		f := find(ctx)
		f.ID = id
		return []Finding{f}
	}}
}
