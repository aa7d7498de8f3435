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
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// Steps opens every file of a part again, for writing. If a path now leads to another place, through a link, that is a
// conflict: the change did not touch the file there. The caller closes the files of the steps, also after an error.
func (p Undo) Steps(ctx context.Context, env tool.Env, words Words) ([]filestate.Step, error) {
	e := p.Entry
	then := words.inTheWay() + words.offer(len(p.Files)-1)
	var steps []filestate.Step
	for _, f := range p.Files {
		file, err := env.Open(f.Path, workspace.Write)
		outside, isOutside := errors.AsType[*workspace.OutsideError](err)
		switch {
		case isOutside && outside.Link != "":
			return steps, undoConflict(fmt.Sprintf("%s leads to another place now, through the link %s -> %s.", f.Path,
				outside.Link, outside.Target), then, nil)
		case isOutside, errors.Is(err, workspace.ErrTooManyLinks):
			return steps, undoConflict(f.Path+" leads to another place now, through a link.", then, nil)
		case errors.Is(err, syscall.ENOTDIR):
			return steps, undoConflict("A part of "+f.Path+" was a directory and is a file now.", then, nil)
		case err != nil:
			return steps, wording.PathRefusal(env, f.Path, err)
		}
		steps = append(steps, filestate.Step{ID: e.ID, File: file, Rests: rests(ctx, env, e, f)})
		if file.Path != f.Path {
			return steps, undoConflict(f.Path+" leads to another place now, through a link.", then, nil)
		}
	}
	return steps, nil
}

// UndoneLine says what an undo did: `Took back edit_file a.go +2 -1; redo: undo_change ID`. It may be nothing: the
// process was killed before the change was made.
func UndoneLine(env tool.Env, words Words, e journal.Entry,
	changes []filestate.Change) (line string, notes []string) {
	made := slices.IndexFunc(changes, func(c filestate.Change) bool { return c.ID != "" })
	switch {
	case e.Kept != "":
		if made >= 0 {
			notes = []string{"[to take that back: " + words.Undo + changes[made].ID + "]"}
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
		line += "; redo: " + words.Undo + changes[made].ID
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
	undoes := e.Undoes
	if e.Portion.Whole() {
		undoes = []string{e.Portion.ID}
	}
	for _, id := range undoes {
		was, err := env.Files.History(ctx, journal.Query{ID: id, Limit: 1})
		if err != nil || len(was) != 1 || !own(ctx, env, was[0], deep-1) {
			return false
		}
	}
	return true
}

// undoneMeanwhile reports whether files of a change were taken back since it was looked up.
func (p Undo) undoneMeanwhile(ctx context.Context, env tool.Env) bool {
	now, err := env.Files.History(ctx, journal.Query{ID: p.Entry.ID, Limit: 1})
	return err == nil && len(now) == 1 && slices.ContainsFunc(p.Files, func(f journal.EntryFile) bool {
		return now[0].Back(f.Path) && !p.Entry.Back(f.Path)
	})
}

// Refusal says why a part of a change was not taken back.
func (p Undo) Refusal(ctx context.Context, env tool.Env, words Words, err error) error {
	e := p.Entry
	conflicts := undoConflicts(err)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	switch {
	case len(conflicts) > 0 && p.undoneMeanwhile(ctx, env):
		return undoConflict("Change "+e.ID+" was just taken back by another call.",
			"To take back the change before it, "+words.Again+".", err)
	case len(conflicts) > 0 && p.wasBack(conflicts):
		return undoConflict("In "+conflicts[0].Path+" change "+e.ID+" was taken back already.",
			words.History+" lists the change that did; to have the file as it was before that, take back that one.",
			err)
	case len(conflicts) > 0:
		return words.conflicts(conflicts, p.others(conflicts), err)
	case errors.Is(err, journal.ErrNoCopy) && e.By.Command != "":
		var files []string
		known := 0
		for _, f := range p.Files {
			if f.Why == "" {
				known++
			}
			if f.Why != "" && len(files) < 3 {
				files = append(files, wording.ShownName(env, f.Path)+" ("+f.Why+")")
			}
		}
		return tool.Refuse(tool.UndoUnavailable,
			"What was changed while a command ran can only be taken back where it is known what each file was before. "+
				"Of change %s it is not: %s. Restore it from version control or a backup.%s", e.ID,
			strings.Join(files, ", "), words.offer(known))
	case errors.Is(err, journal.ErrNoCopy):
		return tool.Refuse(tool.UndoUnavailable,
			"There is no copy of what change %s replaced: a file over 32 MiB was written anew or changed in more than "+
				"8 MiB of it, or the copy is damaged. Restore it from version control or a backup.", e.ID)
	case errors.Is(err, journal.ErrNoChange):
		return Unknown(words, e.ID)
	case isFailed && len(p.Files) > 1:
		return wording.WriteRefusal(failed, len(p.Files), err)
	}
	return editing.Guard{Name: "undo_change"}.Refusal(ctx, env, p.Files[0].Path, err)
}

// others is how many files of the part are not in the way, and could be taken back without those that are.
func (p Undo) others(conflicts []*filestate.ConflictError) int {
	in := map[string]bool{}
	for _, c := range conflicts {
		for _, f := range together(p.Entry, c.Path) {
			in[f.Path] = true
		}
	}
	n := 0
	for _, f := range p.Files {
		if !in[f.Path] && f.Why == "" && !f.NoCopy {
			n++
		}
	}
	return n
}

// wasBack says whether all files in the way were taken back before the call.
func (p Undo) wasBack(conflicts []*filestate.ConflictError) bool {
	return !slices.ContainsFunc(conflicts, func(c *filestate.ConflictError) bool {
		return !p.Entry.Back(c.Path)
	})
}
