package media

import (
	"io"
	"os"
	"time"

	"codehand/tools/sandbox"
)

// A pipe takes what a program prints, up to a length.
type pipe struct {
	most        int64
	read, write *os.File
	full        chan struct{} // closed when more came than that; reading has stopped
	done        chan printed  // what came; one value
}

// A printed is what came of a pipe.
type printed struct {
	text []byte // one byte more than the length if there was more
	err  error  // why there may be more that was not read; nil: there is not
}

func newPipe(most int64) *pipe {
	return &pipe{most: most, full: make(chan struct{}), done: make(chan printed, 1)}
}

func (p *pipe) open() (err error) {
	p.read, p.write, err = os.Pipe()
	return err
}

// begin reads in a goroutine, until the program and all that it started have closed the other end, or close. What is
// too much is read, too, and forgotten: a program that warns of every object of a PDF would wait for ever to be heard.
func (p *pipe) begin() {
	_ = p.write.Close() // the program has its own
	go func() {
		r := sandbox.Output(p.read)
		text, err := io.ReadAll(io.LimitReader(r, p.most+1))
		if int64(len(text)) > p.most {
			close(p.full)
		}
		p.done <- printed{text, err}
		_, _ = io.Copy(io.Discard, r) // it ends with the pipe
	}()
}

// all returns what came, once the program was ended. long: there was more. It waits a second at most for a process that
// the system cannot end; what the program printed is read however long that takes. An error means that some of it may
// be missing.
func (p *pipe) all() (text []byte, long bool, err error) {
	_ = p.read.SetReadDeadline(time.Now().Add(time.Second)) // without one the wait is longer, not wrong
	came := <-p.done
	return came.text[:min(int64(len(came.text)), p.most)], int64(len(came.text)) > p.most, came.err
}

// close lets go of both ends; those that are closed already do not mind.
func (p *pipe) close() {
	for _, f := range []*os.File{p.read, p.write} {
		if f != nil {
			_ = f.Close()
		}
	}
}
