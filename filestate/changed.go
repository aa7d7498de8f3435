package filestate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codehand/filestate/disk"
	"codehand/filestate/seen"
)

// Accept says that the difference in e was shown to the model, or all of New where there is no Old: it
// now knows the new content. What it knew of the old one moves along, and all that is new counts as
// seen. If e says that the file is gone, it is forgotten. The error is ErrMemory.
func (l *Ledger) Accept(ctx context.Context, e *StaleError) error {
	defer l.records.Lock(e.Path)()
	if e.New == nil {
		return l.records.Forget(ctx, e.Path)
	}
	known, err := l.records.Load(ctx, e.Path)
	if err != nil {
		return err
	}
	next := known.Accept(seen.Difference{Path: e.Path, Was: e.Was, Old: e.Old, New: e.New, Stamp: e.stamp})
	l.contents.Put(next.Hash, e.New)
	return l.records.Save(ctx, next)
}

// Changed says which of these files (none: of all seen ones) no longer hold what was seen; files that
// were not seen are passed over. For the hint after a shell command, and after hooks.
//
// Named files come with Old, where it is held, and New, up to 4 MiB; asked about all, only with
// versions. A file that is gone or no regular file any more has Now "". A file that cannot be read, or
// changes all the time, is reported with the versions equal to "" as well: in doubt it changed.
// ErrMemory: nothing is known.
func (l *Ledger) Changed(ctx context.Context, paths ...string) ([]*StaleError, error) {
	var recs []*seen.Record
	for _, path := range paths {
		rec, err := l.records.Load(ctx, path)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			recs = append(recs, rec)
		}
	}
	if len(paths) == 0 {
		var err error
		if recs, err = l.records.All(ctx); err != nil {
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

// Left notes that a command of the session has left what Changed found. If the memory fails, that costs a read.
func (l *Ledger) Left(ctx context.Context, e *StaleError) {
	l.records.Left(ctx, e.Path, e.Sums.Before, e.sum)
}

// compare returns nil if the file of rec holds what was seen.
func (l *Ledger) compare(ctx context.Context, rec *seen.Record, contents bool) (*StaleError, error) {
	// A look at the stamp reveals nothing, so the path may be followed as it is.
	if info, err := os.Lstat(rec.Path); err == nil && info.Mode().IsRegular() && rec.Stamp.Proves(disk.StampOf(info)) {
		return nil, nil
	}
	e := &StaleError{Path: rec.Path, Was: rec.Version()}
	if rec.Hashed() {
		e.Sums.Before = rec.Hash.Hex()
	}
	if contents && rec.Hashed() {
		e.Old = l.contents.Get(rec.Hash)
	}
	for range readTries {
		same, err := e.look(ctx, rec, contents)
		switch ended := context.Cause(ctx); {
		case ended != nil:
			return nil, ended
		case errors.Is(err, disk.ErrMoved):
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
func (e *StaleError) look(ctx context.Context, rec *seen.Record, content bool) (same bool, err error) {
	dir, err := disk.Reopen(filepath.Dir(e.Path))
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	file, stamp, err := disk.OpenRegular(dir, filepath.Base(e.Path), e.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // only read
	found := StaleError{stamp: stamp}
	if !rec.Hashed() {
		same, err = found.compareParts(ctx, rec, file)
	} else {
		same, err = found.compareWhole(ctx, rec, file, content)
	}
	if err != nil {
		return false, err
	}
	now, err := disk.Restamp(file)
	if err != nil {
		return false, err
	}
	if !now.Same(stamp) {
		return false, fmt.Errorf("read %s: %w", e.Path, disk.ErrMoved)
	}
	e.Now, e.New, e.Sums.After, e.stamp, e.sum = found.Now, found.New, found.Sums.After, stamp, found.sum
	e.Left = e.sum != (disk.Digest{}) && rec.Left == e.sum
	return same, nil
}

func (e *StaleError) compareWhole(ctx context.Context, rec *seen.Record, file *os.File,
	content bool) (same bool, err error) {
	var sum disk.Digest
	switch size := e.stamp.Size; {
	case content && size <= seen.MaxHeld:
		e.New, err = disk.ReadAll(ctx, file, size)
		sum = disk.DigestOf(e.New)
	case size <= disk.MaxSize:
		sum, err = disk.StreamDigest(ctx, file, size)
	}
	e.Now, e.Sums.After, e.sum = seen.VersionOf(sum, rec.Whole()), sum.Hex(), sum
	return sum == rec.Hash, err
}

// compareParts is compareWhole for a file that is known by its parts only. The new version is that of the head, since
// no call has hashed more.
func (e *StaleError) compareParts(ctx context.Context, rec *seen.Record, file *os.File) (same bool, err error) {
	if same, err = rec.InPlace(ctx, file); same || err != nil {
		return same, err
	}
	e.Now, err = seen.HeadVersion(ctx, file, e.stamp.Size)
	return false, err
}

// settled notes a newer stamp for a content that was found to be the same, so that the next look can
// be quick. A record that changed meanwhile is left alone.
func (l *Ledger) settled(ctx context.Context, rec *seen.Record, stamp disk.Stamp) error {
	if stamp.Racy {
		return nil
	}
	defer l.records.Lock(rec.Path)()
	now, err := l.records.Load(ctx, rec.Path)
	if err != nil || !now.SameAs(rec) {
		return err
	}
	now.Settle(stamp)
	return l.records.Save(ctx, now)
}
