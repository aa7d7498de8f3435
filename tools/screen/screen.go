// Package screen keeps what the screen of a terminal shows, as plain text, from what a program prints there. It knows
// no process: its caller hands it bytes, and gets the bytes that a terminal answers or that a key types.
//
// The emulator behind it is github.com/charmbracelet/x/vt, which no other package sees. What that lacks is made up for
// here: it waits for ever where a program asks something and nobody reads the answer (answers), it does some things as
// often as a program says (bounded), it knows no insert mode (feed.go), and it keeps every line that scrolls in the
// alternate screen (forgetAlternate).
package screen

import (
	"hash/maphash"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

const (
	// maxGone is how many bytes of lines that left the screen are kept, apart from the last one.
	maxGone = 1 << 20
	// step is how many bytes the emulator gets at once: lines that leave the screen are taken over after each.
	step = 4 << 10
)

// A Screen is what a terminal shows. It is safe for concurrent use.
type Screen struct {
	answer func([]byte)
	done   chan struct{} // closed when no answer comes any more

	mu       sync.Mutex
	vt       *vt.Emulator
	rest     []byte // the beginning of a sequence whose end is to come
	hidden   bool   // the cursor is
	insert   bool   // what is printed moves what stands there to the right
	modes    map[ansi.Mode]bool
	gone     []string // lines that left the screen, the oldest first
	goneSize int
	goneAt   int64 // how many left before the first of gone
	closed   bool
}

// New returns an empty Screen. answer gets what the terminal answers to a program; it must not block, nor call the
// Screen. The caller calls Close.
func New(columns, rows int, answer func([]byte)) *Screen {
	s := &Screen{answer: answer, modes: map[ansi.Mode]bool{}}
	s.start(columns, rows)
	return s
}

// start makes an emulator.
func (s *Screen) start(columns, rows int) {
	s.vt, s.done = vt.NewEmulator(columns, rows), make(chan struct{})
	s.hidden, s.insert = false, false
	clear(s.modes)
	s.vt.SetScrollbackSize(step) // a step can bring so many
	s.bounded()
	s.forgetAlternate()
	s.vt.SetCallbacks(vt.Callbacks{
		CursorVisibility: func(visible bool) { s.hidden = !visible },
		EnableMode:       func(m ansi.Mode) { s.setMode(m, true) },
		DisableMode:      func(m ansi.Mode) { s.setMode(m, false) },
	})
	go s.answers(s.vt, s.done)
}

// restart replaces an emulator that has failed by an empty one. The caller holds the lock.
func (s *Screen) restart() {
	columns, rows := s.vt.Width(), s.vt.Height()
	closeInput(s.vt)
	s.start(columns, rows)
}

// bounded keeps the emulator from what makes it stand still or panic: to do something more often than there are
// characters on the screen, as to print the last one again, and regions that are larger than the screen.
func (s *Screen) bounded() {
	at := func(params ansi.Params, i int) int {
		n, _, _ := params.Param(i, 1)
		return n
	}
	for _, command := range "bXIZ" {
		s.vt.RegisterCsiHandler(int(command), func(params ansi.Params) bool {
			n := at(params, 0)
			return n < 0 || n > s.vt.Width()*s.vt.Height()
		})
	}
	s.vt.RegisterCsiHandler('r', func(params ansi.Params) bool {
		return max(at(params, 0), at(params, 1)) > s.vt.Height()
	})
	s.vt.RegisterCsiHandler('s', func(params ansi.Params) bool {
		return max(at(params, 0), at(params, 1)) > s.vt.Width()
	})
}

func (s *Screen) setMode(m ansi.Mode, on bool) {
	switch m {
	case ansi.ModeInsertReplace:
		s.insert = on
	case ansi.ModeCursorKeys, ansi.ModeBracketedPaste:
		s.modes[m] = on
	}
}

// answers hands over what the emulator answers. The emulator waits until somebody reads it.
func (s *Screen) answers(from *vt.Emulator, done chan struct{}) {
	defer close(done)
	b := make([]byte, 4<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		s.answer(append([]byte(nil), b[:n]...))
	}
}

// forgetAlternate keeps the emulator from keeping lines that scroll in the alternate screen, as every line of a pager:
// they would be 100 MB, and it has no setting for that. A test holds that the field is there and the lines are not.
func (s *Screen) forgetAlternate() {
	alternate := reflect.ValueOf(s.vt).Elem().FieldByName("scrs").Index(1).Addr().UnsafePointer()
	(*vt.Screen)(alternate).SetScrollback(nil)
}

// Close forgets the emulator and returns when no answer will come. What was shown stays.
func (s *Screen) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		closeInput(s.vt)
	}
	<-s.done // nothing changes it any more
}

// closeInput ends the answers of an emulator. Its own Close would write what its Read reads without a lock.
func closeInput(e *vt.Emulator) {
	if pipe, ok := e.InputPipe().(io.Closer); ok {
		_ = pipe.Close() // of a pipe in memory
	}
}

// Resize changes the size. What does not fit is lost, as in a terminal.
func (s *Screen) Resize(columns, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	// The emulator drops rows at the bottom; terminals keep those up to the cursor and move the others out at the top.
	if over := s.vt.CursorPosition().Y + 1 - rows; over > 0 && !s.vt.IsAltScreen() {
		s.scrollOut(over)
	}
	s.vt.Resize(columns, rows)
	s.takeGone()
}

// scrollOut moves rows out at the top, and the cursor along.
func (s *Screen) scrollOut(rows int) {
	at := s.vt.CursorPosition()
	s.draw([]byte("\x1b[r" + ansi.ScrollUp(rows) + ansi.CursorPosition(at.X+1, at.Y+1-rows)))
}

// A Shown is what a Screen shows at one time.
type Shown struct {
	Columns, Height int
	Rows            []string // from the top, without blanks at their ends, and without empty ones at the end
	Row, Column     int      // of the cursor, from 1
	Hidden          bool     // the cursor is
	Alternate       bool     // a full-screen program has put its own screen in place of the text
	Gone            []string // lines that left the screen at the top since the position that was asked for
	Missed          int64    // lines that left before them and are not kept any more
	Next            int64    // the position to ask for next
	Sum             uint64   // of all but Gone and Missed; two Shown with one Sum look alike
}

// seed makes sums of one process comparable. Sums of another one are others, so a screen is shown once too often.
var seed = maphash.MakeSeed()

// Look returns what the screen shows, and the lines that left it after position after; 0 is the beginning.
func (s *Screen) Look(after int64) Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := Shown{
		Columns: s.vt.Width(), Height: s.vt.Height(), Hidden: s.hidden, Alternate: s.vt.IsAltScreen(),
		Next: s.goneAt + int64(len(s.gone)),
	}
	at := s.vt.CursorPosition()
	v.Row, v.Column = at.Y+1, at.X+1
	for y := range v.Height {
		v.Rows = append(v.Rows, text(v.Columns, func(x int) (string, int) {
			c := s.vt.CellAt(x, y)
			return c.Content, c.Width
		}))
	}
	for len(v.Rows) > 0 && v.Rows[len(v.Rows)-1] == "" {
		v.Rows = v.Rows[:len(v.Rows)-1]
	}
	after = max(0, min(after, v.Next))
	v.Missed = max(0, s.goneAt-after)
	v.Gone = append(v.Gone, s.gone[max(0, after-s.goneAt):]...)
	v.Sum = maphash.Comparable(seed, [...]any{
		strings.Join(v.Rows, "\n"), v.Columns, v.Height, v.Row, v.Column, v.Hidden, v.Alternate,
	})
	return v
}

// text is a line of n cells without blanks at its end. The second half of a wide character is a cell without content
// and width.
func text(n int, cell func(x int) (content string, width int)) string {
	var b strings.Builder
	for x, wide := 0, false; x < n; x++ {
		content, width := cell(x)
		switch {
		case content != "":
			b.WriteString(content)
		case !wide || width != 0:
			b.WriteByte(' ')
		}
		wide = width > 1
	}
	return strings.TrimRight(b.String(), " ")
}

// takeGone takes over the lines that have left the screen. The caller holds the lock.
func (s *Screen) takeGone() {
	back := s.vt.Scrollback()
	for i := range back.Len() {
		line := text(len(back.Line(i)), func(x int) (string, int) {
			c := back.CellAt(x, i)
			return c.Content, c.Width
		})
		s.gone, s.goneSize = append(s.gone, line), s.goneSize+len(line)+16
	}
	back.Clear()
	drop := 0
	for s.goneSize > maxGone && drop < len(s.gone)-1 {
		s.goneSize -= len(s.gone[drop]) + 16
		drop++
	}
	if drop > 0 {
		s.gone, s.goneAt = append([]string(nil), s.gone[drop:]...), s.goneAt+int64(drop)
	}
}
