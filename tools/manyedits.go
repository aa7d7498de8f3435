package tools

import (
	"context"
	"errors"
	"slices"

	"codehand/filestate"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// applyAll changes all files or none.
func applyAll(ctx context.Context, env tool.Env, files []*fileEdits) ([]filestate.Change, error) {
	if slices.ContainsFunc(files, (*fileEdits).notebook) { // which is refused, and so are others for what is wrong with them
		if _, err := checkAll(ctx, env, files); err != nil {
			return nil, err
		}
	}
	notes := noteEdits(env, files)
	defer notes.end()
	all := make([]filestate.Edit, len(files))
	for i, f := range files {
		all[i] = f.change(env)
	}
	changes, err := env.Files.Update(ctx, by(env, "multi_edit"), all...)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	_, isTorn := errors.AsType[*filestate.RollbackError](err)
	switch {
	case err == nil:
		return changes, nil
	case isFailed && len(files) > 1:
		err = tool.Refuse(tool.WriteFailed, "Writing %s failed: %v. All %d files are as before.", failed.Path, failed.Err, len(files))
	case isFailed:
		err = files[0].refusal(ctx, env, err)
	case isTorn, ctx.Err() != nil, errors.Is(err, filestate.ErrLocked), errors.Is(err, filestate.ErrMemory):
		err = guard{}.refusal(ctx, env, "One of the files", err)
	default: // to say what is wrong with every file, not only with the first
		if _, wrong := checkAll(ctx, env, files); wrong != nil {
			return nil, wrong
		}
		err = tool.Refuse(tool.Busy, "One of the files is being changed by another session. Nothing was done. Try again.")
	}
	return nil, err
}

// noteEdits lets all files tell how far the call is. The caller ends that.
func noteEdits(env tool.Env, files []*fileEdits) *editNotes {
	notes := &editNotes{env: env}
	for _, f := range files {
		f.notes = notes
	}
	return notes
}

// maxFailing is how many failing edits one refusal reports.
const maxFailing = 10

// dryWords is what a dry run says of edits that fit. It only reads, so no rule about changes was asked before: one that denies
// them, by the name that was given or by that of the file itself, is told here.
func dryWords(env tool.Env, files []*fileEdits) string {
	edits := plural(files[0].total, "edit", "edits")
	for _, f := range files {
		for _, path := range []string{env.Space.Abs(f.path), f.file.Path} {
			if env.Rules.Ruled(path, true) == permission.Deny {
				return "Dry run: all " + edits + " fit, but a permission rule denies changes of " + f.path + "."
			}
		}
	}
	return "Dry run: all " + edits + " would apply."
}

// checkAll tries the edits of every file and writes nothing. The first failing edit of each is reported, at most 10.
func checkAll(ctx context.Context, env tool.Env, files []*fileEdits) (changes []filestate.Change, err error) {
	notes := noteEdits(env, files)
	defer notes.end()
	var all *tool.Refusal
	failing := 0
	for i, f := range files {
		if failing == maxFailing {
			all.Text += "\n(" + plural(len(files)-i, "more file was", "more files were") + " not looked at.)"
			break
		}
		c, err := f.check(ctx, env)
		changes = append(changes, c)
		r, ok := errors.AsType[*tool.Refusal](err)
		switch {
		case err == nil:
		case !ok:
			return nil, err
		case all == nil:
			all, failing = r, 1
		default:
			failing++
			all.Text += "\n" + r.Error()
			all.Shows = append(all.Shows, r.Shows...)
		}
	}
	if all != nil {
		return nil, all
	}
	return changes, nil
}
