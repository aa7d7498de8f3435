package seen

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"slices"

	"codehand/filestate/disk"
)

const (
	// maxParts is how many parts of one file are remembered: about 130 KB in a record, of which a Store holds 256 KiB.
	// The one that was shown first is forgotten first, and must be shown again.
	maxParts = 1024
	// hashedParts is the same beside the hash of the whole content, which may have 4096 spans in the same record.
	hashedParts = 256
)

// A part is a range of a large file that was shown, with the hash of its bytes. Parts are all that is known of the
// content until a call has a reason to hash the whole, and again when the stamp no longer proves that hash.
type part struct {
	Span
	Hash disk.Digest
}

// partOf reads and hashes a range. ErrMoved: the file ends before it.
func partOf(ctx context.Context, from io.ReaderAt, s Span) (part, error) {
	h := sha256.New()
	buf := make([]byte, min(disk.ChunkSize, s.To-s.From))
	for at := s.From; at < s.To; {
		if err := context.Cause(ctx); err != nil {
			return part{}, err
		}
		n, err := from.ReadAt(buf[:min(int64(len(buf)), s.To-at)], at)
		h.Write(buf[:n])
		at += int64(n)
		if errors.Is(err, io.EOF) && at < s.To {
			return part{}, disk.ErrMoved
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return part{}, err
		}
	}
	return part{s, disk.Digest(h.Sum(nil))}, nil
}

// InPlace says whether every part that r knows of has its bytes where it had them when it was shown. The error is of
// reading.
func (r *Record) InPlace(ctx context.Context, from io.ReaderAt) (bool, error) {
	for _, p := range r.Parts {
		now, err := partOf(ctx, from, p.Span)
		switch {
		case errors.Is(err, disk.ErrMoved):
			return false, nil
		case err != nil:
			return false, err
		case now.Hash != p.Hash:
			return false, nil
		}
	}
	return true, nil
}

// HeadVersion is the version of the first 256 KiB of a file of that size, for one that was never hashed whole. Errors
// are ErrMoved, where the file is shorter, and those of reading.
func HeadVersion(ctx context.Context, from io.ReaderAt, size int64) (Version, error) {
	if size == 0 {
		return VersionOf(disk.DigestOf(nil), true), nil
	}
	head, err := partOf(ctx, from, Span{0, min(size, disk.ChunkSize)})
	if err != nil {
		return "", err
	}
	return head.version(size), nil
}

// SeeParts is See for a part of a file that is not to be hashed for its sake: file, whose stamp that is. It also
// returns the version of that view, which is that of its longest span; "" if it shows nothing. Errors are ErrMoved and
// those of reading.
func (r *Record) SeeParts(ctx context.Context, file *os.File, stamp disk.Stamp, view View) (*Record, Version, error) {
	sum, hashed, err := r.stillHashed(ctx, file, stamp)
	if err != nil {
		return nil, "", err
	}
	var parts []part
	for _, s := range view.spans {
		p, err := partOf(ctx, file, s)
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, p)
	}
	if hashed {
		next := r.See(sum, stamp, view)
		next.Parts = append(next.Parts[:len(next.Parts):len(next.Parts)], parts...)
		next.Parts = next.Parts[max(0, len(next.Parts)-hashedParts):]
		return next, next.Version(), nil
	}
	next := &Record{Size: stamp.Size, Stamp: stamp, View: view.name(), Parts: parts}
	version := longest(next.Parts).version(next.Size)
	if r != nil && len(r.Parts) > 0 {
		same := r.Stamp.Proves(stamp)
		if !same {
			if same, err = r.InPlace(ctx, file); err != nil {
				return nil, "", err
			}
		}
		if same {
			next.join(r)
		}
	}
	next.cover()
	return next, version, nil
}

// stillHashed returns the whole hash that is known, if the file still has it. Without a proof by its stamp that takes
// reading all of it, which is done only where a part would say less: all was seen before.
func (r *Record) stillHashed(ctx context.Context, file *os.File, stamp disk.Stamp) (disk.Digest, bool, error) {
	switch {
	case !r.Hashed() || r.Size != stamp.Size:
		return disk.Digest{}, false, nil
	case r.Stamp.Proves(stamp):
		return r.Hash, true, nil
	case !r.Whole():
		return disk.Digest{}, false, nil
	}
	sum, err := disk.StreamDigest(ctx, file, stamp.Size)
	return sum, sum == r.Hash, err
}

// join adds the parts of an earlier record that are still in place.
func (r *Record) join(known *Record) {
	if r.View == known.View && r.Size == known.Size {
		r.Again = known.Again + 1
	}
	var all []part
	for _, p := range known.Parts {
		if !slices.Contains(r.Parts, p) {
			all = append(all, p)
		}
	}
	r.Parts = append(all, r.Parts...)
}

// cover sets Spans to what the parts cover, after it has forgotten the oldest if there are too many.
func (r *Record) cover() {
	r.Parts = r.Parts[max(0, len(r.Parts)-maxParts):]
	spans := make([]Span, len(r.Parts))
	for i, p := range r.Parts {
		spans[i] = p.Span
	}
	r.Spans = normal(spans, r.Size)
}

// longest returns the longest of parts, the first of several; the zero part if there are none.
func longest(parts []part) part {
	var most part
	for _, p := range parts {
		if p.To-p.From > most.To-most.From {
			most = p
		}
	}
	return most
}

// A ranged is the version of a part of a content that this session has replaced since, with the place of that part now.
type ranged struct {
	Version Version
	Span
}
