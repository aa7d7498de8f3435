// Package shell runs commands, in the foreground or as background jobs, and keeps their output.
//
// Output goes to spool files, never to a pipe that a grandchild can hold open, so a call always ends in time.
// It decides nothing about permissions and has no words for the model.
package shell

import (
	"context"
	"errors"
	"os"
	"time"
)

// Board is the part of the Store in which job records are kept; server hands in a Store narrowed to the session.
type Board interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Set(ctx context.Context, key string, value []byte) error
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Options of a Shell.
type Options struct {
	Dir     string   // spool files, made 0700 when first needed
	Board   Board    // job records
	Init    string   // file that is sourced before each command; "": none
	Env     []string // environment of commands (sandbox.Environ)
	MaxJobs int      // at once; 0: 16
}

// A Shell runs the commands of one session. It is safe for concurrent use.
type Shell struct {
	// unexported: helper F
}

// New returns a Shell. ErrNoShell: neither bash nor sh is on this machine.
func New(o Options) (*Shell, error) { panic("skeleton") }

// Close ends all jobs with their whole trees and waits for it.
func (s *Shell) Close() error { panic("skeleton") }

// A Command is what to run.
type Command struct {
	Text       string
	Dir        *os.Root      // working directory; the caller closes it after Start
	Timeout    time.Duration // after it the tree is ended
	Background bool          // a job from the start
}

// A State is where a job is. The zero value is lost: its process is unknown.
type State string

// The states.
const (
	Running   State = "running"
	Completed State = "completed" // exit 0
	Failed    State = "failed"    // other exit, or a signal
	Killed    State = "killed"    // stopped on request
	TimedOut  State = "timed_out"
	Overflow  State = "output_limit"
	Lost      State = "lost" // its server process died
)

// An Info is the record of a command.
type Info struct {
	ID         string // job_ and 12 of [a-z2-7]
	Command    string
	State      State
	Exit       int
	Signal     string
	Start      time.Time
	End        time.Time // zero while running
	Left       int       // processes that the command left running and that were ended
	Out, Err   int64     // bytes of stdout and stderr so far
	Cwd        string    // where the command ended; "": unknown
	Log        string    // path of the merged output
	Background bool
}

// A Job is a started command.
type Job struct {
	// unexported: helper F
}

// Start writes the record, then starts the command. Errors: ErrJobLimit (background only), or what the system or the Board said.
func (s *Shell) Start(ctx context.Context, c Command) (*Job, error) { panic("skeleton") }

// Wait returns when the command has ended or at until (zero: no limit), whichever is first, or when ctx ends: then the
// tree is ended, unless Detach was called. It answers at most 2.5 s after a deadline whoever holds the output open.
func (j *Job) Wait(ctx context.Context, until time.Time) (Info, error) { panic("skeleton") }

// Detach makes the command a background job with the given lifetime (0: keep its deadline): from now on no call's ctx ends it.
func (j *Job) Detach(lifetime time.Duration) Info { panic("skeleton") }

// Last returns the last line that the command printed, for progress notes; "": none yet.
func (j *Job) Last() string { panic("skeleton") }

// Info returns the record as of now.
func (j *Job) Info() Info { panic("skeleton") }

// A Chunk is output of a job: head and tail of what lies between two positions of the merged log.
type Chunk struct {
	Info  Info
	Head  string // all of it if Tail is empty
	Tail  string
	Size  int64 // bytes from the position on, also those between Head and Tail
	Lines int   // line ends in Size
	Next  int64 // position to continue from
}

// Output returns the output of a job from position after on, with at most max bytes each of head and tail. ErrUnknown: no such job here.
func (s *Shell) Output(ctx context.Context, id string, after int64, max int) (Chunk, error) {
	panic("skeleton")
}

// Streams returns the whole stdout and stderr of an ended command, at most max bytes each of head and tail.
func (s *Shell) Streams(ctx context.Context, id string, max int) (stdout, stderr Chunk, err error) {
	panic("skeleton")
}

// Await returns when the job has ended, at until, or when ctx ends (without ending the job).
func (s *Shell) Await(ctx context.Context, id string, until time.Time) (Info, error) {
	panic("skeleton")
}

// Stop ends a job's whole tree and waits for it. A job that is already over is no error.
func (s *Shell) Stop(ctx context.Context, id string) (Info, error) { panic("skeleton") }

// List returns the session's jobs, newest first: running ones and those that ended in the last 24 h.
func (s *Shell) List(ctx context.Context) ([]Info, error) { panic("skeleton") }

// The errors of the package.
var (
	ErrNoShell  = errors.New("no bash and no sh on this machine")
	ErrJobLimit = errors.New("too many jobs")
	ErrUnknown  = errors.New("no such job")
)
