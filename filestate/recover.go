package filestate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"codehand/filestate/disk"
	"codehand/filestate/exchange"
	"codehand/filestate/journal"
)

// Recover settles the changes in the journal that processes which died left half made: it removes their temporary
// files, or puts back what an exchange had displaced, and takes back a change of several files that stopped between two
// of them, or of one that is half written. It keeps each content of which there is no other copy. For the start of a
// process, before the first change; others may be at work meanwhile. It also removes what is too old or too much.
//
// The errors of single changes are joined; those changes stay open for the next time.
func (l *Ledger) Recover(ctx context.Context) ([]journal.Repair, error) {
	if l.journal == nil {
		return nil, nil
	}
	// The journal holds the locks of each change that is to be settled.
	quiet := New(Options{Locker: heldLocker{}, Journal: l.journal, Fast: l.fast})
	return l.journal.Settle(ctx, l.locker, quiet.settleChange)
}

// settleChange finds out how a change ended, and takes it back if it stopped half way.
func (l *Ledger) settleChange(ctx context.Context, e journal.Interrupted) (journal.Outcome, error) {
	var n struct{ after, before, torn, superseded int }
	var backs []*back
	for i, f := range e.Files {
		next, known := e.Later[f.Path]
		// What was not synced may be anything after a power loss: a temporary file with unknown content does not prove
		// then that a program saved it, and must not take the place of what was acknowledged.
		now, err := l.settleFile(ctx, f, e.Parts[i], !known && !e.Rebooted)
		if err != nil {
			return "", err
		}
		half, err := l.tornContent(ctx, f, e.Parts[i], now, e.Time)
		if err != nil {
			return "", err
		}
		if known {
			now, half, n.superseded = next, nil, n.superseded+1
		}
		b := &back{path: f.Path, want: f.After, left: e.Parts[i].After, to: f.Before, mode: f.Mode}
		if err := b.through(e.Parts[i]); err != nil {
			return "", err
		}
		switch {
		case now.Equal(f.After):
			n.after++
			backs = append(backs, b)
		case now.Equal(f.Before):
			n.before++
		case half != nil:
			n.torn++
			sum := disk.DigestOf(half)
			b.want, b.left, b.found = &sum, half, e.Parts[i].Before
			backs = append(backs, b)
		}
	}
	switch whole := !slices.ContainsFunc(e.Files, func(f journal.File) bool { return !f.Undoes() }); {
	case n.after == len(e.Files):
		return journal.OutcomeDone, nil
	case n.before == len(e.Files):
		return journal.OutcomeNot, nil
	case n.after+n.before+n.torn == len(e.Files) && n.superseded == 0 && whole:
		return journal.OutcomeBack, l.takeBackLeft(ctx, e.By, backs)
	default:
		return journal.OutcomeUnsure, nil
	}
}

// settleFile removes what a change left beside one file, and returns the hash of what the change found or left at the
// name; nil: no file. mayPutBack says that what the change left can be another program's save, and that no newer change
// has used the name since.
func (l *Ledger) settleFile(ctx context.Context, f journal.File, c journal.Sides,
	mayPutBack bool) (*disk.Digest, error) {
	dir, err := disk.Reopen(filepath.Dir(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	w := &work{path: f.Path, name: filepath.Base(f.Path), dir: dir, temporary: f.Temp, old: c.Before, next: c.After,
		wait: writerWait}
	now, err := w.sum(ctx, w.name)
	if err != nil {
		return nil, err
	}
	if f.Temp != "" && filepath.Base(f.Temp) == f.Temp {
		if putBack, err := l.settleTemp(ctx, w, f, c, now, mayPutBack); err != nil || putBack {
			return f.Before, err
		}
	}
	l.sweep(ctx, dir, filepath.Dir(f.Path))
	return w.sum(ctx, w.name)
}

// settleTemp handles the temporary file of a change. It holds the new content or a part of it, or after the exchange
// the old one; or else what another program saved in between, which gets its name again if it may: the change was not
// made. Otherwise the journal keeps it.
func (l *Ledger) settleTemp(ctx context.Context, w *work, f journal.File, c journal.Sides, now *disk.Digest,
	mayPutBack bool) (putBack bool, err error) {
	if c.Splices != nil && now.Equal(f.Before) {
		if ours, err := w.begins(ctx, f, c); err != nil {
			return false, err
		} else if ours {
			return false, w.dir.Remove(f.Temp)
		}
	}
	content, _, err := w.look(ctx, f.Temp)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case f.Before != nil && disk.DigestOf(content) == *f.Before,
		f.After != nil && f.Kept && bytes.HasPrefix(w.next, content),
		f.After != nil && disk.DigestOf(content) == *f.After:
	case mayPutBack && now == nil:
		return true, exchange.PublishNew(w.dir, f.Temp, w.name)
	case mayPutBack && f.After != nil && now.Equal(f.After):
		return true, l.putBack(ctx, w, content)
	default:
		if err := l.journal.Keep(journal.KindRecovered, journal.By{}, filepath.Join(filepath.Dir(w.path), f.Temp),
			content); err != nil {
			return false, err
		}
	}
	return false, w.dir.Remove(f.Temp)
}

// begins says whether the temporary file of a change holds how the new content begins, which splices make of the old
// one, that still has its name.
func (w *work) begins(ctx context.Context, f journal.File, c journal.Sides) (bool, error) {
	temp, stamp, err := disk.OpenRegular(w.dir, f.Temp, w.path)
	if err != nil {
		return false, nil // who reads it next says what is wrong
	}
	defer func() { _ = temp.Close() }() // only read
	file, was, err := disk.OpenRegular(w.dir, w.name, w.path)
	if err != nil {
		return false, nil // likewise
	}
	defer func() { _ = file.Close() }() // only read
	made := c.Splices.Read(file, was.Size)
	wrote, want := make([]byte, spliceStep), make([]byte, spliceStep)
	for at := int64(0); at < stamp.Size; at += spliceStep {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		n, err := temp.ReadAt(wrote, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if got, _ := made.ReadAt(want[:n], at); got < n || !bytes.Equal(wrote[:n], want[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// sum is the hash of what stands at a name; nil: no file. What is no file, or cannot be read, has a hash that nothing
// has.
func (w *work) sum(ctx context.Context, name string) (*disk.Digest, error) {
	var sum disk.Digest
	var err error
	for range readTries {
		if sum, err = w.sumOnce(ctx, name); !errors.Is(err, disk.ErrMoved) {
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		sum = disk.Digest{}
	}
	return &sum, nil
}

func (w *work) sumOnce(ctx context.Context, name string) (disk.Digest, error) {
	file, stamp, _, err := w.settled(ctx, name)
	if err != nil {
		return disk.Digest{}, err
	}
	defer func() { _ = file.Close() }() // only read
	sum, err := disk.StreamDigest(ctx, file, stamp.Size)
	if err != nil {
		return disk.Digest{}, err
	}
	return sum, unmoved(file, stamp)
}

// takeBackLeft gives files of a half-made change their old contents.
func (l *Ledger) takeBackLeft(ctx context.Context, by journal.By, backs []*back) error {
	var edits []Edit
	for _, b := range backs {
		if b.found != nil { // half written; the journal has a copy in case it is another program's after all
			if err := l.journal.Keep(journal.KindRecovered, by, b.path, b.left); err != nil {
				return err
			}
		}
		dir, err := disk.Reopen(filepath.Dir(b.path))
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
