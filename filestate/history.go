package filestate

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The errors of the journal, besides what the system says.
var (
	ErrNoChange = errors.New("no such change is in the journal")
	ErrNoCopy   = errors.New("the journal has no copy of the content")
)

// An Entry is one change in the journal: what one Update did. As JSON it says nothing of By.
type Entry struct {
	ID     string      `json:"id"`
	Time   time.Time   `json:"time"`
	By     By          `json:"-"`
	Files  []EntryFile `json:"files"`
	Undoes []string    `json:"undoes,omitempty"` // ids of the changes that it took back
	Undone bool        `json:"undone,omitempty"` // a later change took it back, and was not taken back itself
	Open   bool        `json:"open,omitempty"`   // it is being made, or the process died in the middle and Recover has not run since
	// Unsure says that it stopped half way, and that not everything could be taken back: somebody has changed a file since.
	Unsure bool `json:"unsure,omitempty"`
	// Kept is set for what is no change of ours: "external", a content that somebody saved in the very moment of a change,
	// "recovered", one that a process that died left in a temporary file. It is in EntryFile.Before; Undo writes it.
	Kept string `json:"kept,omitempty"`
}

// An EntryFile is one file of a change. Before and After are SHA-256 in hex; "": there was no file, or is none any more.
type EntryFile struct {
	Path    string `json:"path"`
	Op      string `json:"op"` // create, update or delete
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	NoCopy  bool   `json:"no_copy,omitempty"` // over 32 MiB: noted without content
}

// A Query says which changes History returns. The zero Query means all.
type Query struct {
	ID        string
	Path      string // canonical; changes that include this file
	Workspace string
	Session   string
	Kept      bool // also what is no change of ours
	Limit     int  // 0: all

	// Fits has the last word about an entry, before it counts for Limit; nil: all fit. It is called newest first, in the
	// caller's goroutine.
	Fits func(Entry) bool
}

// History returns the changes that fit q, newest first, whichever process made them. What is damaged is passed over. The
// error is the cause of ctx.
func (j *Journal) History(ctx context.Context, q Query) ([]Entry, error) {
	var out []Entry
	undone := make(map[string]bool)
	for n, day := range j.names() {
		if err := context.Cause(ctx); err != nil {
			return out, err
		}
		h, err := n.header(day)
		if err != nil {
			continue
		}
		if h.Kind == kindChange && n.state == stateDone && !undone[h.ID] {
			for _, id := range h.Undoes {
				undone[id] = true
			}
		}
		if !q.fits(h) {
			continue
		}
		e := h.entry(n.state, undone[h.ID])
		if q.Fits != nil && !q.Fits(e) {
			continue
		}
		out = append(out, e)
		if len(out) == q.Limit || q.ID != "" {
			break
		}
	}
	return out, nil
}

func (q Query) fits(h *header) bool {
	return (q.Kept || h.Kind == kindChange) &&
		(q.ID == "" || q.ID == h.ID) &&
		(q.Workspace == "" || q.Workspace == h.By.Workspace) &&
		(q.Session == "" || q.Session == h.By.Session) &&
		(q.Path == "" || slices.ContainsFunc(h.Files, func(f noted) bool { return f.Path == q.Path }))
}

func (h *header) entry(state string, undone bool) Entry {
	e := Entry{
		ID: h.ID, Time: h.Time, By: h.By, Undoes: h.Undoes,
		Undone: undone, Open: state == stateOpen, Unsure: state == stateUnsure,
	}
	if h.Kind != kindChange {
		e.Kept = h.Kind
	}
	for _, f := range h.Files {
		e.Files = append(e.Files, EntryFile{
			Path: f.Path, Op: f.op(), Before: f.Before.text(), After: f.After.text(),
			Added: f.Added, Removed: f.Removed, NoCopy: !f.Kept,
		})
	}
	return e
}

func (f noted) op() string {
	switch {
	case f.Before == nil:
		return "create"
	case f.After == nil:
		return "delete"
	default:
		return "update"
	}
}

// text is the digest in hex, "" for none.
func (d *digest) text() string {
	if d == nil {
		return ""
	}
	return d.sum()
}

// Last returns the newest change of a file that an undo by path takes back: it is not undone, and is no undo itself.
// ErrNoChange: there is none.
func (j *Journal) Last(ctx context.Context, q Query) (Entry, error) {
	fits := q.Fits
	q.Limit, q.Kept = 1, false
	q.Fits = func(e Entry) bool { return !e.Undone && len(e.Undoes) == 0 && (fits == nil || fits(e)) }
	found, err := j.History(ctx, q)
	if err != nil {
		return Entry{}, err
	}
	if len(found) == 0 {
		return Entry{}, ErrNoChange
	}
	return found[0], nil
}

// Contents returns what a change found in a file, and what it left; nil: there was no file. ErrNoChange: there is no such
// change, or it has no such file. ErrNoCopy: the content was too large, or is damaged.
func (j *Journal) Contents(ctx context.Context, id, path string) (before, after []byte, err error) {
	_, e, err := j.find(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range e.Files {
		switch {
		case f.Path != path:
		case !f.Kept:
			return nil, nil, ErrNoCopy
		default:
			return e.parts[i].before, e.parts[i].after, nil
		}
	}
	return nil, nil, ErrNoChange
}

// find reads the note of an id.
func (j *Journal) find(ctx context.Context, id string) (noteName, *note, error) {
	for n, day := range j.names() {
		if err := context.Cause(ctx); err != nil {
			return n, nil, err
		}
		if n.id != id {
			continue
		}
		e, err := n.read(day)
		if errors.Is(err, errDamaged) {
			return n, nil, errors.Join(ErrNoCopy, err)
		}
		return n, e, err
	}
	return noteName{}, nil, ErrNoChange
}

// History returns what Journal.History does; nothing without a journal.
func (l *Ledger) History(ctx context.Context, q Query) ([]Entry, error) {
	if l.journal == nil {
		return nil, nil
	}
	return l.journal.History(ctx, q)
}

// Last returns what Journal.Last does; ErrNoChange without a journal.
func (l *Ledger) Last(ctx context.Context, q Query) (Entry, error) {
	if l.journal == nil {
		return Entry{}, ErrNoChange
	}
	return l.journal.Last(ctx, q)
}

// Contents returns what Journal.Contents does; ErrNoChange without a journal.
func (l *Ledger) Contents(ctx context.Context, id, path string) (before, after []byte, err error) {
	if l.journal == nil {
		return nil, nil, ErrNoChange
	}
	return l.journal.Contents(ctx, id, path)
}
