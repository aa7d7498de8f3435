package state

import (
	"errors"
	"testing"
	"time"
)

// A written change is not reported as unsure because the time ended in the same moment, as it looks to a process that
// was paused meanwhile.
func TestAnswerWithTheLastTick(t *testing.T) {
	t.Parallel()
	s := &embedded{}
	for range 100 { // a select with both chooses by chance
		half := make(chan time.Time, 1)
		half <- time.Now()
		c := &change{done: make(chan struct{}), ok: true}
		close(c.done)
		if ok, err := s.written(t.Context(), c, half, true); !ok || err != nil {
			t.Fatalf("a change that was written: %t, %v", ok, err)
		}
	}
	half := make(chan time.Time, 2)
	half <- time.Now()
	half <- time.Now()
	if ok, err := s.written(t.Context(), &change{done: make(chan struct{})}, half, false); ok || !errors.Is(err, ErrUnsure) || len(half) > 0 {
		t.Errorf("a change without an end: %t, %v, %d ticks are left", ok, err, len(half))
	}
}
