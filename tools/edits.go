package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// A fileEdits is one file with the edits that a call makes to it, in order.
type fileEdits struct {
	file    filestate.File
	path    string // as asked for
	version string // that the caller has seen; "": what the session has seen counts
	which   []int  // numbers of the edits in their call, from 1; nil: the call has one and no numbers
	edits   []textedit.Edit
	met     []byte          // the content that the edits were tried on last
	report  textedit.Report // set when the edits were applied
	total   int             // edits of the call
	notes   *editNotes
}

// checkEdit refuses an edit that needs no file for that. head begins the words about one of several.
func checkEdit(name, head, old, now string) error {
	switch {
	case len(old) > 1<<20:
		return tool.Invalid(name, fmt.Sprintf("%s\"old_string\" must have at most 1 MiB, not %s; use write_file", head, results.Size(int64(len(old)))))
	case old == now:
		return tool.Numbered(tool.NoChange, 1, "%sNo changes to make: old_string and new_string are exactly the same.", head)
	}
	return nil
}

// errChecked ends a change that was only tried.
var errChecked = errors.New("checked, not written")

// change is f as the ledger wants it.
func (f *fileEdits) change(env tool.Env) filestate.Edit {
	creates := f.edits[0].Old == ""
	return filestate.Edit{
		File: f.file, Version: filestate.Version(f.version), Unseen: env.Prefs.EditRelaxed && !creates,
		Change: func(old []byte) (content []byte, err error) {
			if old == nil && !creates {
				return nil, fs.ErrNotExist
			}
			trying, writing := f.stages()
			f.notes.say(trying)
			f.met = old
			content, f.report, err = textedit.Apply(old, f.edits)
			if err == nil {
				err = checkSettings(env, old, content, f.path, f.file.Path)
			}
			f.notes.say(writing)
			return content, err
		},
	}
}

// stages are what the client is told while the edits are tried, and then until they are on the disk.
func (f *fileEdits) stages() (trying, writing string) {
	if f.which == nil {
		return "Validating edit", "Applying edit"
	}
	return fmt.Sprintf("Validating edit %d/%d", f.which[0], f.total), "Applying all edits"
}

// check applies the edits to what is on disk now, under the same guard as a change, and writes nothing. The error is a
// refusal, or ours.
func (f *fileEdits) check(ctx context.Context, env tool.Env) (filestate.Change, error) {
	tried := filestate.Change{Path: f.file.Path, Durable: true}
	if err := f.refuseNotebook(ctx, env); err != nil {
		return tried, err
	}
	edit := f.change(env)
	apply := edit.Change
	edit.Change = func(old []byte) ([]byte, error) {
		content, err := apply(old)
		if err == nil {
			tried.Old, tried.New, err = old, content, errChecked
		}
		return nil, err
	}
	_, err := env.Files.Update(ctx, by(env, ""), edit)
	if errors.Is(err, errChecked) {
		return tried, nil
	}
	return tried, f.refusal(ctx, env, err)
}

// refusal answers an error that concerns this file.
func (f *fileEdits) refusal(ctx context.Context, env tool.Env, err error) error {
	failed, ok := errors.AsType[*textedit.EditError](err)
	if !ok {
		g := guard{name: "edit_file", unread: 6, changed: 7, creates: f.edits[0].Old == ""}
		if f.which != nil {
			g.name, g.head = "multi_edit", fmt.Sprintf("Edit %d: ", f.which[0])
		}
		return g.refusal(ctx, env, f.path, err)
	}
	edit, head, more := f.edits[failed.Index], "", ""
	if f.which != nil {
		head = fmt.Sprintf("Edit %d: ", f.which[failed.Index])
	}
	missing, isMissing := errors.AsType[*textedit.NotFoundError](err)
	cascade, isCascade := errors.AsType[*textedit.CascadeError](err)
	switch {
	case isCascade:
		more = fmt.Sprintf("\nConflicts: edit %d depends on edit %d. Make one edit of the two.", f.which[failed.Index], f.which[cascade.By])
	case isMissing && missing.ChangedBy > 0:
		by := f.which[missing.ChangedBy-1]
		more = fmt.Sprintf(" It may have been changed by edit %d.\nConflicts: edits %d and %d overlap at lines %d-%d.",
			by, by, f.which[failed.Index], missing.From, missing.To)
	case isMissing && appliedBefore(ctx, env, f.file.Path, f.met, edit):
		missing.Hint = "This exact edit was applied before; nothing to do."
	}
	return matchRefusal(env, f.path, head, edit.Old, more, err)
}

// missing says that there is no such file now.
func missing(f filestate.File) bool {
	_, err := f.Dir.Lstat(f.Name)
	return errors.Is(err, fs.ErrNotExist)
}

// clash refuses files that cannot be changed together: one lies below the other, or both are names of one file,
// of which the first to be replaced breaks the link.
func clash(files []*fileEdits) error {
	infos := make([]os.FileInfo, len(files))
	for i, f := range files {
		infos[i], _ = f.file.Dir.Lstat(f.file.Name) // what is missing has no other name
		for j, g := range files {
			if rel, err := filepath.Rel(f.file.Path, g.file.Path); infos[i] == nil && i != j && err == nil && filepath.IsLocal(rel) {
				return tool.Refuse(tool.NotDirectory, "A part of %s is a file where a directory is needed: %s, which another edit makes.", g.path, f.path)
			}
			if j < i && infos[i] != nil && infos[j] != nil && os.SameFile(infos[i], infos[j]) {
				return tool.Invalid("multi_edit", fmt.Sprintf("%s and %s are two names of one file (hard links); give all its edits one name", g.path, f.path))
			}
		}
	}
	return nil
}
