package tools

import (
	"fmt"
	"strings"
	"testing"

	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

// bookOf is a notebook with these sources, one line each, in lines as Jupyter writes them.
func bookOf(sources ...[]string) string {
	var cells []string
	for i, lines := range sources {
		var quoted []string
		for _, l := range lines {
			quoted = append(quoted, fmt.Sprintf("    %q", l+"\n"))
		}
		cells = append(cells, fmt.Sprintf("  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"c%d\",\n   \"metadata\": {},\n   \"source\": [\n%s\n   ]\n  }", i, strings.Join(quoted, ",\n")))
	}
	return "{\n \"cells\": [\n" + strings.Join(cells, ",\n") + "\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"
}

// manyLines is a source that is cut where 1,000 tokens are shown.
func manyLines(word string) []string {
	lines := make([]string, 200)
	for i := range lines {
		lines[i] = fmt.Sprintf("%s %d %s", word, i, strings.Repeat("y", 60))
	}
	return lines
}

// A notebook whose only cell was shown cut could never be edited: its edit said that it had not been read, and reading it
// again that nothing had changed. Now it is told what was not shown, and how it can be.
func TestCutCell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.ReadMaxTokens = 1000
	r.write("a.ipynb", bookOf(manyLines("long")))
	text := r.ok("read_file", `{"file_path":"a.ipynb"}`)
	if want := "[cell 1 is truncated; as_text=true shows the file as lines: its source begins at offset=7]"; !strings.Contains(text, want) {
		t.Errorf("no %q in %s", want, text[max(0, len(text)-300):])
	}
	for _, mode := range []string{"replace", "delete"} {
		text = r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x","edit_mode":"`+mode+`"}`)
		same(t, text, "FILE_PARTLY_READ: Cell c0 of $WORK/a.ipynb was not shown completely, so this edit could lose text that you have not seen. "+
			"Read it with offset=1 and limit=1 or, if that truncates it, its lines with as_text=true, offset=7 and limit=202.")
	}
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"a.ipynb","content":"{\"cells\":[]}"}`)
	for at := 7; at < 209; at += 30 {
		r.ok("read_file", fmt.Sprintf(`{"file_path":"a.ipynb","as_text":true,"offset":%d,"limit":30}`, at))
	}
	r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
	r.holds("a.ipynb", strings.Replace(bookOf([]string{"x"}), `x\n`, "x", 1))
}

// The lines of a notebook are another view than its cells, though both show all of it, whichever is asked for first.
func TestNotebookAsText(t *testing.T) {
	t.Parallel()
	cells, lines := `{"file_path":"a.ipynb"}`, `{"file_path":"a.ipynb","as_text":true}`
	begins := map[string]string{cells: "<cell id=\"c0\"", lines: "1\t{\n2\t \"cells\": [\n"}
	for _, first := range []string{cells, lines} {
		r := newRig(t)
		r.write("a.ipynb", bookOf([]string{"a"}))
		for i, view := range []string{first, cells, lines, cells, lines, lines} {
			text := r.ok("read_file", view)
			stub := i == 5 || i == 1 && first == cells
			if strings.HasPrefix(text, "File unchanged since your last read") != stub || !stub && !strings.HasPrefix(text, begins[view]) {
				t.Errorf("view %d, %s: %s", i, view, text)
			}
			if !stub && view == lines && !strings.HasSuffix(text, "\n[as_text=true counts lines]") {
				t.Errorf("view %d: %s", i, text)
			}
		}
	}
}

// A cell whose outputs are cut, or have a line that no tool shows whole, could be edited by no tool, though all of its source
// was shown. What is cut of the outputs does not count as shown.
func TestCellWithLongOutputs(t *testing.T) {
	t.Parallel()
	log := func(n int) string {
		return `{"output_type":"stream","name":"stdout","text":["` + strings.Repeat("log ", n) + `"]}`
	}
	v4 := func(source string) string {
		return notebookOf(codeCell("c0", "0", ""), "\n"+codeCell("c1", source, log(3000)), codeCell("c2", "2", ""))
	}
	v3 := func(source string) string {
		return fmt.Sprintf(`{"metadata":{},"nbformat":3,"nbformat_minor":0,"worksheets":[{"cells":[{"cell_type":"code","input":["0"],"outputs":[]},
{"cell_type":"code","outputs":[%s],"input":[%q],"language":"python"}]}]}`, log(3000), source)
	}
	for name, file := range map[string]struct{ id, content string }{
		"nbformat 4": {"c1", v4("short")}, "nbformat 3": {"cell-1", v3("short")}, "UTF-16": {"c1", tooltest.UTF16(wideOrders()["LE"], v4("é"))},
	} {
		for _, mode := range []string{"replace", "delete"} {
			r := newRig(t)
			r.Prefs.ReadMaxTokens = 1000
			r.write("a.ipynb", file.content)
			text := r.ok("read_file", `{"file_path":"a.ipynb","offset":2,"limit":1}`)
			if !strings.Contains(text, " · the outputs of cell 2 are truncated; use run_shell with ") || !strings.Contains(text, "[1].outputs'") {
				t.Errorf("%s: …%s", name, text[max(0, len(text)-300):])
			}
			r.ok("read_file", `{"file_path":"a.ipynb","limit":1}`)
			r.ok("read_file", `{"file_path":"a.ipynb","offset":3}`)
			r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"a.ipynb","content":"{\"cells\":[]}"}`)
			r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"`+file.id+`","new_source":"x","edit_mode":"`+mode+`"}`)
			r.ok("write_file", `{"file_path":"a.ipynb","content":"{\"cells\":[]}"}`)
		}
	}
}

// Where the source itself is cut, its lines are enough: those of the outputs are not asked for, however long they are.
func TestCutSourceBesideLongOutputs(t *testing.T) {
	t.Parallel()
	content := strings.Replace(bookOf(manyLines("long")), `   "metadata": {},`, `   "metadata": {},
   "outputs": [{"output_type":"display_data","data":{"image/png":"`+strings.Repeat("A", 5000)+`"},"metadata":{}}],`, 1)
	for name, content := range map[string]string{"UTF-8": content, "UTF-16": tooltest.UTF16(wideOrders()["BE"], content)} {
		r := newRig(t)
		r.Prefs.ReadMaxTokens = 1000
		r.write("a.ipynb", content)
		r.ok("read_file", `{"file_path":"a.ipynb"}`)
		text := r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
		if want := "its lines with as_text=true, offset=8 and limit=202."; !strings.HasSuffix(text, want) {
			t.Errorf("%s: %s", name, text)
		}
		for at := 8; at < 210; at += 30 {
			r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
			r.ok("read_file", fmt.Sprintf(`{"file_path":"a.ipynb","as_text":true,"offset":%d,"limit":30}`, at))
		}
		r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
	}
}

// An insert touches nothing that must have been shown, wherever it is; in UTF-16 it was taken to touch the byte order mark.
func TestInsertIntoPartlyShownWide(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a.ipynb", tooltest.UTF16(wideOrders()["LE"], bookOf([]string{"0"}, []string{"1"})))
	r.ok("read_file", `{"file_path":"a.ipynb","offset":2}`)
	r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","edit_mode":"insert","cell_type":"code","new_source":"y"}`)
	r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
}

// What is in one line that no tool shows whole is left to other programs, and its neighbours are not.
func TestCutCellInOneLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.ReadMaxTokens = 1000
	r.write("a.ipynb", bookOf([]string{"short"}, []string{strings.Repeat("z", 5000)}))
	r.ok("read_file", `{"file_path":"a.ipynb"}`)
	if text, want := r.ok("read_file", `{"file_path":"a.ipynb","offset":2}`), "[cells 2-2 of 2 · cell 2 is truncated, and so are its lines in the file; use run_shell with jq '.cells[1]']"; !strings.HasSuffix(text, want) {
		t.Errorf("no %q in %s", want, text[max(0, len(text)-300):])
	}
	text := r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x"}`)
	if want := "If that truncates it, change it with run_shell and jq: its lines are too long for read_file."; !strings.HasSuffix(text, want) {
		t.Error(text)
	}
	r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
	r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","edit_mode":"insert","cell_type":"code","new_source":"y"}`)

	r.write("b.ipynb", tooltest.UTF16(wideOrders()["BE"], bookOf([]string{"short"}, []string{strings.Repeat("é", 5000)})))
	if text, want := r.ok("read_file", `{"file_path":"b.ipynb","offset":2}`), "use run_shell with iconv -f UTF-16 -t UTF-8 | jq '.cells[1]'"; !strings.Contains(text, want) {
		t.Errorf("no %q in %s", want, text[max(0, len(text)-300):])
	}
	text = r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"b.ipynb","cell_id":"c1","new_source":"x"}`)
	if want := "change it with run_shell, iconv -f UTF-16 -t UTF-8 and jq: its lines are too long for read_file."; !strings.HasSuffix(text, want) {
		t.Error(text)
	}
}

// A cell that was never shown was replaced, with what another program had written into it meanwhile.
func TestUnseenCell(t *testing.T) {
	t.Parallel()
	for name, order := range wideOrders() {
		for _, file := range []struct{ name, content, changed string }{
			{"UTF-8", bookOf([]string{"a é"}, manyLines("mine")), bookOf([]string{"a é"}, manyLines("theirs"))},
			{"UTF-16 " + name, tooltest.UTF16(order, bookOf([]string{"a é"}, manyLines("mine"))), tooltest.UTF16(order, bookOf([]string{"a é"}, manyLines("theirs")))},
		} {
			r := newRig(t)
			r.Prefs.ReadMaxTokens = 1000
			r.write("a.ipynb", file.content)
			r.ok("read_file", `{"file_path":"a.ipynb"}`)
			r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x"}`)
			r.write("a.ipynb", file.changed)
			r.fails(tool.FileChanged, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x"}`)
			r.ok("read_file", `{"file_path":"a.ipynb"}`)
			r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","new_source":"x"}`)
			r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c1","edit_mode":"delete","new_source":""}`)
			r.holds("a.ipynb", file.changed)
		}
	}
}

// A session knows the cells that it wrote itself, also between others that it was not shown.
func TestOwnCellAmongUnseen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a.ipynb", bookOf([]string{"0"}, []string{"1"}, []string{"2"}, []string{"3"}))
	r.ok("read_file", `{"file_path":"a.ipynb","limit":1}`)
	for _, after := range []string{"", `"cell_id":"c1",`, `"cell_id":"c3",`} {
		for _, kind := range []string{"code", "markdown"} {
			text := r.ok("notebook_edit", `{"notebook_path":"a.ipynb",`+after+`"edit_mode":"insert","cell_type":"`+kind+`","new_source":"mine"}`)
			id := strings.Fields(text)[2]
			r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"`+id+`","new_source":"1"}`)
			r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"`+id+`","new_source":""}`)
			r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"`+id+`","edit_mode":"delete","new_source":""}`)
		}
	}
	r.ok("notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"c0","new_source":"x"}`)
	for _, id := range []string{"c1", "c2", "c3"} {
		r.fails(tool.FilePartlyRead, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"`+id+`","new_source":"x"}`)
	}
}

// All cells are all of the notebook, also if they are shown one by one.
func TestCellsAddUp(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"UTF-8": bookOf([]string{"0"}, []string{"1"}, []string{"2"}), "UTF-16": tooltest.UTF16(wideOrders()["BE"], bookOf([]string{"0"}, []string{"é"}, []string{"2"})),
	} {
		r := newRig(t)
		r.write("a.ipynb", content)
		for _, cell := range []int{3, 1, 2} {
			r.fails(map[bool]tool.Code{true: tool.FileNotRead, false: tool.FilePartlyRead}[cell == 3], "write_file", `{"file_path":"a.ipynb","content":"{\"cells\":[]}"}`)
			r.ok("read_file", fmt.Sprintf(`{"file_path":"a.ipynb","offset":%d,"limit":1}`, cell))
		}
		if text := r.ok("write_file", `{"file_path":"a.ipynb","content":"{\"cells\":[]}"}`); !strings.HasPrefix(text, "Wrote a.ipynb") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
