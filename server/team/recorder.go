package team

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"

	"codehand/server/audit"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/pipeline"
)

// mostQueued is how many records wait to be written; a call never waits for that.
const mostQueued = 1_000

// A Recorder writes calls of a process on stdio to a log for its user's page (codehand page), beside the calls: none
// waits for it, none is refused because it cannot be written, and a crash of the machine may lose the last ones. It has
// no file before the first call. It is safe for concurrent use.
type Recorder struct {
	o    audit.Options
	out  *slog.Logger
	done sync.WaitGroup

	mu     sync.Mutex
	lines  chan recorded // nil: no call was recorded yet
	closed bool
}

// A recorded is a call to be written, or somebody who waits until those before are.
type recorded struct {
	call    pipeline.Record
	written chan<- struct{} // closed then; nil: it is a call
}

// NewRecorder returns nil if the settings ask for no record, or for one of the operator's (Local).
func NewRecorder(cfg config.Config, version string, out *slog.Logger) *Recorder {
	if cfg.Audit.Dir != "" || config.CallsDir(cfg) == "" {
		return nil
	}
	return &Recorder{out: out, o: audit.Options{
		Dir: config.CallsDir(cfg), Replica: "r" + strings.ToLower(rand.Text()[:8]), Sync: -1,
		Rotate: cfg.Audit.Rotate, Keep: cfg.Audit.Keep, Digest: cfg.Audit.Commands == "digest",
		Start: map[string]any{"version": version, "auth": auth.ModeNone}, Log: out,
	}}
}

// Record takes a call that is over. It never blocks.
func (r *Recorder) Record(c pipeline.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.lines == nil {
		r.lines = make(chan recorded, mostQueued)
		r.done.Go(r.write)
	}
	c.Announced = false // its line says all
	select {
	case r.lines <- recorded{call: c}:
	default: // the disk stands still
	}
}

// Flush waits until calls that were recorded before are written, or ctx ends. It does not wait for a disk that stands
// still.
func (r *Recorder) Flush(ctx context.Context) {
	written := make(chan struct{})
	r.mu.Lock()
	queued := false
	if !r.closed && r.lines != nil {
		select {
		case r.lines <- recorded{written: written}:
			queued = true
		default:
		}
	}
	r.mu.Unlock()
	if !queued {
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	}
}

// write writes what comes until Close.
func (r *Recorder) write() {
	log, err := audit.Open(r.o)
	if err != nil {
		r.out.Warn("calls are not recorded for codehand page", "err", err)
	}
	warned := false
	for c := range r.lines {
		if c.written != nil {
			close(c.written)
			continue
		}
		if err != nil {
			continue
		}
		if failed := log.Call(c.call); failed != nil && !warned {
			warned = true
			r.out.Warn("calls are not recorded for codehand page", "err", failed)
		}
	}
	if err == nil {
		_ = log.Close() // what it could not write, it has said
	}
}

// Close writes what waits. r may be nil.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.closed && r.lines != nil {
		close(r.lines)
	}
	r.closed = true
	r.mu.Unlock()
	r.done.Wait()
}
