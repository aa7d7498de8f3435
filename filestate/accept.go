package filestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
		next.Own, next.Ranges = known.Own, known.Ranges
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
	e := &StaleError{Path: rec.Path, Was: rec.version()}
	if rec.hashed() {
		e.Sums.Before = rec.Hash.sum()
	}
	if contents && rec.hashed() {
		e.Old = l.contents.get(rec.Hash)
	}
	for range readTries {
		same, err := e.look(ctx, rec, contents)
		switch ended := context.Cause(ctx); {
		case ended != nil:
			return nil, ended
		case errors.Is(err, ErrMoved):
			continue
		case err != nil:
			return e, nil
		case same:
			return nil, l.settled(ctx, rec, e.stamp)
		default:
			return e, nil
		}
	}
	return e, nil
}

// look says whether the file at e.Path holds what was seen. It notes its version and stamp, and its content if that is
// wanted and small.
func (e *StaleError) look(ctx context.Context, rec *record, content bool) (same bool, err error) {
	dir, err := reopen(filepath.Dir(e.Path))
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	file, stamp, err := openRegular(dir, filepath.Base(e.Path), e.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // only read
	found := StaleError{stamp: stamp}
	if !rec.hashed() {
		same, err = found.compareParts(ctx, rec, file)
	} else {
		same, err = found.compareWhole(ctx, rec, file, content)
	}
	if err != nil {
		return false, err
	}
	now, err := restamp(file)
	if err != nil {
		return false, err
	}
	if !now.same(stamp) {
		return false, fmt.Errorf("read %s: %w", e.Path, ErrMoved)
	}
	e.Now, e.New, e.Sums.After, e.stamp = found.Now, found.New, found.Sums.After, stamp
	return same, nil
}

func (e *StaleError) compareWhole(ctx context.Context, rec *record, file *os.File, content bool) (same bool, err error) {
	var sum digest
	switch size := e.stamp.Size; {
	case content && size <= maxHeld:
		e.New, err = readAll(ctx, file, size)
		sum = digestOf(e.New)
	case size <= maxSize:
		sum, err = streamDigest(ctx, file, size)
	}
	e.Now, e.Sums.After = sum.version(rec.whole()), sum.sum()
	return sum == rec.Hash, err
}

// compareParts is compareWhole for what is known by its parts. The new version is that of the head: nobody has hashed more.
func (e *StaleError) compareParts(ctx context.Context, rec *record, file *os.File) (same bool, err error) {
	if same, err = inPlace(ctx, rec.Parts, file); same || err != nil {
		return same, err
	}
	e.Now = digestOf(nil).version(true)
	if e.stamp.Size > 0 {
		var head part
		head, err = partOf(ctx, file, Span{0, min(e.stamp.Size, chunkSize)})
		e.Now = head.version(e.stamp.Size)
	}
	return false, err
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
	if err != nil || now == nil || now.Hash != rec.Hash || !slices.Equal(now.Parts, rec.Parts) {
		return err
	}
	if now.Size != stamp.Size { // a large file that grew: what was shown of it is as it was
		now.Size, now.View, now.Again = stamp.Size, noView, 0
	}
	now.Stamp = stamp
	return l.records.save(ctx, now)
}
