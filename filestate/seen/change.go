package seen

import (
	"slices"

	"codehand/filestate/disk"
	"codehand/filestate/lines"
)

// A Change is a content that the session itself has put in the place of another.
type Change struct {
	Path  string
	Claim Claim
	Known *Record  // what was known of Old when the change was decided, maybe Carried
	Old   *Content // nil: there was no file
	New   Content
	Wrote Span       // of New, what the session is known to have put there; empty: what has no counterpart in Old
	Stamp disk.Stamp // of the file with New
}

// Record returns the record after a change, and the version that Old had until then; "": there was no file. now is the
// record as the memory has it after the change: a call may have read the file in between, and none of that may be lost.
// memoryFails says that the memory could not be asked.
func (c Change) Record(now *Record, memoryFails bool) (next *Record, before Version) {
	next = &Record{Path: c.Path, Hash: c.New.Sum, Size: c.New.size(), Spans: wholeOf(c.New.size()), View: noView,
		Stamp: c.Stamp}
	known, was := c.Known, now.Of(c.old())
	now = now.Of(c.New)
	// A read of the new content may have been quicker.
	quicker := now != nil && now.Hash == c.New.Sum && was.Hash != c.old().Sum
	carried := was.LeftAs(c.old(), "")
	if !memoryFails && !quicker && !carried {
		known = was // a read of the old content may have added to it
	}
	if c.Old != nil {
		spans := c.Claim.covered(known, *c.Old)
		before = VersionOf(c.Old.Sum, isWhole(spans, c.Old.size()))
		next.Own = c.replaced(known)
		next.Ranges = c.ranges(known)
		if !c.Claim.Whole {
			next.Spans = normal(append(moved(c.Old.Bytes, c.New.Bytes, spans), c.Wrote), next.Size)
		}
	}
	switch same := c.Old != nil && c.Old.Sum == c.New.Sum; {
	case same && now != nil && now.Hash == c.New.Sum:
		next.Own, next.Ranges, next.Parts, next.View, next.Again = now.Own, now.Ranges, now.Parts, now.View, now.Again
	case same:
		next.Own, next.Ranges = nil, nil
	case quicker:
		next.Spans = normal(append(next.Spans, now.Spans...), next.Size)
		next.Parts, next.View, next.Again = now.Parts, now.View, now.Again
	}
	return next, before
}

// old is Old, or an empty content without a digest.
func (c Change) old() Content {
	if c.Old == nil {
		return Content{}
	}
	return *c.Old
}

// replaced returns the versions that the session may still name.
func (c Change) replaced(known *Record) []disk.Digest {
	var own []disk.Digest
	if known != nil && known.Hash == c.Old.Sum {
		own = append(own, known.Own...)
	}
	own = append(own, c.Old.Sum)
	return own[max(0, len(own)-ownVersions):]
}

// ranges returns the versions of parts that the session may still name.
func (c Change) ranges(known *Record) []ranged {
	var all []ranged
	if known != nil && known.Hash == c.Old.Sum {
		all = append(all, known.Ranges...)
		for _, p := range known.Parts {
			all = append(all, ranged{p.version(c.Old.size()), p.Span})
		}
	}
	if v := c.Claim.Version; v.ranged() {
		if of, ok := known.fits(v, *c.Old); ok {
			all = append(all, ranged{v, of})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return movedRanges(c.Old.Bytes, c.New.Bytes, all)
}

// movedRanges carries ranges of old over to new, the last ownVersions of them, each version once.
func movedRanges(old, new []byte, all []ranged) []ranged {
	head := lines.Prefix(old, new)
	tail := lines.Suffix(old[head:], new[head:])
	from, to, shift := int64(head), int64(len(old)-tail), int64(len(new)-len(old))
	done := make(map[Version]bool)
	var out []ranged
	for _, v := range slices.Backward(all) {
		if done[v.Version] || len(out) == ownVersions {
			continue
		}
		done[v.Version] = true
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
