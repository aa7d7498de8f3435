package hooks

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// maxBackground is how many programs that no call waits for run at the same time.
	maxBackground = 8
	// maxWaiting is how many may wait for that; one more is not started at all.
	maxWaiting = 256
	// closeGrace is what programs still have when the server ends; see Runner.Grace.
	closeGrace = 1500 * time.Millisecond
)

// errStopped is why a program was ended when the server did.
var errStopped = errors.New("the server ends")

// running knows all programs that run or wait for their turn. The zero value is ready.
type running struct {
	mu      sync.Mutex
	closed  bool // nothing is taken any more
	over    bool // what runs is being ended
	next    int
	cancels map[int]context.CancelCauseFunc
	behind  int           // in the background
	turn    chan struct{} // has a place for each one in the background that runs
	all     sync.WaitGroup
}

// hold is around every program: its ctx ends with close, too. The caller runs release when the program is gone. false:
// it is too late to begin.
func (b *running) hold(ctx context.Context) (held context.Context, release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, false
	}
	if b.cancels == nil {
		b.cancels, b.turn = map[int]context.CancelCauseFunc{}, make(chan struct{}, maxBackground)
	}
	held, cancel := context.WithCancelCause(ctx)
	n := b.next
	b.next++
	b.cancels[n] = cancel
	b.all.Add(1)
	return held, func() {
		cancel(nil)
		b.mu.Lock()
		delete(b.cancels, n)
		b.mu.Unlock()
		b.all.Done()
	}, true
}

// background runs f in a goroutine of its own when it is its turn; false: there are too many, or it is too late.
func (b *running) background(f func(context.Context)) bool {
	if !b.queue() {
		return false
	}
	ctx, release, ok := b.hold(context.Background())
	if !ok {
		b.leave()
		return false
	}
	go func() {
		defer release()
		defer b.leave()
		select {
		case b.turn <- struct{}{}:
			defer func() { <-b.turn }()
			if !b.ending() {
				f(ctx)
			}
		case <-ctx.Done():
		}
	}()
	return true
}

func (b *running) queue() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.behind >= maxBackground+maxWaiting {
		return false
	}
	b.behind++
	return true
}

// ending says whether close has begun to end what runs: nothing begins any more.
func (b *running) ending() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

func (b *running) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behind--
}

// close waits for what runs, at most for grace, then ends it.
func (b *running) close(grace time.Duration) {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.all.Wait()
	}()
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-ended:
		return
	case <-limit.C:
	}
	b.mu.Lock()
	b.over = true
	for _, cancel := range b.cancels {
		cancel(errStopped)
	}
	b.mu.Unlock()
	<-ended
}
