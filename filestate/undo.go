package filestate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/filestate/splices"
)

// A Step names a change in the journal and one of its files, resolved anew by the caller.
type Step struct {
	ID    string
	File  File
	Rests []Rest // what else the file may be; only of a change that no other step of this file is about
}

// A Rest is what a file is instead of what a change left, since only parts of changes were taken back in it, and what
// it becomes when that change is taken back. Both are whole contents.
type Rest struct{ Now, Then []byte }

// A ConflictError says that a file is not what a change left, so that the change is not taken back.
type ConflictError struct {
	Path string
	Want []byte // what the change left; nil: no file
	Now  []byte // what is there; nil: no file, or nothing that could be compared
	Err  error  // what else is in the way: a link, a directory, another name of the file; nil: the content differs
	// Large says that the content differs, and is too large to be shown: Want and Now are nil
	Large bool
}

// Error names the path and what is in the way.
func (e *ConflictError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s is not what the change left: %v", e.Path, e.Err)
	}
	return e.Path + " is not what the change left"
}

// Unwrap returns what is in the way.
func (e *ConflictError) Unwrap() error { return e.Err }

// ErrMode is why Undo leaves a file alone: a command changed its mode, and another program has changed it since.
var ErrMode = errors.New("file has another mode")

// ErrLinked is why a file with other names is not undone: the change left it with one.
var ErrLinked = errors.New("file has other names")

// Undo takes changes back, all or none, newest first: each needs a Step for every file of it. It is an Update, with a
// change of its own in the journal that can be undone as well. What the session has seen of the files does not matter,
// and moves along. It works on changes of any process and session whose journal this is.
//
// A file that is neither what the change left nor one of its step's Rests stays as it is: *ConflictError; for several
// files the errors are joined. Only of a change that stopped half way, a file that is what it was before will do, or
// one that is half written.
// ErrNoChange, ErrNoCopy (of the journal): there is nothing to take back, or nothing to do it with. All other errors
// are those of Update.
//
// Instead, all steps may name contents that were kept (Entry.Kept). Then the files get those, whatever they hold now;
// that is in the journal as with any Update. The new change takes none back, and names none.
func (l *Ledger) Undo(ctx context.Context, by journal.By, steps ...Step) ([]Change, error) {
	return l.undo(ctx, purpose{By: by}, steps)
}

// UndoFiles is Undo of one change in some of its files only, those that have a Step. What the change did to the others
// stays, and can be taken back later. ErrNoCopy is about those files alone.
func (l *Ledger) UndoFiles(ctx context.Context, by journal.By, steps ...Step) ([]Change, error) {
	return l.undo(ctx, purpose{By: by, of: part(steps)}, steps)
}

// part is what steps of one change take back of it; nil: they are not of one.
func part(steps []Step) *journal.Portion {
	if len(steps) == 0 || slices.ContainsFunc(steps, func(s Step) bool { return s.ID != steps[0].ID }) {
		return nil
	}
	return &journal.Portion{ID: steps[0].ID}
}

// UndoPortion is an Update of one file that takes one hunk of a change back, and is noted as that.
func (l *Ledger) UndoPortion(ctx context.Context, by journal.By, of journal.Portion, edit Edit) ([]Change, error) {
	return l.update(ctx, purpose{By: by, of: &of}, []Edit{edit})
}

// TryUndo checks all that Undo checks, or UndoFiles if the steps are of some files of one change. It returns what that
// would do, and writes nothing.
func (l *Ledger) TryUndo(ctx context.Context, steps ...Step) ([]Change, error) {
	return l.undo(ctx, purpose{try: true, of: part(steps)}, steps)
}

func (l *Ledger) undo(ctx context.Context, why purpose, steps []Step) ([]Change, error) {
	if l.journal == nil || len(steps) == 0 {
		return nil, journal.ErrNoChange
	}
	partly := why.of != nil
	notes, err := l.gather(ctx, steps, partly)
	if err != nil {
		return nil, err
	}
	named := make(map[string]bool)
	for _, s := range steps {
		named[s.File.Path] = true
	}
	var backs []*back
	byPath := make(map[string]*back)
	for _, e := range notes {
		kept := e.Kind != journal.KindChange
		switch {
		case kept:
			why.of = nil
		case why.of == nil:
			why.undoes = append(why.undoes, e.ID)
		}
		for i, f := range e.Files {
			if partly && !named[f.Path] {
				continue
			}
			b := byPath[f.Path]
			switch {
			case b == nil:
				b = &back{want: f.After, left: e.Parts[i].After, leftMode: f.NewMode}
				if e.Torn {
					b.found = e.Parts[i].Before
				}
				byPath[f.Path], backs = b, append(backs, b)
			case !b.to.Equal(f.After):
				// What came in between is not what is there now.
				return nil, &ConflictError{Path: f.Path, Want: e.Parts[i].After, Err: disk.ErrMoved}
			default:
				b.several = true
			}
			if err := b.through(e.Parts[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
			b.path, b.to, b.mode, b.torn, b.kept = f.Path, f.Before, f.Mode, b.torn || e.Torn, kept
		}
	}
	for _, s := range steps {
		if b := byPath[s.File.Path]; b != nil {
			if b.file = s.File; !b.several && !b.torn {
				b.rests = s.Rests
			}
		}
	}
	var edits []Edit
	for _, b := range backs {
		if b.file.Dir == nil {
			return nil, fmt.Errorf("undo: no step for %s", b.path)
		}
		edits = append(edits, b.edit())
	}
	if err := eachBack(backs, (*back).look); err != nil {
		return nil, err
	}
	changes, err := l.update(ctx, why, edits)
	return changes, conflict(err)
}

// gather reads the notes of all steps, newest first, and sees to it that each step is about a file of its note. partly:
// files without a step do not matter.
func (l *Ledger) gather(ctx context.Context, steps []Step, partly bool) ([]*journal.Note, error) {
	var all []*journal.Note
	byID := make(map[string]*journal.Note)
	for _, s := range steps {
		e := byID[s.ID]
		if e == nil {
			read, err := l.journal.Find(ctx, s.ID)
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				return nil, &WriteError{Path: s.File.Path, Step: string(fault.NoteRead), Err: inState(errno)}
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.ID, err)
			}
			other := func(o Step) bool { return o.ID != s.ID }
			if read.Kind != journal.KindChange && slices.ContainsFunc(steps, other) {
				// it follows from no other change, and none from it
				return nil, fmt.Errorf("%s: %w", s.ID, journal.ErrNoChange)
			}
			e, byID[s.ID] = read, read
			all = append(all, read)
		}
		if !slices.ContainsFunc(e.Files, func(f journal.File) bool { return f.Path == s.File.Path }) {
			// The path led to a file of the change when that was made.
			return nil, &ConflictError{Path: s.File.Path, Err: disk.ErrMoved}
		}
	}
	slices.SortFunc(all, func(a, b *journal.Note) int { return b.Time.Compare(a.Time) })
	for _, e := range all {
		for _, file := range e.Files {
			named := func(s Step) bool { return s.ID == e.ID && s.File.Path == file.Path }
			if !file.Undoes() && (!partly || slices.ContainsFunc(steps, named)) {
				return nil, fmt.Errorf("%s: %w", file.Path, journal.ErrNoCopy)
			}
		}
	}
	return all, nil
}

// A back is how one file gets its old content again.
type back struct {
	path string
	file File
	want *disk.Digest // what must be there; nil: no file
	left []byte
	// what a change that stopped half way found: what is partly that and partly left will do; nil: it will not
	found   []byte
	to      *disk.Digest // what will be there; nil: no file
	content []byte
	splices splices.List // make it of a large file that is as want says; nil: it is content
	mode    fs.FileMode
	// what the file must have, and that it gets mode again; 0: its mode is its own business
	leftMode fs.FileMode
	torn     bool   // what it was before will do
	several  bool   // it goes back more than one change
	rests    []Rest // will do as well
	kept     bool   // whatever is there will do
}

// through goes one change further back.
func (b *back) through(c journal.Sides) error {
	switch {
	case c.Splices == nil:
		b.content, b.splices = c.Before, nil
	case b.content == nil:
		b.splices = b.splices.WithAll(c.Splices.Back())
	default:
		content, ok := c.Splices.Back().Apply(b.content)
		if !ok {
			return journal.ErrNoCopy // the note is damaged
		}
		b.content = content
	}
	return nil
}

func (b *back) edit() Edit {
	e := Edit{
		File: b.file, Unseen: true, Remove: b.to == nil, mode: b.mode, modeIs: b.leftMode != 0, back: b,
		Change: func(old []byte) ([]byte, error) {
			switch wanted := b.want.IsOf(old); {
			case b.splices != nil && wanted:
				return b.apply(old)
			case !wanted && b.restOf(old) != nil:
				return bytes.Clone(b.restOf(old).Then), nil
			case !b.kept && !wanted && !(b.torn && b.to.IsOf(old)) && !b.tornIs(old):
				want := b.left
				if len(b.rests) > 0 {
					want = b.rests[0].Now // what came since is what somebody else wrote
				}
				return nil, &ConflictError{Path: b.path, Want: want, Now: old, Large: b.splices != nil && old != nil}
			case b.splices != nil:
				return old, nil // it is what it was before
			}
			return bytes.Clone(b.content), nil
		},
	}
	if b.splices != nil {
		e.Splice = b.find
	}
	return e
}

// restOf is the Rest that the file is; nil: it is none.
func (b *back) restOf(content []byte) *Rest {
	for i := range b.rests {
		if content != nil && bytes.Equal(content, b.rests[i].Now) {
			return &b.rests[i]
		}
	}
	return nil
}

// find is Edit.Splice: the splices, if their old text stands in the file.
func (b *back) find(ctx context.Context, from io.ReaderAt, _ int64) (splices.List, error) {
	for _, s := range b.splices {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		there := make([]byte, len(s.Old))
		if _, err := from.ReadAt(there, s.At); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if !bytes.Equal(there, s.Old) && b.torn {
			return nil, nil // it may be what it was before
		} else if !bytes.Equal(there, s.Old) {
			return nil, &ConflictError{Path: b.path, Large: true}
		}
	}
	return b.splices, nil
}

// apply is what the splices make of a file that is as the change left it.
func (b *back) apply(old []byte) ([]byte, error) {
	content, ok := b.splices.Apply(old)
	if !ok || !b.to.IsOf(content) {
		return nil, fmt.Errorf("%s: %w", b.path, journal.ErrNoCopy) // the note is damaged
	}
	return content, nil
}

// fits says whether splices may take a large file back that is now one content, and will be another; false: its Change
// is to be asked. A nil b has nothing against it.
func (b *back) fits(now, will disk.Digest) (bool, error) {
	switch {
	case b == nil:
		return true, nil
	case b.torn && b.to.Equal(&now):
		return false, nil
	case !b.want.Equal(&now):
		return false, &ConflictError{Path: b.path, Large: true}
	case !b.to.Equal(&will):
		return false, fmt.Errorf("%s: %w", b.path, journal.ErrNoCopy) // the note is damaged
	}
	return true, nil
}

// tornIs says whether content is what that change left when it stopped while it wrote in place.
func (b *back) tornIs(content []byte) bool {
	return content != nil && b.found != nil && b.left != nil && isTorn(content, b.found, b.left)
}

// look refuses what no Update would be asked about: links, other names, and what is no file.
func (b *back) look() error {
	dir, err := disk.Descend(b.file.Dir, filepath.Dir(b.file.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Change says whether that fits
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != syscall.ENOTDIR && errno != syscall.ELOOP {
		return &WriteError{Path: b.path, Step: string(fault.OpenDir), Err: errno}
	}
	if err != nil {
		return &ConflictError{Path: b.path, Want: b.left, Err: disk.Cause(err)}
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	file, stamp, err := disk.OpenRegular(dir, filepath.Base(b.file.Name), b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, disk.ErrMoved) || errors.Is(err, disk.ErrDirectory) || errors.Is(err, disk.ErrNotRegular) {
		return &ConflictError{Path: b.path, Want: b.left, Err: err}
	}
	if err != nil {
		return &WriteError{Path: b.path, Step: string(fault.Open), Err: disk.Cause(err)}
	}
	info, err := file.Stat()
	_ = file.Close() // only looked at
	if err != nil {
		return &WriteError{Path: b.path, Step: string(fault.Open), Err: disk.Cause(err)}
	}
	if b.leftMode != 0 && info.Mode()&disk.KeptMode != b.leftMode {
		return &ConflictError{Path: b.path, Want: b.left, Err: ErrMode}
	}
	if stamp.Nlink > 1 && !b.kept { // Update writes through all names of a file
		return &ConflictError{Path: b.path, Want: b.left, Err: ErrLinked}
	}
	return nil
}

func eachBack(backs []*back, do func(*back) error) error {
	var errs []error
	for _, b := range backs {
		if err := do(b); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// conflict gives what came in between the form of an undo's refusal.
func conflict(err error) error {
	if _, ok := errors.AsType[*ConflictError](err); ok || err == nil {
		return err
	}
	if stale, ok := errors.AsType[*StaleError](err); ok {
		return &ConflictError{Path: stale.Path, Want: stale.Old, Now: stale.New, Err: disk.ErrMoved}
	}
	return err
}
