package shell

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"codehand/tools/sandbox"
	"codehand/tools/terminal"
)

// A State is where a job is. The zero value is lost: its process is unknown.
type State string

// The states.
const (
	Running   State = "running"
	Completed State = "completed" // exit 0
	Failed    State = "failed"    // other exit, or a signal
	Killed    State = "killed"    // stopped on request
	TimedOut  State = "timed_out"
	Overflow  State = "output_limit" // more output than can be kept
	Chatty    State = "too_chatty"   // a monitor with more events than it may have
	Lost      State = "lost"         // it ended with its server process
)

// An Info is the record of a command.
type Info struct {
	ID      string // job_ and 12 of [a-z2-7]
	Command string
	State   State
	Exit    int    // 128 and its number if a signal ended the command
	Signal  string // "SIGSEGV"; "": it exited
	Start   time.Time
	End     time.Time // zero while running
	Printed
	Trouble
	Cwd string // where the command ended; "": unknown
	Log string // path of the merged output
	Flaws
	Background bool
	Inside     bool `json:",omitempty"` // it is a Work of the server process, not a command
	Watching
}

// Watching is what is known of a command that is a Monitor.
type Watching struct {
	Monitor bool   `json:",omitempty"`
	Events  int    `json:",omitempty"` // so far
	LastErr string `json:",omitempty"` // the last line that it printed to stderr, once it has ended; "": none
}

// Flaws are why the output of a command may not be whole.
type Flaws struct {
	Fault string `json:",omitempty"` // why Log is not whole, as that the disk is full; "": it is. While the command runs, that may pass. The two streams are elsewhere
	Doubt string `json:",omitempty"` // why the command may have been kept from printing, as that the disk was full when it ended; "": it was not
}

// Trouble is what the sandbox had to do while a command ran.
type Trouble struct {
	Left int            // processes that the command left running and that were ended
	Hit  sandbox.Bounds `json:",omitzero"` // limits that stopped it (sandbox.Exit)
	// Aside are the protected names, divided by commas, that appeared while it ran and were renamed (sandbox.Aside)
	Aside string `json:",omitempty"`
	// Configs are lines about what it changed in git's configuration and what was not taken over
	Configs []string `json:",omitempty"`
}

// Printed is how much a command has printed so far.
type Printed struct {
	Out, Err int64 // bytes of stdout and stderr
	Dropped  int64 // bytes of both from the middle that are not in Log
	Lines    int   // of both, a last one without an end included
}

// A doer is what a Job waits for.
type doer struct {
	process  *sandbox.Process               // nil: it is a Work
	terminal *terminal.Terminal             // nil: it has none
	unhold   func()                         // lets go of what the command used; not nil once it has started
	work     chan struct{}                  // closed when the Work has returned; nil: it is a command
	settled  func(background bool) []string // Command.Over; nil: nothing is to do
}

// A Job is a started command. It is safe for concurrent use.
type Job struct {
	id    string
	shell *Shell
	doer
	output  *output
	unserve func()      // ends what serves its network, and waits for it; nil: nothing does
	unlink  func() bool // no ctx ends the command any more; nil: none did
	timer   *time.Timer // the deadline
	want    chan State  // why the command is to end; the first reason counts
	ended   chan struct{}
	freed   chan struct{} // closed when a command in the foreground was released

	recording sync.Mutex // one write of the record at a time, so that the last one is the newest

	mu       sync.Mutex
	info     Info // without Printed, which output knows
	keep     bool // the log outlives Release
	released bool
}

func newJob(s *Shell, id string, c Command) *Job {
	j := &Job{
		id: id, shell: s, want: make(chan State, 1), ended: make(chan struct{}), freed: make(chan struct{}),
		timer:  time.NewTimer(c.Timeout),
		output: &output{limits: s.limits},
		info:   Info{ID: id, Command: c.Text, State: Running, Start: time.Now(), Background: c.Background},
	}
	j.info.Log = j.base() + logSuffix
	j.info.Monitor = c.Monitor != nil
	if c.Timeout <= 0 {
		j.timer.Stop()
	}
	return j
}

// serve serves what the command connects to until run ends.
func (j *Job) serve(ctx context.Context, l net.Listener, serve func(context.Context, net.Listener) error) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(ctx, l) // the command sees that no proxy answers
	}()
	j.unserve = func() {
		stop()
		<-done
	}
}

// base is the path of the job's files without their suffix.
func (j *Job) base() string { return filepath.Join(j.shell.dir, j.id) }

// Wait returns when the command has ended or at until (zero: no limit), whichever is first, or when ctx ends: then the
// tree is ended, unless Detach was called, and the error is the cause. It answers at most 2.5 s after a deadline, even
// if another process holds the output open.
func (j *Job) Wait(ctx context.Context, until time.Time) (Info, error) {
	err := waitUntil(ctx, j.ended, until)
	if err != nil && !j.Info().Background {
		j.interrupt(Killed)
		<-j.ended
	}
	info := j.Info()
	if err == nil && info.State == Killed {
		err = context.Cause(ctx) // it ended because ctx did, and that was seen first
	}
	return info, err
}

// waitUntil returns nil when done is closed or at until, and the cause when ctx ends before.
func waitUntil(ctx context.Context, done <-chan struct{}, until time.Time) error {
	select {
	case <-done:
		return nil
	default: // an end that is there already counts, also for a ctx that has ended
	}
	var at <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		at = timer.C
	}
	select {
	case <-done:
	case <-at:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// interrupt asks for the end of the command; who follows it does it. The first reason for an end counts.
func (j *Job) interrupt(why State) {
	select {
	case j.want <- why:
	default:
	}
}

// Detach makes the command a background job with the given lifetime (0: keep its deadline): from now on no call's ctx
// ends it. A command that has ended stays what it was.
func (j *Job) Detach(lifetime time.Duration) Info {
	j.mu.Lock()
	running := j.info.State == Running && !j.released
	if running {
		j.info.Background = true
		if lifetime > 0 {
			j.timer.Reset(lifetime)
		}
	}
	j.mu.Unlock()
	if running {
		if j.unlink != nil {
			j.unlink()
		}
		if j.process != nil {
			j.process.Settle()
		}
		j.report()
	}
	return j.Info()
}

// Last returns the last line of each stream, for progress notes, as it is; "": none yet, or its spool is gone.
func (j *Job) Last() (out, err string) { return j.output.lastLines() }

// Info returns the record as of now.
func (j *Job) Info() Info {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := j.info
	i.Printed = j.output.printed()
	i.Fault, i.Doubt = j.output.lost(), j.output.doubted()
	if j.output.events != nil {
		total, fault := j.output.events.sum()
		i.Events, i.Fault = total, cmp.Or(i.Fault, fault)
	}
	return i
}

// Keep says that the log is to stay when the command is released, because a result points to it.
func (j *Job) Keep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.keep = true
}

// Release says that the caller is done with a command in the foreground: it is ended if it still runs, its record and
// its files are removed, the log only without Keep. A background job, also one that was detached, stays. It may be
// called more than once.
func (j *Job) Release() {
	j.mu.Lock()
	if j.info.Background || j.released {
		j.mu.Unlock()
		return
	}
	j.released = true
	keep := j.keep
	j.mu.Unlock()
	defer close(j.freed)

	j.interrupt(Killed)
	<-j.ended
	j.shell.drop(j)
	j.removeSpools()
	if !keep {
		removeFile(j.base() + logSuffix)
	}
	j.recording.Lock()
	defer j.recording.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), boardTime)
	defer cancel()
	_ = j.shell.board.Delete(ctx, recordKey(j.id)) // it expires
}

func (j *Job) removeSpools() {
	removeFile(j.base() + outSuffix)
	removeFile(j.base() + errSuffix)
}

// removeFile drops the error: a file that stays goes with the session's directory.
func removeFile(path string) { _ = os.Remove(path) }

// TerminalOf returns a job with its terminal. ErrUnknown, ErrNoScreen: it has none here.
func TerminalOf(ctx context.Context, s *Shell, id string) (*Job, *terminal.Terminal, error) {
	j, _, err := s.find(ctx, id)
	switch {
	case err != nil:
		return nil, nil, err
	case j == nil || j.terminal == nil:
		return nil, nil, ErrNoScreen
	}
	return j, j.terminal, nil
}

// AwaitQuiet returns when a job with a terminal has printed something since it was looked at and is quiet, when it has
// ended, at until, or when ctx ends, with its cause.
func (j *Job) AwaitQuiet(ctx context.Context, until time.Time) error {
	return j.terminal.Await(ctx, j.ended, until)
}
