package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"
)

// A Work does in this process what a command does in another one. What it writes to out is its output, as a command's
// is. It returns soon after ctx ends, and an error if it failed.
type Work func(ctx context.Context, out io.Writer) error

// errStopped is the cause with which the ctx of a Work ends that is to stop.
var errStopped = errors.New("the job is stopped")

// Begin starts do as a job of this process, shown as text; Command.Text, Timeout and Background count, nothing else. It
// is a Job like any other, but that a server process that dies takes it along: then it is Lost, also if it ran in the
// foreground, and the session is told. When ctx ends, so does a job in the foreground, unless Detach was called. The
// caller calls Release when it is done with a job in the foreground. Errors: those of Start.
func Begin(ctx context.Context, s *Shell, c Command, do Work) (*Job, error) {
	j, err := s.admit(c)
	if err != nil {
		return nil, err
	}
	j.work = make(chan struct{})
	j.info.Inside = true
	if err := s.save(ctx, j.record()); err != nil {
		s.drop(j)
		s.running.Done()
		return nil, fmt.Errorf("write job record: %w", err)
	}
	err = os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = j.output.open(j.base(), nil)
	}
	if err != nil {
		j.output.close()
		j.removeSpools()
		removeFile(j.base() + logSuffix)
		s.drop(j)
		s.running.Done()
		_ = s.board.Delete(context.WithoutCancel(ctx), recordKey(j.id)) // it expires
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if !c.Background {
		j.unlink = context.AfterFunc(ctx, func() { j.interrupt(Killed) })
	}
	go func() {
		defer s.running.Done()
		j.runWork(context.WithoutCancel(ctx), do)
	}()
	return j, nil
}

// runWork follows a Work until it has returned and its output is on disk.
func (j *Job) runWork(ctx context.Context, do Work) {
	tick := time.NewTicker(j.shell.limits.tick)
	defer tick.Stop()
	defer j.timer.Stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var failed error
	go func() {
		defer close(j.work)
		defer func() {
			if p := recover(); p != nil {
				failed = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		failed = do(ctx, j.output.out.file)
	}()
	why := j.followWork(tick.C)
	if why != "" {
		cancel(errStopped)
		<-j.work
	}
	if j.unlink != nil {
		j.unlink()
	}
	j.finishWork(why, failed)
}

// followWork copies output until the work has returned ("") or must end.
func (j *Job) followWork(tick <-chan time.Time) State {
	for {
		select {
		case <-j.work:
			return ""
		case why := <-j.want:
			return why
		case <-j.timer.C:
			return TimedOut
		case <-tick:
			if !j.output.take() {
				return Overflow
			}
		}
	}
}

// finishWork closes the files and writes down how the work ended.
func (j *Job) finishWork(why State, failed error) {
	j.output.finish()
	j.mu.Lock()
	j.info.End, j.info.State = time.Now(), Completed
	switch {
	case why != "":
		j.info.State, j.info.Exit = why, -1
	case failed != nil:
		j.info.State, j.info.Exit = Failed, 1
	}
	j.mu.Unlock()
	j.over()
}

// over tells everybody that the job has ended.
func (j *Job) over() {
	j.mu.Lock()
	background := j.info.Background
	if background {
		j.shell.Look() // before a reader can see that it has ended
	}
	j.mu.Unlock()
	if background && j.output.lost() == "" {
		j.removeSpools() // the log has all that is kept of them
	}
	close(j.ended) // before the record: a Board that hangs must not delay an answer
	if background {
		j.report()
		j.shell.over(j.Info())
	}
}
