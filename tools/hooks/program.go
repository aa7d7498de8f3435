package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/sandbox"
)

const (
	// keptOut is how many bytes of a program's standard output are read as its answer. It may hold a whole input.
	keptOut = 4 << 20
	// keptErr is how many bytes of its standard error are kept.
	keptErr = 64 << 10
	// maxPrinted is how many bytes a program may print to either; more than that, and it is ended.
	maxPrinted = 64 << 20
	// lateOutput is how long the output of what a program left running is waited for.
	lateOutput = 100 * time.Millisecond
	// endGrace is between SIGTERM and SIGKILL. A cancelled call must be gone within a second.
	endGrace = 300 * time.Millisecond
)

// Why a program did not end by itself.
var (
	errTimeout = errors.New("it ran longer than it may")
	errFlood   = fmt.Errorf("it printed more than %d bytes", maxPrinted)
)

// A program is a command that is about to be started.
type program struct {
	command []string
	timeout time.Duration
	env     []string
	dirs    []string // the first that can be opened is the working directory
	input   []byte
	confine func() (Confined, error) // nil: it is not confined
}

// A done is what became of a program.
type done struct {
	exit sandbox.Exit
	out  []byte // at most keptOut
	cut  bool   // there was more of it
	// why out may lack something although it has an exit of its own; nil: it lacks nothing but what was cut
	lost   error
	stderr string // at most keptErr bytes
	err    error  // why it has no exit of its own: it could not be started, or had to be ended; nil: it has
}

// program puts a command into the environment of this event. Programs get what the operator's commands get, and where
// the project is, under the name that scripts know, too.
func (r *Runner) program(command []string, timeout time.Duration, e Event, input []byte) program {
	p := program{command: command, timeout: timeout, input: input}
	p.env = sandbox.Environ(sandbox.EnvOptions{
		Roots: slices.Concat(e.Roots, r.o.Written), Allow: r.o.EnvAllow, AllowSecret: r.o.EnvSecret,
		Withhold: r.o.Withhold, Personal: r.o.Personal,
	})
	if len(e.Roots) > 0 {
		p.env = append(p.env, "CLAUDE_PROJECT_DIR="+e.Roots[0], "CODEHAND_PROJECT_DIR="+e.Roots[0])
	}
	if e.Cwd != "" {
		p.dirs = append(p.dirs, e.Cwd)
	}
	p.dirs = append(p.dirs, e.Roots...)
	return p
}

// run starts the program and waits until it, and all that it started, is gone.
func (p program) run(ctx context.Context) done {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, errTimeout)
	defer cancel()
	var s streams
	defer s.close()
	how, err := p.confined()
	if err != nil {
		return done{err: fmt.Errorf("confine it: %w", err)}
	}
	process, err := p.start(ctx, &s, how)
	if err != nil {
		return done{err: fmt.Errorf("start it: %w", err)}
	}
	defer how.serve(ctx, process.Listener())()
	flood := make(chan struct{}, 2)
	fed, out, stderr := s.feed(p.input), collect(s.out.r, keptOut, flood), collect(s.err.r, keptErr, flood)
	d := done{err: untilEnd(ctx, process.Done(), flood)}
	if d.err == nil {
		out.await(lateOutput)
		stderr.await(lateOutput)
	}
	process.End(endGrace)
	s.expire()
	<-out.done
	<-stderr.done
	d.out, d.cut, d.lost, d.stderr = out.kept, out.cut, out.lost, string(stderr.kept)
	<-fed
	select {
	case <-process.Done():
		d.exit = process.Exit()
	default: // the kernel cannot end it
		d.exit = sandbox.Exit{Code: -1}
	}
	return d
}

func (p program) confined() (Confined, error) {
	if p.confine == nil {
		return Confined{}, nil
	}
	return p.confine()
}

// serve serves what the program connects to, until end is called. l is nil if it has no network of that kind.
func (how Confined) serve(ctx context.Context, l net.Listener) (end func()) {
	if l == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var served sync.WaitGroup
	served.Go(func() { _ = how.Serve(ctx, l) }) // the program sees that the proxy is closed
	return func() {
		stop()
		served.Wait()
	}
}

// untilEnd waits until the program ends, and says why it must be ended instead. An end that is there counts, whatever
// came at the same time: its exit code may be a refusal.
func untilEnd(ctx context.Context, ended, flood <-chan struct{}) error {
	var why error
	select {
	case <-ended:
	case <-flood:
		why = errFlood
	case <-ctx.Done():
		why = context.Cause(ctx)
	}
	select {
	case <-ended:
		return nil
	default:
		return why
	}
}

// start starts the program with pipes. What goes wrong is said without the names of variables.
func (p program) start(ctx context.Context, s *streams, how Confined) (*sandbox.Process, error) {
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	var dir *os.Root
	for _, d := range p.dirs {
		if dir, err = os.OpenRoot(d); err == nil {
			defer dir.Close()
			break
		}
	}
	process, err := sandbox.Start(ctx, sandbox.Cmd{
		Path: path, Args: p.command[1:], Env: append(p.env, how.Env...), Dir: dir,
		Stdin: s.in.r, Stdout: s.out.w, Stderr: s.err.w, Profile: how.Profile, Level: how.Level,
		Groups: how.Groups,
	})
	s.started()
	return process, err
}

// path finds the program: a name in the PATH that it gets itself, from which directories of the workspace are gone.
func (p program) path() (string, error) {
	name := p.command[0]
	if filepath.IsAbs(name) {
		return name, nil
	}
	i := slices.IndexFunc(p.env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	if i < 0 {
		return "", fmt.Errorf("%s: there is no PATH", name)
	}
	for _, dir := range filepath.SplitList(strings.TrimPrefix(p.env[i], "PATH=")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: no such program in PATH", name)
}

// A collector reads one stream to its end and keeps the beginning.
type collector struct {
	done chan struct{} // closed when the rest may be read
	kept []byte
	cut  bool
	lost error // why there may be more that was not read; nil: there is not
}

// collect begins to read. It goes on reading when it keeps no more, so that the program never waits for us, and tells
// flood when there is too much.
func collect(f *os.File, keep int, flood chan<- struct{}) *collector {
	c, r := &collector{done: make(chan struct{})}, sandbox.Output(f)
	go func() {
		defer close(c.done)
		chunk := make([]byte, 32<<10)
		for printed := 0; ; {
			n, err := r.Read(chunk)
			printed += n
			if room := keep - len(c.kept); n > room {
				c.cut, n = true, room
			}
			c.kept = append(c.kept, chunk[:n]...)
			if printed > maxPrinted {
				c.lost = errFlood
				flood <- struct{}{} // there is room for one of each stream
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				c.lost = fmt.Errorf("read its output: %w", err)
				return
			}
		}
	}()
	return c
}

// await waits for the end of the stream, but not longer than limit.
func (c *collector) await(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}
