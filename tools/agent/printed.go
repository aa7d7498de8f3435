package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"codehand/tools/sandbox"
	"codehand/tools/secrets"
)

// A printed reads one stream of a program to its end and keeps the last of it. It reads all the time, so the program
// never waits for us. One goroutine calls its methods.
type printed struct {
	r, w *os.File
	keep int // bytes
	done chan struct{}

	// of the goroutine that reads, until done is closed
	kept  []byte // the end; up to twice keep while it is read
	total int64  // bytes so far
	err   error  // why there may be more; nil: there is not
}

func newPrinted(keep int) (*printed, error) {
	p := &printed{keep: keep}
	var err error
	p.r, p.w, err = os.Pipe()
	return p, err
}

// follow closes the end of the program, who has it by now, and begins to read.
func (p *printed) follow() {
	p.shut()
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		chunk, r := make([]byte, 32<<10), sandbox.Output(p.r)
		for {
			n, err := r.Read(chunk)
			p.add(chunk[:n])
			if err != nil {
				if !errors.Is(err, io.EOF) {
					p.err = err
				}
				return
			}
		}
	}()
}

func (p *printed) add(chunk []byte) {
	p.total += int64(len(chunk))
	if len(p.kept)+len(chunk) > 2*p.keep {
		p.kept = append(p.kept[:0], p.kept[max(0, len(p.kept)-p.keep):]...)
	}
	p.kept = append(p.kept, chunk...)
}

// end is called once after the program and all that it started have ended, and returns the end of what was printed,
// without secrets of known shapes, and how many bytes before it are not kept.
func (p *printed) end() (end string, unkept int64, err error) {
	if err := p.r.SetReadDeadline(time.Now().Add(lateOutput)); errors.Is(err, os.ErrNoDeadline) {
		select {
		case <-p.done:
		case <-time.After(lateOutput):
			_ = p.r.Close() // a process that cannot be killed has the other end
		}
	}
	<-p.done
	text := p.kept[max(0, len(p.kept)-p.keep):]
	if p.total > int64(len(text)) {
		text = afterCut(text)
	}
	end = secrets.Masked(string(bytes.ToValidUTF8(text, []byte("\ufffd"))))
	return end, p.total - int64(len(text)), p.err
}

// afterCut begins a text behind its first line, or its first word where that is long: a secret that was cut in two
// would not be known.
func afterCut(text []byte) []byte {
	head := text[:len(text)/4]
	for _, after := range []string{"\n", " \t"} {
		if i := bytes.IndexAny(head, after); i >= 0 {
			return text[i+1:]
		}
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

func (p *printed) shut() {
	if p.w != nil {
		_ = p.w.Close() // a pipe; nothing is lost
		p.w = nil
	}
}

// close gives back what is open.
func (p *printed) close() {
	p.shut()
	if p.r != nil {
		_ = p.r.Close() // likewise; it ends a read, too
	}
	if p.done != nil {
		<-p.done
	}
}
