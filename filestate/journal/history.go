package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/splices"
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
	Undone bool        `json:"undone,omitempty"` // later changes took all of it back, and are in force
	// UndoneFiles are the paths of those of its files that were taken back, if others were not.
	UndoneFiles []string `json:"undone_files,omitempty"`
	// Open says that it is being made, or that the process died in the middle and Settle has not run since.
	Open bool `json:"open,omitempty"`
	// Unsure says that the change stopped half way and could not be taken back wholly, since another program has
	// changed a file.
	Unsure bool `json:"unsure,omitempty"`
	// Kept is set for what is no change of ours: "external" is a content that another program saved in the very moment
	// of a change, "recovered" one that a dead process left in a temporary file, "held" what files were before a
	// command that may discard it. It is in EntryFile.Before; Undo writes it.
	Kept string `json:"kept,omitempty"`
	// Portion is what it took back of a change that it left in force otherwise; nil: it is no such undo. Of whole files
	// it is what the change did to Files.
	Portion *Portion `json:"portion,omitempty"`
}

// Back says whether a file of the change was taken back.
func (e Entry) Back(path string) bool { return e.Undone || slices.Contains(e.UndoneFiles, path) }

// IsUndo says whether the change took another one back, or a part of it.
func (e Entry) IsUndo() bool { return len(e.Undoes) > 0 || e.Portion != nil }

// An EntryFile is one file of a change. Before and After are SHA-256 in hex; "": there was no file, or is none any
// more.
type EntryFile struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // the path of the file that a tool moved here, in the same change
	Op      string `json:"op"`             // create, update or delete
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Mode    string `json:"mode,omitempty"`    // before and after, 0644>0755, if the change is known to have changed it
	NoCopy  bool   `json:"no_copy,omitempty"` // over 32 MiB: noted without what an undo needs
	Why     string `json:"why,omitempty"`     // why it is noted without content, if not for its size: a clause
	Files   int    `json:"files,omitempty"`   // how many a new directory has that is noted as one; 0: one file
}

// History returns the changes that fit q, newest first, whichever process made them. What is damaged is passed over.
// *UnreadError: it found these, and cannot see whether there are more. ErrNoChange: there is no change q.Before. Every
// other error is the cause of ctx.
//
// With Path, Below or ID it reads the notes that it does not know yet, and those that may be meant. What was read once
// and is about other files needs no reading again: that it cannot be read now is no *UnreadError.
func (j *Journal) History(ctx context.Context, q Query) ([]Entry, error) {
	j.endLate()
	var out []Entry
	var newest noteName
	var left unread
	page := page{ends: make(map[string]int64)}
	undone, from := j.resume(q.Before)
	behind := q.Before == "" || from > 0
	for p, day := range j.picks(&q, &left) {
		n := p.noteName
		if err := context.Cause(ctx); err != nil {
			return out, err
		}
		if newest.id == "" {
			newest = n
		}
		if from > 0 && n.at >= from {
			continue
		}
		page.open = page.open || n.state == stateOpen
		if p.passed {
			takesBack(undone, n.state, n.id, p.about)
			continue
		}
		h, err := n.header(day)
		if err != nil {
			if q.ID == "" || q.ID == n.id {
				left.add(err)
			}
			continue
		}
		j.index.learn(p, h)
		if h.Kind == KindChange {
			takesBack(undone, n.state, h.ID, h.about())
		}
		if !behind {
			behind = h.ID == q.Before
			continue
		}
		if !q.fits(h) {
			continue
		}
		e := h.entry(n.state, undone[h.ID])
		if q.Fits != nil && !q.Fits(e) {
			continue
		}
		out = append(out, e)
		if q.Limit > 0 {
			page.ends[h.ID] = n.at
		}
		if len(out) == q.Limit || q.ID != "" {
			break
		}
	}
	if !behind {
		return nil, left.err(ErrNoChange)
	}
	if len(page.ends) == q.Limit && q.Limit > 0 && !page.open && left.cause == nil {
		page.newest, page.undone = newest, undone
		j.mu.Lock()
		j.page = page
		j.mu.Unlock()
	}
	return out, left.err(nil)
}

func (h *Header) entry(state string, undone taken) Entry {
	e := Entry{
		ID: h.ID, Time: h.Time, By: h.By, Undoes: h.Undoes, Portion: h.Portion,
		Open: state == stateOpen, Unsure: state == stateUnsure,
	}
	if h.Kind != KindChange {
		e.Kept = h.Kind
	}
	for _, f := range h.Files {
		if undone.of(f.Path) {
			e.UndoneFiles = append(e.UndoneFiles, f.Path)
		}
	}
	if len(e.UndoneFiles) == len(h.Files) && len(h.Files) > 0 {
		e.Undone, e.UndoneFiles = true, nil
	}
	for _, f := range h.Files {
		e.Files = append(e.Files, EntryFile{
			Path: f.Path, From: f.From, Op: f.op(), Before: f.Before.Text(), After: f.After.Text(),
			Added: f.Added, Removed: f.Removed, NoCopy: !f.Undoes(), Why: f.Why,
			Mode: f.modes(), Files: f.Files,
		})
	}
	return e
}

func (f File) modes() string {
	if f.Before == nil || f.NewMode == 0 || f.NewMode == f.Mode {
		return ""
	}
	return fmt.Sprintf("%04o>%04o", f.Mode.Perm(), f.NewMode.Perm())
}

func (f File) op() string {
	switch {
	case f.Before == nil:
		return "create"
	case f.After == nil:
		return "delete"
	default:
		return "update"
	}
}

// Last returns the newest change of a file that an undo by path takes back: it is not undone, or not in that file, and
// is no undo itself.
// q.Fits is asked about undos as well. ErrNoChange: there is none. *UnreadError: there may be a newer one, or one at
// all.
func (j *Journal) Last(ctx context.Context, q Query) (Entry, error) {
	fits := q.Fits
	q.Limit, q.Kept = 1, false
	q.Fits = func(e Entry) bool { return (fits == nil || fits(e)) && !e.Back(q.Path) && !e.IsUndo() }
	found, err := j.History(ctx, q)
	if err != nil {
		return Entry{}, err
	}
	if len(found) == 0 {
		return Entry{}, ErrNoChange
	}
	return found[0], nil
}

// Contents returns what a change found in a file, and what it left; nil: there was no file. ErrNoChange: there is no
// such change, or it has no such file. ErrNoCopy: the content was too large, or is damaged. *UnreadError: the journal
// could not be read, so either is possible.
func (j *Journal) Contents(ctx context.Context, id, path string) (before, after []byte, err error) {
	e, err := j.Find(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range e.Files {
		switch {
		case f.Path != path:
		case !f.Kept:
			return nil, nil, ErrNoCopy
		default:
			return e.Parts[i].Before, e.Parts[i].After, nil
		}
	}
	return nil, nil, ErrNoChange
}

// Splices returns what a change made different in a file that is too large for Contents, and where. Its errors are
// those of Contents.
func (j *Journal) Splices(ctx context.Context, id, path string) (splices.List, error) {
	e, err := j.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	for i, f := range e.Files {
		switch {
		case f.Path != path:
		case f.Cuts == nil:
			return nil, ErrNoCopy
		default:
			return e.Parts[i].Splices, nil
		}
	}
	return nil, ErrNoChange
}

// Find reads the note of an id, with its contents. ErrNoChange: there is none. ErrNoCopy: it is damaged. *UnreadError:
// the journal could not be read, so either is possible.
func (j *Journal) Find(ctx context.Context, id string) (*Note, error) {
	var left unread
	for n, day := range j.walk(&left) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if n.id != id {
			continue
		}
		e, err := n.read(day)
		if errors.Is(err, errDamaged) {
			return nil, errors.Join(ErrNoCopy, err)
		}
		if err != nil {
			left.add(err)
			break // gone, or not to be read
		}
		e.Torn = n.state != stateDone
		return e, nil
	}
	return nil, left.err(ErrNoChange)
}

// Knows says whether the journal holds a content, or the change that made this temporary file was still writing it.
func (j *Journal) Knows(ctx context.Context, temp string, content []byte) bool {
	sum := disk.DigestOf(content)
	for n, day := range j.names() {
		if ctx.Err() != nil {
			return false
		}
		h, err := n.header(day)
		if err != nil {
			continue
		}
		for i, f := range h.Files {
			if f.Kept && (f.Before != nil && *f.Before == sum || f.After != nil && *f.After == sum) {
				return true
			}
			if !f.Kept || f.Temp != temp || f.After == nil {
				continue
			}
			if e, err := n.read(day); err == nil && bytes.HasPrefix(e.Parts[i].After, content) {
				return true
			}
		}
	}
	return false
}
