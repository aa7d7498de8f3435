package editing

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"codehand/filestate"
	"codehand/filestate/lock"
	"codehand/tools/permission"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// ApplyAll changes all files or none. The changes are in the order of files. The error is a refusal, which names every
// failing file where that is possible (see checkAll), or an internal error.
func ApplyAll(ctx context.Context, env tool.Env, files []*FileEdits) ([]filestate.Change, error) {
	// Edits of a notebook are refused. Check all files, so that the refusal names everything that is wrong.
	if slices.ContainsFunc(files, (*FileEdits).notebook) {
		if _, err := checkAll(ctx, env, files); err != nil {
			return nil, err
		}
	}
	defer TellStages(env, files...)()
	all := make([]filestate.Edit, len(files))
	for i, f := range files {
		all[i] = f.Change(env)
	}
	changes, err := env.Files.Update(ctx, By(env, files[0].Tool), all...)
	failed, isFailed := errors.AsType[*filestate.WriteError](err)
	_, isTorn := errors.AsType[*filestate.RollbackError](err)
	switch {
	case err == nil:
		return changes, nil
	case isFailed && len(files) > 1:
		err = wording.WriteRefusal(failed, len(files), err)
	case isFailed:
		err = files[0].Refusal(ctx, env, err)
	case isTorn, ctx.Err() != nil, errors.Is(err, lock.ErrLocked), errors.Is(err, filestate.ErrMemory):
		err = Guard{}.Refusal(ctx, env, "One of the files", err)
	default: // to say what is wrong with every file, not only with the first
		if _, wrong := checkAll(ctx, env, files); wrong != nil {
			return nil, wrong
		}
		err = tool.Refuse(tool.Busy,
			"One of the files is being changed by another session. Nothing was done. Try again.")
	}
	return nil, err
}

// TellStages makes the edits of files report their progress to the client. The caller must call done at the end.
func TellStages(env tool.Env, files ...*FileEdits) (done func()) {
	notes := &stages{env: env}
	for _, f := range files {
		f.notes = notes
	}
	return notes.end
}

// maxFailing is how many failing edits one refusal reports.
const maxFailing = 10

// TryAll says what the edits would do. Nothing is written.
func TryAll(ctx context.Context, env tool.Env, files []*FileEdits) (tool.Result, error) {
	res := tool.Result{Text: dryRunWords(env, files)}
	changes, err := checkAll(ctx, env, files)
	if err != nil {
		return tool.Result{}, err
	}
	for i, c := range changes {
		res.Shows = append(res.Shows, c.Path)
		res.Text += "\n" + files[i].tried(env, c, MaxDiff/len(files))
	}
	res.Meta.Diff = hunks(changes, files)
	return res, nil
}

// dryRunWords says that all edits fit. A dry run is checked by the rules for reading only, so this also says whether a
// rule denies changes, by the given path or by the resolved one.
func dryRunWords(env tool.Env, files []*FileEdits) string {
	edits := wording.Plural(files[0].Total, "edit", "edits")
	for _, f := range files {
		for _, path := range []string{env.Space.Abs(f.Path), f.File.Path} {
			if env.Rules.Ruled(path, true) == permission.Deny {
				return "Dry run: all " + edits + " fit, but a permission rule denies changes of " + f.Path + "."
			}
		}
	}
	return "Dry run: all " + edits + " would apply."
}

// checkAll tries the edits of every file and writes nothing. It reports the first failing edit of each file, for up to
// 10 files.
func checkAll(ctx context.Context, env tool.Env, files []*FileEdits) (changes []filestate.Change, err error) {
	defer TellStages(env, files...)()
	var all *tool.Refusal
	failing := 0
	for i, f := range files {
		if failing == maxFailing {
			addTo(all, "("+wording.Plural(len(files)-i, "more file was", "more files were")+" not looked at.)", "")
			break
		}
		if f.From != nil && f.From.made == nil {
			continue // what is wrong was said of its old name
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
