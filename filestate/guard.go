package filestate

import (
	"fmt"

	"codehand/filestate/seen"
)

// claim is on what grounds the change is asked for.
func (e Edit) claim() seen.Claim {
	return seen.Claim{Version: e.Version, Whole: e.Whole, Unseen: e.Unseen}
}

// guard refuses what the table of the guard does not let through. memErr says that the memory failed.
func (w *work) guard(held *Contents, memErr error) error {
	switch w.edit.claim().Decide(w.known, memErr != nil, w.content()) {
	case seen.GoOn:
		if w.edit.Unseen && w.file != nil && (!w.known.Hashed() || w.known.Hash != w.base) {
			w.since = staleOf(w, held)
		}
		return nil
	case seen.PartRead:
		return w.partRead()
	case seen.Stale:
		e := staleOf(w, held)
		if w.edit.Whole || w.edit.Touches != nil || e.Old == nil || !w.known.LeftAs(*w.content(), w.edit.Version) {
			return e
		}
		// Once the change is made, outside asks whether it keeps to what the command left alone.
		w.since, w.known = e, w.known.Carried(e.Old, *w.content(), w.stamp)
		return nil
	case seen.NoMemory:
		return memErr
	default:
		return fmt.Errorf("%s: %w", w.path, ErrNotRead)
	}
}

// outside returns a *PartReadError if the edit's version is that of a part, and more than that part is changed, or if
// the edit touches what was not shown; and a *StaleError if it touches lines that a command of the session wrote.
func (w *work) outside() error {
	if w.edit.Remove || w.file == nil {
		return nil
	}
	if w.since != nil && !w.edit.Unseen && seen.Clash(w.since.Old, w.old, w.next) {
		return w.since
	}
	of, outside := w.edit.claim().Outside(w.known, *w.content(), w.next)
	if !outside {
		return w.unseen()
	}
	e := &PartReadError{Path: w.path, Version: w.edit.Version}
	e.Seen, e.Total = seen.LinesIn(w.old, of)
	return e
}

// unseen returns a *PartReadError if the edit touches what was not shown.
func (w *work) unseen() error {
	if w.edit.Touches == nil {
		return nil
	}
	if was, _ := w.edit.Touches(); !w.edit.claim().Covers(w.known, *w.content(), was) {
		return w.partRead()
	}
	return nil
}

func (w *work) partRead() error {
	e := &PartReadError{Path: w.path}
	e.Seen, e.Total = seen.LinesIn(w.old, w.known.SpansOf(w.base)...)
	return e
}

// staleOf makes the error of the guard. What is compared with is the content that the caller named, if
// this session has a record of it, or else the one in the record.
func staleOf(w *work, held *Contents) *StaleError {
	e := &StaleError{Path: w.path, Was: w.edit.Version, Named: w.edit.Version != "", New: w.old, stamp: w.stamp}
	whole := !e.Was.Partial()
	if k := w.known; k != nil {
		was, named := k.Hash, true
		if e.Was == "" {
			e.Was, whole = k.Version(), k.Whole()
		} else {
			was, named = k.Named(e.Was)
		}
		if named && k.Hashed() {
			e.Old = held.Get(was)
		}
	}
	e.Now = seen.VersionOf(w.base, whole)
	return e
}
