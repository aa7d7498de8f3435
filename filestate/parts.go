package filestate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
)

const (
	// largeSize is the most bytes of a file that is hashed whole because a part of it is read. The head of a larger one
	// must cost what any head costs.
	largeSize = 16 << 20
	// maxParts is how many parts of one file are remembered: about 130 KB in a record, of which a Store holds 256 KiB.
	// The one that was shown first is forgotten first, and must be shown again.
	maxParts = 1024
	// hashedParts is the same beside the hash of the whole content, which may have 4096 spans in the same record.
	hashedParts = 256
)

// A part is a range of a large file that was shown, with the hash of its bytes. It is all that is known of the content as
// long as nobody had a reason to hash the whole, and all that is left of it when its stamp proves that hash no longer.
type part struct {
	Span
	Hash digest
}

// partOf reads and hashes a range. ErrMoved: the file ends before it.
func partOf(ctx context.Context, from io.ReaderAt, s Span) (part, error) {
	h := sha256.New()
	buf := make([]byte, min(chunkSize, s.To-s.From))
	for at := s.From; at < s.To; {
		if err := context.Cause(ctx); err != nil {
			return part{}, err
		}
		n, err := from.ReadAt(buf[:min(int64(len(buf)), s.To-at)], at)
		h.Write(buf[:n])
		at += int64(n)
		if errors.Is(err, io.EOF) && at < s.To {
			return part{}, ErrMoved
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return part{}, err
		}
	}
	return part{s, digest(h.Sum(nil))}, nil
}

// inPlace says whether every part has its bytes where it had them when it was shown. The error is of reading.
func inPlace(ctx context.Context, parts []part, from io.ReaderAt) (bool, error) {
	for _, p := range parts {
		now, err := partOf(ctx, from, p.Span)
		switch {
		case errors.Is(err, ErrMoved):
			return false, nil
		case err != nil:
			return false, err
		case now.Hash != p.Hash:
			return false, nil
		}
	}
	return true, nil
}

// hashed says whether r knows the hash of the whole content; otherwise it knows parts.
func (r *record) hashed() bool { return r != nil && r.Hash != digest{} }

// of returns what r says of a content, whose hash is sum: if r knows parts of a large file and all of them are in their
// places, a record of the whole content. In all other cases it is r itself, which may be nil.
func (r *record) of(content []byte, sum digest) *record {
	if r == nil || r.hashed() || len(r.Parts) == 0 {
		return r
	}
	if same, err := inPlace(context.Background(), r.Parts, bytes.NewReader(content)); !same || err != nil {
		return r
	}
	whole := *r
	whole.Hash, whole.Size, whole.Spans = sum, int64(len(content)), normal(r.Spans, int64(len(content)))
	return &whole
}

// sawParts is Saw for a part of a large file.
func (r *Reading) sawParts(ctx context.Context, spans []Span) (Sight, error) {
	l := r.ledger
	defer l.records.lock(r.path)()
	known, memErr := l.records.load(ctx, r.path)
	next, v, err := r.seeParts(ctx, known, spans)
	if err != nil {
		return Sight{}, r.wrap(err)
	}
	if err := r.unmoved(ctx); err != nil {
		return Sight{}, err
	}
	next.Path = r.path
	if memErr == nil {
		memErr = l.records.save(ctx, next)
	}
	sight := Sight{Version: v, Whole: next.whole(), Again: next.Again}
	if next.hashed() {
		sight.Sum = next.Hash.sum()
	}
	return sight, memErr
}

// seeParts returns the record after a view of a part, and the version of that view.
func (r *Reading) seeParts(ctx context.Context, known *record, spans []Span) (*record, Version, error) {
	sum, hashed, err := r.stillHashed(ctx, known)
	if err != nil {
		return nil, "", err
	}
	var parts []part
	for _, s := range spans {
		p, err := partOf(ctx, r.file, s)
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, p)
	}
	if hashed {
		next := known.see(sum, r.stamp, spans)
		next.Parts = append(next.Parts[:len(next.Parts):len(next.Parts)], parts...)
		next.Parts = next.Parts[max(0, len(next.Parts)-hashedParts):]
		return next, next.version(), nil
	}
	next := &record{Size: r.stamp.Size, Stamp: r.stamp, View: viewOf(spans), Parts: parts}
	version := longest(next.Parts).version(next.Size)
	if known != nil && len(known.Parts) > 0 {
		same := known.Stamp.proves(r.stamp)
		if !same {
			var err error
			if same, err = inPlace(ctx, known.Parts, r.file); err != nil {
				return nil, "", err
			}
		}
		if same {
			next.join(known)
		}
	}
	next.cover()
	return next, version, nil
}

// stillHashed returns the whole hash that is known, if the file still has it. Without a proof by its stamp that takes
// reading all of it, which is done only where a part would say less: all was seen before.
func (r *Reading) stillHashed(ctx context.Context, known *record) (digest, bool, error) {
	switch {
	case !known.hashed() || known.Size != r.stamp.Size:
		return digest{}, false, nil
	case known.Stamp.proves(r.stamp):
		return known.Hash, true, nil
	case !known.whole():
		return digest{}, false, nil
	}
	sum, err := streamDigest(ctx, r.file, r.stamp.Size)
	return sum, sum == known.Hash, err
}

// join adds the parts of an earlier record that are still in place.
func (r *record) join(known *record) {
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
func (r *record) cover() {
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

// ranges returns the versions of parts that the session may still name after the change. known is what it knew before.
func (w *work) ranges(known *record) []ranged {
	var all []ranged
	if known != nil && known.Hash == w.base {
		all = append(all, known.Ranges...)
		for _, p := range known.Parts {
			all = append(all, ranged{p.version(int64(len(w.old))), p.Span})
		}
	}
	if of, ok := w.fits(known); ok && w.edit.Version.ranged() {
		all = append(all, ranged{w.edit.Version, of})
	}
	if len(all) == 0 {
		return nil
	}
	head := commonPrefix(w.old, w.next)
	tail := commonSuffix(w.old[head:], w.next[head:])
	from, to, shift := int64(head), int64(len(w.old)-tail), int64(len(w.next)-len(w.old))
	seen := make(map[Version]bool)
	var out []ranged
	for _, v := range slices.Backward(all) {
		if seen[v.Version] || len(out) == ownVersions {
			continue
		}
		seen[v.Version] = true
		if v.From > to {
			v.From += shift
		} else {
			v.From = min(v.From, from)
		}
		if v.To >= from {
			v.To = max(v.To, to) + shift
		}
		out = append(out, v)
	}
	slices.Reverse(out)
	return out
}

// differsOnlyIn says that next has all bytes of old outside a range of it.
func differsOnlyIn(s Span, old, next []byte) bool {
	rest := len(old) - int(s.To)
	return len(next) >= int(s.From)+rest && bytes.Equal(next[:s.From], old[:s.From]) && bytes.Equal(next[len(next)-rest:], old[s.To:])
}
