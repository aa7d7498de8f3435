package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/lock"
	"codehand/filestate/owner"
)

// A Repair is what Settle found of one change whose process had died in the middle.
type Repair struct {
	ID      string
	Paths   []string
	Outcome Outcome
}

// An Outcome is how a change ended whose process died.
type Outcome string

// The outcomes.
const (
	OutcomeDone   Outcome = "done"
	OutcomeNot    Outcome = "not done"
	OutcomeBack   Outcome = "taken back" // some files had changed, or a part of one
	OutcomeUnsure Outcome = "unsure"     // another program has changed a file since
)

// An Interrupted is a change whose process died in the middle.
type Interrupted struct {
	*Note
	Rebooted bool                    // the machine was started anew since
	Later    map[string]*disk.Digest // what the next newer change found at a path
}

// Settle asks for each change that a process left half made which died, how it ended, newest first, and notes that. It
// calls settle in its own goroutine, with the paths of the change locked; an error of it leaves the change open for the
// next time. For the start of a process; others may be at work meanwhile. It also removes what is too old or too much.
//
// The errors of single changes are joined.
func (j *Journal) Settle(ctx context.Context, locker lock.Locker,
	settle func(context.Context, Interrupted) (Outcome, error)) ([]Repair, error) {
	defer j.tidy(ctx)
	oldest, found := j.oldestOpen()
	if !found {
		return nil, nil
	}
	var out []Repair
	var errs []error
	later := make(map[string]*disk.Digest)
	for n, day := range j.names() {
		if err := context.Cause(ctx); err != nil {
			return out, errors.Join(append(errs, err)...)
		}
		if n.at < oldest {
			break
		}
		h, err := n.header(day)
		if errors.Is(err, errDamaged) && n.state == stateOpen && time.Now().UnixNano()-n.at > int64(leftNote) {
			_ = j.drop(n) // it was never whole, so nothing came of it
		}
		if err != nil || h.Kind != KindChange {
			continue
		}
		if n.state == stateOpen && j.over(h) {
			r, err := j.settle(ctx, locker, n, day, func(e *Note) (Outcome, error) {
				return settle(ctx, Interrupted{e, e.Host.Boot != j.self.Host.Boot, later})
			})
			if err != nil {
				errs = append(errs, fmt.Errorf("change %s: %w", n.id, err))
			} else if r.ID != "" {
				out = append(out, r)
			}
			if r.Outcome != OutcomeDone {
				continue
			}
		}
		for _, f := range h.Files {
			later[f.Path] = f.Before
		}
	}
	return out, errors.Join(errs...)
}

// oldestOpen is when the oldest change began that is not known to have ended.
func (j *Journal) oldestOpen() (at int64, found bool) {
	for n := range j.names() {
		if n.state == stateOpen {
			at, found = n.at, true
		}
	}
	return at, found
}

// over says whether the process that made a change has ended.
func (j *Journal) over(h *Header) bool {
	p := owner.Process{ID: h.Process, Started: h.Started}
	if p == j.self.Process && h.Host == j.self.Host {
		return false
	}
	if j.o.Alone {
		return true
	}
	ended, sure := j.self.Host.Ended(h.Host, p)
	return ended && (sure || time.Since(h.Time) > owner.LeftAfter)
}

// settle ends one open note. The zero Repair: another process was faster.
func (j *Journal) settle(ctx context.Context, locker lock.Locker, n noteName, day *os.Root,
	settle func(*Note) (Outcome, error)) (Repair, error) {
	e, err := n.read(day)
	if errors.Is(err, fs.ErrNotExist) || err == nil && n.state != stateOpen {
		return Repair{}, nil
	}
	if err != nil {
		return Repair{}, err
	}
	r := Repair{ID: e.ID}
	for _, f := range e.Files {
		r.Paths = append(r.Paths, f.Path)
	}
	unlock, err := locker.Lock(ctx, slices.Sorted(slices.Values(r.Paths))...)
	if err != nil {
		return r, err
	}
	defer unlock()
	if _, err := j.root.Lstat(n.path()); err != nil {
		return Repair{}, nil
	}
	if r.Outcome, err = settle(e); err != nil {
		return r, err
	}
	switch r.Outcome {
	case OutcomeDone:
		return r, j.end(n, stateDone)
	case OutcomeNot, OutcomeBack:
		return r, j.drop(n)
	default:
		return r, j.end(n, stateUnsure)
	}
}
