package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/tools/notebook"
	"codehand/tools/tool"
)

// isNotebook says by its name whether a file is a Jupyter notebook.
func isNotebook(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }

// notebookRefusal says where a notebook is none. What repairs it is no tool for notebooks.
func notebookRefusal(path string, e *notebook.InvalidError) error {
	return tool.Refuse(tool.NotebookInvalid, "%s is not a Jupyter notebook at %d:%d: %s. Repair it with run_shell.",
		path, e.Line, e.Column, e.Reason)
}

// holdNotebook waits until there is room for a notebook that is read whole, and for another like it: what is made of it.
// leave ends that. notebook.ErrTooLarge and those of readBook: it is not read at all. What the path is otherwise, and why it
// cannot be read, those say who read it.
func holdNotebook(ctx context.Context, env tool.Env, path string, f filestate.File) (leave func(), err error) {
	from, err := env.Files.Open(ctx, f)
	if err != nil {
		return func() {}, nil
	}
	defer func() { _ = from.Close() }() // only read
	if from.Size() > notebook.MaxBytes {
		return nil, notebook.ErrTooLarge
	}
	head := make([]byte, min(headSize, from.Size()))
	n, _ := from.ReadAt(head, 0)
	as, err := bookEncoding(path, head[:n], from.Size())
	if err != nil {
		return nil, err
	}
	return env.Media.Hold(ctx, 2*bookMemory(as, from.Size()))
}

// notebook says that the file is a Jupyter notebook, by the name that was given or by that of the file itself.
func (f *fileEdits) notebook() bool { return isNotebook(f.path) || isNotebook(f.file.Path) }

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
		return pathRefusal(env, f.path, err)
	}
	return tool.Numbered(tool.Notebook, 5, "%s", text)
}

// checkNotebook refuses to make a notebook of what is none, since no program would open it any more.
func checkNotebook(content string, paths ...string) error {
	if !slices.ContainsFunc(paths, isNotebook) {
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
