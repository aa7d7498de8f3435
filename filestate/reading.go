package filestate

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"sync"

	"codehand/filestate/disk"
	"codehand/filestate/seen"
)

// maxPieces is how many calls of ReadAt on one file whose stamp is racy are kept for comparison:
// 2 GiB in the steps in which pages are read.
const maxPieces = 8192

// Open opens a regular file for reading, without blocking. A FIFO, a socket or a device is refused
// with a *NotRegularError (ErrNotRegular), a directory with ErrDirectory. ErrMoved: the name is a link
// by now, or is replaced all the time; the caller resolves the path again.
func (l *Ledger) Open(ctx context.Context, f File) (*Reading, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	file, stamp, err := disk.OpenAsked(f.Dir, f.Name, f.Path, f.Linked)
	if err != nil {
		return nil, err
	}
	return &Reading{ledger: l, path: f.Path, file: file, stamp: stamp, seed: maphash.MakeSeed()}, nil
}

// A Reading is an open file with the stamp that it had before its first byte was read. ReadAt may be
// called concurrently.
type Reading struct {
	ledger *Ledger
	path   string
	file   *os.File
	stamp  disk.Stamp
	seed   maphash.Seed

	mu     sync.Mutex // covers the rest
	pieces []piece    // what ReadAt gave out; only if the stamp is racy
	lost   bool       // there were more than maxPieces
}

// A piece is a part of the file as ReadAt gave it out.
type piece struct {
	off int64
	n   int
	sum uint64
}

// ReadAt reads as io.ReaderAt says.
func (r *Reading) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.file.ReadAt(p, off)
	if r.stamp.Racy && n > 0 {
		got := piece{off, n, maphash.Bytes(r.seed, p[:n])}
		r.mu.Lock()
		if len(r.pieces) < maxPieces {
			r.pieces = append(r.pieces, got)
		} else {
			r.lost = true
		}
		r.mu.Unlock()
	}
	return n, err
}

// Size is the size in bytes when the file was opened.
func (r *Reading) Size() int64 { return r.stamp.Size }

// Stamp is the stamp before the first byte was read.
func (r *Reading) Stamp() disk.Stamp { return r.stamp }

// Close closes the file.
func (r *Reading) Close() error { return r.file.Close() }

// A Sight is what one Saw found. A session's ledger remembers its last 5,000 files.
type Sight struct {
	Version Version // "": over 1 GiB, or over 16 MiB and nothing of it was seen
	Whole   bool    // with what was seen before, all of this content has been seen now
	Again   int     // how many views just before were identical: these spans, this form, this content
	Sum     string  // SHA-256 of the whole content, hex; "": only parts of it were hashed
}

// Saw remembers that the session has seen these spans (none: the whole file; an empty Span: nothing
// of it). Ranges of one content add up. It hashes the whole content in a stream, but of a file over
// 16 MiB only what was seen, unless that is all; Version is then that of the longest span. A file over
// 1 GiB, which cannot be edited, is not remembered and has no version.
//
// ErrMoved: the file changed while it was read; the caller opens it again, at most three times.
// ErrMemory comes with a valid Sight: the content may be shown, but was not remembered.
func (r *Reading) Saw(ctx context.Context, spans ...Span) (Sight, error) {
	return r.SawIn(ctx, "", spans...)
}

// SawIn is Saw of spans that were shown in another form than usual, which has that name.
func (r *Reading) SawIn(ctx context.Context, form string, spans ...Span) (Sight, error) {
	size := r.stamp.Size
	if size > disk.MaxSize {
		return Sight{}, nil
	}
	view := seen.ViewOf(size, spans...).In(form)
	if size > r.ledger.large && !view.Whole() {
		return r.sawParts(ctx, view)
	}
	sum, look, err := r.digest(ctx)
	if err != nil {
		return Sight{}, err
	}
	// From the last look at the stamp to the record, no change of this session may come between: it
	// would be forgotten. Update takes the same lock after its rename, which shows in the stamp.
	l := r.ledger
	defer l.records.Lock(r.path)()
	if err := r.unmoved(ctx); err != nil {
		return Sight{}, err
	}
	known, err := l.records.LoadAgain(ctx, r.path, look)
	next := known.See(sum, r.stamp, view)
	next.Path = r.path
	if err == nil {
		err = l.records.Save(ctx, next)
	}
	return sightOf(next, next.Version()), err
}

// sawParts is Saw for a part of a large file.
func (r *Reading) sawParts(ctx context.Context, view seen.View) (Sight, error) {
	l := r.ledger
	defer l.records.Lock(r.path)()
	known, memErr := l.records.Load(ctx, r.path)
	next, version, err := known.SeeParts(ctx, r.file, r.stamp, view)
	if err != nil {
		return Sight{}, r.wrap(err)
	}
	if err := r.unmoved(ctx); err != nil {
		return Sight{}, err
	}
	next.Path = r.path
	if memErr == nil {
		memErr = l.records.Save(ctx, next)
	}
	return sightOf(next, version), memErr
}

func sightOf(rec *seen.Record, v Version) Sight {
	s := Sight{Version: v, Whole: rec.Whole(), Again: rec.Again}
	if rec.Hashed() {
		s.Sum = rec.Hash.Hex()
	}
	return s
}

// digest returns the hash of the whole content, from memory if the stamp proves that it still holds.
// A content that is small enough is held for diffs. look is the record that digest has asked for. It is zero for a file
// that is hashed in a stream: that takes long enough for another process to change the record.
func (r *Reading) digest(ctx context.Context) (sum disk.Digest, look seen.Look, err error) {
	size := r.stamp.Size
	look = r.ledger.records.Look(ctx, r.path)
	if known := look.Record; known.Hashed() && known.Stamp.Proves(r.stamp) {
		if size > seen.MaxHeld || r.ledger.contents.Get(known.Hash) != nil {
			return known.Hash, look, nil
		}
	}
	if size <= seen.MaxHeld {
		content, err := disk.ReadAll(ctx, r.file, size)
		if err != nil {
			return disk.Digest{}, seen.Look{}, r.wrap(err)
		}
		sum := disk.DigestOf(content)
		r.ledger.contents.Put(sum, content)
		return sum, look, nil
	}
	sum, err = disk.StreamDigest(ctx, r.file, size)
	return sum, seen.Look{}, r.wrap(err)
}

// hashStep is how many bytes of what was given out are compared at a time: a piece may be all of a large file.
const hashStep = 256 << 10

// unmoved says ErrMoved if the file is not what it was when its first byte was read.
func (r *Reading) unmoved(ctx context.Context) error {
	now, err := disk.Restamp(r.file)
	if err != nil {
		return r.wrap(err)
	}
	if !now.Same(r.stamp) {
		return r.wrap(disk.ErrMoved)
	}
	if !r.stamp.Racy {
		return nil
	}
	// A change right after the opening may have left the stamp as it was, so what was given out is
	// compared with what is there.
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost {
		return r.wrap(disk.ErrMoved)
	}
	var buf []byte
	var sum maphash.Hash
	sum.SetSeed(r.seed)
	for _, p := range r.pieces {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if need := min(p.n, hashStep); len(buf) < need {
			buf = make([]byte, need)
		}
		sum.Reset()
		n, err := io.CopyBuffer(&sum, io.NewSectionReader(r.file, p.off, int64(p.n)), buf)
		if err != nil {
			return r.wrap(err)
		}
		if n != int64(p.n) || sum.Sum64() != p.sum {
			return r.wrap(disk.ErrMoved)
		}
	}
	return nil
}

func (r *Reading) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", r.path, disk.Cause(err))
}
