package shell

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// A LineFilter chooses lines. It is safe for concurrent use.
type LineFilter interface{ Match(line []byte) bool }

// A Monitor makes a command a job whose lines on stdout are events.
type Monitor struct {
	Filter LineFilter // lines without a match are no events; nil: every line is one
}

const (
	// maxEvents is how many events within eventSpan a monitor may have: one more ends it as Chatty.
	maxEvents = 500
	eventSpan = time.Minute
	// eventBatch is how long events are collected before a reader is told of the first.
	eventBatch = 200 * time.Millisecond
	// maxEvent is how many bytes of a line are looked at and kept. The log has all of it.
	maxEvent = 4096
	// noteEvery is how often a session is told at most that a monitor has new events.
	noteEvery = time.Minute

	eventSuffix = ".events"
)

// events are the events of one monitor: a file with one in each line, written only by the goroutine that follows the
// command. Any goroutine may read.
type events struct {
	path   string
	filter LineFilter

	mu sync.Mutex // covers all below
	splitter
	pace
	batch
	notes
	file    *os.File
	total   int           // events in the file
	size    int64         // of the file
	fault   error         // why the last write failed; nil: it did not
	changed chan struct{} // closed when there is more in the file, then made anew
}

// A splitter is how far stdout was taken apart into lines.
type splitter struct {
	from int64  // bytes that were seen
	line []byte // of the line that has not ended, at most maxEvent bytes
	long bool   // it has more
}

// A batch is what will be written to the file of events.
type batch struct {
	text  []byte
	count int       // of events
	since time.Time // of the first
}

// notes are what the session was told of.
type notes struct {
	noted int       // how many events
	told  time.Time // when
}

// A pace is how fast events come.
type pace struct {
	recent []moment // of the last eventSpan, oldest first
	chatty bool     // there were too many
}

// A moment is when events came, and how many.
type moment struct {
	at time.Time
	n  int
}

// admit says whether one more event may come now.
func (p *pace) admit(now time.Time) bool {
	p.recent = slices.DeleteFunc(p.recent, func(m moment) bool { return now.Sub(m.at) >= eventSpan })
	n := 0
	for _, m := range p.recent {
		n += m.n
	}
	if p.chatty = p.chatty || n >= maxEvents; p.chatty {
		return false
	}
	if last := len(p.recent) - 1; last >= 0 && p.recent[last].at.Equal(now) {
		p.recent[last].n++
	} else {
		p.recent = append(p.recent, moment{now, 1})
	}
	return true
}

// watch makes stdout one of events. It is called before anything is printed.
func (o *output) watch(base string, filter LineFilter) error {
	e, err := openEvents(base, filter)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = e
	return err
}

func openEvents(base string, filter LineFilter) (*events, error) {
	e := &events{path: base + eventSuffix, filter: filter, changed: make(chan struct{})}
	var err error
	if e.file, err = os.OpenFile(e.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	return e, nil
}

// add finds the events in a part of stdout that begins at position pos. What was seen before does not count again.
func (e *events) add(pos int64, part []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.from - pos; known > 0 {
		part = part[min(known, int64(len(part))):]
		pos = min(pos+known, e.from)
	}
	if len(part) == 0 {
		return
	}
	if pos > e.from { // what lies between was too much to be read
		e.line, e.long = nil, false
	}
	e.from = pos + int64(len(part))
	now := time.Now()
	for {
		line, rest, ended := bytes.Cut(part, []byte{'\n'})
		room := maxEvent - len(e.line)
		e.line = append(e.line, line[:min(room, len(line))]...)
		e.long = e.long || len(line) > room
		if !ended {
			return
		}
		e.end(now)
		part = rest
	}
}

// end ends a line.
func (e *events) end(now time.Time) {
	line, long := bytes.TrimSuffix(e.line, []byte{'\r'}), e.long
	e.line, e.long = e.line[:0], false
	if e.filter != nil && !e.filter.Match(line) || !e.admit(now) {
		return
	}
	if e.count == 0 {
		e.since = now
	}
	if long {
		line = append(line[:len(line)-cutRune(string(line))], " …"...)
	}
	e.text = append(append(e.text, line...), '\n')
	e.count++
}

// flush writes a batch that is old enough. last: the command is over, and a line without an end is one. False: there
// are too many events.
func (e *events) flush(last bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if last && len(e.line) > 0 {
		e.end(now)
	}
	if e.count == 0 || !last && !e.chatty && now.Sub(e.since) < eventBatch {
		return !e.chatty
	}
	if _, e.fault = e.file.WriteAt(e.text, e.size); e.fault == nil {
		e.size, e.total = e.size+int64(len(e.text)), e.total+e.count
		e.text, e.count = e.text[:0], 0
		close(e.changed)
		e.changed = make(chan struct{})
	}
	return !e.chatty
}

// close writes what is left and closes the file. What cannot be written then is lost.
func (e *events) close() {
	if e == nil {
		return
	}
	_ = e.flush(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fault != nil {
		_ = os.Truncate(e.path, e.size) // a part of a line would look like a line
	}
	_ = e.file.Close() // it is not promised to outlast a crash of the machine
	e.text = nil
}

// sum returns how many events there are, and why some are lost; "": none are.
func (e *events) sum() (total int, fault string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total, said(e.fault)
}

// longer returns what is closed when the file is longer than after; nil: it is longer.
func (e *events) longer(after int64) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.size > after {
		return nil
	}
	return e.changed
}

// chunk reads what follows position after.
func (e *events) chunk(after, max int64) (c Chunk, total int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := kept{size: e.size, head: e.size, tail: e.size}
	c, err = logChunk(e.path, k, after, max, e.total)
	return c, e.total, err
}

// oldEvents reads the events of a monitor of another process; base is the path of its files without their suffix.
func oldEvents(base string, after, max int64) (Chunk, error) {
	f, err := os.Open(base + eventSuffix)
	if err != nil {
		return Chunk{}, fmt.Errorf("%w: its events are gone", ErrUnknown)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return Chunk{}, err
	}
	k := kept{size: info.Size(), head: info.Size(), tail: info.Size()}
	c, err := k.chunk(f, after, max)
	if err == nil {
		c.Lines, err = k.count(f, k.size-c.Size, k.size)
	}
	return c, err
}

// AwaitNew is Await, but for a monitor it returns as soon as it has events behind position after, too.
func (s *Shell) AwaitNew(ctx context.Context, id string, after int64, until time.Time) (Info, error) {
	j, i, err := s.find(ctx, id)
	switch {
	case err != nil || !i.Monitor:
		return s.Await(ctx, id, until)
	case j == nil:
		return s.awaitOld(ctx, i, after, until)
	}
	more := j.output.events.longer(after)
	if more == nil {
		return j.Info(), nil
	}
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	if !until.IsZero() {
		stop, cancel = context.WithDeadline(stop, until)
		defer cancel()
	}
	select {
	case <-more:
	case <-j.ended:
	case <-stop.Done():
		err = context.Cause(ctx) // nil at until
	}
	return j.Info(), err
}

// awaitOld waits for a monitor of another process.
func (s *Shell) awaitOld(ctx context.Context, i Info, after int64, until time.Time) (Info, error) {
	var err error
	for err == nil && i.State == Running && (until.IsZero() || time.Now().Before(until)) {
		if c, failed := oldEvents((&Job{id: i.ID, shell: s}).base(), after, 0); failed != nil || c.Size > 0 {
			break
		}
		if err = waitUntil(ctx, nil, nextLook(until)); err == nil {
			i, err = s.load(ctx, i.ID)
		}
	}
	return i, err
}

// Eventful returns the running monitors of this process that have events of which the session was not told, unless it
// was told of others of the same monitor within the last minute.
func (s *Shell) Eventful() []Info {
	s.mu.Lock()
	jobs := s.known()
	s.mu.Unlock()
	var list []Info
	for _, j := range jobs {
		if j.output.events != nil && j.output.events.due(0, false) {
			if i := j.Info(); i.State == Running {
				list = append(list, i)
			}
		}
	}
	sortNewest(list)
	return list
}

// Note says that the session is told now of all events of a monitor of this process up to the one with this number.
// False: another call has told it.
func (s *Shell) Note(id string, event int) bool {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	return j != nil && j.output.events != nil && j.output.events.due(event, true)
}

// due says whether the session is to be told of new events, and notes that it is.
func (e *events) due(event int, note bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.total <= e.noted || !e.told.IsZero() && now.Sub(e.told) < noteEvery {
		return false
	}
	if note {
		e.noted, e.told = max(e.noted, event), now
	}
	return true
}
