package hooks

import (
	"context"
	"errors"
	"os"
	"testing"
)

// A hook said no and ended. What should read its answer had no processor until the deadline of the pipe had passed, and
// found nothing, which is no opinion: the call was made.
func TestAnswerReadLate(t *testing.T) {
	t.Parallel()
	p := program{command: script(t, "bash", `echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'`)}
	var s streams
	defer s.close()
	process, err := p.start(t.Context(), &s, Confined{})
	must(t, err)
	<-process.Done()
	process.End(endGrace)
	s.expire()
	for _, f := range []*os.File{s.out.r, s.err.r} {
		conn, err := f.SyscallConn()
		must(t, err)
		past := func() bool { return conn.Read(func(uintptr) bool { return true }) != nil } // takes nothing out of it
		if !reached(past) {
			t.Fatal("a pipe has no deadline")
		}
	}
	c := collect(s.out.r, keptOut, make(chan struct{}, 1))
	<-c.done
	a := readAnswer(PreToolUse, done{exit: process.Exit(), out: c.kept, cut: c.cut, lost: c.lost})
	if a.weight != denies || a.failed != nil {
		t.Errorf("%q was read, %v; the answer is %+v", c.kept, c.lost, a)
	}
}

// An output that cannot be read is not one that says nothing: with hooks.fail_closed it blocks.
func TestAnswerUnread(t *testing.T) {
	t.Parallel()
	var s streams
	must(t, s.open())
	defer s.close()
	_ = s.out.r.Close()
	c := collect(s.out.r, keptOut, make(chan struct{}, 1))
	<-c.done
	if a := readAnswer(PreToolUse, done{out: c.kept, lost: c.lost}); !errors.Is(a.failed, os.ErrClosed) {
		t.Errorf("got %+v, want that it failed", a)
	}
}

// A hook refused by its exit code in the moment of its deadline. The select between both took the deadline every other
// time, and its refusal was none.
func TestEndedInTime(t *testing.T) {
	t.Parallel()
	ended, flood := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeout)
	if err := untilEnd(ctx, ended, flood); !errors.Is(err, errTimeout) {
		t.Errorf("still running at its deadline: %v", err)
	}
	close(ended)
	for range 100 {
		if err := untilEnd(ctx, ended, flood); err != nil {
			t.Fatalf("ended at its deadline: %v", err)
		}
	}
}
