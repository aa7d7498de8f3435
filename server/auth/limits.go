package auth

import (
	"context"
	"time"
)

// Limits are the quotas of one principal in use. They are safe for concurrent use.
type Limits struct{}

// Request counts one request of n bytes. The error is an *Error with status 429.
func (l *Limits) Request(n int64) error { return nil }

// Sent counts n bytes of answers. What is over the rate makes the next Request fail.
func (l *Limits) Sent(n int64) {}

// Stream counts an open stream. end gives it back. The error is an *Error with status 429.
func (l *Limits) Stream() (end func(), err error) { return func() {}, nil }

// Call counts a call against the rate. ok is false if it is over; then after is when to try again, and nothing is
// counted.
func (l *Limits) Call() (after time.Duration, ok bool) { return 0, true }

// Arrive takes a place in the queue for one of the concurrent calls, in the order of the calls of Arrive.
func (l *Limits) Arrive() *Turn { return &Turn{} }

// Shell takes a place in the queue for one of the concurrent foreground commands.
func (l *Limits) Shell() *Turn { return &Turn{} }

// A Turn is a place in a queue.
type Turn struct{}

// Wait waits until the turn has come, at most 10 s. ok is false if it did not come; err is that of ctx.
func (t *Turn) Wait(ctx context.Context) (ok bool, err error) { return true, nil }

// Leave gives the place back, also one whose turn never came. It does nothing the second time.
func (t *Turn) Leave() {}
