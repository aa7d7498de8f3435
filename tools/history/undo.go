package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

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
func UndoSteps(ctx context.Context, env tool.Env, e journal.Entry) ([]filestate.Step, error) {
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
		steps = append(steps, filestate.Step{ID: e.ID, File: file, Rests: rests(ctx, env, e, f)})
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

// UndoneLine says what an undo did: `Took back edit_file a.go +2 -1; redo: undo_change ID`. It may be nothing: the
// process was killed before the change was made.
func UndoneLine(env tool.Env, e journal.Entry, changes []filestate.Change) (line string, notes []string) {
	made := slices.IndexFunc(changes, func(c filestate.Change) bool { return c.ID != "" })
	switch {
	case e.Kept != "":
		if made >= 0 {
			notes = []string{"[to take that back, undo change " + changes[made].ID + "]"}
		}
		return "Wrote this content:\n" + Line(env, e, e.Files, time.Now()), notes
	case !slices.ContainsFunc(changes, func(c filestate.Change) bool { return c.Before != c.After }) && made < 0:
		return "There is nothing to take back: the files already are as they were before this change:\n" +
			Line(env, e, e.Files, time.Now()), nil
	}
	var names []string
	for _, f := range e.Files {
		name := fmt.Sprintf("%s +%d -%d", wording.ShownName(env, f.Path), f.Added, f.Removed)
		switch f.Op {
		case "create":
			name += " (removed)"
		case "delete":
			name += " (created again)"
		}
		names = append(names, name)
	}
	line = "Took back " + e.By.Tool + " " + strings.Join(names, ", ")
	if made >= 0 {
		line += "; redo: undo_change " + changes[made].ID
	}
	return line, nil
}

// maxRedone is how many undos of undos Own follows.
const maxRedone = 4

// Own reports whether the session itself made all of a change, so that it knows both what the change wrote and what
// that replaced.
func Own(ctx context.Context, env tool.Env, e journal.Entry) bool { return own(ctx, env, e, maxRedone) }

func own(ctx context.Context, env tool.Env, e journal.Entry, deep int) bool {
	if env.Shared || deep == 0 || e.Kept != "" || e.By.Command != "" || e.By.Principal != env.Key.Principal ||
		e.By.Session != env.Key.Session {
		return false
	}
	for _, id := range e.Undoes {
		was, err := env.Files.History(ctx, journal.Query{ID: id, Limit: 1})
		if err != nil || len(was) != 1 || !own(ctx, env, was[0], deep-1) {
			return false
		}
	}
	return true
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
	case errors.Is(err, journal.ErrNoCopy) && e.By.Command != "":
		var files []string
		for _, f := range e.Files {
			if f.Why != "" && len(files) < 3 {
				files = append(files, wording.ShownName(env, f.Path)+" ("+f.Why+")")
			}
		}
		return tool.Refuse(tool.UndoUnavailable,
			"What was changed while a command ran can only be taken back where it is known what each file was before. "+
				"Of change %s it is not: %s. Restore it from version control or a backup.", e.ID,
			strings.Join(files, ", "))
	case errors.Is(err, journal.ErrNoCopy):
		return tool.Refuse(tool.UndoUnavailable,
			"There is no copy of what change %s replaced: a file over 32 MiB was written anew or changed in more than "+
				"8 MiB of it, or the copy is damaged. Restore it from version control or a backup.", e.ID)
	case errors.Is(err, journal.ErrNoChange):
		return Unknown(e.ID)
	case isFailed && len(e.Files) > 1:
		return wording.WriteRefusal(failed, len(e.Files), err)
	}
	return editing.Guard{Name: "undo_change"}.Refusal(ctx, env, e.Files[0].Path, err)
}
