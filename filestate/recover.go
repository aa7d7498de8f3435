package filestate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Repair is what Recover found of one change whose process had died in the middle.
type Repair struct {
	ID      string
	Paths   []string
	Outcome string // "done", "not done", "taken back" (some files had changed, or a part of one), or "unsure" (somebody has changed a file since)
}

// Recover settles the changes that processes which died left half made: it removes their temporary files, or puts back
// what an exchange had displaced, and takes back a change of several files that stopped between two of them, or of one
// that is half written. It keeps what nobody else has. For the start of a process, before the first change; others may be at work meanwhile. It also
// removes what is too old or too much.
//
// The errors of single changes are joined; those changes stay open for the next time.
func (j *Journal) Recover(ctx context.Context, locker Locker) ([]Repair, error) {
	defer j.tidy(ctx)
	var left []noteName
	for n := range j.names() {
		if n.state == stateOpen {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	var out []Repair
	var errs []error
	later := make(map[string]*digest) // what the next newer change found at a path
	for n, day := range j.names() {
		if err := context.Cause(ctx); err != nil {
			return out, errors.Join(append(errs, err)...)
		}
		if n.at < left[len(left)-1].at {
			break
		}
		h, err := n.header(day)
		if errors.Is(err, errDamaged) && n.state == stateOpen && j.now().UnixNano()-n.at > int64(leftNote) {
			_ = j.drop(n) // it was never whole, so nothing came of it
		}
		if err != nil || h.Kind != kindChange {
			continue
		}
		if n.state == stateOpen && j.over(h) {
			r, err := j.settle(ctx, locker, n, day, later)
			if err != nil {
				errs = append(errs, fmt.Errorf("change %s: %w", n.id, err))
			} else if r.ID != "" {
				out = append(out, r)
			}
			if r.Outcome != outcomeDone {
				continue
			}
		}
		for _, f := range h.Files {
			later[f.Path] = f.Before
		}
	}
	return out, errors.Join(errs...)
}

// The outcomes of a change whose process died.
const (
	outcomeDone   = "done"
	outcomeNot    = "not done"
	outcomeBack   = "taken back"
	outcomeUnsure = "unsure"
)

// over says whether the process that made a change has ended.
func (j *Journal) over(h *header) bool {
	p := process{h.Process, h.Started}
	if p == j.self.process && h.Host == j.self.host {
		return false
	}
	ended, sure := j.self.host.ended(h.Host, p)
	return ended && (sure || j.now().Sub(h.Time) > leftAfter)
}

// settle ends one open note. The zero Repair: another process was faster.
func (j *Journal) settle(ctx context.Context, locker Locker, n noteName, day *os.Root, later map[string]*digest) (Repair, error) {
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
	l := New(Options{Locker: heldLocker{}, Journal: j, Fast: j.o.Fast})
	var after, before, torn, superseded int
	var backs []*back
	// What was not synced may be anything after a power loss: a temporary file of which nobody knows the content is no
	// proof then that somebody saved it, and must not take the place of what was acknowledged.
	rebooted := e.Host.Boot != j.self.host.Boot
	for i, f := range e.Files {
		next, known := later[f.Path]
		now, err := l.settleFile(ctx, f, e.parts[i], !known && !rebooted)
		if err != nil {
			return r, err
		}
		half, err := l.tornContent(ctx, f, e.parts[i], now, e.Time)
		if err != nil {
			return r, err
		}
		if known {
			now, half, superseded = next, nil, superseded+1
		}
		switch {
		case equal(now, f.After):
			after++
			backs = append(backs, &back{path: f.Path, want: f.After, left: e.parts[i].after, to: f.Before, content: e.parts[i].before, mode: f.Mode})
		case equal(now, f.Before):
			before++
		case half != nil:
			torn++
			sum := digestOf(half)
			backs = append(backs, &back{path: f.Path, want: &sum, left: half, found: e.parts[i].before, to: f.Before, content: e.parts[i].before, mode: f.Mode})
		}
	}
	switch {
	case after == len(e.Files):
		r.Outcome = outcomeDone
		return r, j.end(n, stateDone)
	case before == len(e.Files):
		r.Outcome = outcomeNot
		return r, j.drop(n)
	case after+before+torn == len(e.Files) && superseded == 0 && !slices.ContainsFunc(e.Files, func(f noted) bool { return !f.Kept }):
		r.Outcome = outcomeBack
		if err := l.takeBackLeft(ctx, e.By, backs); err != nil {
			return r, err
		}
		return r, j.drop(n)
	default:
		r.Outcome = outcomeUnsure
		return r, j.end(n, stateUnsure)
	}
}

// settleFile removes what a change left beside one file, and returns the hash of what the change found or left at the
// name; nil: no file. mayPutBack says that what it left can be what somebody saved, and that no newer change has used the
// name since.
func (l *Ledger) settleFile(ctx context.Context, f noted, c contents, mayPutBack bool) (*digest, error) {
	dir, err := reopen(filepath.Dir(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	w := &work{path: f.Path, name: filepath.Base(f.Path), dir: dir, temporary: f.Temp, old: c.before, next: c.after, wait: writerWait}
	now, err := w.sum(ctx, w.name)
	if err != nil {
		return nil, err
	}
	if f.Temp != "" && filepath.Base(f.Temp) == f.Temp {
		if putBack, err := l.settleTemp(ctx, w, f, now, mayPutBack); err != nil || putBack {
			return f.Before, err
		}
	}
	l.sweep(ctx, dir, filepath.Dir(f.Path))
	return w.sum(ctx, w.name)
}

// settleTemp handles the temporary file of a change. It holds the new content or a part of it, or after the exchange the
// old one; or else what somebody had saved in between, which gets its name again if it may: the change was not made.
// Otherwise the journal keeps it.
func (l *Ledger) settleTemp(ctx context.Context, w *work, f noted, now *digest, mayPutBack bool) (putBack bool, err error) {
	content, _, err := w.look(ctx, f.Temp)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case f.Before != nil && digestOf(content) == *f.Before, f.After != nil && f.Kept && bytes.HasPrefix(w.next, content),
		f.After != nil && digestOf(content) == *f.After:
	case mayPutBack && now == nil:
		return true, publishNew(w.dir, f.Temp, w.name)
	case mayPutBack && f.After != nil && equal(now, f.After):
		return true, l.putBack(ctx, w, content)
	default:
		if err := l.journal.keep(kindRecovered, By{}, filepath.Join(filepath.Dir(w.path), f.Temp), content); err != nil {
			return false, err
		}
	}
	return false, w.dir.Remove(f.Temp)
}

// sum is the hash of what stands at a name; nil: no file. What is no file, or cannot be read, has a hash that nothing has.
func (w *work) sum(ctx context.Context, name string) (*digest, error) {
	content, _, err := w.look(ctx, name)
	var sum digest
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		sum = digestOf(content)
	}
	return &sum, nil
}

// takeBackLeft gives files of a half-made change their old contents.
func (l *Ledger) takeBackLeft(ctx context.Context, by By, backs []*back) error {
	var edits []Edit
	for _, b := range backs {
		if b.found != nil { // half written; should it be somebody's after all, there is a copy
			if err := l.journal.keep(kindRecovered, by, b.path, b.left); err != nil {
				return err
			}
		}
		dir, err := reopen(filepath.Dir(b.path))
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }() // a directory handle holds no data
		b.file = File{Dir: dir, Name: filepath.Base(b.path), Path: b.path}
		edits = append(edits, b.edit())
	}
	_, err := l.update(ctx, purpose{silent: true}, edits)
	return err
}

// A heldLocker is for who holds the locks already.
type heldLocker struct{}

func (heldLocker) Lock(context.Context, ...string) (func(), error) { return func() {}, nil }
