package state

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// breakAfter is after how many failures in a row, without a success between them, the breaker opens.
	breakAfter = 3

	// probeEvery is how often an open breaker looks whether the servers are back.
	probeEvery = 250 * time.Millisecond
)

// A breaker answers for servers that do not: after some failures in a row operations fail at once, instead of each
// waiting until its time is up. Safe for concurrent use.
type breaker struct {
	probe   func(context.Context) error // nil error: the servers are back
	stop    <-chan struct{}
	running *sync.WaitGroup

	mu    sync.Mutex
	row   int   // failures without a success between them
	cause error // nil: closed
	since time.Time
}

func newBreaker(stop <-chan struct{}, running *sync.WaitGroup) *breaker {
	return &breaker{stop: stop, running: running}
}

// check returns why nothing is tried; nil: operations are.
func (b *breaker) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil {
		return nil
	}
	return fmt.Errorf("%w since %s: %s", ErrDown, b.since.UTC().Format(time.TimeOnly), plain(b.cause))
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.row, b.cause = 0, nil
}

// failed counts a failure. The one that opens the breaker starts the probes.
func (b *breaker) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.row++; b.row < breakAfter || b.cause != nil || b.probe == nil {
		return
	}
	b.cause, b.since = err, time.Now()
	b.running.Go(b.probes)
}

// probes closes the breaker when the servers are back.
func (b *breaker) probes() {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), probeEvery)
		err := b.probe(ctx)
		cancel()
		if err == nil {
			b.succeeded()
			return
		}
	}
}
