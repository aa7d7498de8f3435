package filestate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"sync"
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
	file, stamp, err := openRegular(f.Dir, f.Name, f.Path)
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
	stamp  Stamp
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
func (r *Reading) Stamp() Stamp { return r.stamp }

// Close closes the file.
func (r *Reading) Close() error { return r.file.Close() }

// A Sight is what one Saw found. A session's ledger remembers its last 5,000 files.
type Sight struct {
	Version Version // "": over 1 GiB, or over 16 MiB and nothing of it was seen
	Whole   bool    // with what was seen before, all of this content has been seen now
	Again   int     // how often in a row exactly these spans were seen with this content before
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
	size := r.stamp.Size
	if size > maxSize {
		return Sight{}, nil
	}
	if len(spans) == 0 {
		spans = wholeOf(size)
	}
	spans = normal(spans, size)
	if size > r.ledger.large && !isWhole(spans, size) {
		return r.sawParts(ctx, spans)
	}
	sum, err := r.digest(ctx)
	if err != nil {
		return Sight{}, err
	}
	// From the last look at the stamp to the record, no change of this session may come between: it
	// would be forgotten. Update takes the same lock after its rename, which shows in the stamp.
	l := r.ledger
	defer l.records.lock(r.path)()
	if err := r.unmoved(ctx); err != nil {
		return Sight{}, err
	}
	known, err := l.records.load(ctx, r.path)
	next := known.see(sum, r.stamp, spans)
	next.Path = r.path
	if err == nil {
		err = l.records.save(ctx, next)
	}
	return Sight{Version: next.version(), Whole: next.whole(), Again: next.Again, Sum: sum.sum()}, err
}

// see returns the record after a view of a content. r may be nil.
func (r *record) see(sum digest, stamp Stamp, spans []Span) *record {
	next := &record{Hash: sum, Size: stamp.Size, Stamp: stamp, Spans: spans, View: viewOf(spans)}
	if r == nil || r.Hash != sum {
		return next
	}
	next.Own, next.Ranges, next.Parts = r.Own, r.Ranges, r.Parts
	next.Spans = normal(append(r.Spans[:len(r.Spans):len(r.Spans)], spans...), stamp.Size)
	if r.View == next.View {
		next.Again = r.Again + 1
	}
	return next
}

// digest returns the hash of the whole content, from memory if the stamp proves that it still holds.
// A content that is small enough is held for diffs.
func (r *Reading) digest(ctx context.Context) (digest, error) {
	size := r.stamp.Size
	known, err := r.ledger.records.load(ctx, r.path)
	if err == nil && known.hashed() && known.Stamp.proves(r.stamp) {
		if size > maxHeld || r.ledger.contents.get(known.Hash) != nil {
			return known.Hash, nil
		}
	}
	if size <= maxHeld {
		content, err := readAll(ctx, r.file, size)
		if err != nil {
			return digest{}, r.wrap(err)
		}
		sum := digestOf(content)
		r.ledger.contents.put(sum, content)
		return sum, nil
	}
	sum, err := streamDigest(ctx, r.file, size)
	return sum, r.wrap(err)
}

// unmoved says ErrMoved if the file is not what it was when its first byte was read.
func (r *Reading) unmoved(ctx context.Context) error {
	now, err := restamp(r.file)
	if err != nil {
		return r.wrap(err)
	}
	if !now.same(r.stamp) {
		return r.wrap(ErrMoved)
	}
	if !r.stamp.Racy {
		return nil
	}
	// A change right after the opening may have left the stamp as it was, so what was given out is
	// compared with what is there.
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost {
		return r.wrap(ErrMoved)
	}
	var buf []byte
	for _, p := range r.pieces {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if cap(buf) < p.n {
			buf = make([]byte, p.n)
		}
		n, err := r.file.ReadAt(buf[:p.n], p.off)
		if err != nil && !errors.Is(err, io.EOF) {
			return r.wrap(err)
		}
		if n != p.n || maphash.Bytes(r.seed, buf[:n]) != p.sum {
			return r.wrap(ErrMoved)
		}
	}
	return nil
}

func (r *Reading) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", r.path, cause(err))
}

// streamDigest hashes size bytes of a file without holding them. ErrMoved: it does not have that size.
func streamDigest(ctx context.Context, f *os.File, size int64) (digest, error) {
	h := sha256.New()
	buf := make([]byte, chunkSize)
	var at int64
	for {
		if err := context.Cause(ctx); err != nil {
			return digest{}, err
		}
		n, err := f.ReadAt(buf, at)
		h.Write(buf[:n])
		at += int64(n)
		if at > size {
			return digest{}, ErrMoved
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return digest{}, err
		}
	}
	if at != size {
		return digest{}, ErrMoved
	}
	return digest(h.Sum(nil)), nil
}
