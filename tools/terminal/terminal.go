// Package terminal is the terminal of a running command: it copies what the program prints to a spool and to a screen,
// and what is typed, or answered by a terminal, to the program. It also knows who reads what is typed.
package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"codehand/tools/sandbox"
	"codehand/tools/screen"
)

const (
	// maxBacklog is how much output waits to be drawn. Drawing is slower than most programs print, and of more than
	// that only the end will be seen, so the rest is not drawn. The spool has it.
	maxBacklog = 1 << 20
	// maxModes bounds what is remembered of it.
	maxModes = 64 << 10
	// drawStep is how much is drawn before others may look.
	drawStep = 16 << 10
	// maxTyped is how many bytes may wait to be read by the program, and maxAnswers with how many no answer is added.
	maxTyped, maxAnswers = 256 << 10, 4 << 10
)

// The errors of the package.
var (
	ErrOver    = errors.New("nothing runs in the terminal any more")
	ErrNotRead = errors.New("the program does not read what is typed")
	ErrTyped   = errors.New("something else was typed meanwhile, or another program reads it now")
)

// A Terminal is that of one process tree. It is safe for concurrent use.
type Terminal struct {
	process *sandbox.Process
	file    *os.File // our end
	screen  *screen.Screen
	masked  bool // secrets are hidden
	working sync.WaitGroup

	mu    sync.Mutex
	news  chan struct{} // closed when something has changed, and made anew
	ended bool          // nothing more will come
	printed
	drawing
	typed  []byte // waits for the program
	typing Typing
}

// A printed is what a program has printed, and what was seen of it.
type printed struct {
	received int64 // bytes
	looked   int64 // of which somebody has seen what became of them
	last     time.Time
	shown    screen.Shown // what was seen last, without what had left it
}

// A drawing is what is not on the screen yet.
type drawing struct {
	modes   []byte // of what is skipped
	backlog []byte
	active  bool  // a part of the backlog was taken and is not drawn yet
	skipped int64 // bytes that will not be drawn
}

// drawn says that the screen shows all that was printed.
func (d *drawing) drawn() bool { return len(d.backlog) == 0 && !d.active }

// A Typing says who reads what is typed next, and what stands there already.
type Typing struct {
	Shell   bool   // a shell may take it for commands, as far as the system tells
	Secret  bool   // no shell is in front, and what is typed is not shown: it is a password
	Line    string // that was typed since the last Enter
	Unsure  bool   // keys were pressed since then that change the line in ways which only the program knows
	Rebound bool   // a command may have changed what keys do
	Count   int    // of what was typed so far
}

// New follows the terminal of a process. spool gets what it prints; masked: secrets are hidden in what is shown. The
// caller calls Finish.
func New(p *sandbox.Process, w sandbox.Window, spool io.Writer, masked bool) *Terminal {
	t := &Terminal{process: p, file: p.Terminal(), masked: masked, news: make(chan struct{})}
	t.screen = screen.New(int(w.Columns), int(w.Rows), t.answer)
	t.working.Go(func() { t.read(spool) })
	t.working.Go(t.draw)
	t.working.Go(t.write)
	return t
}

// changed wakes all who wait. The caller holds the lock.
func (t *Terminal) changed() {
	close(t.news)
	t.news = make(chan struct{})
}

// read takes what is printed until no process has the terminal any more.
func (t *Terminal) read(spool io.Writer) {
	b := make([]byte, 64<<10)
	for {
		n, err := t.file.Read(b)
		if n > 0 {
			_, _ = spool.Write(b[:n]) // a full disk shows in the log, as with any command
			t.arrived(b[:n])
		}
		if err != nil {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.changed()
}

func (t *Terminal) arrived(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.received, t.last = t.received+int64(len(p)), time.Now()
	t.backlog = append(t.backlog, p...)
	if len(t.backlog) > 2*maxBacklog {
		t.skip(maxBacklog)
	}
	t.changed()
}

// skip leaves the last n bytes of the backlog to be drawn. The caller holds the lock.
func (t *Terminal) skip(n int) {
	over := len(t.backlog) - n
	if over <= 0 {
		return
	}
	for over < len(t.backlog) && t.backlog[over] != '\n' && t.backlog[over] != '\x1b' { // else half a sequence is shown
		over++
	}
	t.modes = append(t.modes, screen.Modes(t.backlog[:over])...)
	t.modes = t.modes[max(0, len(t.modes)-maxModes):]
	t.skipped += int64(over)
	t.backlog = slices.Clone(t.backlog[over:])
}

// draw puts the backlog on the screen.
func (t *Terminal) draw() {
	for {
		t.mu.Lock()
		if t.active && len(t.backlog) == 0 {
			t.active, t.backlog = false, nil
			t.changed()
		}
		n := min(len(t.backlog), drawStep)
		modes, part, ended, news := t.modes, t.backlog[:n:n], t.ended, t.news
		t.modes, t.backlog, t.active = nil, t.backlog[n:], n > 0
		t.mu.Unlock()
		switch {
		case n > 0:
			t.screen.Write(modes)
			t.screen.Write(part)
		case ended:
			return
		default:
			<-news
		}
	}
}

// answer types what a terminal answers by itself. A program that asks and does not read gets no more.
func (t *Terminal) answer(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.typed) < maxAnswers {
		t.typed = append(t.typed, b...)
		t.changed()
	}
}

// write hands what is typed to the program, which may not read it for long.
func (t *Terminal) write() {
	for {
		t.mu.Lock()
		n := min(len(t.typed), 1<<10)
		part, ended, news := t.typed[:n:n], t.ended, t.news
		t.typed = t.typed[n:]
		t.mu.Unlock()
		switch {
		case ended:
			return
		case n > 0:
			_, _ = t.file.Write(part) // it fails once the terminal is gone
		default:
			<-news
		}
	}
}

// Typing says who reads what is typed next.
func (t *Terminal) Typing() Typing {
	all, known := t.process.Programs()
	now := reads(all, known)
	now.Secret = now.Secret && t.process.AsksSecretly()
	t.mu.Lock()
	defer t.mu.Unlock()
	now.Line, now.Unsure, now.Rebound = t.typing.Line, t.typing.Unsure, t.typing.Rebound
	now.Count = t.typing.Count
	return now
}

// put queues bytes for the program, if nothing has been typed and no shell has come since as was seen.
func (t *Terminal) put(as, after Typing, sent []byte) error {
	now := t.Typing()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return ErrOver
	case now.Count != as.Count, t.typing.Count != as.Count, now.Shell && !as.Shell, as.Secret && !now.Secret:
		return ErrTyped
	case len(t.typed)+len(sent) > maxTyped:
		return ErrNotRead
	}
	t.typed = append(t.typed, sent...)
	t.typing = Typing{Line: after.Line, Unsure: after.Unsure, Rebound: after.Rebound, Count: as.Count + 1}
	t.looked, t.last = t.received, time.Now()
	t.changed()
	return nil
}

// Drain waits until all that was printed has come, for a moment.
func (t *Terminal) Drain(most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		t.mu.Lock()
		ended, news := t.ended, t.news
		t.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-news:
		case <-late.C:
			return
		}
	}
}

// HangUp takes the terminal away from what still has it, which is told by a signal.
func (t *Terminal) HangUp() { _ = t.file.Close() }

// Finish hangs up, draws what is left, and lets go of all but the screen.
func (t *Terminal) Finish() {
	t.HangUp()
	t.mu.Lock()
	t.skip(8 * drawStep) // the end of a session is waited for
	t.mu.Unlock()
	t.working.Wait()
	t.screen.Close()
}

// quiet is how long a program prints nothing when it waits for what is typed, or thinks.
const quiet = 300 * time.Millisecond

// Await returns when something was printed since the last Display or Type and the program has been quiet for a moment,
// when over is closed, at until, or when ctx ends, with its cause.
func (t *Terminal) Await(ctx context.Context, over <-chan struct{}, until time.Time) error {
	for {
		t.mu.Lock()
		last, ended, news := t.last, t.ended, t.news
		fresh := t.received > t.looked && t.drawn()
		t.mu.Unlock()
		next := until
		if still := last.Add(quiet); fresh && !ended && still.Before(until) {
			next = still
		}
		if ended {
			news = nil // what counts now is the end of the job
		}
		select { // an end that is there counts first
		case <-over:
			return nil
		default:
		}
		if !time.Now().Before(next) {
			return nil
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-over:
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// A Display is what a terminal shows.
type Display struct {
	screen.Shown
	Skipped int64 // bytes that were printed too fast to be drawn
	// Before is what the rows were when the caller looked last, in the screen that lines leave; nil: unknown
	Before []string
}

// Display returns what the terminal shows, and the lines that left its screen after position after. sum is that of the
// last Display that the caller has seen; 0: it has seen none.
func (t *Terminal) Display(after int64, sum uint64) Display {
	t.mu.Lock()
	received, drawn := t.received, t.drawn()
	d := Display{Skipped: t.skipped}
	t.mu.Unlock()
	d.Shown = t.screen.Look(after)
	if t.masked {
		d.Rows, d.Gone = masked(d.Rows), masked(d.Gone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if drawn {
		t.looked = max(t.looked, received)
	}
	if sum != 0 && t.shown.Sum == sum && t.shown.Next == after && !t.shown.Alternate {
		d.Before = t.shown.Rows
	}
	t.shown = d.Shown
	t.shown.Gone = nil
	return d
}

// A Key is a text that is typed as it is, or a key by its name.
type Key struct{ Text, Name string }

// KnownKey says whether there is a key of that name (screen.Screen.Key).
func KnownKey(name string) bool { return screen.KnownKey(name) }

// Type types, if who reads it is still as it was seen; what stands on the line then is Line and Unsure of after. It
// does not wait until it is read. Errors: ErrOver, ErrTyped, ErrNotRead.
func (t *Terminal) Type(as, after Typing, keys []Key) error {
	var sent []byte
	for _, k := range keys {
		if k.Name == "" {
			sent = append(sent, returns.Replace(k.Text)...)
			continue
		}
		text, _ := t.screen.Key(k.Name) // the caller has asked KnownKey
		sent = append(sent, text...)
	}
	return t.put(as, after, sent)
}

// Resize changes the size. ErrOver: nothing has the terminal any more.
func (t *Terminal) Resize(w sandbox.Window) error {
	if err := t.process.ResizeTerminal(w); err != nil {
		return ErrOver
	}
	t.screen.Resize(int(w.Columns), int(w.Rows))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.last = t.received-1, time.Now() // the screen is another one, and the program draws it anew
	t.changed()
	return nil
}
