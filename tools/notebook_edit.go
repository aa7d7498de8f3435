package tools

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"codehand/filestate"
	"codehand/tools/editing"
	"codehand/tools/notebook"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

//go:embed notebook_edit.md
var notebookEditText string

type notebookEditInput struct {
	NotebookPath string `json:"notebook_path" jsonschema:"absolute or relative"`
	NewSource    string `json:"new_source" jsonschema:"whole cell; ignored by delete"`
	CellID       string `json:"cell_id,omitempty" jsonschema:"id or cell-N"`
	CellType     string `json:"cell_type,omitempty" jsonschema:"insert needs it" rule:"enum=code|markdown"`
	EditMode     string `json:"edit_mode,omitempty" jsonschema:"action" rule:"enum=replace|insert|delete default=replace"`
	Version      string `json:"version,omitempty" jsonschema:"shown by read_file"`
}

var notebookEdit = tool.Define(tool.Def[notebookEditInput]{
	Spec: tool.Spec{
		Name: "notebook_edit", Aliases: []string{"NotebookEdit"}, Title: "Edit notebook", Description: notebookEditText,
		Hint: "edit or change cells of jupyter notebooks", Deferred: true, Scope: tool.ScopeWrite,
		Family:    permission.FamilyEdit,
		Traits:    tool.Traits{Local: true},
		Card:      tool.Drawn,
		ForAgents: tool.ChangingAgents,
		Elsewhere: []string{"notebook"},
		Example:   `{"notebook_path":"$WORK/n.ipynb","cell_id":"cell-0","new_source":"two"}`,
		Finds: []string{
			"notebook", "jupyter", "notebook jupyter", "edit ipynb", "NotebookEdit", "insert notebook cell",
		},
	},
	Accept:   map[string]string{"file_path": "notebook_path", "path": "notebook_path"},
	Paths:    func(in *notebookEditInput) []*string { return []*string{&in.NotebookPath} },
	Activity: func(in notebookEditInput) string { return "Editing " + filepath.Base(in.NotebookPath) },
	Check:    checkNotebookEdit,
	Complete: func(_ context.Context, s *session.State, in *notebookEditInput) error {
		return editing.RefuseSecret(s, in.NotebookPath, "new_source", in.NewSource)
	},
	Run: runNotebookEdit,
})

func checkNotebookEdit(in notebookEditInput) error {
	switch {
	case !viewing.IsNotebook(in.NotebookPath):
		return tool.Invalid("notebook_edit",
			fmt.Sprintf("\"notebook_path\" must end in .ipynb, and %s does not. Use edit_file.",
				wording.Clip(in.NotebookPath, 200)))
	case in.EditMode == "insert" && in.CellType == "":
		return tool.Invalid("notebook_edit", "\"cell_type\" is required for insert: code or markdown")
	case in.EditMode != "insert" && in.CellID == "":
		return tool.Invalid("notebook_edit", fmt.Sprintf("\"cell_id\" is required for %s", in.EditMode))
	}
	return nil
}

func runNotebookEdit(ctx context.Context, env tool.Env, in notebookEditInput) (tool.Result, error) {
	f, err := env.Open(in.NotebookPath, workspace.Write)
	if err != nil {
		return tool.Result{}, wording.PathRefusal(env, in.NotebookPath, err)
	}
	defer f.Close()
	leave, err := viewing.HoldNotebook(ctx, env, in.NotebookPath, f)
	if err != nil {
		return tool.Result{}, notebookEditRefusal(ctx, env, in, err)
	}
	defer leave()
	var chance [4]byte
	_, _ = rand.Read(chance[:]) // crypto/rand never fails
	mode := map[string]notebook.Mode{"replace": notebook.Replace, "insert": notebook.Insert,
		"delete": notebook.Delete}[in.EditMode]
	edit := &editing.CellEdit{Path: in.NotebookPath, Cell: notebook.CellEdit{
		Mode: mode, Cell: in.CellID, Type: in.CellType, Source: in.NewSource,
		Random: binary.NativeEndian.Uint32(chance[:]),
	}}
	changes, err := env.Files.Update(ctx, editing.By(env, "notebook_edit"), filestate.Edit{
		File: f, Version: filestate.Version(in.Version),
		Change: edit.Change, Touches: edit.Touches,
	})
	if editing.IsUnseenCell(err) {
		return tool.Result{}, edit.Unseen(env.Prefs.ReadMaxLine)
	}
	if err != nil {
		return tool.Result{}, notebookEditRefusal(ctx, env, in, err)
	}
	text, notes := notebookEditSaid(env, in, changes[0], edit.Done)
	return tool.Result{
		Text: text + editing.Notes(ctx, env, notes, changes...), Shows: []string{changes[0].Path},
		Meta: editing.Meta(struct {
			Cell  string `json:"cell"`
			Index int    `json:"index"`
			Type  string `json:"type"`
		}{edit.Done.ID, edit.Done.Index, edit.Done.Type}, changes...),
	}, nil
}

// notebookEditSaid says what was done to which cell. It names what a cell lost with its type, since the caller did not
// ask for that.
func notebookEditSaid(env tool.Env, in notebookEditInput, c filestate.Change, r notebook.Report) (text string,
	notes []string) {
	name := wording.ShownName(env, in.NotebookPath)
	switch {
	case c.Before == c.After:
		return "No change: " + name + " already has this content.", nil
	case r.Mode == notebook.Delete:
		return fmt.Sprintf("Deleted cell %s from %s", r.ID, name), nil
	case r.Mode == notebook.Replace:
		text = fmt.Sprintf("Updated cell %s (%s) in %s", r.ID, r.Type, name)
	case r.After == "":
		text = fmt.Sprintf("Inserted cell %s as the first in %s", r.ID, name)
	default:
		text = fmt.Sprintf("Inserted cell %s after %s in %s", r.ID, r.After, name)
	}
	if len(r.Dropped) > 0 {
		notes = append(notes, "[lost with the old type: "+strings.Join(r.Dropped, ", ")+"]")
	}
	if r.Cleared {
		notes = append(notes, "[its outputs were cleared: they were of the old source]")
	}
	return text, notes
}

// notebookEditRefusal puts into words why the notebook was not changed.
func notebookEditRefusal(ctx context.Context, env tool.Env, in notebookEditInput, err error) error {
	invalid, isInvalid := errors.AsType[*notebook.InvalidError](err)
	missing, isMissing := errors.AsType[*notebook.NotFoundError](err)
	switch {
	case errors.Is(err, notebook.ErrTooLarge):
		return tool.Numbered(tool.TooLarge, 10,
			"%s is too large (%s). Limit: %d MiB, also after the change. Use run_shell.", in.NotebookPath,
			editing.SizeOf(env, in.NotebookPath), notebook.MaxBytes>>20)
	case isInvalid:
		return viewing.NotebookRefusal(in.NotebookPath, invalid)
	case isMissing && len(missing.IDs) == 0:
		return tool.Refuse(tool.CellNotFound,
			"Cell with ID %q not found in notebook. It has no cells. Use edit_mode insert.",
			wording.Clip(in.CellID, 100))
	case isMissing && missing.Native:
		return tool.Refuse(tool.CellNotFound,
			"Cell with ID %q not found in notebook. Cells: %s.", wording.Clip(in.CellID, 100),
			wording.Clip(strings.Join(missing.IDs, ", "), 300))
	case isMissing:
		return tool.Refuse(tool.CellNotFound, "Cell with ID %q not found in notebook. Cells: cell-0 to cell-%d.",
			wording.Clip(in.CellID, 100), len(missing.IDs)-1)
	}
	return editing.Guard{Name: "notebook_edit", Unread: 6, Changed: 7}.Refusal(ctx, env, in.NotebookPath, err)
}
