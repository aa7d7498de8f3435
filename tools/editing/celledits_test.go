package editing

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"codehand/tools/notebook"
	"codehand/tools/tooltest"
)

// With every edit of a notebook that another program made, the file in UTF-16 is the one in UTF-8 in other words.
func TestCellEditsInUTF16(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../notebook/testdata/*.ipynb")
	if err != nil || len(paths) < 3 {
		t.Fatalf("notebooks: %v, %v", paths, err)
	}
	edits := 0
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
			for _, c := range nb.Cells {
				for _, edit := range []notebook.CellEdit{
					{Cell: c.ID, Source: "é\n\"😀\""}, {Mode: notebook.Insert, Cell: c.ID, Type: "code", Source: "x", Random: 7}, {Mode: notebook.Delete, Cell: c.ID},
				} {
					want, _, wantErr := notebook.Apply(raw, edit)
					got, gotErr := (&CellEdit{Path: path, Cell: edit}).Change(file)
					if wantErr != nil || gotErr != nil || string(got) != tooltest.UTF16(order, string(want)) {
						t.Errorf("%s, cell %s, %+v: %v, %v", path, c.ID, edit, wantErr, gotErr)
					}
					edits++
				}
			}
		}
	}
	t.Logf("%d edits", edits)
}
