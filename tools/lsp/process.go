package lsp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"codehand/tools/sandbox"
)

const (
	endGrace  = 2 * time.Second  // between SIGTERM and SIGKILL
	writeTime = 30 * time.Second // that a server may take to read a message; then it counts as lost
	logged    = 64 << 10         // bytes of its standard error that go to the log, by process
	lastSaid  = 400              // bytes of the end of its standard error that an error shows
)

// A Process is a running server, as its Client talks to it. Close ends all of it.
type Process interface {
	io.ReadWriteCloser
	// Why says why the process ended, after Read said so.
	Why() string
}

// A program is a Process that was started.
type program struct {
	tree    *sandbox.Process
	in, out *os.File
	said    *said
	release func()
	closing sync.Once
}

// Start starts a server. The streams of cmd are set here. release is called when it has ended; nil: nothing is.
func Start(ctx context.Context, cmd sandbox.Cmd, release func(), log *slog.Logger) (Process, error) {
	if release == nil {
		release = func() {}
	}
	var files [6]*os.File
	var err error
	for i := 0; i < len(files) && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe()
	}
	p := &program{in: files[1], out: files[2], said: &said{log: log, left: logged, over: make(chan struct{})},
		release: release}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
		p.tree, err = sandbox.Start(ctx, cmd)
	}
	if err != nil {
		shut(files[:])
		release()
		return nil, err
	}
	shut([]*os.File{files[0], files[3], files[5]})
	go p.said.read(files[4])
	return p, nil
}

func shut(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // a pipe; nothing is lost
		}
	}
}

func (p *program) Read(b []byte) (int, error) { return p.out.Read(b) }

func (p *program) Write(b []byte) (int, error) {
	_ = p.in.SetWriteDeadline(time.Now().Add(writeTime)) // without one, the caller's own time still ends its wait
	return p.in.Write(b)
}

// Why waits a moment for the end.
func (p *program) Why() string {
	wait := time.NewTimer(endGrace)
	defer wait.Stop()
	select {
	case <-p.tree.Done():
	case <-wait.C:
		return "it closed its output"
	}
	exit := p.tree.Exit()
	text := fmt.Sprintf("it exited with code %d", exit.Code)
	switch {
	case exit.Hit.Memory > 0:
		text = fmt.Sprintf("it needed more than %d MiB of memory", exit.Hit.Memory>>20)
	case exit.Signal != "":
		text = "it was ended by " + exit.Signal
	}
	if last := p.said.last(); last != "" {
		text += " and said: " + last
	}
	return text
}

// Close ends the process with all that it started.
func (p *program) Close() error {
	p.closing.Do(func() {
		_ = p.in.Close() // a server that was told to exit does so
		p.tree.End(endGrace)
		if p.out.SetReadDeadline(time.Now()) != nil {
			_ = p.out.Close() // the system has no deadlines for pipes
		}
		<-p.said.over
		_ = p.out.Close() // a pipe; nothing is lost
		p.release()
	})
	return nil
}

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
		if n > 0 {
			s.take(chunk[:n])
		}
		if err != nil {
			return
		}
	}
}

func (s *said) take(b []byte) {
	s.mu.Lock()
	if s.tail = append(s.tail, b...); len(s.tail) > 2*lastSaid {
		s.tail = bytes.Clone(s.tail[len(s.tail)-lastSaid:])
	}
	s.mu.Unlock()
	if s.left > 0 {
		s.log.Debug("language server", "stderr", string(bytes.TrimRight(b, "\n")))
	}
	s.left -= len(b)
}

// last is the end of what was said, in one line.
func (s *said) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(s.tail), "")), " ")
	return text[max(0, len(text)-lastSaid):]
}

// ErrLost is the error of a request whose server has ended.
var ErrLost = errors.New("the language server has ended")
