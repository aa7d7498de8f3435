package tools

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/notebook"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A notebook that is truncated, too large or hostile is refused before it costs more than it is large, and stays as it
// is. Not parallel: the memory of other tests must not count.
func TestNotebookEditHostile(t *testing.T) {
	const million = 1_000_000
	cell := func(inner string) string {
		return `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"id":"a","cell_type":"code","source":[],"outputs":[],"x":` + inner + `}]}`
	}
	for _, c := range []struct {
		name, content string
		size          int64 // made longer to it, with a hole
		code          tool.Code
		says          string
	}{
		{"truncated", cell("1")[:60], 0, tool.NotebookInvalid, "at 1:58: a string begins here and does not end"},
		{"a million lists", cell(strings.Repeat("[", million) + strings.Repeat("]", million)), 0, tool.NotebookInvalid, "nested deeper than 10,000 levels"},
		{"a million objects", cell(strings.Repeat(`{"a":`, million) + "1" + strings.Repeat("}", million)), 0, tool.NotebookInvalid, "nested deeper"},
		{"open lists", strings.Repeat("[", million), 0, tool.NotebookInvalid, "nested deeper"},
		{"a million cells", `{"nbformat":4,"cells":[` + strings.Repeat("{},", million) + "{}]}", 0, tool.NotebookInvalid, "cells"},
		{"a string without end", `{"nbformat":4,"cells":["` + strings.Repeat("a", million), 0, tool.NotebookInvalid, "does not end"},
		{"50 GB", cell("1"), 50e9, tool.TooLarge, "is too large (46.6 GB). Limit: 100 MiB"},
		{"one byte over", cell("1"), notebook.MaxBytes + 1, tool.TooLarge, "Limit: 100 MiB"},
		{"just not too large", cell("1"), notebook.MaxBytes, tool.BinaryFile, "binary files"},
	} {
		r := newRig(t)
		r.write("a.ipynb", cell("1"))
		r.ok("read_file", `{"file_path":"a.ipynb"}`)
		r.write("a.ipynb", c.content)
		path := filepath.Join(r.dir, "a.ipynb")
		if c.size > 0 {
			if err := os.Truncate(path, c.size); err != nil {
				t.Fatal(err)
			}
		}
		version := "" // with that of the content it counts as read
		if c.size == 0 {
			version = fmt.Sprintf(`,"version":"%x"`, sha256.Sum256([]byte(c.content)))[:len(`,"version":"`)+12] + `"`
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		text := r.fails(c.code, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"a","new_source":"x"`+version+`}`)
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if !strings.Contains(text, c.says) {
			t.Errorf("%s: %s", c.name, wording.Clip(text, 300))
		}
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %v, %d MiB", c.name, took.Round(time.Millisecond), used>>20)
		if used > 128<<20 {
			t.Errorf("%s: %d MiB", c.name, used>>20)
		}
		if leaktest.Long() && took > time.Minute { // thirty times what it may take: a machine may be busy, and what is not bounded takes longer
			t.Errorf("%s: %v", c.name, took)
		}
		if c.size == 0 {
			r.holds("a.ipynb", c.content)
		}
	}
}

// An inserted cell gets an id that no other has, and by chance, so that two who insert do not give the same.
func TestNotebookEditIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		r := newRig(t)
		r.write("a.ipynb", `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
		r.ok("read_file", `{"file_path":"a.ipynb"}`)
		for range 5 {
			text := r.ok("notebook_edit", `{"notebook_path":"a.ipynb","edit_mode":"insert","cell_type":"code","new_source":"1"}`)
			var id string
			if _, err := fmt.Sscanf(text, "Inserted cell %8s as", &id); err != nil || len(id) != 8 || seen[id] {
				t.Errorf("%q: %v", text, err)
			}
			seen[id] = true
		}
	}
}

// A source is not repeated, and neither are many ids.
func TestNotebookEditIsShort(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var cells []string
	for i := range 500 {
		cells = append(cells, fmt.Sprintf(`{"cell_type":"markdown","id":"cell%06d","metadata":{},"source":[]}`, i))
	}
	r.write("a.ipynb", `{"cells":[`+strings.Join(cells, ",")+`],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	r.ok("read_file", `{"file_path":"a.ipynb"}`)
	text := r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"cell000007","new_source":"`+strings.Repeat(`0123456789\n`, 300)+`"}`)
	same(t, text, "Updated cell cell000007 (markdown) in a.ipynb")
	text = r.fails(tool.CellNotFound, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"`+strings.Repeat("x", 300)+`","new_source":""}`)
	if n := len([]rune(text)); n > 500 || !strings.Contains(text, "Cells: cell000000, cell000001, ") {
		t.Errorf("%d characters: %s", n, text)
	}
}

// What the session has seen of a notebook moves along with its own edits, and programs learn which cell it was.
func TestNotebookEditMoves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a.ipynb", contractNotebook)
	r.ok("read_file", `{"file_path":"a.ipynb"}`)
	for i := range 3 {
		res, text := r.do("notebook_edit", fmt.Sprintf(`{"notebook_path":"a.ipynb","cell_id":"cell-%d","edit_mode":"insert","cell_type":"markdown","new_source":"%d"}`, i, i))
		if res.Failed != "" || !strings.Contains(string(res.Meta.Data), fmt.Sprintf(`"cell":"cell-%d","index":%d,"type":"markdown"}`, i+1, i+1)) || len(res.Meta.Files) != 1 {
			t.Errorf("%s: %s, %+v", text, res.Meta.Data, res.Meta.Files)
		}
	}
	r.ok("write_file", `{"file_path":"a.ipynb","content":"{\"cells\":[]}"}`) // all of it counts as seen
}
