package models

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"codehand/tools/agent/loop"
	"codehand/tools/agent/wire"
)

// events reads server-sent events. Only the data counts: both formats say in it what an event is.
type events struct {
	lines *bufio.Scanner
	begun bool
}

func newEvents(r io.Reader) *events {
	e := &events{lines: bufio.NewScanner(r)}
	e.lines.Buffer(nil, maxEvent)
	return e
}

// next returns the data of the next event that has any. The error is io.EOF at the end, a *wire.Fault if a cap is
// exceeded, or that of the reader. An event that the end cuts is returned: its data tells.
func (e *events) next() ([]byte, error) {
	var data []byte
	some := false
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if !e.begun {
			e.begun, line = true, bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && some:
			return data, nil
		case string(name) != "data": // a comment, another field, or an event without data
			continue
		case some:
			data = append(data, '\n')
		}
		some = true
		if data = append(data, bytes.TrimPrefix(value, []byte(" "))...); len(data) > maxEvent {
			return nil, tooLong("an event", maxEvent)
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, tooLong("a line", maxEvent)
	case err != nil:
		return nil, err
	case some:
		return data, nil
	}
	return nil, io.EOF
}

func tooLong(what string, limit int) *wire.Fault {
	text := fmt.Sprintf("the model's server sent %s of more than %d MiB", what, limit>>20)
	return &wire.Fault{Kind: loop.Broken, Text: text}
}
