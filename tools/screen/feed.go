package screen

import (
	"bytes"
	"regexp"
	"strconv"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// longest is how long a sequence may be whose end is waited for: insert mode is looked for in whole ones.
const longest = 64

// setsInsert matches a sequence that may switch insert mode.
var setsInsert = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*4[0-9;]*[hl]`) })

// setsModes matches what is not skipped of a text that is not drawn: full screen, regions, keys, and a reset. None of
// them asks for an answer.
var setsModes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[\?[0-9;]*[hl]|\[[0-9;]*[hlr]|\[!p|[c=>])`)
})

// Write draws what a program prints.
func (s *Screen) Write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	p = append(s.rest, p...)
	s.rest = nil
	if at := bytes.LastIndexByte(p, '\x1b'); at >= 0 && len(p)-at < longest && unfinished(p[at:]) {
		s.rest = append(s.rest, p[at:]...)
		p = p[:at]
	}
	for len(p) > 0 {
		n := min(len(p), step)
		if at := setsInsert().FindIndex(p[:n]); at != nil {
			n = at[1]
		}
		s.draw(p[:n])
		p = p[n:]
	}
}

// draw gives a step to the emulator. What makes it panic must not end the server: the screen is empty after it.
func (s *Screen) draw(p []byte) {
	defer func() {
		if recover() != nil {
			s.restart()
		}
	}()
	if s.insert {
		p = inserting(p)
	}
	_, _ = s.vt.Write(p) // it fails only once it is closed
	s.takeGone()
}

// Modes returns what must be written of a text that is not drawn, because there is too much of it: what sets the modes
// of the terminal.
func Modes(p []byte) []byte { return bytes.Join(setsModes().FindAll(p, -1), nil) }

// unfinished says that p is the beginning of a control sequence.
func unfinished(p []byte) bool {
	if len(p) == 1 {
		return true
	}
	if p[1] != '[' {
		return false
	}
	for _, b := range p[2:] {
		if b >= 0x40 {
			return false
		}
	}
	return true
}

// inserting is p as it is printed in insert mode: before each character there is made room for it.
func inserting(p []byte) (out []byte) {
	parser := ansi.GetParser()
	defer ansi.PutParser(parser)
	for state := byte(0); len(p) > 0; {
		sequence, width, n, next := ansi.DecodeSequence(p, state, parser)
		if n == 0 {
			break
		}
		if width > 0 {
			out = append(append(append(out, "\x1b["...), strconv.Itoa(width)...), '@')
		}
		out = append(out, sequence...)
		p, state = p[n:], next
	}
	return out
}
