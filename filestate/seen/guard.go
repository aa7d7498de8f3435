package seen

import (
	"bytes"
	"context"
	"io"

	"codehand/filestate/disk"
)

// A Content is a whole content of a file.
type Content struct {
	Bytes []byte // only read; of a large one nil, where it is in From
	From  io.ReaderAt
	Size  int64
	Sum   disk.Digest
}

// reader reads a content.
func (c Content) reader() io.ReaderAt {
	if c.From != nil {
		return c.From
	}
	return bytes.NewReader(c.Bytes)
}

// A Claim is the caller's grounds for changing a file. The zero Claim has none but the record.
type Claim struct {
	Version Version // what the caller says it has seen; "": only the record counts
	Whole   bool    // the change replaces everything, so everything must have been seen
	Unseen  bool    // what was seen does not matter
}

// A Verdict says whether a change may be made. The zero value refuses.
type Verdict int

// The verdicts, as the rows of Claim.Decide give them.
const (
	NotRead  Verdict = iota // nothing of the file was shown
	PartRead                // everything must have been, and was not
	Stale                   // the content is another one than was seen
	NoMemory                // what was seen could not be looked up
	GoOn
)

// Decide is the table of the guard: the first row that fits. known is the session's record, nil if there is none;
// memoryFails says that it could not be looked up; now is what the disk holds, nil if there is no file. That it is
// NotRead does not depend on the content.
func (c Claim) Decide(known *Record, memoryFails bool, now *Content) Verdict {
	if now == nil || c.Unseen {
		return GoOn
	}
	if c.Version != "" {
		_, fits := known.fits(c.Version, *now)
		switch {
		case !fits:
			return Stale
		case c.Whole && c.Version.Partial():
			return PartRead
		default:
			return GoOn
		}
	}
	switch {
	case memoryFails:
		return NoMemory
	case !known.shown():
		return NotRead
	case known.Hash != now.Sum:
		return Stale
	case c.Whole && !known.Whole():
		return PartRead
	default:
		return GoOn
	}
}

// fits says that v is a version of what is on the disk, or of a content that this session replaced itself with no
// foreign change since: a model sends several edits in one turn with one version. r is what is known of the disk's
// content. of is what the version covers.
func (r *Record) fits(v Version, now Content) (of Span, ok bool) {
	all := Span{0, now.Size}
	mine := r != nil && r.Hash == now.Sum
	if !v.ranged() {
		if v.names(now.Sum) {
			return all, true
		}
		if !mine {
			return Span{}, false
		}
		_, ok = v.namesOne(r.Own)
		return all, ok
	}
	if s := v.span(); s.From < s.To && s.To <= all.To {
		if p, err := partOf(context.Background(), now.reader(), s); err == nil && v == p.version(all.To) {
			return s, true
		}
	}
	if mine {
		for _, own := range r.Ranges {
			if own.Version == v {
				return own.Span, true
			}
		}
	}
	return Span{}, false
}

// VersionOf is that of what the disk holds, whole or partial by what the session knows of it: by its record or by the
// version that it gave.
func (c Claim) VersionOf(known *Record, now Content) Version {
	return VersionOf(now.Sum, isWhole(c.covered(known, now), now.Size))
}

// covered returns what the session knows of a content.
func (c Claim) covered(known *Record, now Content) []Span {
	spans := known.SpansOf(now.Sum)
	if c.Version == "" || c.Version.Partial() && !c.Version.ranged() {
		return spans
	}
	if of, ok := known.fits(c.Version, now); ok {
		return normal(append(spans[:len(spans):len(spans)], of), now.Size)
	}
	return spans
}

// Covers says whether all of a range of what the disk holds was shown.
func (c Claim) Covers(known *Record, now Content, s Span) bool {
	return c.Unseen || covers(c.covered(known, now), s)
}

// Outside says whether the version is that of a part, and next differs from what the disk holds in more than that part,
// which is of. known is the session's record.
func (c Claim) Outside(known *Record, now Content, next []byte) (of Span, outside bool) {
	if !c.Version.ranged() || c.Unseen {
		return Span{}, false
	}
	of, _ = known.fits(c.Version, now)
	return of, !differsOnlyIn(of, now.Bytes, next)
}

// Leaves says that the version is not that of a part, or a change of that range of what the disk holds keeps to it.
func (c Claim) Leaves(known *Record, now Content, changed Span) bool {
	if !c.Version.ranged() {
		return true
	}
	of, ok := known.fits(c.Version, now)
	return ok && of.From <= changed.From && changed.To <= of.To
}

// differsOnlyIn says that next has all bytes of old outside a range of it.
func differsOnlyIn(s Span, old, next []byte) bool {
	rest := len(old) - int(s.To)
	return len(next) >= int(s.From)+rest && bytes.Equal(next[:s.From], old[:s.From]) &&
		bytes.Equal(next[len(next)-rest:], old[s.To:])
}
