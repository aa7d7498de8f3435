package logging

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// maxQueued is how many bytes of lines wait for the stream: some seven thousand refused calls.
	maxQueued = 1 << 20
	// lookEvery and maxLooks are how long Flush waits for a stream that takes nothing: a tenth of a second, since a
	// process that is told to end has a fifth of one. Looks are counted and not the time, because on a busy machine
	// time also passes while the writing goroutine is not run, and then neither is the one that looks.
	lookEvery = 10 * time.Millisecond
	maxLooks  = 10
)

// A Writer passes lines on to a stream, in their order, each by one Write, and waits for none of them. At most
// maxQueued bytes wait for the stream. A line that finds no room is dropped, and so are those after it until half of
// the room is free, so that one line can say at the place of each gap how many are missing. Errors of the stream are
// dropped: there is no other place to report them. Safe for concurrent use.
type Writer struct {
	stream io.Writer
	direct bool // the stream is written to by Write itself

	mu              sync.Mutex
	queue           [][]byte
	queued          int           // bytes of queue and of the line that is being written
	dropped         int           // lines since there was no room; more than 0 only during a write
	queuedN, takenN int           // lines ever queued, and how many of them the stream has taken
	idle            chan struct{} // closed when the queue is empty; nil while no write runs
}

// NewWriter returns a Writer to stream. A regular file is written to at once: it waits for no reader, and then has the
// line even if the process is killed.
func NewWriter(stream io.Writer) *Writer {
	w := &Writer{stream: stream}
	if f, ok := stream.(*os.File); ok {
		info, err := f.Stat()
		w.direct = err == nil && info.Mode().IsRegular()
	}
	return w
}

// Write takes one line, whose bytes are the caller's again afterwards. Only that of a regular file can fail.
func (w *Writer) Write(line []byte) (int, error) {
	if w.direct {
		return w.stream.Write(line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// a line that is longer than the room goes alone
	if w.dropped > 0 || w.queued > 0 && w.queued+len(line) > maxQueued {
		w.dropped++
		return len(line), nil
	}
	w.add(bytes.Clone(line))
	if w.idle == nil {
		w.idle = make(chan struct{})
		go w.drain()
	}
	return len(line), nil
}

// add queues a line. w.mu is held.
func (w *Writer) add(line []byte) {
	w.queue = append(w.queue, line)
	w.queued += len(line)
	w.queuedN++
}

// drain writes until the queue is empty.
func (w *Writer) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 {
		line := w.queue[0]
		w.queue[0], w.queue = nil, w.queue[1:]
		w.mu.Unlock()
		_, _ = w.stream.Write(line) // see Writer
		w.mu.Lock()
		w.queued -= len(line)
		w.takenN++
		if w.dropped > 0 && w.queued <= maxQueued/2 {
			w.add(missing(w.dropped))
			w.dropped = 0
		}
	}
	close(w.idle)
	w.idle = nil
}

// missing is the line at a gap.
func missing(lines int) []byte {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Warn("log lines dropped: standard error was not read in time",
		"lines", lines)
	return b.Bytes()
}

// Flush waits until the stream has taken every line that was there when Flush was called. It gives up on a stream that
// takes no line for a tenth of a second. Lines can be written afterwards, too.
func (w *Writer) Flush() {
	w.mu.Lock()
	idle, until, taken := w.idle, w.queuedN, w.takenN
	w.mu.Unlock()
	if idle == nil {
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for looks := 0; looks < maxLooks && taken < until; looks++ {
		select {
		case <-idle:
			return
		case <-look.C:
		}
		w.mu.Lock()
		if w.takenN > taken {
			looks, taken = -1, w.takenN
		}
		w.mu.Unlock()
	}
}
