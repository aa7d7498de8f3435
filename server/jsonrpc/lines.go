package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// MaxResponse bounds an answer, newline included: TypeScript clients break the connection at 10 MiB.
	MaxResponse = 8 << 20
	// ProgressPatience is how long a progress note waits for a client that does not read before it is dropped.
	ProgressPatience = 250 * time.Millisecond
)

// A LineReader cuts a stream into lines of at most max bytes.
type LineReader struct {
	r     *bufio.Reader
	max   int
	first bool // no line was returned yet: a UTF-8 mark is dropped
}

// NewLineReader reads lines of at most max bytes from r.
func NewLineReader(r io.Reader, max int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), max: max, first: true}
}

// A Line is one line without its end and the blanks around it.
type Line struct {
	Bytes []byte // the caller's
	Long  bool   // over the limit: bytes is nil, and id is what was found in what was thrown away
	ID    json.RawMessage
}

// Next returns the next line. The last one may lack a newline. io.EOF comes alone, after it.
func (l *LineReader) Next() (Line, error) {
	var chunks [][]byte
	size := 0
	var over *idFinder
	for {
		frag, err := l.r.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full && len(frag) == 0 && size == 0 && over == nil {
			return Line{}, err
		}
		end := !full // a newline, the end of the input or an error: the line is over
		if over == nil && size+len(frag) > l.max+2 {
			over = &idFinder{}
			for _, c := range chunks {
				_, _ = over.Write(c)
			}
			chunks = nil
		}
		switch {
		case over != nil:
			_, _ = over.Write(frag)
		case end && size == 0:
			return l.whole(bytes.Clone(frag)), nil
		default:
			chunks = append(chunks, bytes.Clone(frag))
			size += len(frag)
		}
		if !end {
			continue
		}
		if over != nil {
			l.first = false
			return Line{Long: true, ID: over.ID()}, nil
		}
		whole := make([]byte, 0, size)
		for i, c := range chunks {
			whole = append(whole, c...)
			chunks[i] = nil
		}
		return l.whole(whole), nil
	}
}

// whole makes a line of all its bytes. It may still be over the limit: the blanks around the value do not count.
func (l *LineReader) whole(b []byte) Line {
	if b = l.trim(b); len(b) > l.max {
		return Line{Long: true, ID: findID(b)}
	}
	return Line{Bytes: b}
}

func findID(b []byte) json.RawMessage {
	var f idFinder
	_, _ = f.Write(b)
	return f.ID()
}

func (l *LineReader) trim(b []byte) []byte {
	if l.first {
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		l.first = false
	}
	return bytes.Trim(b, " \t\r\n")
}

// A LineWriter writes whole lines, one Write each. It is safe for concurrent use.
type LineWriter struct {
	w      io.Writer
	turn   chan struct{} // holds one token: who has it may write
	Failed chan struct{} // closed at the first write error, or by shut
	once   sync.Once     // closes failed
	err    error         // valid after failed is closed

	Patience time.Duration // of progress notes
}

// NewLineWriter writes lines to w. A progress note waits for patience at most.
func NewLineWriter(w io.Writer, patience time.Duration) *LineWriter {
	lw := &LineWriter{w: w, turn: make(chan struct{}, 1), Failed: make(chan struct{}), Patience: patience}
	lw.turn <- struct{}{}
	return lw
}

// errBusyLine says that the client did not read in time, so a droppable line was dropped.
var errBusyLine = errors.New("the client does not read")

// WriteLine sends b, which must end in a newline. patience 0 waits as long as it takes.
func (lw *LineWriter) WriteLine(b []byte, patience time.Duration, wanted func() bool) error {
	select {
	case <-lw.turn:
	default:
		var late <-chan time.Time
		if patience > 0 {
			t := time.NewTimer(patience)
			defer t.Stop()
			late = t.C
		}
		select {
		case <-lw.turn:
		case <-lw.Failed:
			return lw.err
		case <-late:
			return errBusyLine
		}
	}
	defer func() { lw.turn <- struct{}{} }()
	select {
	case <-lw.Failed:
		return lw.err
	default:
	}
	if wanted != nil && !wanted() {
		return ErrAnswered
	}
	if _, err := lw.w.Write(b); err != nil {
		lw.Shut(err)
		return err
	}
	return nil
}

// Rest waits at most d for the write in progress, and blocks every later one. It reports whether the write ended in
// time.
func (lw *LineWriter) Rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-lw.turn:
		return true
	case <-t.C:
		return false
	}
}

// Shut refuses all further writes with err.
func (lw *LineWriter) Shut(err error) {
	lw.once.Do(func() {
		lw.err = err
		close(lw.Failed)
	})
}
