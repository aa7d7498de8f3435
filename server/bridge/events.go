package bridge

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"codehand/server/jsonrpc"
)

// errTooLong says that a message of the endpoint is over the limit of one message.
var errTooLong = fmt.Errorf("a message exceeds %d bytes", jsonrpc.MaxMessage)

// errStreamEnd says that a stream ended, in whatever way, before what was waited for.
var errStreamEnd = errors.New("the stream ended")

// An event is one event of a text/event-stream.
type event struct {
	name string // "": message
	data []byte // the lines, joined with newlines; the caller's
}

// An eventReader cuts a text/event-stream into events, as the HTML standard says in "Interpreting an event stream". It
// never waits for more bytes than an event needs: a CR ends a line, whether or not a LF follows.
type eventReader struct {
	r       *bufio.Reader
	max     int    // bytes of an event's data
	comment func() // called for each comment, which servers send to keep a stream alive

	line    []byte
	started bool // the byte order mark was looked for
	afterCR bool // a LF that comes now belongs to the CR before
}

func newEventReader(r io.Reader, max int, comment func()) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), max: max, comment: comment}
}

// next returns the next event with data, if only an empty one. An event that the stream ends in is dropped. The error
// is errTooLong or that of the stream, io.EOF at its end.
func (e *eventReader) next() (event, error) {
	var ev event
	data := false
	for {
		comment, err := e.readLine()
		switch {
		case err != nil:
			return event{}, err
		case comment:
			e.comment()
			continue
		case len(e.line) == 0 && data:
			ev.data = ev.data[:len(ev.data)-1]
			return ev, nil
		case len(e.line) == 0:
			ev = event{}
			continue
		}
		field, value, _ := bytes.Cut(e.line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.name = string(value)
		case "data":
			if len(ev.data)+len(value) > e.max {
				return event{}, errTooLong
			}
			ev.data = append(append(ev.data, value...), '\n')
			data = true
		}
	}
}

// fieldRoom is how much longer than its value the line of a field may be.
const fieldRoom = 64

// readLine reads a line to its end, which is not kept; nor is a comment.
func (e *eventReader) readLine() (comment bool, err error) {
	e.line = e.line[:0]
	begun := false
	for {
		if _, err := e.r.Peek(1); err != nil {
			return false, err
		}
		b, _ := e.r.Peek(e.r.Buffered()) // what is there already
		if e.afterCR {
			e.afterCR = false
			if b[0] == '\n' {
				_, _ = e.r.Discard(1) // it is there
				continue
			}
		}
		if !e.started {
			e.started = true
			if b[0] == 0xef {
				if mark, _ := e.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
					_, _ = e.r.Discard(3) // it is there
					continue
				}
			}
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			end = len(b)
		}
		if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
			end = cr
		}
		if !begun && end > 0 {
			begun, comment = true, b[0] == ':'
		}
		if !comment {
			if len(e.line)+end > e.max+fieldRoom {
				return false, errTooLong
			}
			e.line = append(e.line, b[:end]...)
		}
		if end == len(b) {
			_, _ = e.r.Discard(end) // it is there
			continue
		}
		e.afterCR = b[end] == '\r'
		_, _ = e.r.Discard(end + 1) // it is there
		return comment, nil
	}
}

// flatten makes a line of a JSON text. A newline in it can only stand between two tokens, so a blank takes its place.
func flatten(text []byte) {
	for i, c := range text {
		if c == '\n' || c == '\r' {
			text[i] = ' '
		}
	}
}
