package tools

import (
	"path/filepath"
	"strings"

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
