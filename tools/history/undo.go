package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/editing"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// UndoSteps opens every file of a change again, for writing. If a path now leads to another place, through a link, that
// is a conflict: the change did not touch the file there. The caller closes the files of the steps, also after an
// error.
func UndoSteps(env tool.Env, e journal.Entry) ([]filestate.Step, error) {
	var steps []filestate.Step
	for _, f := range e.Files {
		file, err := env.Open(f.Path, workspace.Write)
		outside, isOutside := errors.AsType[*workspace.OutsideError](err)
		switch {
		case isOutside && outside.Link != "":
			return steps, undoConflict(fmt.Sprintf("%s leads to another place now, through the link %s -> %s.", f.Path,
				outside.Link, outside.Target), undoInTheWay, nil)
		case isOutside, errors.Is(err, workspace.ErrTooManyLinks):
			return steps, undoConflict(f.Path+" leads to another place now, through a link.", undoInTheWay, nil)
		case errors.Is(err, syscall.ENOTDIR):
			return steps, undoConflict("A part of "+f.Path+" was a directory and is a file now.", undoInTheWay, nil)
		case err != nil:
			return steps, wording.PathRefusal(env, f.Path, err)
		}
		steps = append(steps, filestate.Step{ID: e.ID, File: file})
		if file.Path != f.Path {
			return steps, undoConflict(f.Path+" leads to another place now, through a link.", undoInTheWay, nil)
		}
	}
	return steps, nil
}

// Undoable finds a change that this session may take back, since all its files are in the roots.
func Undoable(ctx context.Context, s *session.State, id string) (journal.Entry, error) {
	e, err := Named(ctx, s, id, true)
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
		return e, tool.Refuse(tool.UndoUnavailable,
			"Change %s can only be taken back whole, and %d of its %d files are outside the roots of this session. "+
				"Edit the other files, or ask the user to open the whole workspace.", e.ID, outside, len(e.Files))
	}
	return e, nil
}

// UndoWords says what an undo did. It may be nothing: the process was killed before the change was made.
func UndoWords(e journal.Entry, changes []filestate.Change) (did, again string) {
	switch {
	case e.Kept != "":
		return "Wrote this content:\n", "to take that back"
	case !slices.ContainsFunc(changes, func(c filestate.Change) bool { return c.Before != c.After }):
		return "There is nothing to take back: the files already are as they were before this change:\n", ""
	}
	return "Took back this change:\n", "to redo it"
}

// undoneMeanwhile reports whether a change was taken back since it was looked up.
func undoneMeanwhile(ctx context.Context, env tool.Env, e journal.Entry) bool {
	now, err := env.Files.History(ctx, journal.Query{ID: e.ID, Limit: 1})
	return err == nil && len(now) == 1 && now[0].Undone && !e.Undone
}

// UndoRefusal says why a change was not taken back.
func UndoRefusal(ctx context.Context, env tool.Env, e journal.Entry, err error) error {
	conflicts := undoConflicts(err)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	switch {
	case len(conflicts) > 0 && undoneMeanwhile(ctx, env, e):
		return undoConflict("Change "+e.ID+" was just taken back by another call.",
			"To take back the change before it, call again.", err)
	case len(conflicts) > 0:
		return undoConflictRefusal(conflicts, err)
	case errors.Is(err, journal.ErrNoCopy):
		return tool.Refuse(tool.UndoUnavailable,
			"There is no copy of what change %s replaced: a file was over 32 MiB, or the copy is damaged. Restore it "+
				"from version control or a backup.", e.ID)
	case errors.Is(err, journal.ErrNoChange):
		return Unknown(e.ID)
	case isFailed && len(e.Files) > 1:
		return wording.WriteRefusal(failed, len(e.Files), err)
	}
	return editing.Guard{Name: "undo_change"}.Refusal(ctx, env, e.Files[0].Path, err)
}
