package history

import (
	"errors"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/tools/editing"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// What to do about an undo that is refused, by what has become of the file.

func (w Words) changed() string {
	return "Look at " + w.History + ", take back later changes first, or edit the file."
}

func (w Words) removed() string {
	return "If " + w.History + " shows a later change that removed it, take that back first. Otherwise " + w.Write + "."
}

func (w Words) inTheWay() string {
	return "A command or another program did that. " + w.Free
}

// offer is how to take back the other files of a change; "": there are none.
func (w Words) offer(others int) string {
	if others == 0 {
		return ""
	}
	return " To take back only " + wording.Plural(others, "other file", "other files") + " of the change, " + w.Again +
		" with " + w.Skip + "."
}

// undoConflict is the refusal of an undo that would overwrite what another program did.
func undoConflict(text, then string, cause error) error {
	return &tool.Refusal{Code: tool.UndoConflict, Cause: cause, Text: text + " Nothing was written. " + then}
}

// undoConflicts are all files that are in the way.
func undoConflicts(err error) []*filestate.ConflictError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // for each of them, and not only the first
		var all []*filestate.ConflictError
		for _, one := range joined.Unwrap() {
			all = append(all, undoConflicts(one)...)
		}
		return all
	}
	if c, ok := errors.AsType[*filestate.ConflictError](err); ok {
		return []*filestate.ConflictError{c}
	}
	return nil
}

// conflicts is the refusal for files that are in the way of an undo, others of which are not.
func (w Words) conflicts(all []*filestate.ConflictError, others int, cause error) error {
	var heads, thens, diffs, shows []string
	for _, c := range all {
		special, isSpecial := errors.AsType[*disk.NotRegularError](c.Err)
		head, then, diff := c.Path+" changed after that change.", w.changed(), ""
		switch {
		case errors.Is(c.Err, filestate.ErrLinked):
			head = c.Path + " has more hard links now; an undo would separate them."
		case errors.Is(c.Err, filestate.ErrMode):
			head = c.Path + " has another mode since that change."
		case errors.Is(c.Err, disk.ErrDirectory):
			head, then = c.Path+" is a directory now.", w.inTheWay()
		case isSpecial:
			head, then = c.Path+" is a "+special.Kind+" now.", w.inTheWay()
		case c.Err != nil:
			head = c.Path + " was replaced after that change, by a link or by another program."
		case c.Large: // what differs is not known
		case c.Now == nil:
			head, then = c.Path+" changed after that change: it was removed.", w.removed()
		case c.Want == nil:
			head = c.Path + " changed after that change: it was created again."
		default:
			diff, _ = editing.ContentDiff(c.Want, c.Now, editing.MaxDiff/len(all))
			shows = append(shows, c.Path)
			if len(all) > 1 {
				diff = c.Path + ":\n" + diff
			}
		}
		heads = append(heads, head)
		if !slices.Contains(thens, then) {
			thens = append(thens, then)
		}
		if diff != "" {
			diffs = append(diffs, diff)
		}
	}
	if len(heads) > 3 { // the list of a refusal is short
		var names []string
		for _, c := range all[3:min(len(all), 10)] {
			names = append(names, c.Path)
		}
		if rest := len(all) - 10; rest > 0 {
			names = append(names, wording.Plural(rest, "other file", "other files"))
		}
		heads = append(heads[:3], "So did "+strings.Join(names, ", ")+".")
	}
	r, _ := errors.AsType[*tool.Refusal](undoConflict(strings.Join(heads, " "),
		strings.Join(thens, " ")+w.offer(others), cause))
	if len(diffs) > 0 {
		r.Text += " Since then:\n" + strings.Join(diffs, "\n")
	}
	r.Shows = shows
	return r
}
