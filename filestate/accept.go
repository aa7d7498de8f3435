package filestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Accept says that the difference in e was shown to the model, or all of New where there is no Old: it
// now knows the new content. What it knew of the old one moves along, and all that is new counts as
// seen. If e says that the file is gone, it is forgotten. The error is ErrMemory.
func (l *Ledger) Accept(ctx context.Context, e *StaleError) error {
	defer l.records.lock(e.Path)()
	if e.New == nil {
		return l.records.forget(ctx, e.Path)
	}
	size := int64(len(e.New))
	next := &record{Path: e.Path, Hash: digestOf(e.New), Size: size, Spans: wholeOf(size), Stamp: e.stamp, View: noView}
	if e.stamp == (Stamp{}) {
		next.Stamp.Racy = true
	}
	known, err := l.records.load(ctx, e.Path)
	if err != nil {
		return err
	}
	if e.Old != nil {
		next.Spans = moved(e.Old, e.New, knownOf(known, e))
	}
	if known != nil && known.Hash == next.Hash {
		next.Spans = normal(append(next.Spans, known.Spans...), size)
		next.Own = known.Own
	}
	l.contents.put(next.Hash, e.New)
	return l.records.save(ctx, next)
}

// knownOf returns what of e.Old was seen.
func knownOf(known *record, e *StaleError) []Span {
	old := digestOf(e.Old)
	switch {
	case known != nil && known.Hash == old:
		return known.Spans
	case e.Was != "" && !e.Was.partial() && e.Was.names(old):
		return wholeOf(int64(len(e.Old)))
	default:
		return nil
	}
}

// Changed says which of these files (none: of all seen ones) no longer hold what was seen; files that
// were not seen are passed over. For the hint after a shell command, and after hooks.
//
// Named files come with Old, where it is held, and New, up to 4 MiB; asked about all, only with
// versions. A file that is gone or no regular file any more has Now "". A file that cannot be read, or
// changes all the time, is reported with the versions equal to "" as well: in doubt it changed.
// ErrMemory: nothing is known.
func (l *Ledger) Changed(ctx context.Context, paths ...string) ([]*StaleError, error) {
	var recs []*record
	for _, path := range paths {
		rec, err := l.records.load(ctx, path)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			recs = append(recs, rec)
		}
	}
	if len(paths) == 0 {
		var err error
		if recs, err = l.records.all(ctx); err != nil {
			return nil, err
		}
	}
	var out []*StaleError
	for _, rec := range recs {
		if err := context.Cause(ctx); err != nil {
			return out, err
		}
		e, err := l.compare(ctx, rec, len(paths) > 0)
		if err != nil {
			return out, err
		}
		if e != nil {
			out = append(out, e)
		}
	}
	return out, nil
}

// compare returns nil if the file of rec holds what was seen.
func (l *Ledger) compare(ctx context.Context, rec *record, contents bool) (*StaleError, error) {
	// A look at the stamp reveals nothing, so the path may be followed as it is.
	if info, err := os.Lstat(rec.Path); err == nil && info.Mode().IsRegular() && rec.Stamp.proves(stampOf(info)) {
		return nil, nil
	}
	e := &StaleError{Path: rec.Path, Was: rec.version(), Sums: Sums{Before: rec.Hash.sum()}}
	if contents {
		e.Old = l.contents.get(rec.Hash)
	}
	for range readTries {
		sum, err := e.look(ctx, contents)
		switch ended := context.Cause(ctx); {
		case ended != nil:
			return nil, ended
		case errors.Is(err, ErrMoved):
			continue
		case err != nil:
			return e, nil
		case sum != rec.Hash:
			e.Now, e.Sums.After = sum.version(rec.whole()), sum.sum()
			return e, nil
		default:
			return nil, l.settled(ctx, rec, e.stamp)
		}
	}
	return e, nil
}

// look reads the file at e.Path: its hash, its stamp, and its content if that is wanted and small.
func (e *StaleError) look(ctx context.Context, content bool) (digest, error) {
	dir, err := reopen(filepath.Dir(e.Path))
	if err != nil {
		return digest{}, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	file, stamp, err := openRegular(dir, filepath.Base(e.Path), e.Path)
	if err != nil {
		return digest{}, err
	}
	defer func() { _ = file.Close() }() // only read
	var sum digest
	var got []byte
	if content && stamp.Size <= maxHeld {
		got, err = readAll(ctx, file, stamp.Size)
		sum = digestOf(got)
	} else if stamp.Size <= maxSize {
		sum, err = streamDigest(ctx, file, stamp.Size)
	}
	if err != nil {
		return digest{}, err
	}
	now, err := restamp(file)
	if err != nil {
		return digest{}, err
	}
	if !now.same(stamp) {
		return digest{}, fmt.Errorf("read %s: %w", e.Path, ErrMoved)
	}
	e.New, e.stamp = got, stamp
	return sum, nil
}

// reopen opens a canonical directory and follows no link on the way: if one stands there now, the path
// leads elsewhere, and nobody has permitted that.
func reopen(path string) (*os.Root, error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	rel, err := filepath.Rel(top, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // a directory handle holds no data
	dir, err := descend(root, rel)
	if errors.Is(err, ErrMoved) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return dir, err
}

// settled notes a newer stamp for a content that was found to be the same, so that the next look can
// be quick. A record that changed meanwhile is left alone.
func (l *Ledger) settled(ctx context.Context, rec *record, stamp Stamp) error {
	if stamp.Racy {
		return nil
	}
	defer l.records.lock(rec.Path)()
	now, err := l.records.load(ctx, rec.Path)
	if err != nil || now == nil || now.Hash != rec.Hash {
		return err
	}
	now.Stamp = stamp
	return l.records.save(ctx, now)
}
