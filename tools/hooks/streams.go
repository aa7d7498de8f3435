package hooks

import (
	"errors"
	"os"
	"time"
)

// A pipe is both of its ends; nil: closed.
type pipe struct{ r, w *os.File }

// streams are the three pipes of a program. They are pipes, as scripts expect, and not files, so that what is printed
// without end fills no disk.
type streams struct{ in, out, err pipe }

// open makes the pipes.
func (s *streams) open() error {
	for _, p := range []*pipe{&s.in, &s.out, &s.err} {
		var err error
		if p.r, p.w, err = os.Pipe(); err != nil {
			return err
		}
	}
	return nil
}

// started closes the ends that the program has now.
func (s *streams) started() {
	for _, f := range []**os.File{&s.in.r, &s.out.w, &s.err.w} {
		shut(f)
	}
}

// feed writes the input. What is returned is closed when all is written, or the program reads no more: it need not.
func (s *streams) feed(input []byte) <-chan struct{} {
	fed, w := make(chan struct{}), s.in.w
	go func() {
		defer close(fed)
		_, _ = w.Write(input) // a program that does not read its input is none of our business
		_ = w.Close()         // likewise
	}()
	return fed
}

// expire makes every read and write end soon, even if a process that cannot be killed holds the other end. What is in a
// pipe then is still read.
func (s *streams) expire() {
	soon := time.Now().Add(lateOutput)
	for _, f := range []*os.File{s.in.w, s.out.r, s.err.r} {
		if err := f.SetDeadline(soon); errors.Is(err, os.ErrNoDeadline) {
			_ = f.Close() // the system has no deadlines for pipes; this ends the reads, too
		}
	}
}

// close closes what is open.
func (s *streams) close() {
	for _, f := range []**os.File{&s.in.r, &s.in.w, &s.out.r, &s.out.w, &s.err.r, &s.err.w} {
		shut(f)
	}
}

func shut(f **os.File) {
	if *f != nil {
		_ = (*f).Close() // a pipe; nothing is lost
		*f = nil
	}
}
