package textedit

import (
	"path/filepath"
	"strings"
)

// Prose says that a file holds running text, by its name, as Edit.Prose wants it.
func Prose(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".tex":
		return true
	}
	return false
}
