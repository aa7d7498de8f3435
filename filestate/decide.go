package filestate

// A verdict says whether an Edit may go on. The zero value refuses.
type verdict int

const (
	notRead verdict = iota
	partRead
	stale
	noMemory
	goOn
)

// decide is the table of the guard: the first row that fits. known is the session's record, nil if
// there is none; memoryFails says that it could not be looked up; exists and base describe the disk;
// fits says whether the edit's version, if it has one, does.
func decide(e Edit, known *record, memoryFails, exists bool, base digest, fits bool) verdict {
	switch {
	case !exists, e.Unseen:
		return goOn
	case e.Version != "" && !fits:
		return stale
	case e.Version != "" && e.Whole && e.Version.partial():
		return partRead
	case e.Version != "":
		return goOn
	case memoryFails:
		return noMemory
	case !known.shown():
		return notRead
	case known.Hash != base:
		return stale
	case e.Whole && !known.whole():
		return partRead
	default:
		return goOn
	}
}

// fits says that the version of the edit is one of what is on the disk, or of a content that this
// session replaced itself with no foreign change since: a model sends several edits in one turn with
// one version. known is what is known of the disk's content. of is what the version covers.
func (w *work) fits(known *record) (of Span, ok bool) {
	v, all := w.edit.Version, Span{0, int64(len(w.old))}
	mine := known != nil && known.Hash == w.base
	if !v.ranged() {
		if v.names(w.base) {
			return all, true
		}
		if !mine {
			return Span{}, false
		}
		_, ok = v.namesOne(known.Own)
		return all, ok
	}
	if s := v.span(); s.From < s.To && s.To <= all.To && v == (part{s, digestOf(w.old[s.From:s.To])}).version(all.To) {
		return s, true
	}
	if mine {
		for _, own := range known.Ranges {
			if own.Version == v {
				return own.Span, true
			}
		}
	}
	return Span{}, false
}

// coverageBefore returns what of the old content the session knows, by its record or by the version
// that it gave.
func (w *work) coverageBefore(known *record) []Span {
	var spans []Span
	if known != nil && known.Hash == w.base {
		spans = known.Spans
	}
	size, v := int64(len(w.old)), w.edit.Version
	if v == "" || v.partial() && !v.ranged() {
		return spans
	}
	if of, ok := w.fits(known); ok {
		return normal(append(spans[:len(spans):len(spans)], of), size)
	}
	return spans
}

// replaced returns the versions that the session may still name after it replaced base.
func replaced(known *record, base digest) []digest {
	var own []digest
	if known != nil && known.Hash == base {
		own = append(own, known.Own...)
	}
	own = append(own, base)
	return own[max(0, len(own)-ownVersions):]
}

// outside returns a *PartReadError if the edit's version is that of a part, and more than that part
// is changed.
func (w *work) outside() error {
	if !w.edit.Version.ranged() || w.edit.Unseen || w.edit.remove || w.file == nil {
		return nil
	}
	of, _ := w.fits(w.known)
	if differsOnlyIn(of, w.old, w.next) {
		return nil
	}
	e := &PartReadError{Path: w.path, Version: w.edit.Version}
	e.Seen, e.Total = seenLines(w.old, []Span{of})
	return e
}

func (w *work) partRead() error {
	e := &PartReadError{Path: w.path}
	var spans []Span
	if w.known != nil && w.known.Hash == w.base {
		spans = w.known.Spans
	}
	e.Seen, e.Total = seenLines(w.old, spans)
	return e
}

// stale makes the error of the guard. What is compared with is the content that the caller named, if
// this session has a record of it, or else the one in the record.
func (l *Ledger) stale(w *work) error {
	e := &StaleError{Path: w.path, Was: w.edit.Version, New: w.old, stamp: w.stamp}
	whole := !e.Was.partial()
	if k := w.known; k != nil {
		was, named := k.Hash, true
		if e.Was == "" {
			e.Was, whole = k.version(), k.whole()
		} else {
			was, named = e.Was.namesOne(append(k.Own[:len(k.Own):len(k.Own)], k.Hash))
		}
		if named && k.hashed() {
			e.Old = l.contents.get(was)
		}
	}
	e.Now = w.base.version(whole)
	return e
}
