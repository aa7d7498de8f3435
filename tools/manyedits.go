package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"codehand/filestate"
	"codehand/filestate/lock"
	"codehand/tools/permission"
	"codehand/tools/tool"
	"codehand/tools/wording"
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
		err = wording.WriteRefusal(failed, len(files), err)
	case isFailed:
		err = files[0].refusal(ctx, env, err)
	case isTorn, ctx.Err() != nil, errors.Is(err, lock.ErrLocked), errors.Is(err, filestate.ErrMemory):
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
	edits := wording.Plural(files[0].total, "edit", "edits")
	for _, f := range files {
		for _, path := range []string{env.Space.Abs(f.path), f.file.Path} {
			if env.Rules.Ruled(path, true) == permission.Deny {
				return "Dry run: all " + edits + " fit, but a permission rule denies changes of " + f.path + "."
			}
		}
	}
	return "Dry run: all " + edits + " would apply."
}

// editedWords is what these edits came to.
func editedWords(changes []filestate.Change, edits int) string {
	changed := slices.DeleteFunc(slices.Clone(changes), unchanged)
	if len(changed) == 0 {
		return "No change: " + wording.Plural(len(changes), "file has", "files have") + " this content already."
	}
	return fmt.Sprintf("Successfully edited %s, %s.", wording.Plural(len(changed), "file", "files"), wording.Plural(edits, "edit", "edits"))
}

// unchanged says that an edit came to the content that the file had.
func unchanged(c filestate.Change) bool { return c.Old != nil && bytes.Equal(c.Old, c.New) }

// checkAll tries the edits of every file and writes nothing. The first failing edit of each is reported, at most 10.
func checkAll(ctx context.Context, env tool.Env, files []*fileEdits) (changes []filestate.Change, err error) {
	notes := noteEdits(env, files)
	defer notes.end()
	var all *tool.Refusal
	failing := 0
	for i, f := range files {
		if failing == maxFailing {
			addTo(all, "("+wording.Plural(len(files)-i, "more file was", "more files were")+" not looked at.)", "")
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
			brief := ""
			if r.Brief != "" {
				brief = string(r.Code) + ": " + r.Brief
			}
			addTo(all, r.Error(), brief)
			all.Shows = append(all.Shows, r.Shows...)
		}
	}
	if all != nil {
		return nil, all
	}
	return changes, nil
}

// addTo appends a line to a refusal, and to its brief form that line's; brief "": it has none.
func addTo(r *tool.Refusal, line, brief string) {
	if r.Brief != "" || brief != "" {
		r.Brief = cmp.Or(r.Brief, r.Text) + "\n" + cmp.Or(brief, line)
	}
	r.Text += "\n" + line
}
