package seen

import (
	"slices"

	"codehand/filestate/disk"
	"codehand/filestate/lines"
	"codehand/filestate/splices"
)

// A Change is a content that the session itself has put in the place of another.
type Change struct {
	Path    string
	Claim   Claim
	Known   *Record  // what was known of Old when the change was decided, maybe Carried
	Old     *Content // nil: there was no file
	New     Content
	Splices splices.List // of a large file that was changed at some places: these
	Wrote   Span         // of New, what the session is known to have put there; empty: what has no counterpart in Old
	Stamp   disk.Stamp   // of the file with New
}

// Record returns the record after a change, and the version that Old had until then; "": there was no file. now is the
// record as the memory has it after the change: a call may have read the file in between, and none of that may be lost.
// memoryFails says that the memory could not be asked.
func (c Change) Record(now *Record, memoryFails bool) (next *Record, before Version) {
	next = &Record{Path: c.Path, Hash: c.New.Sum, Size: c.New.Size, Spans: wholeOf(c.New.Size), View: noView,
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
		before = VersionOf(c.Old.Sum, isWhole(spans, c.Old.Size))
		next.Own = c.replaced(known)
		next.Ranges = c.ranges(known)
		if !c.Claim.Whole {
			next.Spans = normal(append(c.moved(spans), c.Wrote), next.Size)
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
			all = append(all, ranged{p.version(c.Old.Size), p.Span})
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
	return c.movedRanges(all)
}

// moved carries what was seen of Old over to New.
func (c Change) moved(spans []Span) []Span {
	if c.New.From == nil {
		return moved(c.Old.Bytes, c.New.Bytes, spans)
	}
	var out []Span
	at, shift := int64(0), int64(0)
	within := func(to, less int64) (part []Span) {
		for _, s := range spans {
			part = append(part, Span{max(s.From, at) - less, min(s.To, to) - less})
		}
		return part
	}
	for _, s := range c.Splices {
		out = append(out, within(s.At, -shift)...)
		at = s.At
		end := at + int64(len(s.Old))
		for _, span := range moved(s.Old, s.New, normal(within(end, at), end-at)) {
			out = append(out, Span{span.From + at + shift, span.To + at + shift})
		}
		at, shift = end, shift+int64(len(s.New)-len(s.Old))
	}
	return normal(append(out, within(c.Old.Size, -shift)...), c.New.Size)
}

// movedRanges carries ranges of Old over to New, the last ownVersions of them, each version once.
func (c Change) movedRanges(all []ranged) []ranged {
	var from, to int64
	shift := c.New.Size - c.Old.Size
	if c.New.From == nil {
		head := lines.Prefix(c.Old.Bytes, c.New.Bytes)
		from, to = int64(head), c.Old.Size-int64(lines.Suffix(c.Old.Bytes[head:], c.New.Bytes[head:]))
	} else {
		from, to = c.Splices.Hull()
	}
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
