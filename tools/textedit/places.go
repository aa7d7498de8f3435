package textedit

import (
	"bytes"
	"fmt"
	"iter"

	"codehand/filestate/splices"
	"codehand/tools/textedit/compare"
)

// maxPlaces is how many places an Apply follows. A diff of 8 KiB shows fewer, and each costs time and memory.
const maxPlaces = 200

// nearby is how many lines around a place are compared: more than a diff shows, since among equal lines a change may be
// found some lines away.
const nearby = diffContext + 16

// A Place is where a content was changed: bytes of the old one, and those that stand there in the new one.
type Place struct{ OldFrom, OldTo, NewFrom, NewTo int }

// A trail follows the parts of a content through several edits.
type trail struct {
	pieces []piece
	lost   bool // there were too many
}

func newTrail(size int) trail { return trail{pieces: []piece{{size: size}}} }

// follow notes the splices of one edit in a text of that size.
func (t *trail) follow(size int, splices []splice) {
	if t.lost = t.lost || len(t.pieces)+len(splices) > maxPlaces; t.lost {
		t.pieces = nil
		return
	}
	w := &walker{old: t.pieces, made: make([]piece, 0, len(t.pieces)+2*len(splices))}
	at := 0
	for _, s := range splices {
		w.take(s.from-at, true, nil)
		w.take(s.to-s.from, false, nil)
		if len(s.add) > 0 {
			w.made = append(w.made, piece{size: len(s.add), fresh: true})
		}
		at = s.to
	}
	w.take(size-at, true, nil)
	t.pieces = w.made
}

// places returns where the content of that size was changed, in order; nil: it is not known.
func (t *trail) places(size int) []Place {
	if t.lost {
		return nil
	}
	found := make([]Place, 0, len(t.pieces)/2+1)
	open := Place{}
	at := 0
	end := func(OldTo int) {
		open.OldTo, open.NewTo = OldTo, at
		if open.OldTo > open.OldFrom || open.NewTo > open.NewFrom {
			found = append(found, open)
		}
	}
	for _, p := range t.pieces {
		if !p.fresh {
			end(p.from)
			open = Place{OldFrom: p.from + p.size, NewFrom: at + p.size}
		}
		at += p.size
	}
	end(size)
	return found
}

// DiffAt is Diff for contents that differ at places only, as a Report names them. It looks at nothing else, however
// large the contents are. Without places it is Diff.
func DiffAt(old, new []byte, places []Place, maxBytes int) (text string, whole bool) {
	if bytes.Equal(old, new) {
		return "", true
	}
	var parts []diff
	lines, size := 0, 0
	for a, b := range stretches(old, new, places) {
		lines, size = lines+a.count()+b.count(), size+a.size()+b.size()
		if lines > diffLines || size > diffBytes {
			parts = nil
			break
		}
		d := diff{old: a.split(), new: b.split(), first: a.before, shift: b.before - a.before}
		if d.changes = compare.Lines(d.old, d.new); len(d.changes) > 0 {
			parts = append(parts, d)
		}
	}
	if len(parts) == 0 {
		return Diff(old, new, maxBytes)
	}
	return fit(joined(parts), maxBytes, true)
}

// DiffSplices is Diff for a large content that is changed at some places only, which hold the lines around them. Where
// a line is very long, it is a part of one.
func DiffSplices(l splices.List, maxBytes int) (text string, whole bool) {
	var parts []diff
	lines, size, shift := 0, 0, 0
	for _, s := range l.Narrow() {
		a, b := part{text: s.Old, before: s.Line}, part{text: s.New, before: s.Line + shift}
		lines, size = lines+a.count()+b.count(), size+a.size()+b.size()
		if lines > diffLines || size > diffBytes {
			text := fmt.Sprintf("... (the first change is in line %d; too much to be compared)", l[0].Line+1)
			return fit(sentence(text), maxBytes, false)
		}
		d := diff{old: a.split(), new: b.split(), first: a.before, shift: shift}
		if d.changes = compare.Lines(d.old, d.new); len(d.changes) > 0 {
			parts = append(parts, d)
		}
		shift += bytes.Count(s.New, newline) - bytes.Count(s.Old, newline)
	}
	return fit(joined(parts), maxBytes, len(parts) == len(l))
}

// joined are the lines of several diffs.
func joined(parts []diff) func(*clipping) iter.Seq[string] {
	return func(clip *clipping) iter.Seq[string] {
		return func(yield func(string) bool) {
			for _, d := range parts {
				for line := range d.lines(clip) {
					if !yield(line) {
						return
					}
				}
			}
		}
	}
}

// stretches yields the lines around places of both contents. Places that are near each other share a stretch.
func stretches(old, new []byte, places []Place) iter.Seq2[*part, *part] {
	return func(yield func(*part, *part) bool) {
		from := len(mark(old))
		oldLines, newLines, oldAt, newAt := 0, 0, from, len(mark(new))
		for len(places) > 0 {
			first, last := places[0], places[0]
			start := from + backLines(old[from:], first.OldFrom-from, nearby)
			end := ahead(old, last.OldTo, nearby)
			places = places[1:]
			for len(places) > 0 && places[0].OldFrom <= ahead(old, end, nearby) {
				last, places = places[0], places[1:]
				end = ahead(old, last.OldTo, nearby)
			}
			newStart, newEnd := first.NewFrom-(first.OldFrom-start), last.NewTo+(end-last.OldTo)
			oldLines += bytes.Count(old[oldAt:start], newline)
			newLines += bytes.Count(new[newAt:newStart], newline)
			oldAt, newAt = start, newStart
			if !yield(&part{text: old[start:end], before: oldLines},
				&part{text: new[newStart:newEnd], before: newLines}) {
				return
			}
		}
	}
}

// ahead returns the end of the line in which offset at is, and of so many lines behind it.
func ahead(text []byte, at, lines int) int {
	for range lines + 1 {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}
