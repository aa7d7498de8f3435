package editing

import (
	"bytes"
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

// A FileEdits is one file with the edits that a call makes to it, in order. It has one edit at least, unless it Removes
// the file or is what became of another From.
type FileEdits struct {
	since   *filestate.StaleError // of Said, for Saw
	File    filestate.File        // where it is; the caller closes it
	Path    string                // as asked for
	Version string                // that the caller has seen; "": what the session has seen counts
	Which   []int                 // numbers of the edits in their call, from 1; nil: the call has one and no numbers
	Edits   []textedit.Edit       // in order
	met     []byte                // the content that the edits were tried on last
	Report  textedit.Report       // set when the edits were applied
	Total   int                   // edits of the call
	Tool    string                // the name of the tool that was called
	Patch   bool                  // the edits are hunks of a patch
	Removes bool                  // there is to be no file any more
	From    *FileEdits            // it comes earlier in the call, removes its file, and makes the content; nil: none
	moved   *FileEdits            // of one that removes: which has it as From; nil: none
	made    []byte                // likewise the content after its edits; nil: they were not tried, or failed
	notes   *stages
}

// CheckEdit refuses an edit that is wrong whatever the file holds. head is put before the text about one of several
// edits.
func CheckEdit(name, head, old, now string) error {
	switch {
	case len(old) > 1<<20:
		return tool.Invalid(name, fmt.Sprintf("%s\"old_string\" must have at most 1 MiB, not %s; use write_file", head,
			results.Size(int64(len(old)))))
	case old == now:
		return tool.Numbered(tool.NoChange, 1, "%sNo changes to make: old_string and new_string are exactly the same.",
			head)
	}
	return nil
}

// creates says that the edits make the file, so that one with content is in the way.
func (f *FileEdits) creates() bool {
	return f.From != nil || len(f.Edits) > 0 && f.Edits[0].Old == "" && f.Edits[0].Hunk == nil
}

// head stands before the text about edit number i of the file, from 0.
func (f *FileEdits) head(i int) string {
	switch {
	case f.Patch && i < len(f.Which):
		return fmt.Sprintf("Hunk %d of %s: ", f.Which[i], f.Path)
	case f.Patch:
		return f.Path + ": "
	case f.Which != nil:
		return fmt.Sprintf("Edit %d: ", f.Which[i])
	}
	return ""
}

// Moves makes to the new name of f, which must come earlier in the call.
func (f *FileEdits) Moves(to *FileEdits) {
	f.Removes, f.moved, to.From = true, to, f
}

// errNoSource is what the new name of a file gets whose edits failed: that is told with the old name.
var errNoSource = errors.New("the file to move was not made")

// Change returns f as an edit for env.Files.Update.
func (f *FileEdits) Change(env tool.Env) filestate.Edit {
	creates := f.creates()
	if f.From != nil {
		return filestate.Edit{File: f.File, MovedFrom: f.From.File.Path, Change: func(old []byte) ([]byte, error) {
			if len(bytes.TrimSpace(old)) > 0 {
				return nil, &textedit.EditError{Err: textedit.ErrNotEmpty}
			}
			if f.From.made == nil {
				return nil, errNoSource
			}
			return f.From.made, CheckSettings(env, old, f.From.made, f.Path, f.File.Path)
		}}
	}
	return filestate.Edit{
		File: f.File, Version: filestate.Version(f.Version), Unseen: env.Prefs.EditRelaxed && !creates && !f.Removes,
		Remove: f.Removes,
		Change: func(old []byte) (content []byte, err error) {
			if old == nil && !creates {
				return nil, fs.ErrNotExist
			}
			trying, writing := f.stages()
			f.notes.say(trying)
			f.met = old
			content, f.Report, err = old, textedit.Report{}, nil
			if len(f.Edits) > 0 {
				content, f.Report, err = textedit.Apply(old, f.Edits)
			}
			if f.Removes {
				f.made = nil
				if err == nil {
					f.made = append([]byte{}, content...)
				}
			} else if err == nil {
				err = CheckSettings(env, old, content, f.Path, f.File.Path)
			}
			f.notes.say(writing)
			return content, err
		},
		Splice: f.splice(env),
	}
}

// stages are what the client is told while the edits are tried, and then until they are on the disk.
func (f *FileEdits) stages() (trying, writing string) {
	if f.Patch {
		return "Checking " + filepath.Base(f.Path), "Applying the patch"
	}
	if f.Which == nil {
		return "Validating edit", "Applying edit"
	}
	return fmt.Sprintf("Validating edit %d/%d", f.Which[0], f.Total), "Applying all edits"
}

// check tries the edits on what is on disk now, under the same guard as a change, and writes nothing. The error is a
// refusal, or an internal error.
func (f *FileEdits) check(ctx context.Context, env tool.Env) (filestate.Change, error) {
	if err := f.RefuseNotebook(ctx, env); err != nil {
		return filestate.Change{}, err
	}
	changes, err := env.Files.Try(ctx, f.Change(env))
	if err != nil {
		return filestate.Change{}, f.Refusal(ctx, env, err)
	}
	return changes[0], nil
}

// Refusal answers an error that concerns this file.
func (f *FileEdits) Refusal(ctx context.Context, env tool.Env, err error) error {
	failed, ok := errors.AsType[*textedit.EditError](err)
	if !ok {
		g := Guard{Name: f.Tool, Unread: 6, Changed: 7, creates: f.creates(), patch: f.Patch, head: f.head(0)}
		return g.Refusal(ctx, env, f.Path, err)
	}
	if f.From != nil {
		return existsRefusal(f.Patch, f.head(0))
	}
	edit, head, more := f.Edits[failed.Index], f.head(failed.Index), ""
	if f.Patch {
		return f.hunkRefusal(env, edit, failed)
	}
	missing, isMissing := errors.AsType[*textedit.NotFoundError](err)
	cascade, isCascade := errors.AsType[*textedit.CascadeError](err)
	switch {
	case isCascade:
		more = fmt.Sprintf("\nConflicts: edit %d depends on edit %d. Make one edit of the two.", f.Which[failed.Index],
			f.Which[cascade.By])
	case isMissing && missing.ChangedBy > 0:
		by := f.Which[missing.ChangedBy-1]
		more = fmt.Sprintf(" Edit %d may have changed it.\nConflicts: edits %d and %d overlap at lines %d-%d.",
			by, by, f.Which[failed.Index], missing.From, missing.To)
	case isMissing && appliedBefore(ctx, env, f.File.Path, f.met, edit):
		missing.Hint = "This exact edit was applied before; nothing to do."
	}
	return matchRefusal(env, f.Path, head, edit.Old, more, err)
}

// Missing reports that there is no such file now.
func Missing(f filestate.File) bool {
	_, err := f.Dir.Lstat(f.Name)
	return errors.Is(err, fs.ErrNotExist)
}

// RefuseClash refuses files that cannot be changed together: one lies below the other, or both are names of one file,
// of which the first to be replaced breaks the link. name is that of the tool.
func RefuseClash(name string, files []*FileEdits) error {
	infos := make([]os.FileInfo, len(files))
	for i, f := range files {
		infos[i], _ = f.File.Dir.Lstat(f.File.Name) // what is missing has no other name
		for j, g := range files {
			if rel, err := filepath.Rel(f.File.Path, g.File.Path); infos[i] == nil && i != j && err == nil &&
				filepath.IsLocal(rel) {
				return tool.Refuse(tool.NotDirectory,
					"%s cannot be created: another edit creates %s as a file, not as a directory.", g.Path, f.Path)
			}
			if j < i && infos[i] != nil && infos[j] != nil && os.SameFile(infos[i], infos[j]) {
				return tool.Invalid(name,
					fmt.Sprintf("%s and %s are hard links to one file; use one path for all its edits", g.Path, f.Path))
			}
		}
	}
	return nil
}
