package shell

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Close took the command of a call away while the call still read what it had printed, so the call failed with an internal
// error and not with what had become of its command.
func TestCloseWaitsForCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		j := s.start(t, Command{Text: "echo hi; while :; do :; done"}) // a SIGTERM between its trap and an exec would be lost, for ever in a bubble
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		<-j.ended
		synctest.Wait() // Close is as far as it gets
		if _, err := s.Output(t.Context(), j.id, 0, 100); err != nil {
			t.Errorf("the output of a command that Close has ended: %v", err)
		}
		j.Release()
		must(t, <-closed)
		if files := s.files(t); len(files) > 0 {
			t.Errorf("files %v are left", files)
		}
	})
}

// A caller that never calls Release does not keep Close for long.
func TestCloseWithoutCaller(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.limits.calls = 0
	j := s.start(t, Command{Text: "true"})
	<-j.ended
	must(t, s.Close())
	if _, err := s.Output(t.Context(), j.id, 0, 100); !errors.Is(err, ErrUnknown) || len(s.files(t)) > 0 {
		t.Errorf("Output: %v, files %v", err, s.files(t))
	}
}

// A process that is killed 2 s after its SIGTERM was gone before it had killed a command that ignores SIGTERM. The hurry counts
// also if it begins while the command is being ended.
func TestHurriedEnd(t *testing.T) {
	t.Parallel()
	for _, before := range []int64{0, 3} { // looks that find no hurry
		s := newStage(t)
		var looks atomic.Int64
		s.limits.grace, s.hurried = time.Hour, func() bool { return looks.Add(1) > before }
		j := s.start(t, Command{Text: "trap '' TERM; echo ready; while :; do sleep 1; done", Background: true})
		s.printed(t, j, "ready")
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case err := <-closed:
			must(t, err)
		case <-time.After(hang):
			t.Fatal("Close waits for the whole time that a command has without a hurry")
		}
	}
}
