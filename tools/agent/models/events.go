package models

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"codehand/tools/agent/loop"
)

// events reads server-sent events. Only the data counts: both formats say in it what an event is.
type events struct {
	lines *bufio.Reader
	read  int // bytes so far
	begun bool
}

func newEvents(r io.Reader) *events { return &events{lines: bufio.NewReader(r)} }

// next returns the data of the next event that has any; it is valid until the next call. The error is io.EOF at the end,
// a *fault if a cap is exceeded, or that of the reader. An event that the end cuts is returned: its data tells.
func (e *events) next() ([]byte, error) {
	var data []byte
	for some := false; ; {
		line, err := e.line()
		if value, ok := field(line); ok {
			if some {
				data = append(data, '\n')
			}
			some = true
			if data = append(data, value...); len(data) > maxEvent {
				return nil, tooLong("an event", maxEvent)
			}
		}
		switch {
		case some && (errors.Is(err, io.EOF) || err == nil && len(line) == 0):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// line returns the next line without its end. At the end of the stream the last line comes with io.EOF.
func (e *events) line() ([]byte, error) {
	var whole []byte
	for {
		part, err := e.lines.ReadSlice('\n')
		e.read += len(part)
		if whole = append(whole, part...); len(whole) > maxEvent {
			return nil, tooLong("a line", maxEvent)
		}
		if e.read > maxAnswer {
			return nil, tooLong("an answer", maxAnswer)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !e.begun {
			e.begun = true
			whole = bytes.TrimPrefix(whole, []byte("\ufeff"))
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(whole, []byte("\n")), []byte("\r")), err
	}
}

// field returns the data of a line that has data.
func field(line []byte) ([]byte, bool) {
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if ok && len(value) == 0 {
		return nil, true
	}
	if !ok || value[0] != ':' {
		return nil, false // a comment or another field
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

func tooLong(what string, limit int) *fault {
	return &fault{kind: loop.Broken, text: fmt.Sprintf("the model's server sent %s of more than %d MiB", what, limit>>20)}
}
