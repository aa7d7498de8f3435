package history

import (
	"context"
	"errors"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// An Undo is what is to be taken back of a change: its files, or some of them.
type Undo struct {
	Entry journal.Entry
	Files []journal.EntryFile // those that are not back yet, one at least
	// Moved is the other name of the file that the call names, which was moved: both go back; "": there is none.
	Moved string
}

// Undoable finds what this session may take back of a change: the file at path, or all of them if path is "". Files
// outside of the roots are left out if skip is set, else they are a refusal.
func Undoable(ctx context.Context, s *session.State, words Words, id, path string, skip bool) (Undo, error) {
	e, err := Named(ctx, s, words, id, true)
	if err != nil {
		return Undo{}, err
	}
	p := Undo{Entry: e}
	switch {
	case path != "":
		p.Files = together(e, path)
		if len(p.Files) == 0 {
			return p, tool.Refuse(tool.ChangeUnknown, "Change %s did not change %s.", e.ID, path)
		}
		for _, f := range p.Files {
			if f.Path != path {
				p.Moved = f.Path
			}
		}
	case e.Undone:
		p.Files = e.Files
	default:
		p.Files = slices.DeleteFunc(slices.Clone(e.Files), func(f journal.EntryFile) bool { return e.Back(f.Path) })
	}
	inside := slices.DeleteFunc(slices.Clone(p.Files), func(f journal.EntryFile) bool { return !inRoots(s, f.Path) })
	outside := len(p.Files) - len(inside)
	switch {
	case outside == 0:
	case skip && len(inside) > 0:
		p.Files = inside
	case path != "":
		return p, tool.Refuse(tool.UndoUnavailable, "In change %s %s was moved, and its other name is outside the "+
			"roots of this session. Edit the file, or ask the user to open the whole workspace.", e.ID, path)
	default:
		return p, tool.Refuse(tool.UndoUnavailable,
			"%d of the %d files of change %s are outside the roots of this session.%s Or ask the user to open the "+
				"whole workspace.", outside, len(p.Files), e.ID, words.offer(len(inside)))
	}
	return p, nil
}

// UndoableFile is Undoable for the first of several paths, which a file may have, that the change has.
func UndoableFile(ctx context.Context, s *session.State, words Words, id string, paths []string,
	skip bool) (path string, p Undo, err error) {
	for _, path = range paths {
		if p, err = Undoable(ctx, s, words, id, path, skip); len(p.Files) > 0 {
			break
		}
	}
	return path, p, err
}

// together are the files of a change that go back together with the one at path, and that one: both names of a file
// that was moved. Of a command the journal does not know what it moved. There all names that lost a content, and all
// that got the same one, belong together.
func together(e journal.Entry, path string) []journal.EntryFile {
	i := slices.IndexFunc(e.Files, func(f journal.EntryFile) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	one := e.Files[i]
	same := func(gone, come journal.EntryFile) bool {
		return come.From == gone.Path || come.From == "" && gone.Op == "delete" && come.Op == "create" &&
			gone.Why == "" && come.Why == "" && gone.Before == come.After && gone.Before != emptySum
	}
	var all []journal.EntryFile
	for k, f := range e.Files {
		if k == i || same(f, one) || same(one, f) {
			all = append(all, f)
		}
	}
	return all
}

// emptySum is the hash of a file without content, which many files have that have nothing else in common.
var emptySum = disk.DigestOf(nil).Hex()

// Rest says how many files of the change the undo leaves as they are, as a note; "": none.
func (p Undo) Rest(words Words, steps int) string {
	rest := -steps
	for _, f := range p.Entry.Files {
		if p.Entry.Undone || !p.Entry.Back(f.Path) {
			rest++
		}
	}
	if rest <= 0 || p.Entry.Kept != "" {
		return ""
	}
	return "[" + wording.Plural(rest, "other file", "other files") + " of this change: not taken back; to take back " +
		"the rest: " + words.Undo + p.Entry.ID + "]"
}

// Together says that a moved file goes back under both its names, as a note; "": it was not moved.
func (p Undo) Together(env tool.Env) string {
	if p.Moved == "" {
		return ""
	}
	return "[the change moved the file, so both of its names go back: also " + wording.ShownName(env, p.Moved) + "]"
}

// Shown is the change with only the files of the undo.
func (p Undo) Shown(steps []filestate.Step) journal.Entry {
	e := p.Entry
	e.Files = slices.DeleteFunc(slices.Clone(p.Files), func(f journal.EntryFile) bool { return !has(steps, f.Path) })
	return e
}

func has(steps []filestate.Step, path string) bool {
	return slices.ContainsFunc(steps, func(s filestate.Step) bool { return s.File.Path == path })
}

// TakeBack takes back the files that have a step, and leaves what the change did to others. The steps are those of
// Steps or Unchanged.
func (p Undo) TakeBack(ctx context.Context, env tool.Env, by journal.By,
	steps []filestate.Step) ([]filestate.Change, error) {
	if len(steps) < len(p.Entry.Files) {
		return env.Files.UndoFiles(ctx, by, steps...)
	}
	return env.Files.Undo(ctx, by, steps...)
}

// A Left is a file that an undo leaves as it is.
type Left struct{ Path, Why string }

// LeftNote names the files that an undo left; "": there are none.
func LeftNote(env tool.Env, left []Left) string {
	const most = 10
	var names []string
	for _, l := range left[:min(len(left), most)] {
		names = append(names, wording.ShownName(env, l.Path)+" ("+l.Why+")")
	}
	if rest := len(left) - most; rest > 0 {
		names = append(names, wording.Plural(rest, "more file", "more files"))
	}
	if len(names) == 0 {
		return ""
	}
	return "[left as they are: " + strings.Join(names, ", ") + "]"
}

// Unchanged returns steps for the files that can be taken back now, and the others with the reason. The error is why
// none can be, or that of the disk. The caller closes the files of the steps, also after an error.
func (p Undo) Unchanged(ctx context.Context, env tool.Env, words Words) (steps []filestate.Step, left []Left,
	err error) {
	var first error
	leave := func(path, why string) {
		if !slices.ContainsFunc(left, func(l Left) bool { return l.Path == path }) {
			left = append(left, Left{path, why})
		}
	}
	for _, f := range p.Files {
		if f.NoCopy || f.Why != "" {
			leave(f.Path, "it is not known what it was before")
			first = errors.Join(first, journal.ErrNoCopy)
			continue
		}
		one, err := Undo{Entry: p.Entry, Files: []journal.EntryFile{f}}.Steps(ctx, env, words)
		if refusal, is := errors.AsType[*tool.Refusal](err); is {
			closeSteps(one)
			leave(f.Path, "it is not where it was")
			first = errors.Join(first, refusal)
			continue
		}
		steps = append(steps, one...)
		if err != nil {
			return steps, left, err
		}
	}
	for {
		for _, l := range slices.Clone(left) { // with its other name
			for _, f := range together(p.Entry, l.Path) {
				if has(steps, f.Path) {
					leave(f.Path, "it goes back with "+wording.ShownName(env, l.Path)+" only")
				}
			}
		}
		steps = slices.DeleteFunc(steps, func(s filestate.Step) bool {
			gone := slices.ContainsFunc(left, func(l Left) bool { return l.Path == s.File.Path })
			if gone {
				_ = s.File.Close() // it holds no data of ours
			}
			return gone
		})
		if len(steps) == 0 {
			return nil, left, first
		}
		_, err := env.Files.TryUndo(ctx, steps...)
		conflicts := undoConflicts(err)
		if len(conflicts) == 0 {
			return steps, left, err
		}
		first = errors.Join(first, err)
		for _, c := range conflicts {
			if !has(steps, c.Path) {
				return steps, left, err // it names none that can be left out
			}
			leave(c.Path, "changed since")
		}
	}
}

// TakeBackAround takes back what nobody changed since: files as a whole, and of others the hunks that are as the change
// left them, each in a change of its own. An error comes with the changes that were made before it; without one there
// are changes. left are the files in which something stays.
func (p Undo) TakeBackAround(ctx context.Context, env tool.Env, words Words, by journal.By, view *View) (
	changes []filestate.Change, left []Left, err error) {
	steps, left, why := p.Unchanged(ctx, env, words)
	defer func() { closeSteps(steps) }()
	if len(steps) > 0 {
		if why == nil {
			changes, why = p.TakeBack(ctx, env, by, steps)
		}
		if why != nil {
			return changes, left, p.Refusal(ctx, env, words, why)
		}
	}
	stays := map[string]string{}
	for _, l := range left {
		stays[l.Path] = l.Why
	}
	for _, l := range left {
		back, kept := 0, 0
		for _, h := range hunks(ctx, env, view, p.Entry) {
			if h.Path != l.Path || !h.known() || h.before == nil || h.after == nil {
				continue
			}
			made, err := h.TakeBack(ctx, env, words, by)
			refusal, refused := errors.AsType[*tool.Refusal](err)
			switch {
			case errors.Is(err, errHunkGone):
			case err == nil:
				back, changes = back+1, append(changes, made...)
			case refused && refusal.Code == tool.UndoConflict:
				kept++
			default:
				return changes, left, err
			}
		}
		switch {
		case back > 0 && kept == 0:
			delete(stays, l.Path)
		case back > 0:
			stays[l.Path] = wording.Plural(kept, "part", "parts") + " changed since"
		}
	}
	left = slices.DeleteFunc(left, func(l Left) bool { return stays[l.Path] == "" })
	for i := range left {
		left[i].Why = stays[left[i].Path]
	}
	if len(changes) == 0 {
		return nil, left, p.Refusal(ctx, env, words, why)
	}
	return changes, left, nil
}

func closeSteps(steps []filestate.Step) {
	for _, s := range steps {
		_ = s.File.Close() // it holds no data of ours
	}
}
