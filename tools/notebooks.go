package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"codehand/tools/notebook"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
)

// notebook says that the file is a Jupyter notebook, by the name that was given or by that of the file itself.
func (f *fileEdits) notebook() bool {
	return viewing.IsNotebook(f.path) || viewing.IsNotebook(f.file.Path)
}

// refuseNotebook sends edits of a notebook's text to the tool that edits its cells. nil: it is none, or there is no such file
// to edit, which Update says.
func (f *fileEdits) refuseNotebook(ctx context.Context, env tool.Env) error {
	creates, gone := f.edits[0].Old == "", missing(f.file)
	if !f.notebook() || gone && !creates {
		return nil
	}
	head := ""
	if f.which != nil {
		head = fmt.Sprintf("Edit %d: ", f.which[0])
	}
	text := head + "File is a Jupyter Notebook. Use the notebook_edit tool to edit this file."
	if gone {
		return tool.Numbered(tool.Notebook, 5, "%s", text+" To create it, use write_file.")
	}
	if err := (guard{creates: creates, head: head}).look(ctx, env, f.file); err != nil {
		return wording.PathRefusal(env, f.path, err)
	}
	return tool.Numbered(tool.Notebook, 5, "%s", text)
}

// checkNotebook refuses to make a notebook of what is none, since no program would open it any more.
func checkNotebook(content string, paths ...string) error {
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
		return tool.Refuse(tool.NotebookInvalid, "The content is not a Jupyter notebook: %v. Write JSON with cells.", err)
	}
	return nil
}
