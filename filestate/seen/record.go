package seen

import (
	"context"
	"slices"

	"codehand/filestate/disk"
)

// noView is a record's View when nothing was shown since the content came to be.
const noView = "-"

// A Record is what a session knows of one path; nil: nothing. Its slices are only read, as several records may share
// them. Its form as JSON is that of the Memory, and outlives this program.
type Record struct {
	Path  string      `json:"path"`
	Hash  disk.Digest `json:"hash"`            // of the whole content that was seen; none: only parts of it are known
	Parts []part      `json:"parts,omitempty"` // of a large file, as they were shown
	Size  int64       `json:"size"`            // of that content
	Spans []Span      `json:"spans"`           // of it, what was shown: in order, and they do not touch
	Stamp disk.Stamp  `json:"stamp"`           // of the file when it held that content
	View  string      `json:"view"`            // the last view, by its name
	Again int         `json:"again"`           // how often in a row that view was seen before
	// contents that this session replaced since another program last did, oldest first
	Own    []disk.Digest `json:"own"`
	Ranges []ranged      `json:"ranges,omitempty"` // the same for versions of parts
	Left   disk.Digest   `json:"left,omitzero"`    // what a command of the session made of that content; none: no command did
}

// Hashed says whether r knows the hash of the whole content; otherwise it knows parts.
func (r *Record) Hashed() bool { return r != nil && r.Hash != disk.Digest{} }

// shown says whether anything of the content was shown, or the session itself made it out of one of which that holds:
// what of it was seen is not known any more where that was too large to be compared. Without that a record licenses
// nothing.
func (r *Record) shown() bool { return r != nil && (r.Size == 0 || len(r.Spans) > 0 || len(r.Own) > 0) }

// Whole says whether all of the content was shown.
func (r *Record) Whole() bool { return isWhole(r.Spans, r.Size) }

// Version is that of the content, whole or partial; of a large file that was never hashed whole, that of the longest
// part.
func (r *Record) Version() Version {
	if !r.Hashed() {
		return longest(r.Parts).version(r.Size)
	}
	return VersionOf(r.Hash, r.Whole())
}

// SpansOf returns what was shown of the content with that digest.
func (r *Record) SpansOf(sum disk.Digest) []Span {
	if r == nil || r.Hash != sum {
		return nil
	}
	return r.Spans
}

// Named returns the digest that v is a version of, among the content and those that the session replaced.
func (r *Record) Named(v Version) (disk.Digest, bool) {
	return v.namesOne(append(r.Own[:len(r.Own):len(r.Own)], r.Hash))
}

// SameAs says whether both are of the same content, as far as it is known.
func (r *Record) SameAs(other *Record) bool {
	return r != nil && other != nil && r.Hash == other.Hash && slices.Equal(r.Parts, other.Parts)
}

// See returns the record, still without a path, after a view of the content with that digest in a file with that stamp.
func (r *Record) See(sum disk.Digest, stamp disk.Stamp, view View) *Record {
	next := &Record{Hash: sum, Size: stamp.Size, Stamp: stamp, Spans: view.spans, View: view.name()}
	if r == nil || r.Hash != sum {
		return next
	}
	next.Own, next.Ranges, next.Parts = r.Own, r.Ranges, r.Parts
	next.Spans = normal(append(r.Spans[:len(r.Spans):len(r.Spans)], view.spans...), stamp.Size)
	if r.View == next.View {
		next.Again = r.Again + 1
	}
	return next
}

// Of returns what r says of a content that was found: if r knows parts of a large file and all of them are in their
// places, a record of the whole content. In all other cases it is r itself.
func (r *Record) Of(c Content) *Record {
	if r == nil || r.Hashed() || len(r.Parts) == 0 {
		return r
	}
	if same, err := r.InPlace(context.Background(), c.reader()); !same || err != nil {
		return r
	}
	whole := *r
	whole.Hash, whole.Size, whole.Spans = c.Sum, c.Size, normal(r.Spans, c.Size)
	return &whole
}

// Settle notes a newer stamp of a file that was found to hold the same content.
func (r *Record) Settle(stamp disk.Stamp) {
	if r.Size != stamp.Size { // a large file that grew: what was shown of it is as it was
		r.Size, r.View, r.Again = stamp.Size, noView, 0
	}
	r.Stamp = stamp
}

// A Difference is one that was shown between what the session knew of a file and what it holds.
type Difference struct {
	Path  string
	Was   Version    // of Old
	Old   []byte     // nil: all of New was shown instead
	New   []byte     // not nil
	Stamp disk.Stamp // of the file with New; the zero Stamp: not known
}

// Accept returns the record after a difference was shown: what was known of the old content moves along, and all that
// is new counts as seen.
func (r *Record) Accept(d Difference) *Record {
	size := int64(len(d.New))
	next := &Record{Path: d.Path, Hash: disk.DigestOf(d.New), Size: size, Spans: wholeOf(size), Stamp: d.Stamp,
		View: noView}
	if d.Stamp == (disk.Stamp{}) {
		next.Stamp.Racy = true
	}
	if d.Old != nil {
		next.Spans = moved(d.Old, d.New, r.knownOf(d))
	}
	if r != nil && r.Hash == next.Hash {
		next.Spans = normal(append(next.Spans, r.Spans...), size)
		next.Own, next.Ranges = r.Own, r.Ranges
	}
	return next
}

// knownOf returns what of d.Old was seen.
func (r *Record) knownOf(d Difference) []Span {
	old := disk.DigestOf(d.Old)
	if r != nil && r.Hash == old {
		return r.Spans
	}
	if d.Was != "" && !d.Was.Partial() && d.Was.names(old) {
		return wholeOf(int64(len(d.Old)))
	}
	return nil
}
