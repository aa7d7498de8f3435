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
// there is none; memoryFails says that it could not be looked up; exists and base describe the disk.
func decide(e Edit, known *record, memoryFails, exists bool, base digest) verdict {
	switch {
	case !exists, e.Unseen:
		return goOn
	case e.Version != "" && !fits(e.Version, known, base):
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

// fits says that v is a version of what is on the disk, or of a content that this session replaced
// itself with no foreign change since: a model sends several edits in one turn with one version.
func fits(v Version, known *record, base digest) bool {
	if v.names(base) {
		return true
	}
	if known == nil || known.Hash != base {
		return false
	}
	_, own := v.namesOne(known.Own)
	return own
}

// coverageBefore returns what of the old content the session knows, by its record or by the version
// that it gave.
func coverageBefore(e Edit, known *record, base digest, size int64) []Span {
	switch {
	case e.Version != "" && !e.Version.partial() && fits(e.Version, known, base):
		return wholeOf(size)
	case known != nil && known.Hash == base:
		return known.Spans
	default:
		return nil
	}
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
		if named {
			e.Old = l.contents.get(was)
		}
	}
	e.Now = w.base.version(whole)
	return e
}
