// Package shell runs commands, in the foreground or as background jobs, and keeps their output.
//
// Output goes to spool files, never to a pipe that a grandchild can hold open, so a call always ends in time.
// It decides nothing about permissions and has no words for the model.
//
// Each command has one goroutine (run.go) that follows it from its start to the end of its process tree. Every 20 ms it
// copies new output from the two spools, stdout and stderr, to a merged log (output.go). So their order is known to
// 20 ms; within that time, stdout comes first. The first and last 32 MiB of each of the three files are kept. While the
// command runs, holes are punched into the middle, so positions stay valid offsets. At the end the two parts of the log
// are joined with a line that says what is missing, so that it can be read as text.
package shell

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/sandbox"
	"codehand/tools/terminal"
)

// Board is the part of the Store in which job records are kept; server hands in a Store narrowed to the session.
type Board interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Set(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// Options of a Shell.
type Options struct {
	Dir   string   // spool files, made 0700 when first needed
	Board Board    // job records; required
	Init  string   // file that is sourced before each command; "": none
	Env   []string // environment of commands (sandbox.Environ)
	// Withheld are names of variables that Env lacks and that a caller may be told of (sandbox.Withheld)
	Withheld []string
	MaxJobs  int // at once; 0: 16
	// Echo gets a copy of what commands in the foreground print, as it comes. It must not block for long. nil: there is
	// no copy
	Echo io.Writer

	// Plain: secrets in what commands print are not hidden (secrets.Mask)
	Plain bool

	// Hurried says that this process will be killed soon, so what ignores SIGTERM is killed sooner, too. It is asked
	// again and again while a command is ended. nil: never.
	Hurried func() bool
	// Over is called once for each background job that has ended. Other jobs of the session do not wait for it, but
	// Close does. nil: it is not called.
	Over func(Info)
}

// defaultMaxJobs is how many background jobs a session may have at once.
const defaultMaxJobs = 16

// A Shell runs the commands of one session. It is safe for concurrent use.
type Shell struct {
	dir     string
	board   Board
	env     environment
	echo    io.Writer // Options.Echo
	maxJobs int
	hurried func() bool
	over    func(Info)
	script  script
	limits  limits
	owner   string // in records: this server process
	news    atomic.Bool

	running sync.WaitGroup // one per goroutine that follows a command

	mu     sync.Mutex
	jobs   map[string]*Job // by id: what runs, and what has ended and was not released
	closed bool
}

// An environment is what commands get of the variables, and the names of those that they do not get.
type environment struct{ vars, withheld []string }

// New returns a Shell. ErrNoShell: no shell that it knows is on this machine.
func New(o Options) (*Shell, error) {
	script, err := findShell(o.Init)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.MaxJobs <= 0 {
		o.MaxJobs = defaultMaxJobs
	}
	if o.Hurried == nil {
		o.Hurried = func() bool { return false }
	}
	if o.Over == nil {
		o.Over = func(Info) {}
	}
	s := &Shell{
		dir: dir, board: o.Board, env: environment{o.Env, o.Withheld}, maxJobs: o.MaxJobs, hurried: o.Hurried,
		over: o.Over, script: script,
		echo: o.Echo, limits: defaultLimits(), owner: sandbox.Self(), jobs: map[string]*Job{},
	}
	s.limits.masked = !o.Plain
	s.Look() // jobs of an earlier process may have ended with it
	return s, nil
}

// News says whether a job of the session may have ended since News was last asked, so that callers need not read all
// records to learn that none has.
func (s *Shell) News() bool { return s.news.Swap(false) }

// Look makes the next News true.
func (s *Shell) Look() { s.news.Store(true) }

// A Dialect is the language that commands are written in. The zero value is that of sh.
type Dialect struct {
	Bash       bool   // of a text for another shell nothing is known
	PowerShell string // the name of the PowerShell, for people; "": it is none
}

// Dialect returns the language of the shell that commands run in.
func (s *Shell) Dialect() Dialect { return s.script.dialect }

// Withheld returns the names of variables that commands do not get, as far as a caller may know of them.
func (s *Shell) Withheld() []string { return s.env.withheld }

// Close ends all commands with their whole trees and waits for it, and a moment for the callers of those in the
// foreground, which may read what was printed until they call Release. Jobs are Lost then. Spool files go; the logs of
// jobs stay, since they can be read for a day.
func (s *Shell) Close() error {
	s.mu.Lock()
	s.closed = true
	jobs := s.known()
	s.mu.Unlock()
	for _, j := range jobs {
		if j.Info().Background {
			j.interrupt(Lost)
		} else {
			j.interrupt(Killed)
		}
	}
	s.running.Wait()
	s.mu.Lock()
	jobs = s.known() // without those that did not start
	s.mu.Unlock()
	late := make(chan struct{})
	defer time.AfterFunc(s.limits.calls, func() { close(late) }).Stop()
	for _, j := range jobs {
		if !j.Info().Background {
			select {
			case <-j.freed:
			case <-late:
			}
		}
		j.Release()
		j.removeSpools()
	}
	return nil
}

// known returns all jobs. The caller holds the lock.
func (s *Shell) known() []*Job {
	jobs := make([]*Job, 0, len(s.jobs))
	for _, j := range s.jobs {
		jobs = append(jobs, j)
	}
	return jobs
}

// A Command is what to run.
type Command struct {
	Text       string        // as it is shown
	Dir        *os.Root      // working directory; the caller closes it after Start
	Timeout    time.Duration // after it the tree is ended; 0: no limit
	Background bool          // a job from the start
	Monitor    *Monitor      // its lines are events; Background is true; nil: they are not
	// it was proved by its text to change nothing: what it starts has the environment of sandbox.Neutral
	Neutral bool
	// how the kernel confines it, besides the files of the Shell that it needs; nil: not at all
	Profile *sandbox.Profile
	Level   sandbox.Level   // that is in force with Profile
	Groups  *sandbox.Groups // that limits its memory and processes; nil: nothing does
	Spares  *sandbox.Spares // that makes it start sooner; nil: nothing does
	Env     []string        // besides Options.Env, the later one counts
	// Serve serves what the command connects to, if its network is a list, until ctx ends. nil: the network stays
	// closed
	Serve func(ctx context.Context, l net.Listener) error
	// Hold keeps what the command uses until release, which is called when its tree is over. nil: nothing is kept
	Hold func() (release func(), err error)
	// Over is called once when all processes of the command have ended, and returns lines for Trouble. It is told
	// whether the command has become a job. nil: nothing is to do
	Over func(background bool) []string
	// Terminal gives the command a terminal of this size; Background must be set. nil: it has none
	Terminal *sandbox.Window
}

// The errors of the package.
var (
	ErrNoShell   = errors.New("no shell on this machine")
	ErrJobLimit  = errors.New("too many jobs")
	ErrUnknown   = errors.New("no such job")
	ErrClosed    = errors.New("shell is closed")
	ErrElsewhere = errors.New("job runs in another server process")
	ErrNoScreen  = errors.New("job has no terminal here") // none, or that of another server process
	ErrState     = errors.New("state directory")          // the files of a command cannot be made there
)

// Start writes the record, then starts the command. When ctx ends, so does a command in the foreground, unless Detach
// was called. The caller calls Release when it is done with a command in the foreground. Errors: ErrJobLimit
// (background only), ErrClosed, ErrState with its cause, or what the system or the Board said.
func (s *Shell) Start(ctx context.Context, c Command) (*Job, error) {
	j, err := s.admit(c)
	if err != nil {
		return nil, err
	}
	if err := s.save(ctx, j.record()); err != nil {
		s.drop(j)
		s.running.Done()
		return nil, fmt.Errorf("write job record: %w", err)
	}
	if err := s.launch(ctx, j, c); err != nil {
		s.drop(j)
		s.running.Done()
		_ = s.board.Delete(context.WithoutCancel(ctx), recordKey(j.id)) // it expires
		return nil, err
	}
	if !c.Background {
		j.unlink = context.AfterFunc(ctx, func() { j.interrupt(Killed) })
	}
	go func() {
		defer s.running.Done()
		j.run()
	}()
	return j, nil
}

// admit makes a Job if there may be one more. A job counts from here on, so that two calls cannot both be the last.
func (s *Shell) admit(c Command) (*Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if c.Background {
		n := 0
		for _, j := range s.jobs {
			if i := j.Info(); i.Background && i.State == Running {
				n++
			}
		}
		if n >= s.maxJobs {
			return nil, ErrJobLimit
		}
	}
	j := newJob(s, newID(), c)
	s.jobs[j.id] = j
	s.running.Add(1) // under the lock, so that Close waits for a command that is just being started
	return j, nil
}

func (s *Shell) drop(j *Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.id)
}

// launch opens the files of a job and starts its process; on an error nothing of both is left.
func (s *Shell) launch(ctx context.Context, j *Job, c Command) error {
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		echo := s.echo
		if c.Background {
			echo = nil
		}
		err = j.output.open(j.base(), echo)
	}
	if err == nil && c.Monitor != nil {
		err = j.output.watch(j.base(), c.Monitor.Filter)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrState, err)
	} else {
		err = s.execute(ctx, j, c)
	}
	if err != nil {
		j.output.close()
		j.output.events.close()
		removeFile(j.base() + eventSuffix)
		s.script.cleanUp(j.base())
		j.removeSpools()
		removeFile(j.base() + logSuffix)
	}
	return err
}

func (s *Shell) execute(ctx context.Context, j *Job, c Command) error {
	args, env, err := s.script.command(c.Text, j.base())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	env = append(append(env, s.env.vars...), c.Env...)
	if c.Neutral {
		env = sandbox.Neutral(env)
	}
	if c.Terminal != nil {
		env = sandbox.Interactive(env)
	}
	profile := c.Profile
	if profile != nil {
		if profile, err = s.script.reachable(*profile, j.base()); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	j.unhold = func() {}
	if c.Hold != nil {
		if j.unhold, err = c.Hold(); err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	j.process, err = sandbox.Start(ctx, sandbox.Cmd{
		Path: s.script.path, Args: args, Env: env, Dir: c.Dir,
		Stdout: j.output.out.file, Stderr: j.output.err.file, Profile: profile, Level: c.Level,
		Groups: c.Groups, Spares: c.Spares, Terminal: c.Terminal,
	})
	if err != nil {
		j.unhold()
		return err
	}
	if c.Terminal != nil {
		j.terminal = terminal.New(j.process, *c.Terminal, j.output.out.file, s.limits.masked)
	}
	j.settled = c.Over
	if l := j.process.Listener(); l != nil && c.Serve != nil {
		j.serve(context.WithoutCancel(ctx), l, c.Serve)
	}
	return nil
}

const idPrefix, idRunes = "job_", 12

// newID returns job_ and 60 random bits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return idPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:idRunes]
}

// validID is asked before an id that a caller sent becomes part of a key or of a file name.
func validID(id string) bool {
	rest, ok := strings.CutPrefix(id, idPrefix)
	return ok && len(rest) == idRunes && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
