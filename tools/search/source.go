package search

import (
	"bytes"
	"errors"
	"io"
)

const (
	chunkSize = 256 << 10 // how much of a file is read and looked at together, in bytes
	utf8Mark  = "\ufeff"  // may stand at the start of a text; it is not part of its first line
)

const (
	maxSmall     = 1 << 20  // bytes of a buffer that every worker may have; larger ones only one at a time
	maxLineBytes = 16 << 20 // of a longer line only this much is searched
	maxWhole     = 64 << 20 // bytes of a file that is searched as one text
	maxBefore    = 64 << 10 // bytes that are kept for the context before a match
)

// errStopped ends the reading of a file because its query has ended.
var errStopped = errors.New("the query has ended")

// A source reads one file into the buffer of a worker: marks are taken off, and UTF-16 is decoded.
type source struct {
	r    io.Reader // file, or what decodes it
	buf  []byte    // content in [:n]; one byte behind it is free for an LF
	n    int
	eof  bool
	file counter // what was read of it
	big  bool    // the worker holds the right to a large buffer

	engine *Engine
	halt   *halt
	own    []byte // the worker's own buffer
}

// start begins a file. What it returns besides io.EOF at the end is an error of the file.
func (s *source) start(r io.Reader) error {
	s.file = counter{r: r}
	s.r, s.n, s.eof, s.big = &s.file, 0, false, false
	if s.own == nil {
		s.own = make([]byte, chunkSize+maxBefore+1)
	}
	s.buf = s.own
	if err := s.fill(); err != nil {
		return err
	}
	if order := utf16Order(s.buf[:s.n]); order != nil {
		head := bytes.Clone(s.buf[2:s.n])
		s.r = &utf16Reader{r: io.MultiReader(bytes.NewReader(head), &s.file), order: order}
		s.n, s.eof = 0, false
		return s.fill()
	}
	if bytes.HasPrefix(s.buf[:s.n], []byte(utf8Mark)) {
		s.drop(len(utf8Mark))
	}
	return nil
}

// A counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// fill reads until the buffer is full or the file at its end. It reads at most a chunk more than there is.
func (s *source) fill() error {
	for !s.eof && s.n < len(s.buf)-1 {
		if s.halt.stopped() {
			return errStopped
		}
		n, err := s.r.Read(s.buf[s.n:min(len(s.buf)-1, s.n+chunkSize)])
		s.n += n
		switch {
		case errors.Is(err, io.EOF):
			s.eof = true
		case err != nil:
			return err
		}
	}
	return nil
}

// drop takes bytes off the front.
func (s *source) drop(n int) { s.n = copy(s.buf, s.buf[n:s.n]) }

// grow makes the buffer larger, up to limit bytes of content. false: it is that large already. Only one worker of the
// process may have a buffer over maxSmall, and waits here for it.
func (s *source) grow(limit int) (bool, error) {
	size := min(2*len(s.buf), limit+1)
	if size <= len(s.buf) {
		return false, nil
	}
	if size > maxSmall && !s.big {
		select {
		case <-s.engine.big:
			s.big = true
		case <-s.halt.done:
			return false, errStopped
		}
	}
	larger := make([]byte, size)
	copy(larger, s.buf[:s.n])
	s.buf = larger
	return true, nil
}

// close gives a large buffer back.
func (s *source) close() {
	s.buf = s.own
	if s.big {
		s.big = false
		s.engine.big <- struct{}{}
	}
}

// skipLine reads over the rest of a line that was too long. What is left in the buffer begins with the next line.
func (s *source) skipLine() error {
	for {
		s.n = 0
		if err := s.fill(); err != nil {
			return err
		}
		if i := bytes.IndexByte(s.buf[:s.n], '\n'); i >= 0 {
			s.drop(i + 1)
			return nil
		}
		if s.eof {
			s.n = 0
			return nil
		}
	}
}
