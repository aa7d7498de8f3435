package shell

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// A Chunk is output of a job: head and tail of what lies between two positions of the merged log.
type Chunk struct {
	Info Info
	// Head is all of it if Tail is empty; then it has up to twice as many bytes as were asked for. It ends with a whole
	// character, and Tail begins with one, as far as the output is UTF-8.
	Head  string
	Tail  string
	Size  int64 // bytes from the position on, also those between Head and Tail
	Lines int   // line ends in Size
	Next  int64 // position to continue from
	Gap   int64 // bytes of the middle of the whole output that are not kept
}

// Ended says how a job ended: completed (exit 0), failed (signal SIGSEGV). Which signal ended one that was stopped
// says nothing: it was ours.
func (i Info) Ended() string {
	switch {
	case i.State == Failed && i.Signal != "":
		return fmt.Sprintf("%s (signal %s)", i.State, i.Signal)
	case i.State == Completed, i.State == Failed:
		return fmt.Sprintf("%s (exit %d)", i.State, i.Exit)
	}
	return string(i.State)
}

// Ran is how long a command has run, or ran.
func (i Info) Ran() time.Duration {
	if i.End.IsZero() {
		return time.Since(i.Start)
	}
	return i.End.Sub(i.Start)
}

// How says how a job ended, in as few words as a list has room for: exit 0, signal SIGSEGV, timed out; running if it
// has not.
func (i Info) How() string {
	switch i.State {
	case Completed, Failed:
		if i.Signal != "" {
			return "signal " + i.Signal
		}
		return fmt.Sprintf("exit %d", i.Exit)
	case TimedOut:
		return "timed out"
	case Chatty:
		return "too chatty"
	case Overflow:
		return "too much output"
	case Lost:
		return "ended with its server"
	}
	return string(i.State)
}

// Missing is a line that says why Log is not whole, or may not be; "": it is.
func (i Info) Missing() string {
	if i.Fault != "" {
		return "\n[not all of its output is kept: " + i.Fault + "]"
	}
	return i.Doubtful()
}

// Doubtful is a line that says why the command may have been kept from printing; "": it was not.
func (i Info) Doubtful() string {
	if i.Doubt == "" {
		return ""
	}
	return "\n[it may have printed more: " + i.Doubt + "]"
}

// Output returns the output of a job from position after on, with at most max bytes each of head and tail. A position
// counts bytes of the merged output, also of those that are not kept any more. The beginning of a character whose
// rest is still to come is left for the next call. Of a monitor all that is so of its events, one a line; Info.Events
// counts those up to the end of the Chunk. ErrUnknown: no such job here.
func (s *Shell) Output(ctx context.Context, id string, after int64, max int) (Chunk, error) {
	j, i, err := s.find(ctx, id)
	if err != nil {
		return Chunk{}, err
	}
	switch {
	case j == nil && i.Monitor:
		c, err := oldEvents((&Job{id: id, shell: s}).base(), after, int64(max))
		c.Info = i
		return c, err
	case j == nil:
		return s.oldOutput(i, after, int64(max))
	case j.output.events != nil:
		info := j.Info() // before the events, as below
		c, total, err := j.output.events.chunk(after, int64(max))
		info.Events, c.Info = total, info
		return c, err
	}
	// Before the output: if the job ends meanwhile, the caller sees it running and comes again.
	info := j.Info()
	o := j.output
	o.mu.Lock()
	defer o.mu.Unlock()
	c, err := logChunk(o.path, o.layout(), after, int64(max), o.lines)
	if info.State == Running {
		c.holdBack()
	}
	info.Out, info.Err = o.out.base+o.out.pos, o.err.base+o.err.pos // that belong to this output
	c.Info = info
	return c, err
}

// oldOutput reads a log that another process wrote.
func (s *Shell) oldOutput(i Info, after int64, max int64) (Chunk, error) {
	f, k, err := s.openLog(i)
	if err != nil {
		return Chunk{Info: i}, err
	}
	defer func() { _ = f.Close() }() // only read
	c, err := k.chunk(f, after, max)
	if err == nil {
		c.Lines, err = k.count(f, k.size-c.Size, k.size) // bytes in the gap are not counted twice
	}
	c.Info = i
	return c, err
}

// logChunk reads one chunk of a file that has lines line ends in all.
func logChunk(path string, k kept, after, max int64, lines int) (Chunk, error) {
	if after >= k.size {
		return Chunk{Next: k.size}, nil // what a client that polls mostly asks for
	}
	f, err := os.Open(path)
	if err != nil {
		return Chunk{}, fmt.Errorf("%w: its output is gone", ErrUnknown)
	}
	defer func() { _ = f.Close() }() // only read
	c, err := k.chunk(f, after, max)
	if err != nil {
		return c, err
	}
	switch before := k.size - c.Size; {
	case before == 0:
		c.Lines = lines
	case before >= k.tail || k.head == k.tail:
		c.Lines, err = k.count(f, before, k.size)
	default: // lines of the gap are in the sum only, so what lies before the position is taken off
		c.Lines, err = k.count(f, 0, before)
		c.Lines = lines - c.Lines
	}
	return c, err
}

// holdBack leaves an incomplete character at the end for the next chunk.
func (c *Chunk) holdBack() {
	last := &c.Tail
	if c.Tail == "" {
		last = &c.Head
	}
	n := cutRune(*last)
	*last = (*last)[:len(*last)-n]
	c.Size, c.Next = c.Size-int64(n), c.Next-int64(n)
}

// Streams returns the whole stdout and stderr of an ended command, at most max bytes each of head and tail. They are
// there until Release, and for a job whose log is not whole until its Shell is closed; then ErrUnknown.
func (s *Shell) Streams(ctx context.Context, id string, max int) (stdout, stderr Chunk, err error) {
	j, _, err := s.find(ctx, id)
	if err == nil && j == nil {
		err = ErrUnknown
	}
	if err != nil {
		return Chunk{}, Chunk{}, err
	}
	info := j.Info()
	o := j.output
	o.mu.Lock()
	defer o.mu.Unlock()
	if stdout, err = o.out.chunk(o.limits, int64(max)); err == nil {
		stderr, err = o.err.chunk(o.limits, int64(max))
	}
	stdout.Info, stderr.Info = info, info
	return stdout, stderr, err
}

// chunk returns the whole stream.
func (s *spool) chunk(l limits, max int64) (Chunk, error) {
	return logChunk(s.path, l.kept(s.pos), 0, max, s.lines)
}

// sortNewest puts the job that was started last first.
func sortNewest(list []Info) {
	slices.SortFunc(list, func(a, b Info) int { return b.Start.Compare(a.Start) })
}
