package editing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"codehand/tools/notebook"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
)

// notebook says that the file is a Jupyter notebook, by the name that was given or by that of the file itself.
func (f *FileEdits) notebook() bool {
	return viewing.IsNotebook(f.Path) || viewing.IsNotebook(f.File.Path)
}

// RefuseNotebook sends edits of a notebook's text to the tool that edits its cells. nil: it is none, or there is no
// such file to edit, which Update says.
func (f *FileEdits) RefuseNotebook(ctx context.Context, env tool.Env) error {
	creates, gone := f.creates(), Missing(f.File)
	if !f.notebook() || gone && !creates || len(f.Edits) == 0 {
		return nil
	}
	head := f.head(0)
	text := head + "File is a Jupyter Notebook. Use the notebook_edit tool to edit this file."
	if gone {
		return tool.Numbered(tool.Notebook, 5, "%s", text+" To create it, use write_file.")
	}
	if err := (Guard{Name: f.Tool, patch: f.Patch, creates: creates, head: head}).look(ctx, env, f.File); err != nil {
		return wording.PathRefusal(env, f.Path, err)
	}
	return tool.Numbered(tool.Notebook, 5, "%s", text)
}

// CheckNotebook refuses to make a notebook of what is none, since no program would open it any more.
func CheckNotebook(content string, paths ...string) error {
	if !slices.ContainsFunc(paths, viewing.IsNotebook) {
		return nil
	}
	if _, err := notebook.Parse([]byte(content)); err == nil {
		return nil // maybe with a NaN, as Jupyter writes it, or of nbformat 3
	}
	var book map[string]json.RawMessage // keys of a struct would match in any case
	err := json.Unmarshal([]byte(content), &book)
	if _, is := errors.AsType[*json.SyntaxError](err); !is && !bytes.HasPrefix(book["cells"], []byte("[")) {
		err = errors.New("a list of cells is missing")
	}
	if err != nil {
		return tool.Refuse(tool.NotebookInvalid, "The content is not a Jupyter notebook: %v. Write JSON with cells.",
			err)
	}
	return nil
}
