package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/tools/sandbox"
)

// A Command is a program that speaks MCP over its standard input and output.
type Command struct {
	Argv []string // the program is absolute, or a name in the PATH of Env
	Env  []string // all that it gets
	Dir  string   // working directory, absolute

	// Confine says how the kernel confines the process, just before it starts; nil: not at all. An error means that it
	// is not started.
	Confine func() (Confined, error)
}

// Confined is how the kernel confines a process.
type Confined struct {
	Profile *sandbox.Profile
	Level   sandbox.Level
	Groups  *sandbox.Groups
	Env     []string                                  // besides Command.Env, which counts less
	Serve   func(context.Context, net.Listener) error // its way to the network, until ctx ends; nil: it has none
	Over    func()                                    // called once when it has ended, or was not started; nil: nothing
}

const (
	endGrace  = time.Second      // between SIGTERM and SIGKILL
	writeTime = 30 * time.Second // that a server may take to read a message; then it counts as lost
	// logged is how many bytes of its standard error go to the log, by connection.
	logged = 64 << 10
	// lastSaid is how many bytes of the end of its standard error an error shows.
	lastSaid = 400
)

// streams opens the pipes to a server. They end when the process does.
func (c *Conn) streams(ctx context.Context, o Options) (io.Reader, io.WriteCloser, error) {
	if o.Stream != nil {
		in, out, err := o.Stream()
		if err != nil {
			return nil, nil, err
		}
		c.end, c.piped = func() { _, _ = in.Close(), out.Close() }, true
		return &watched{limited(in, false), c.lose, func(err error) error { return err }}, out, nil
	}
	p, err := start(ctx, o.Command, o.Log)
	if err != nil {
		return nil, nil, err
	}
	c.end, c.piped = p.close, true
	p.in.broken = func() { c.lose(p.why(io.EOF)) }
	return &watched{limited(p.out, false), c.lose, p.why}, p.in, nil
}

// watched tells when a stream ends.
type watched struct {
	io.Reader
	lose func(error)
	why  func(error) error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if err != nil {
		w.lose(w.why(err))
		if !errors.Is(err, io.EOF) {
			err = io.EOF // the library logs anything else
		}
	}
	return n, err
}

// A process is a server that was started.
type process struct {
	tree    *sandbox.Process
	network func() // ends its way to the network
	over    func() // gives back what it was confined with
	in      *input
	out     *os.File
	said    *said
	closing sync.Once
}

func start(ctx context.Context, c Command, log *slog.Logger) (*process, error) {
	path, err := sandbox.Find(c.Env, c.Argv[0])
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("its working directory: %w", err)
	}
	defer func() { _ = dir.Close() }() // the process has entered it
	how := Confined{}
	if c.Confine != nil {
		if how, err = c.Confine(); err != nil {
			return nil, fmt.Errorf("it cannot be confined as sandbox = true wants: %w", err)
		}
	}
	if how.Over == nil {
		how.Over = func() {}
	}
	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			shut(files[:])
			how.Over()
			return nil, err
		}
	}
	tree, err := sandbox.Start(ctx, sandbox.Cmd{Path: path, Args: c.Argv[1:], Env: over(c.Env, how.Env), Dir: dir,
		Stdin: files[0], Stdout: files[3], Stderr: files[5],
		Profile: how.Profile, Level: how.Level, Groups: how.Groups})
	shut([]*os.File{files[0], files[3], files[5]})
	if err != nil {
		shut([]*os.File{files[1], files[2], files[4]})
		how.Over()
		return nil, fmt.Errorf("cannot start %s: %w", filepath.Base(path), err)
	}
	p := &process{tree: tree, in: &input{file: files[1]}, out: files[2], said: &said{log: log, left: logged}}
	p.network, p.over = how.serve(tree.Listener()), how.Over
	p.said.over = make(chan struct{})
	go p.said.read(files[4])
	return p, nil
}

// over is an environment with other values in place of its own. Each name stands in it once: of two values programs
// take either one.
func over(env, other []string) []string {
	if len(other) == 0 {
		return env
	}
	all := slices.Concat(env, other)
	var kept []string
	for i, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(all[i+1:], func(later string) bool { return strings.HasPrefix(later, name+"=") }) {
			kept = append(kept, v)
		}
	}
	return kept
}

// serve serves what the process connects to, until end is called. l is nil if it has no network of that kind.
func (how Confined) serve(l net.Listener) (end func()) {
	if l == nil || how.Serve == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = how.Serve(ctx, l) }) // the process sees that the proxy is closed
	return func() {
		stop()
		served.Wait()
	}
}

func shut(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // a pipe; nothing is lost
		}
	}
}

// why says why the output ended.
func (p *process) why(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	wait := time.NewTimer(endGrace)
	defer wait.Stop()
	select {
	case <-p.tree.Done():
	case <-wait.C:
		return errors.New("it closed its output")
	}
	exit := p.tree.Exit()
	text := fmt.Sprintf("it exited with code %d", exit.Code)
	if exit.Signal != "" {
		text = "it was ended by " + exit.Signal
	}
	if last := p.said.last(); last != "" {
		text += " and said: " + last
	}
	return errors.New(text)
}

// close ends the process with all that it started.
func (p *process) close() {
	p.closing.Do(func() {
		_ = p.in.Close() // which asks a server to end
		p.tree.End(endGrace)
		p.network()
		p.over()
		if p.out.SetReadDeadline(time.Now()) != nil {
			_ = p.out.Close() // the system has no deadlines for pipes
		}
		<-p.said.over
		_ = p.out.Close() // a pipe; nothing is lost
	})
}

// An input is where messages to the server go. A server that does not read them is lost after writeTime.
type input struct {
	file   *os.File
	broken func() // is called when a message could not be written
}

func (i *input) Write(b []byte) (int, error) {
	_ = i.file.SetWriteDeadline(time.Now().Add(writeTime)) // without one, the caller's own time still ends its wait
	n, err := i.file.Write(b)
	if err != nil {
		i.broken() // half a message may have gone out
	}
	return n, err
}

func (i *input) Close() error { return i.file.Close() }

// said is what a server prints to its standard error: some of it goes to the log, and its end into errors.
type said struct {
	log  *slog.Logger
	left int
	over chan struct{} // closed when the stream has ended

	mu   sync.Mutex
	tail []byte
}

func (s *said) read(f *os.File) {
	defer close(s.over)
	defer func() { _ = f.Close() }() // a pipe; nothing is lost
	chunk := make([]byte, 4<<10)
	for {
		n, err := f.Read(chunk)
		s.take(chunk[:n])
		if err != nil {
			return
		}
	}
}

func (s *said) take(b []byte) {
	if len(b) == 0 {
		return
	}
	s.mu.Lock()
	if s.tail = append(s.tail, b...); len(s.tail) > 2*lastSaid {
		s.tail = append([]byte(nil), s.tail[len(s.tail)-lastSaid:]...)
	}
	s.mu.Unlock()
	if s.left <= 0 {
		return
	}
	if s.left -= len(b); s.left < 0 {
		s.log.Info("the rest of what the mounted server prints is not logged")
		return
	}
	s.log.Info("mounted server", "stderr", string(bytes.TrimRight(b, "\n")))
}

// last is the end of what was said, as it was said.
func (s *said) last() string {
	wait := time.NewTimer(endGrace)
	defer wait.Stop()
	select { // what it left running may hold the pipe open
	case <-s.over:
	case <-wait.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.TrimSpace(string(s.tail))
	if len(text) > lastSaid {
		text = text[len(text)-lastSaid:]
	}
	return strings.ToValidUTF8(text, "")
}
