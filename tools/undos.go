package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"codehand/filestate"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// undoSteps reaches every file of a change anew, as a write would. A path that leads elsewhere by now is a conflict: what
// lies behind a link was not changed by that change. The caller closes the files, also with an error.
func undoSteps(env tool.Env, e filestate.Entry) ([]filestate.Step, error) {
	var steps []filestate.Step
	for _, f := range e.Files {
		file, err := env.Open(f.Path, workspace.Write)
		_, isOutside := errors.AsType[*workspace.OutsideError](err)
		switch {
		case isOutside, errors.Is(err, workspace.ErrTooManyLinks):
			return steps, undoConflict(f.Path+" leads elsewhere by now: a link stands on the way to it.", nil)
		case errors.Is(err, syscall.ENOTDIR):
			return steps, undoConflict("A part of "+f.Path+" is a file now, where a directory was.", nil)
		case err != nil:
			return steps, pathRefusal(env, f.Path, err)
		}
		steps = append(steps, filestate.Step{ID: e.ID, File: file})
		if file.Path != f.Path {
			return steps, undoConflict(f.Path+" leads elsewhere by now: a link stands on the way to it.", nil)
		}
	}
	return steps, nil
}

// undoNamed finds a change that this session may take back: all its files are in the roots.
func undoNamed(ctx context.Context, s *session.State, id string) (filestate.Entry, error) {
	e, err := changeNamed(ctx, s, id, true)
	if err != nil {
		return e, err
	}
	outside := 0
	for _, f := range e.Files {
		if !inRoots(s, f.Path) {
			outside++
		}
	}
	if outside > 0 {
		return e, tool.Refuse(tool.UndoUnavailable, "Change %s can only be taken back whole, and %d of its %d files are outside the roots of this session. Edit the other files, or ask the user to open the whole workspace.", e.ID, outside, len(e.Files))
	}
	return e, nil
}

// undoConflict is the refusal of an undo that would overwrite what somebody else did.
func undoConflict(text string, cause error) error {
	return &tool.Refusal{Code: tool.UndoConflict, Cause: cause, Text: text +
		" Nothing was written. Look at file_history, take back later changes first, or edit the file."}
}

// undoRefusal says why a change was not taken back.
func undoRefusal(ctx context.Context, env tool.Env, e filestate.Entry, err error) error {
	conflicts := undoConflicts(err)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	switch {
	case len(conflicts) > 0:
		return undoConflictRefusal(conflicts, err)
	case errors.Is(err, filestate.ErrNoCopy):
		return tool.Refuse(tool.UndoUnavailable, "There is no copy of what change %s changed: a file was over 32 MiB, or the copy is damaged. Restore it from version control or a backup.", e.ID)
	case errors.Is(err, filestate.ErrNoChange):
		return unknownChange(e.ID)
	case isFailed && len(e.Files) > 1:
		return tool.Refuse(tool.WriteFailed, "Writing %s failed: %v. All %d files are as before.", failed.Path, failed.Err, len(e.Files))
	}
	return guard{name: "undo_change"}.refusal(ctx, env, e.Files[0].Path, err)
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

func undoConflictRefusal(all []*filestate.ConflictError, cause error) error {
	var heads, diffs []string
	var shows []string
	for _, c := range all {
		special, isSpecial := errors.AsType[*filestate.NotRegularError](c.Err)
		head, diff := c.Path+" changed after that change.", ""
		switch {
		case errors.Is(c.Err, filestate.ErrLinked):
			head = c.Path + " has further names now (hard links), which an undo would break away."
		case errors.Is(c.Err, filestate.ErrDirectory):
			head = c.Path + " is a directory now."
		case isSpecial:
			head = c.Path + " is a " + special.Kind + " now."
		case c.Err != nil:
			head = c.Path + " was replaced after that change, by a link or by another program."
		case c.Now == nil:
			head = c.Path + " changed after that change: it was removed."
		case c.Want == nil:
			head = c.Path + " changed after that change: somebody made it again."
		default:
			diff, shows = contentDiff(c.Want, c.Now, maxDiff/len(all)), append(shows, c.Path)
			if len(all) > 1 {
				diff = c.Path + ":\n" + diff
			}
		}
		heads = append(heads, head)
		if diff != "" {
			diffs = append(diffs, diff)
		}
	}
	if rest := len(heads) - 3; rest > 0 { // the list of a refusal is short
		heads = append(heads[:3], fmt.Sprintf("So did %s.", plural(rest, "other file", "other files")))
	}
	r, _ := errors.AsType[*tool.Refusal](undoConflict(strings.Join(heads, " "), cause))
	if len(diffs) > 0 {
		r.Text += " Since then:\n" + strings.Join(diffs, "\n")
	}
	r.Shows = shows
	return r
}
