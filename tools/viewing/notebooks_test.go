package viewing

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"codehand/tools/notebook"
	"codehand/tools/tooltest"
)

// A place in the JSON of a notebook is found in its file, also where that is UTF-16.
func TestNotebookPlaces(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../notebook/testdata/*.ipynb")
	if err != nil || len(paths) < 3 {
		t.Fatalf("notebooks: %v, %v", paths, err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(raw) {
			continue // it has no other spelling
		}
		nb, err := notebook.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			file := []byte(tooltest.UTF16(order, string(raw)))
			b, err := ReadNotebook(path, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range append(nb.Cells, nb.Cells...) {
				from, to := c.Span()
				if got, want := string(file[b.at(from):b.at(to)]), tooltest.UTF16(order, string(raw[from:to]))[2:]; got != want {
					t.Errorf("%s: cell %s is not where it is in the file", path, c.ID)
				}
			}
		}
	}
}
